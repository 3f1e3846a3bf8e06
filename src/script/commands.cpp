// EVAL, EVALSHA, their read-only forms, and SCRIPT.
#include "script/engine.h"
#include "script/rows.h"
#include "script/shebang.h"
#include "server/client/client.h"
#include "server/command/command_context.h"
#include "server/command/help.h"
#include "server/server.h"

namespace latchkey::script {

using namespace server;

namespace {

void eval(CommandContext& ctx) {
  ctx.server.layer<Engine>().eval(ctx, /*read_only=*/false);
}
void eval_ro(CommandContext& ctx) {
  ctx.server.layer<Engine>().eval(ctx, /*read_only=*/true);
}
void evalsha(CommandContext& ctx) {
  ctx.server.layer<Engine>().eval_sha(ctx, /*read_only=*/false);
}
void evalsha_ro(CommandContext& ctx) {
  ctx.server.layer<Engine>().eval_sha(ctx, /*read_only=*/true);
}

uint32_t flags_of_eval(Server& server, Arguments words, uint32_t flags) {
  return command_flags_of(server.layer<Engine>().declared_by(words[1]), flags);
}
uint32_t flags_of_evalsha(Server& server, Arguments words, uint32_t flags) {
  return command_flags_of(server.layer<Engine>().declared_by_sha(words[1]), flags);
}

void script_load(CommandContext& ctx) {
  const base::Result<std::string> sha = ctx.server.layer<Engine>().load(ctx.args[2]);
  if (!sha) return ctx.reply.error(sha.error());
  ctx.reply.bulk(*sha);
}

void script_exists(CommandContext& ctx) {
  const Arguments shas = ctx.args.subspan(2);
  ctx.reply.array(shas.size());
  for (const std::string_view sha : shas)
    ctx.reply.integer(ctx.server.layer<Engine>().exists(sha) ? 1 : 0);
}

void script_show(CommandContext& ctx) {
  const Script* const script = ctx.server.layer<Engine>().find(ctx.args[2]);
  if (script == nullptr) return ctx.reply.error("NOSCRIPT No matching script.");
  ctx.reply.bulk(script->body);
}

void script_flush(CommandContext& ctx) {
  ArgReader args(ctx.args, 2);
  const bool in_background = read_flush_lazily(ctx, args);
  if (args.more()) return ctx.reply.error("ERR SCRIPT FLUSH only support SYNC|ASYNC option");
  ctx.server.layer<Engine>().flush(in_background);
  ctx.reply.ok();
}

void script_kill(CommandContext& ctx) {
  ctx.server.layer<Engine>().runner().kill(ctx, Program::Kind::kScript);
}

void script_debug(CommandContext& ctx) {
  using Kind = DebugSessions::Kind;
  // The session's lines would be mixed with replies that wait to be sent.
  if (ctx.client.pending_output() != 0)
    return ctx.reply.error("ERR SCRIPT DEBUG must be called outside a pipeline");
  // A session reads and writes the socket by itself.
  const auto use_io_thread = [&ctx](bool on) {
    if (ctx.client.connection() != nullptr) ctx.client.connection()->use_io_thread(on);
  };
  DebugSessions& sessions = ctx.server.layer<Engine>().debug_sessions();
  ArgReader args(ctx.args, 2);
  if (args.word("NO")) {
    sessions.want_none(ctx.client);
    use_io_thread(true);
  } else if (args.word("YES")) {
    sessions.want(ctx.client, Kind::kForked);
    use_io_thread(false);
  } else if (args.word("SYNC")) {
    sessions.want(ctx.client, Kind::kSynchronous);
    use_io_thread(false);
  } else {
    return ctx.reply.error("ERR Use SCRIPT DEBUG YES/SYNC/NO");
  }
  ctx.reply.ok();
}

void script_help(CommandContext& ctx) {
  std::vector<std::string_view> lines = {
      "DEBUG (YES|SYNC|NO)",
      "    Debug this client's next EVAL: in a child of the server, or (SYNC) in the server "
      "itself, "
      "which serves nobody else then.",
      "EXISTS <sha1> [<sha1> ...]",
      "    Tell for each digest whether its script is in the cache.",
      "FLUSH [ASYNC|SYNC]",
      "    Forget all scripts; ASYNC frees them on another thread.",
      "KILL",
      "    Stop the script that runs, unless it has written.",
      "LOAD <script>",
      "    Compile a script and keep it in the cache without running it."};
  if (ctx.server.edition().has(kNever, {8, 0}))
    lines.insert(lines.end(), {"SHOW <sha1>", "    Reply with the script that has this digest."});
  reply_help(ctx, lines);
}

constexpr CommandRow kScriptSubcommands[] = {
    {"DEBUG",
     script_debug,
     "{mode=YES|SYNC|NO}",
     kNoScript,
     {},
     kAclScripting,
     Group::kScripting,
     "3.2.0",
     "O(1)",
     "Sets the debug mode of server-side Lua scripts."},
    {"EXISTS",
     script_exists,
     "sha1...",
     kNoScript,
     {},
     kAclScripting,
     Group::kScripting,
     "2.6.0",
     "O(N) with N being the number of scripts to check (so checking a single script is an O(1) "
     "operation).",
     "Determines whether server-side Lua scripts exist in the script cache.",
     {.tips = "request_policy:all_shards response_policy:agg_logical_and"}},
    {"FLUSH",
     script_flush,
     "[flush-type=ASYNC|SYNC]@6.2.0",
     kNoScript,
     {},
     kAclScripting,
     Group::kScripting,
     "2.6.0",
     "O(N) with N being the number of scripts in cache",
     "Removes all server-side Lua scripts from the script cache.",
     {.tips = "request_policy:all_nodes response_policy:all_succeeded",
      .history = "6.2.0 Added the `ASYNC` and `SYNC` flushing mode modifiers."}},
    help_row(script_help, kAclScripting, Group::kScripting, "5.0.0"),
    {"KILL",
     script_kill,
     "",
     kNoScript | kAllowBusy,
     {},
     kAclScripting,
     Group::kScripting,
     "2.6.0",
     "O(1)",
     "Terminates a server-side Lua script during execution.",
     {.tips = "request_policy:all_shards response_policy:one_succeeded"}},
    {"LOAD",
     script_load,
     "script",
     kNoScript | kStale,
     {},
     kAclScripting,
     Group::kScripting,
     "2.6.0",
     "O(N) with N being the length in bytes of the script body.",
     "Loads a server-side Lua script to the script cache.",
     {.tips = "request_policy:all_nodes response_policy:all_succeeded"}},
    {"SHOW",
     script_show,
     "sha1",
     kNoScript,
     {},
     kAclScripting,
     Group::kScripting,
     "8.0.0",
     "O(1).",
     "Show server-side Lua script in the script cache."},
};

constexpr CommandRow kScriptRows[] = {
    {"EVAL",
     eval,
     "script numkeys [key...] [arg...]",
     kNoScript | kStale | kSkipMonitor | kNoMandatoryKeys | kMayReplicate | kMayTakeLong |
         kScriptRunner,
     counted_keys(2).rw().access().update().note(
         "We cannot tell how the keys will be used so we assume the worst, RW and UPDATE"),
     kAclScripting,
     Group::kScripting,
     "2.6.0",
     "Depends on the script that is executed.",
     "Executes a server-side Lua script.",
     {.find_flags = flags_of_eval}},
    {"EVAL_RO",
     eval_ro,
     "script numkeys [key...] [arg...]",
     kReadOnly | kNoScript | kStale | kSkipMonitor | kNoMandatoryKeys | kMayTakeLong |
         kScriptRunner,
     counted_keys(2).ro().access().note(
         "We cannot tell how the keys will be used so we assume the worst, RO and ACCESS"),
     kAclScripting,
     Group::kScripting,
     "7.0.0",
     "Depends on the script that is executed.",
     "Executes a read-only server-side Lua script.",
     {.find_flags = flags_of_eval}},
    {"EVALSHA",
     evalsha,
     "sha1 numkeys [key...] [arg...]",
     kNoScript | kStale | kSkipMonitor | kNoMandatoryKeys | kMayReplicate | kMayTakeLong |
         kScriptRunner,
     counted_keys(2).rw().access().update(),
     kAclScripting,
     Group::kScripting,
     "2.6.0",
     "Depends on the script that is executed.",
     "Executes a server-side Lua script by SHA1 digest.",
     {.find_flags = flags_of_evalsha}},
    {"EVALSHA_RO",
     evalsha_ro,
     "sha1 numkeys [key...] [arg...]",
     kReadOnly | kNoScript | kStale | kSkipMonitor | kNoMandatoryKeys | kMayTakeLong |
         kScriptRunner,
     counted_keys(2).ro().access(),
     kAclScripting,
     Group::kScripting,
     "7.0.0",
     "Depends on the script that is executed.",
     "Executes a read-only server-side Lua script by SHA1 digest.",
     {.find_flags = flags_of_evalsha}},
    {"SCRIPT",
     nullptr,
     "",
     0,
     {},
     0,
     Group::kScripting,
     "2.6.0",
     "Depends on subcommand.",
     "A container for Lua scripts management commands.",
     {.subcommands = kScriptSubcommands}},
};

}  // namespace

std::span<const CommandRow> script_rows() {
  return kScriptRows;
}

}  // namespace latchkey::script
