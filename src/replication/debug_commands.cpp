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

// Adds the words to the stream, whether they are a command or not.
void replicate(CommandContext& ctx) {
  ctx.server.propagation().add(kAnyDatabase, ctx.args.subspan(2), kPropagateToReplicas);
  ctx.reply.ok();
}

constexpr size_t kAnyNumber = std::numeric_limits<size_t>::max();

constexpr DebugSubcommand kSubcommands[] = {
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
