#include "replication/debug_commands.h"

#include <limits>

#include "server/command/command_context.h"
#include "server/config/debug_settings.h"
#include "server/server.h"

namespace latchkey::replication {

using namespace server;

namespace {

void repl_pause(CommandContext& ctx) {
  const std::string_view place = ctx.args[2];
  ReplicationPause& pause = ctx.server.debug_settings().replication_pause;
  if (is_word(place, "CLEAR")) {
    pause = ReplicationPause::kNone;
  } else if (is_word(place, "AFTER-FORK")) {
    pause = ReplicationPause::kAfterFork;
  } else if (is_word(place, "BEFORE-RDB-CHANNEL")) {
    pause = ReplicationPause::kBeforeRdbChannel;
  } else if (is_word(place, "ON-STREAMING-REPL-BUF")) {
    pause = ReplicationPause::kOnStreaming;
  } else {
    return ctx.reply.error(
        "ERR unknown subcommand or wrong number of arguments for 'repl-pause'. Try DEBUG HELP.");
  }
  ctx.reply.ok();
}

// Valkey's names for two of these settings.
void pause_after_fork(CommandContext& ctx) {
  int64_t on = 0;
  if (!ctx.read_int64(ctx.args[2], &on)) return;
  ctx.server.debug_settings().replication_pause =
      on != 0 ? ReplicationPause::kAfterFork : ReplicationPause::kNone;
  ctx.reply.ok();
}

void delay_freeing_of_channels(CommandContext& ctx) {
  int64_t seconds = 0;
  if (!ctx.read_int64_in(ctx.args[2], 0, INT32_MAX, &seconds)) return;
  ctx.server.debug_settings().rdb_channel_grace_s = seconds;
  ctx.reply.ok();
}

// Adds the words to the stream, whether they are a command or not.
void replicate(CommandContext& ctx) {
  ctx.server.propagation().add(kAnyDatabase, ctx.args.subspan(2), kPropagateToReplicas);
  ctx.reply.ok();
}

constexpr size_t kAnyNumber = std::numeric_limits<size_t>::max();

constexpr DebugSubcommand kSubcommands[] = {
    {"DELAY-RDB-CLIENT-FREE-SECONDS", 1, 1, delay_freeing_of_channels,
     "DELAY-RDB-CLIENT-FREE-SECONDS <seconds>",
     "Hold the stream for that long for a replica that has its dataset by dual channel replication "
     "and has not asked for the stream."},
    {"PAUSE-AFTER-FORK", 1, 1, pause_after_fork, "PAUSE-AFTER-FORK <0|1>",
     "Stop the process in a synchronization when the child that writes the dataset has begun (of a "
     "master), or when that is told (of a replica), until it is sent SIGCONT."},
    {"REPL-PAUSE", 1, 1, repl_pause,
     "REPL-PAUSE <clear|after-fork|before-rdb-channel|on-streaming-repl-buf>",
     "Stop the process at that point of a synchronization, until it is sent SIGCONT."},
    {"REPLICATE", 1, kAnyNumber, replicate, "REPLICATE <command> [<argument> ...]",
     "Send that to the replicas without running it here, so that datasets may differ."},
};

}  // namespace

std::span<const DebugSubcommand> debug_subcommands() {
  return kSubcommands;
}

}  // namespace latchkey::replication
