// SLOWLOG GET, LEN, RESET, HELP.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "commands/groups.h"
#include "server/command/command_context.h"
#include "server/command/help.h"
#include "server/server.h"

namespace latchkey::commands {

using namespace server;

namespace {

void reply_entry(resp::ReplyBuilder& reply, const SlowLog::Entry& entry) {
  reply.array(6);
  reply.integer(static_cast<int64_t>(entry.id));
  reply.integer(entry.call.time_s);
  reply.integer(entry.call.duration_us);
  reply.array(entry.words.size());
  for (const std::string& word : entry.words) reply.bulk(word);
  reply.bulk(entry.call.client_address);
  reply.bulk(entry.call.client_name);
}

void slowlog_get(CommandContext& ctx) {
  constexpr int64_t kAll = -1;
  constexpr std::string_view kBadCount = "ERR count should be greater than or equal to -1";
  if (ctx.args.size() > 3) return wrong_subcommand(ctx);
  int64_t count = 10;
  if (ctx.args.size() > 2 &&
      !ctx.read_int64_in(ctx.args[2], kAll, std::numeric_limits<int64_t>::max(), &count, kBadCount))
    return;
  const auto& entries = ctx.server.slow_log().entries();
  const size_t shown = count == kAll
                           ? entries.size()
                           : std::min<uint64_t>(static_cast<uint64_t>(count), entries.size());
  ctx.reply.array(shown);
  for (size_t i = 0; i < shown; ++i) reply_entry(ctx.reply, entries[i]);
}

void slowlog_len(CommandContext& ctx) {
  ctx.reply.integer(static_cast<int64_t>(ctx.server.slow_log().entries().size()));
}

void slowlog_reset(CommandContext& ctx) {
  ctx.server.slow_log().clear();
  ctx.reply.ok();
}

void slowlog_help(CommandContext& ctx) {
  reply_help(ctx, {
                      "GET [<count>]",
                      "    List the latest slow calls, 10 of them or <count>; -1: all. Of each:",
                      "    id, Unix time, duration in microseconds, words of the request,",
                      "    address and name of the client.",
                      "LEN",
                      "    Count the calls in the log.",
                      "RESET",
                      "    Empty the log.",
                  });
}

constexpr CommandRow kSlowlogSubcommands[] = {
    {"GET",
     slowlog_get,
     "[count]",
     kAdmin | kLoading | kStale,
     {},
     0,
     Group::kServer,
     "2.2.12",
     "O(N) where N is the number of entries returned",
     "Returns the slow log's entries.",
     {.tips = "request_policy:all_nodes nondeterministic_output",
      .history = "4.0.0 Added client IP address, port and name to the reply."}},
    {"HELP",
     slowlog_help,
     "",
     kLoading | kStale,
     {},
     0,
     Group::kServer,
     "6.2.0",
     "O(1)",
     "Show helpful text about the different subcommands"},
    {"LEN",
     slowlog_len,
     "",
     kAdmin | kLoading | kStale,
     {},
     0,
     Group::kServer,
     "2.2.12",
     "O(1)",
     "Returns the number of entries in the slow log.",
     {.tips = "request_policy:all_nodes response_policy:agg_sum nondeterministic_output"}},
    {"RESET",
     slowlog_reset,
     "",
     kAdmin | kLoading | kStale,
     {},
     0,
     Group::kServer,
     "2.2.12",
     "O(N) where N is the number of entries in the slowlog",
     "Clears all entries from the slow log.",
     {.tips = "request_policy:all_nodes response_policy:all_succeeded"}},
};

constexpr CommandRow kSlowlogRows[] = {
    {"SLOWLOG",
     nullptr,
     "",
     0,
     {},
     0,
     Group::kServer,
     "2.2.12",
     "Depends on subcommand.",
     "A container for slow log commands.",
     {.subcommands = kSlowlogSubcommands}},
};

}  // namespace

std::span<const CommandRow> slowlog_rows() {
  return kSlowlogRows;
}

}  // namespace latchkey::commands
