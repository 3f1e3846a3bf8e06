// FAULT ADD, CLEAR, DEL, HELP, LIST, RESET.
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "base/text/number.h"
#include "base/time_units.h"
#include "server/command/command_context.h"
#include "server/command/help.h"
#include "server/server.h"
#include "testing/duration.h"
#include "testing/faults.h"
#include "testing/rows.h"

namespace latchkey::testing {

using namespace server;

namespace {

// Of what is given to FAULT ADD, so that faults stay small.
constexpr size_t kMaxWords = 512;
constexpr size_t kMaxWordBytes = 1024;
constexpr int64_t kMaxInteger = std::numeric_limits<int64_t>::max();

// --- Actions: false when an error has been sent --------------------------------------------------

using ActionReader = bool (*)(CommandContext&, ArgReader&, FaultAction*);

bool no_arguments(CommandContext&, ArgReader&, FaultAction*) {
  return true;
}

bool read_duration(CommandContext& ctx, std::string_view text, int64_t* duration_ms) {
  const auto duration_us = parse_duration_us(text);
  if (!duration_us)
    return ctx.refuse("ERR invalid duration, use a number of milliseconds or one such as 1.5s");
  *duration_ms = (*duration_us + base::kUsPerMs - 1) / base::kUsPerMs;
  return true;
}

bool missing_argument(CommandContext& ctx) {
  ctx.syntax_error();
  return false;
}

bool one_duration(CommandContext& ctx, ArgReader& arguments, FaultAction* action) {
  if (!arguments.more()) return missing_argument(ctx);
  if (!read_duration(ctx, arguments.next(), &action->shortest_ms)) return false;
  action->longest_ms = action->shortest_ms;
  return true;
}

bool range_of_durations(CommandContext& ctx, ArgReader& arguments, FaultAction* action) {
  if (!one_duration(ctx, arguments, action)) return false;
  if (!arguments.more()) return true;
  if (!read_duration(ctx, arguments.next(), &action->longest_ms)) return false;
  if (action->longest_ms >= action->shortest_ms) return true;
  return ctx.refuse("ERR the longest delay is shorter than the shortest one");
}

bool error_text(CommandContext& ctx, ArgReader& arguments, FaultAction* action) {
  if (!arguments.more()) return missing_argument(ctx);
  action->error = arguments.next();
  if (!action->error.empty()) return true;
  return ctx.refuse("ERR the text of an error must not be empty");
}

bool byte_count(CommandContext& ctx, ArgReader& arguments, FaultAction* action) {
  if (!arguments.more()) return missing_argument(ctx);
  int64_t bytes = 0;
  if (!ctx.read_int64_in(arguments.next(), 0, kMaxInteger, &bytes)) return false;
  action->bytes = static_cast<size_t>(bytes);
  return true;
}

// "10/5": ten bytes every five milliseconds.
bool trickle_rate(CommandContext& ctx, ArgReader& arguments, FaultAction* action) {
  if (!arguments.more()) return missing_argument(ctx);
  const std::string_view text = arguments.next();
  const size_t slash = text.find('/');
  int64_t bytes = 0;
  if (slash != std::string_view::npos && base::parse_int64(text.substr(0, slash), &bytes) &&
      bytes > 0 && base::parse_int64(text.substr(slash + 1), &action->shortest_ms) &&
      action->shortest_ms > 0 && action->shortest_ms <= kMaxInteger / 2) {
    action->bytes = static_cast<size_t>(bytes);
    return true;
  }
  return ctx.refuse("ERR TRICKLE takes <bytes>/<ms>, such as 10/5");
}

struct ActionName {
  std::string_view name;
  FaultKind kind;
  ActionReader read;
};

constexpr auto kActions = std::to_array<ActionName>({
    {"CUT", FaultKind::kCut, byte_count},
    {"DELAY", FaultKind::kDelay, range_of_durations},
    {"DELAY-REPLY", FaultKind::kDelayReply, range_of_durations},
    {"DISK-FULL", FaultKind::kDiskFull, no_arguments},
    {"DROP", FaultKind::kDrop, no_arguments},
    {"ERROR", FaultKind::kError, error_text},
    {"EVICT", FaultKind::kEvict, no_arguments},
    {"EXPIRE", FaultKind::kExpire, no_arguments},
    {"FSYNC-ERROR", FaultKind::kFsyncError, no_arguments},
    {"GARBAGE", FaultKind::kGarbage, no_arguments},
    {"HANG", FaultKind::kHang, no_arguments},
    {"HANG-REPLY", FaultKind::kHangReply, no_arguments},
    {"LOSE-REPLY", FaultKind::kLoseReply, no_arguments},
    {"PAUSE", FaultKind::kPause, one_duration},
    {"REFUSE", FaultKind::kRefuse, no_arguments},
    {"REPLICA-LAG", FaultKind::kReplicaLag, one_duration},
    {"RESET", FaultKind::kReset, no_arguments},
    {"TRICKLE", FaultKind::kTrickle, trickle_rate},
});

// What stands behind DO.
bool read_action(CommandContext& ctx, ArgReader& arguments, FaultAction* action) {
  for (const ActionName& each : kActions) {
    if (!arguments.word(each.name)) continue;
    action->kind = each.kind;
    if (!each.read(ctx, arguments, action)) return false;
    if (!arguments.more()) return true;
    ctx.syntax_error();
    return false;
  }
  if (!arguments.more()) return missing_argument(ctx);
  constexpr size_t kMaxShownBytes = 128;
  return ctx.refuse("ERR unknown action '" +
                    std::string(arguments.peek().substr(0, kMaxShownBytes)) + "'. Try FAULT HELP.");
}

// --- When a fault takes place --------------------------------------------------------------------

bool read_probability(CommandContext& ctx, std::string_view text, double* probability) {
  if (!ctx.read_double(text, probability)) return false;
  if (*probability > 0 && *probability <= 1) return true;
  return ctx.refuse("ERR PROBABILITY must be greater than 0 and at most 1");
}

// One of PROBABILITY, AFTER, TIMES and what selectors have.
bool read_condition(CommandContext& ctx, ArgReader& arguments, Fault* fault) {
  std::string_view text;
  int64_t count = 0;
  if (arguments.word("PROBABILITY", &text)) return read_probability(ctx, text, &fault->probability);
  if (arguments.word("AFTER", &text)) {
    if (!ctx.read_int64_in(text, 0, kMaxInteger, &count)) return false;
    fault->after = static_cast<uint64_t>(count);
    return true;
  }
  if (arguments.word("TIMES", &text)) {
    if (!ctx.read_int64_in(text, 1, kMaxInteger, &count)) return false;
    fault->times = static_cast<uint64_t>(count);
    return true;
  }
  if (is_word(arguments.peek(), "COMMAND") && arguments.left() > 1 &&
      is_exempt(arguments.rest()[1]))
    return ctx.refuse("ERR requests of '" + std::string(arguments.rest()[1]) +
                      "' meet no faults, so that whatever has others wait can be ended");
  const Selector::Read read = fault->selector.read(ctx, arguments);
  if (read == Selector::Read::kNothing) ctx.syntax_error();
  return read == Selector::Read::kPart;
}

void fault_add(CommandContext& ctx) {
  Faults& faults = ctx.server.layer<Faults>();
  Fault fault;
  ArgReader arguments(ctx.args, kFirstArgument);
  if (arguments.left() > kMaxWords) return ctx.syntax_error();
  for (const std::string_view word : arguments.rest()) {
    if (word.size() > kMaxWordBytes)
      return ctx.reply.error("ERR an argument may have up to " + std::to_string(kMaxWordBytes) +
                             " bytes");
    fault.words.emplace_back(word);
  }
  while (arguments.more() && !is_word(arguments.peek(), "DO")) {
    if (!read_condition(ctx, arguments, &fault)) return;
  }
  if (!arguments.word("DO"))
    return ctx.reply.error("ERR DO and an action were expected. Try FAULT HELP.");
  if (!read_action(ctx, arguments, &fault.action)) return;
  if (!is_about_requests(fault.action.kind) && !fault.selector.is_empty())
    return ctx.reply.error(
        "ERR this action is not about requests: it takes no COMMAND, KEY, CLIENT, USER or DB");
  if (faults.faults().size() == Faults::kMax)
    return ctx.reply.error("ERR there may be up to " + std::to_string(Faults::kMax) + " faults");
  ctx.reply.integer(static_cast<int64_t>(faults.add(std::move(fault))));
}

void fault_list(CommandContext& ctx) {
  const auto& faults = ctx.server.layer<Faults>().faults();
  ctx.reply.array(faults.size());
  for (const Fault& fault : faults) {
    ctx.reply.map(4);
    ctx.reply.bulk("id");
    ctx.reply.integer(static_cast<int64_t>(fault.id));
    ctx.reply.bulk("fault");
    ctx.reply.array(fault.words.size());
    for (const std::string& word : fault.words) ctx.reply.bulk(word);
    ctx.reply.bulk("matches");
    ctx.reply.integer(static_cast<int64_t>(fault.matches));
    ctx.reply.bulk("hits");
    ctx.reply.integer(static_cast<int64_t>(fault.hits));
  }
}

void fault_del(CommandContext& ctx) {
  int64_t id = 0;
  if (!ctx.read_int64(ctx.args[kFirstArgument], &id)) return;
  if (id <= 0 || !ctx.server.layer<Faults>().remove(static_cast<uint64_t>(id)))
    return ctx.reply.error("ERR no fault has that id");
  ctx.reply.ok();
}

void fault_clear(CommandContext& ctx) {
  ctx.server.layer<Faults>().clear();
  ctx.reply.ok();
}

void fault_reset(CommandContext& ctx) {
  ctx.server.layer<Faults>().reset_counts();
  ctx.reply.ok();
}

void fault_help(CommandContext& ctx) {
  reply_help(
      ctx, {
               "ADD [<selector> ...] [PROBABILITY <p>] [AFTER <n>] [TIMES <n>] DO <action>",
               "    Have requests fail, and return the id of the fault. Of several faults the",
               "    first that matches and is due takes place. PROBABILITY: by chance, 0 to 1.",
               "    AFTER: not before <n> requests have matched. TIMES: <n> times at most.",
               "    A <selector> says which requests are meant. All that are given must match,",
               "    of several COMMANDs one:",
               "        COMMAND <name>|<container>|<container>|<subcommand>|@<category>",
               "        KEY <pattern>   CLIENT <id>|<pattern>   USER <name>   DB <index>",
               "    An <action> before the request runs:",
               "        ERROR <text>        it does not run, and is answered with the error",
               "        DELAY <ms> [<ms>]   it runs later, after a time from the range",
               "        DROP                it does not run, the connection is closed",
               "        RESET               the same by TCP's RST",
               "        HANG                it does not run, nothing is sent any more",
               "        PAUSE <ms>          all clients wait, as by CLIENT PAUSE",
               "        EXPIRE              its keys go, as if their time had come; it runs",
               "        EVICT               its keys go, as if memory were short; it runs",
               "    ... after it has run:",
               "        LOSE-REPLY          nothing is sent, the connection is closed",
               "        DELAY-REPLY <ms> [<ms>]  the reply comes later",
               "        HANG-REPLY          nothing is sent any more",
               "        CUT <n>             <n> bytes of the reply, then the connection is closed",
               "        TRICKLE <bytes>/<ms>  the reply comes in pieces",
               "        GARBAGE             bytes that are no reply come in its place",
               "    ... or with no <selector>:",
               "        REFUSE              new connections are closed at once",
               "        DISK-FULL           writes of snapshots and the append-only file fail",
               "        FSYNC-ERROR         syncs of these files fail",
               "        REPLICA-LAG <ms>    what replicas are sent of the stream leaves later",
               "LIST",
               "    List the faults in their order, with the numbers of requests that matched",
               "    and of those that failed.",
               "DEL <id>",
               "    Remove a fault.",
               "CLEAR",
               "    Remove all faults.",
               "RESET",
               "    Set the numbers of all faults to zero, and so begin AFTER and TIMES anew.",
           });
}

// A fault may pause all clients, and must still be removable then.
constexpr uint32_t kFlags = kAdmin | kNoScript | kLoading | kStale | kProtected | kDuringPause;
// A fault must not hold up what would end a script without end.
constexpr uint32_t kAlsoBusy = kFlags | kAllowBusy;

constexpr CommandRow kFaultSubcommands[] = {
    {"ADD",
     fault_add,
     LATCHKEY_SELECTOR_SYNTAX " [PROBABILITY probability:double] [AFTER after:integer] "
                              "[TIMES times:integer] DO action [argument...]",
     kFlags,
     {},
     0,
     Group::kServer,
     "0.2.0",
     "O(1)",
     "Has requests that match fail in a given way."},
    {"CLEAR",
     fault_clear,
     "",
     kAlsoBusy,
     {},
     0,
     Group::kServer,
     "0.2.0",
     "O(N) where N is the number of faults",
     "Removes all faults."},
    {"DEL",
     fault_del,
     "id:integer",
     kAlsoBusy,
     {},
     0,
     Group::kServer,
     "0.2.0",
     "O(N) where N is the number of faults",
     "Removes a fault."},
    help_row(fault_help, 0, Group::kServer, "0.2.0"),
    {"LIST",
     fault_list,
     "",
     kAlsoBusy,
     {},
     0,
     Group::kServer,
     "0.2.0",
     "O(N) where N is the number of faults",
     "Returns the faults and how often each has taken place."},
    {"RESET",
     fault_reset,
     "",
     kFlags,
     {},
     0,
     Group::kServer,
     "0.2.0",
     "O(N) where N is the number of faults",
     "Sets the counts of all faults to zero."},
};

constexpr CommandRow kFaultRows[] = {
    {"FAULT",
     nullptr,
     "",
     0,
     {},
     0,
     Group::kServer,
     "0.2.0",
     "Depends on subcommand.",
     "A container for commands that have requests fail on purpose.",
     {.subcommands = kFaultSubcommands}},
};

}  // namespace

std::span<const CommandRow> fault_rows() {
  return kFaultRows;
}

}  // namespace latchkey::testing
