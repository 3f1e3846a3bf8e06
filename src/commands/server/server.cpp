// SHUTDOWN, TIME.
#include "server/server.h"
#include "base/time_units.h"
#include "server/command/dispatcher.h"

#include "commands/groups.h"
#include "server/command/command_context.h"
#include "server/config/cluster_shutdown.h"
#include "server/emulation/valkey_words.h"
#include "server/process/shutdown.h"

namespace latchkey::commands {

using namespace server;

namespace {

void shutdown(CommandContext& ctx) {
  unsigned flags = 0;
  bool abort = false;
  for (ArgReader options(ctx.args, 1); options.more();) {
    if (options.word("NOSAVE")) {
      flags |= kShutdownNosave;
    } else if (options.word("SAVE")) {
      flags |= kShutdownSave;
    } else if (options.word("NOW")) {
      flags |= kShutdownNow;
    } else if (options.word("FORCE")) {
      flags |= kShutdownForce;
    } else if (options.word("SAFE")) {
      flags |= kShutdownSafe;
    } else if (options.word("FAILOVER")) {
      flags |= kShutdownFailover;
    } else if (options.word("ABORT")) {
      abort = true;
    } else {
      return ctx.syntax_error();
    }
  }
  const bool contradictory = (flags & kShutdownSave) != 0 && (flags & kShutdownNosave) != 0;
  if (contradictory || (abort && flags != 0)) return ctx.syntax_error();
  // The files are those of the process, which has other data in them.
  if ((flags & (kShutdownSave | kShutdownFailover)) != 0 && (ctx.server.state() & kStateSpace) != 0)
    return ctx.reply.error(
        "ERR SHUTDOWN with SAVE or FAILOVER is not available in a space, which has no persistence, "
        "no replication and no cluster");
  if (abort) {
    if (!ctx.server.shutdown().abort()) return ctx.reply.error("ERR No shutdown in progress.");
    return ctx.reply.ok();
  }
  // While a script runs the server ends only if it need not save what is half done.
  if ((ctx.server.state() & kStateBusy) != 0 && (flags & kShutdownNosave) == 0)
    return ctx.reply.error(in_words_of(ctx.server, ctx.server.busy_error()));
  const auto outcome = ctx.server.shutdown().request(flags);
  if (!outcome) return ctx.reply.error(outcome.error());
  if (*outcome == Shutdown::Outcome::kWaits) return ctx.server.shutdown().wait(ctx.client);
  ctx.client.close_after_reply();
}

void time(CommandContext& ctx) {
  // Time does not change within a transaction or a script.
  if (!ctx.server.dispatcher().in_nested_call()) ctx.server.refresh_clock();
  const int64_t now_us = ctx.server.now_us();
  ctx.reply.array(2);
  ctx.reply.bulk(now_us / base::kUsPerSecond);
  ctx.reply.bulk(now_us % base::kUsPerSecond);
}

constexpr CommandRow kServerRows[] = {
    {"SHUTDOWN",
     shutdown,
     "[save-selector=NOSAVE|SAVE] [NOW]@7.0.0 [FORCE]@7.0.0 [ABORT]@7.0.0 [SAFE] "
     "[FAILOVER]",

     kAdmin | kNoScript | kLoading | kStale | kNoMulti | kAllowBusy,
     {},
     0,
     Group::kServer,
     "1.0.0",
     "O(N) when saving, where N is the total number of keys in all databases when saving data, "
     "otherwise O(1)",
     "Synchronously saves the database(s) to disk and shuts down the Redis server.",
     {.history = "7.0.0 Added the `NOW`, `FORCE` and `ABORT` modifiers."}},
    {"TIME",
     time,
     "",
     kLoading | kStale | kFast,
     {},
     0,
     Group::kServer,
     "2.6.0",
     "O(1)",
     "Returns the server time.",
     {.tips = "nondeterministic_output"}},
};

}  // namespace

std::span<const CommandRow> server_rows() {
  return kServerRows;
}

}  // namespace latchkey::commands
