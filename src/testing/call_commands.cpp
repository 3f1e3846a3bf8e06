// CALLS COUNT, HELP, LIST, RESET, START, STOP, WAIT.
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/command/command_context.h"
#include "server/command/help.h"
#include "server/server.h"
#include "testing/calls.h"
#include "testing/rows.h"
#include "testing/selector.h"

namespace latchkey::testing {

using namespace server;

namespace {

constexpr int64_t kMaxInteger = std::numeric_limits<int64_t>::max();

// Reads a selector that reaches to the end of the request. False when an error has been sent.
bool read_selector(CommandContext& ctx, ArgReader arguments, Selector* selector) {
  while (arguments.more()) {
    switch (selector->read(ctx, arguments)) {
      case Selector::Read::kPart:
        break;
      case Selector::Read::kNothing:
        ctx.syntax_error();
        return false;
      case Selector::Read::kFailed:
        return false;
    }
  }
  return true;
}

void calls_start(CommandContext& ctx) {
  int64_t most = Calls::kDefaultMost;
  std::string_view text;
  for (ArgReader options(ctx.args, kFirstArgument); options.more();) {
    if (!options.word("MAX", &text)) return ctx.syntax_error();
    if (!ctx.read_int64_in(text, 1, Calls::kHighestMost, &most)) return;
  }
  ctx.server.layer<Calls>().start(static_cast<size_t>(most));
  ctx.reply.ok();
}

void calls_stop(CommandContext& ctx) {
  ctx.server.layer<Calls>().stop();
  ctx.reply.ok();
}

void calls_reset(CommandContext& ctx) {
  ctx.server.layer<Calls>().reset();
  ctx.reply.ok();
}

std::string_view text_of(Call::Context context) {
  switch (context) {
    case Call::Context::kPlain:
      return "plain";
    case Call::Context::kMulti:
      return "multi";
    case Call::Context::kScript:
      break;
  }
  return "script";
}

std::string_view reply_of(const Calls::Record& record) {
  switch (record.state) {
    case Calls::State::kRunning:
      return "(running)";
    case Calls::State::kWaiting:
      return "(waiting)";
    case Calls::State::kEnded:
      break;
  }
  return record.reply;
}

void reply_record(resp::ReplyBuilder& reply, const Calls::Record& record) {
  reply.map(10);
  reply.bulk("id");
  reply.integer(static_cast<int64_t>(record.id));
  reply.bulk("time-us");
  reply.integer(record.time_us);
  reply.bulk("client-id");
  reply.integer(static_cast<int64_t>(record.client_id));
  reply.bulk("client-name");
  reply.bulk(record.client_name);
  reply.bulk("user");
  reply.bulk(record.user);
  reply.bulk("db");
  reply.integer(record.database);
  reply.bulk("context");
  reply.bulk(text_of(record.context));
  reply.bulk("args");
  reply.array(record.words.size());
  for (const std::string& word : record.words) reply.bulk(word);
  reply.bulk("duration-us");
  reply.integer(record.duration_us);
  reply.bulk("reply");
  reply.bulk(reply_of(record));
}

void calls_list(CommandContext& ctx) {
  Selector selector;
  int64_t most = kMaxInteger;
  std::string_view text;
  for (ArgReader arguments(ctx.args, kFirstArgument); arguments.more();) {
    if (arguments.word("COUNT", &text)) {
      if (!ctx.read_int64_in(text, 0, kMaxInteger, &most)) return;
      continue;
    }
    const Selector::Read read = selector.read(ctx, arguments);
    if (read == Selector::Read::kFailed) return;
    if (read == Selector::Read::kNothing) return ctx.syntax_error();
  }
  const Calls& calls = ctx.server.layer<Calls>();
  std::vector<const Calls::Record*> shown;
  for (auto it = calls.records().rbegin(); it != calls.records().rend(); ++it) {
    if (std::cmp_greater_equal(shown.size(), most)) break;
    if (calls.matches(selector, *it)) shown.push_back(&*it);
  }
  ctx.reply.array(shown.size());
  for (auto it = shown.rbegin(); it != shown.rend(); ++it) reply_record(ctx.reply, **it);
}

void calls_count(CommandContext& ctx) {
  Selector selector;
  if (!read_selector(ctx, ArgReader(ctx.args, kFirstArgument), &selector)) return;
  ctx.reply.integer(static_cast<int64_t>(ctx.server.layer<Calls>().count(selector)));
}

void calls_wait(CommandContext& ctx) {
  ArgReader arguments(ctx.args, kFirstArgument);
  int64_t wanted = 0;
  int64_t deadline_ms = 0;
  if (!ctx.read_int64_in(arguments.next(), 0, kMaxInteger, &wanted)) return;
  if (!ctx.read_wait_ms(arguments.next(), &deadline_ms)) return;
  Selector selector;
  if (!read_selector(ctx, arguments, &selector)) return;
  ctx.server.layer<Calls>().wait(ctx, std::move(selector), static_cast<uint64_t>(wanted),
                                 deadline_ms);
}

void calls_help(CommandContext& ctx) {
  reply_help(ctx,
             {
                 "START [MAX <count>]",
                 "    Record the calls of all clients from now on, the latest 10000 or <count>.",
                 "STOP",
                 "    Record no more calls. What was recorded stays.",
                 "RESET",
                 "    Drop what was recorded.",
                 "LIST [<selector> ...] [COUNT <count>]",
                 "    List recorded calls, the oldest first: all, or the latest <count>.",
                 "COUNT [<selector> ...]",
                 "    Count recorded calls.",
                 "WAIT <count> <timeout-ms> [<selector> ...]",
                 "    Wait until <count> calls have been recorded, for at most <timeout-ms>",
                 "    milliseconds (0: for ever), and return how many there are.",
                 "A <selector> says which calls are meant. All that are given must match, of",
                 "several COMMANDs one:",
                 "    COMMAND <name>|<container>|<container>|<subcommand>|@<category>",
                 "    KEY <pattern>   CLIENT <id>|<pattern>   USER <name>   DB <index>",
             });
}

// What waits because of a pause, or of FAULT's, can be looked at meanwhile.
constexpr uint32_t kFlags = kAdmin | kNoScript | kLoading | kStale | kProtected | kDuringPause;

constexpr CommandRow kCallsSubcommands[] = {
    {"COUNT",
     calls_count,
     LATCHKEY_SELECTOR_SYNTAX,
     kFlags,
     {},
     0,
     Group::kServer,
     "0.2.0",
     "O(N) where N is the number of calls on record",
     "Counts the recorded calls, or those that match."},
    help_row(calls_help, 0, Group::kServer, "0.2.0"),
    {"LIST",
     calls_list,
     LATCHKEY_SELECTOR_SYNTAX " [COUNT count]",
     kFlags,
     {},
     0,
     Group::kServer,
     "0.2.0",
     "O(N) where N is the number of calls on record",
     "Returns the recorded calls, or those that match.",
     {.tips = "nondeterministic_output"}},
    {"RESET",
     calls_reset,
     "",
     kFlags,
     {},
     0,
     Group::kServer,
     "0.2.0",
     "O(N) where N is the number of calls on record",
     "Drops the recorded calls."},
    {"START",
     calls_start,
     "[MAX max:integer]",
     kFlags,
     {},
     0,
     Group::kServer,
     "0.2.0",
     "O(1)",
     "Begins to record the calls of all clients."},
    {"STOP",
     calls_stop,
     "",
     kFlags,
     {},
     0,
     Group::kServer,
     "0.2.0",
     "O(1)",
     "Ends the recording of calls and keeps what was recorded."},
    {"WAIT",
     calls_wait,
     "count timeout " LATCHKEY_SELECTOR_SYNTAX,
     kFlags | kBlocking,
     {},
     0,
     Group::kServer,
     "0.2.0",
     "O(N) where N is the number of calls on record",
     "Blocks until enough calls that match have been recorded."},
};

constexpr CommandRow kCallsRows[] = {
    {"CALLS",
     nullptr,
     "",
     0,
     {},
     0,
     Group::kServer,
     "0.2.0",
     "Depends on subcommand.",
     "A container for commands that record what clients send.",
     {.subcommands = kCallsSubcommands}},
};

}  // namespace

std::span<const CommandRow> calls_rows() {
  return kCallsRows;
}

}  // namespace latchkey::testing
