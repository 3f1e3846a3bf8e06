// FCALL, FCALL_RO, and FUNCTION.
#include <optional>

#include "base/text/glob.h"
#include "base/text/up_to_nul.h"
#include "script/engine.h"
#include "script/function_dump.h"
#include "script/rows.h"
#include "script/shebang.h"
#include "server/client/client.h"
#include "server/command/command_context.h"
#include "server/command/help.h"
#include "server/emulation/valkey_words.h"
#include "server/server.h"

namespace latchkey::script {

using namespace server;

namespace {

Functions& functions_of(CommandContext& ctx) {
  return ctx.server.layer<Engine>().functions();
}

// Libraries from a file or the master were loaded elsewhere before: their code may run as long as
// it needs.
Functions::TimeLimit time_limit_for(CommandContext& ctx) {
  const bool is_loading = (ctx.server.state() & kStateLoading) != 0;
  return is_loading || ctx.client.has(kClientMaster) ? Functions::TimeLimit::kNone
                                                     : Functions::TimeLimit::kHalfASecond;
}

void fcall(CommandContext& ctx) {
  functions_of(ctx).call(ctx, /*read_only=*/false);
}
void fcall_ro(CommandContext& ctx) {
  functions_of(ctx).call(ctx, /*read_only=*/true);
}

uint32_t flags_of_fcall(Server& server, Arguments words, uint32_t flags) {
  return command_flags_of(server.layer<Engine>().functions().declared_by(words[1]), flags);
}

// --- Changing libraries -------------------------------------------------------------------------

void function_load(CommandContext& ctx) {
  bool replace = false;
  ArgReader args(ctx.args, 2);
  while (args.left() > 1) {
    if (!args.word("REPLACE"))
      return ctx.reply.error("ERR Unknown option given: " +
                             std::string(base::up_to_nul(args.next())));
    replace = true;
  }
  const base::Result<std::string> name =
      functions_of(ctx).add(args.next(), replace, time_limit_for(ctx));
  if (!name) return ctx.reply.error(name.error());
  ctx.events.count(1);
  ctx.reply.bulk(*name);
}

void function_delete(CommandContext& ctx) {
  if (!functions_of(ctx).remove(ctx.args[2])) return ctx.reply.error("ERR Library not found");
  ctx.events.count(1);
  ctx.reply.ok();
}

void function_flush(CommandContext& ctx) {
  ArgReader args(ctx.args, 2);
  if (args.left() > 1) return wrong_subcommand(ctx);
  const bool in_background = read_flush_lazily(ctx, args);
  if (args.more()) return ctx.reply.error("ERR FUNCTION FLUSH only supports SYNC|ASYNC option");
  functions_of(ctx).flush(in_background);
  ctx.events.count(1);
  ctx.reply.ok();
}

void function_dump(CommandContext& ctx) {
  ctx.reply.bulk(dump_functions(functions_of(ctx), ctx.server.settings().rdbcompression,
                                ctx.server.edition().rdb_version()));
}

void function_restore(CommandContext& ctx) {
  using Policy = Functions::RestorePolicy;
  ArgReader args(ctx.args, 2);
  const std::string_view dump = args.next();
  if (args.left() > 1) return wrong_subcommand(ctx);
  auto policy = Policy::kAppend;
  if (args.word("FLUSH")) {
    policy = Policy::kFlush;
  } else if (args.word("REPLACE")) {
    policy = Policy::kReplace;
  } else if (args.more() && !args.word("APPEND")) {
    return ctx.reply.error(
        "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.");
  }
  const base::Result<> restored = functions_of(ctx).restore(dump, policy, time_limit_for(ctx));
  if (!restored) return ctx.reply.error(restored.error());
  ctx.events.count(1);
  ctx.reply.ok();
}

// --- Queries ------------------------------------------------------------------------------------

void reply_function(resp::ReplyBuilder& reply, const Function& function) {
  reply.map(3);
  reply.bulk("name");
  reply.bulk(function.name);
  reply.bulk("description");
  if (function.description) {
    reply.bulk(*function.description);
  } else {
    reply.null();
  }
  reply.bulk("flags");
  size_t count = 0;
  for (const NamedScriptFlag& each : kNamedScriptFlags)
    count += (function.flags & each.flag) != 0 ? 1 : 0;
  reply.set(count);
  for (const NamedScriptFlag& each : kNamedScriptFlags)
    if ((function.flags & each.flag) != 0) reply.status(each.name);
}

void reply_library(resp::ReplyBuilder& reply, const FunctionLibrary& library, bool with_code) {
  reply.map(with_code ? 4 : 3);
  reply.bulk("library_name");
  reply.bulk(library.name);
  reply.bulk("engine");
  reply.bulk("LUA");
  reply.bulk("functions");
  reply.array(library.functions.size());
  for (const Function& function : library.functions) reply_function(reply, function);
  if (!with_code) return;
  reply.bulk("library_code");
  reply.bulk(library.code);
}

void function_list(CommandContext& ctx) {
  std::optional<base::GlobPattern> pattern;
  bool with_code = false;
  for (ArgReader args(ctx.args, 2); args.more();) {
    if (!with_code && args.word("WITHCODE")) {
      with_code = true;
    } else if (!pattern && is_word(args.peek(), "LIBRARYNAME")) {
      args.next();
      if (!args.more()) return ctx.reply.error("ERR library name argument was not given");
      pattern.emplace(args.next(), /*ignore_case=*/true);
    } else {
      return ctx.reply.error("ERR Unknown argument " + std::string(args.next()));
    }
  }
  std::vector<const FunctionLibrary*> chosen;
  for (const auto& [name, library] : functions_of(ctx).store().libraries()) {
    if (!pattern || pattern->matches(name)) chosen.push_back(library.get());
  }
  ctx.reply.array(chosen.size());
  for (const FunctionLibrary* library : chosen) reply_library(ctx.reply, *library, with_code);
}

void reply_running(resp::ReplyBuilder& reply, const ScriptRunner& runner) {
  if (runner.running() == nullptr) return reply.null();
  reply.map(3);
  reply.bulk("name");
  reply.bulk(runner.running()->name);
  reply.bulk("command");
  const Arguments request = runner.running_request();
  reply.array(request.size());
  for (const std::string_view word : request) reply.bulk(word);
  reply.bulk("duration_ms");
  reply.integer(runner.running_ms());
}

// May be called while a function exceeds its time limit.
void function_stats(CommandContext& ctx) {
  const ScriptRunner& runner = ctx.server.layer<Engine>().runner();
  const Program* running = runner.running();
  if (running != nullptr && running->kind == Program::Kind::kScript)
    return ctx.reply.error(in_words_of(ctx.server, busy_error(running->kind)));
  const FunctionStore& store = functions_of(ctx).store();
  ctx.reply.map(2);
  ctx.reply.bulk("running_script");
  reply_running(ctx.reply, runner);
  ctx.reply.bulk("engines");
  ctx.reply.map(1);
  ctx.reply.bulk("LUA");
  ctx.reply.map(2);
  ctx.reply.bulk("libraries_count");
  ctx.reply.integer(static_cast<int64_t>(store.library_count()));
  ctx.reply.bulk("functions_count");
  ctx.reply.integer(static_cast<int64_t>(store.function_count()));
}

void function_kill(CommandContext& ctx) {
  ctx.server.layer<Engine>().runner().kill(ctx, Program::Kind::kFunction);
}

void function_help(CommandContext& ctx) {
  reply_help(ctx, {"DELETE <library-name>", "    Forget a library and its functions.", "DUMP",
                   "    All libraries as bytes, for RESTORE.", "FLUSH [ASYNC|SYNC]",
                   "    Forget all libraries; ASYNC frees them on another thread.", "KILL",
                   "    Stop the function that runs, unless it has written.",
                   "LIST [LIBRARYNAME <pattern>] [WITHCODE]",
                   "    Tell of each library its name, engine, functions and, if wanted, code.",
                   "LOAD [REPLACE] <function-code>",
                   "    Make a library out of code; REPLACE: instead of the one of its name.",
                   "RESTORE <serialized-value> [FLUSH|APPEND|REPLACE]",
                   "    Add the libraries of a DUMP. FLUSH: in place of all; APPEND: to what is "
                   "there, which is",
                   "    what happens by default; REPLACE: in place of those of the same names.",
                   "STATS", "    Tell which function runs, and how many there are."});
}

constexpr CommandRow kFunctionSubcommands[] = {
    {"DELETE",
     function_delete,
     "library-name",
     kWrite | kNoScript,
     {},
     kAclScripting,
     Group::kScripting,
     "7.0.0",
     "O(1)",
     "Deletes a library and its functions.",
     {.tips = "request_policy:all_shards response_policy:all_succeeded"}},
    {"DUMP",
     function_dump,
     "",
     kNoScript,
     {},
     kAclScripting,
     Group::kScripting,
     "7.0.0",
     "O(N) where N is the number of functions",
     "Dumps all libraries into a serialized binary payload."},
    {"FLUSH",
     function_flush,
     "[flush-type=ASYNC|SYNC]",
     kWrite | kNoScript,
     {},
     kAclScripting,
     Group::kScripting,
     "7.0.0",
     "O(N) where N is the number of functions deleted",
     "Deletes all libraries and functions.",
     {.tips = "request_policy:all_shards response_policy:all_succeeded"}},
    help_row(function_help, kAclScripting, Group::kScripting, "7.0.0"),
    {"KILL",
     function_kill,
     "",
     kNoScript | kAllowBusy,
     {},
     kAclScripting,
     Group::kScripting,
     "7.0.0",
     "O(1)",
     "Terminates a function during execution.",
     {.tips = "request_policy:all_shards response_policy:one_succeeded"}},
    {"LIST",
     function_list,
     "[LIBRARYNAME library-name-pattern] [WITHCODE]",
     kNoScript,
     {},
     kAclScripting,
     Group::kScripting,
     "7.0.0",
     "O(N) where N is the number of functions",
     "Returns information about all libraries.",
     {.tips = "nondeterministic_output_order"}},
    {"LOAD",
     function_load,
     "[REPLACE] function-code",
     kWrite | kDenyOom | kNoScript | kMayTakeLong,
     {},
     kAclScripting,
     Group::kScripting,
     "7.0.0",
     "O(1) (considering compilation time is redundant)",
     "Creates a library.",
     {.tips = "request_policy:all_shards response_policy:all_succeeded"}},
    {"RESTORE",
     function_restore,
     "serialized-value [policy=FLUSH|APPEND|REPLACE]",
     kWrite | kDenyOom | kNoScript | kMayTakeLong,
     {},
     kAclScripting,
     Group::kScripting,
     "7.0.0",
     "O(N) where N is the number of functions on the payload",
     "Restores all libraries from a payload.",
     {.tips = "request_policy:all_shards response_policy:all_succeeded"}},
    {"STATS",
     function_stats,
     "",
     kNoScript | kAllowBusy,
     {},
     kAclScripting,
     Group::kScripting,
     "7.0.0",
     "O(1)",
     "Returns information about a function during execution.",
     {.tips = "nondeterministic_output request_policy:all_shards response_policy:special"}},
};

constexpr CommandRow kFunctionRows[] = {
    {"FCALL",
     fcall,
     "function numkeys [key...] [arg...]",
     kNoScript | kStale | kSkipMonitor | kNoMandatoryKeys | kMayReplicate | kMayTakeLong |
         kScriptRunner,
     counted_keys(2).rw().access().update().note(
         "We cannot tell how the keys will be used so we assume the worst, RW and UPDATE"),
     kAclScripting,
     Group::kScripting,
     "7.0.0",
     "Depends on the function that is executed.",
     "Invokes a function.",
     {.find_flags = flags_of_fcall}},
    {"FCALL_RO",
     fcall_ro,
     "function numkeys [key...] [arg...]",
     kReadOnly | kNoScript | kStale | kSkipMonitor | kNoMandatoryKeys | kMayTakeLong |
         kScriptRunner,
     counted_keys(2).ro().access().note(
         "We cannot tell how the keys will be used so we assume the worst, RO and ACCESS"),
     kAclScripting,
     Group::kScripting,
     "7.0.0",
     "Depends on the function that is executed.",
     "Invokes a read-only function.",
     {.find_flags = flags_of_fcall}},
    {"FUNCTION",
     nullptr,
     "",
     0,
     {},
     0,
     Group::kScripting,
     "7.0.0",
     "Depends on subcommand.",
     "A container for function commands.",
     {.subcommands = kFunctionSubcommands}},
};

}  // namespace

std::span<const CommandRow> function_rows() {
  return kFunctionRows;
}

}  // namespace latchkey::script
