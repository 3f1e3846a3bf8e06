// GET, LEN, RESET and HELP of SLOWLOG and COMMANDLOG.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "commands/groups.h"
#include "server/command/command_context.h"
#include "server/command/dispatcher.h"
#include "server/command/help.h"
#include "server/observe/large_calls.h"
#include "server/server.h"

namespace latchkey::commands {

using namespace server;

namespace {

constexpr std::string_view kBadCount = "ERR count should be greater than or equal to -1";

void reply_entry(resp::ReplyBuilder& reply, const CommandLog::Entry& entry) {
  reply.array(6);
  reply.integer(static_cast<int64_t>(entry.id));
  reply.integer(entry.call.time_s);
  reply.integer(entry.call.amount);
  reply.array(entry.words.size());
  for (const std::string& word : entry.words) reply.bulk(word);
  reply.bulk(entry.call.client_address);
  reply.bulk(entry.call.client_name);
}

// False when an error has been sent. kAll: all entries.
constexpr int64_t kAll = -1;
bool read_count(CommandContext& ctx, int64_t* count) {
  return ctx.read_int64_in(ctx.args[2], kAll, std::numeric_limits<int64_t>::max(), count,
                           kBadCount);
}

void reply_entries(CommandContext& ctx, const CommandLog& log, int64_t count) {
  const auto& entries = log.entries();
  const size_t shown = count == kAll
                           ? entries.size()
                           : std::min<uint64_t>(static_cast<uint64_t>(count), entries.size());
  ctx.reply.array(shown);
  for (size_t i = 0; i < shown; ++i) reply_entry(ctx.reply, entries[i]);
}

void reply_length(CommandContext& ctx, const CommandLog& log) {
  ctx.reply.integer(static_cast<int64_t>(log.entries().size()));
}

void reset(CommandContext& ctx, CommandLog& log) {
  log.clear();
  ctx.reply.ok();
}

// --- SLOWLOG -------------------------------------------------------------------------------------

void slowlog_get(CommandContext& ctx) {
  if (ctx.args.size() > 3) return wrong_subcommand(ctx);
  int64_t count = 10;
  if (ctx.args.size() > 2 && !read_count(ctx, &count)) return;
  reply_entries(ctx, ctx.server.slow_log(), count);
}

void slowlog_len(CommandContext& ctx) {
  reply_length(ctx, ctx.server.slow_log());
}

void slowlog_reset(CommandContext& ctx) {
  reset(ctx, ctx.server.slow_log());
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

// --- COMMANDLOG ----------------------------------------------------------------------------------

// Null when an error has been sent.
CommandLog* read_type(CommandContext& ctx, std::string_view type) {
  if (is_word(type, "SLOW")) return &ctx.server.slow_log();
  LargeCalls& large = ctx.server.dispatcher().meters().large_calls();
  if (is_word(type, "LARGE-REQUEST")) return &large.requests();
  if (is_word(type, "LARGE-REPLY")) return &large.replies();
  return ctx.refuse("ERR type should be one of the following: slow, large-request, large-reply",
                    nullptr);
}

void commandlog_get(CommandContext& ctx) {
  int64_t count;
  if (!read_count(ctx, &count)) return;
  if (const CommandLog* log = read_type(ctx, ctx.args[3])) reply_entries(ctx, *log, count);
}

void commandlog_len(CommandContext& ctx) {
  if (const CommandLog* log = read_type(ctx, ctx.args[2])) reply_length(ctx, *log);
}

void commandlog_reset(CommandContext& ctx) {
  if (CommandLog* log = read_type(ctx, ctx.args[2])) reset(ctx, *log);
}

void commandlog_help(CommandContext& ctx) {
  reply_help(ctx, {
                      "GET <count> <type>",
                      "    List the latest <count> calls of a log (-1: all). Of each:",
                      "    id, Unix time, microseconds (SLOW) or bytes of the request or reply,",
                      "    words of the request, address and name of the client.",
                      "LEN <type>",
                      "    Count the calls in a log.",
                      "RESET <type>",
                      "    Empty a log.",
                      "A <type> is SLOW, LARGE-REQUEST or LARGE-REPLY.",
                  });
}

constexpr CommandRow kCommandlogSubcommands[] = {
    {"GET",
     commandlog_get,
     "count:integer {type=SLOW|LARGE-REQUEST|LARGE-REPLY}",
     kAdmin | kLoading | kStale,
     {},
     0,
     Group::kServer,
     "8.1.0",
     "O(N) where N is the number of entries returned",
     "Returns the specified command log's entries.",
     {.tips = "request_policy:all_nodes nondeterministic_output"}},
    {"HELP",
     commandlog_help,
     "",
     kLoading | kStale,
     {},
     0,
     Group::kServer,
     "8.1.0",
     "O(1)",
     "Shows helpful text about the different subcommands."},
    {"LEN",
     commandlog_len,
     "{type=SLOW|LARGE-REQUEST|LARGE-REPLY}",
     kAdmin | kLoading | kStale,
     {},
     0,
     Group::kServer,
     "8.1.0",
     "O(1)",
     "Returns the number of entries in the specified type of command log.",
     {.tips = "request_policy:all_nodes response_policy:agg_sum nondeterministic_output"}},
    {"RESET",
     commandlog_reset,
     "{type=SLOW|LARGE-REQUEST|LARGE-REPLY}",
     kAdmin | kLoading | kStale,
     {},
     0,
     Group::kServer,
     "8.1.0",
     "O(N) where N is the number of entries in the commandlog",
     "Clears all entries from the specified type of command log.",
     {.tips = "request_policy:all_nodes response_policy:all_succeeded"}},
};

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
    {"COMMANDLOG",
     nullptr,
     "",
     0,
     {},
     0,
     Group::kServer,
     "8.1.0",
     "Depends on subcommand.",
     "A container for command log commands.",
     {.subcommands = kCommandlogSubcommands}},
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
