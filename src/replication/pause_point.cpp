#include "replication/pause_point.h"

#include <csignal>

#include "server/command_context.h"
#include "server/server.h"

namespace latchkey::replication {

using namespace server;

void pause_if_asked(Server& server, ReplicationPause place) {
  if (server.debug_settings().replication_pause != place) return;
  server.log().notice("Process is about to stop, as DEBUG REPL-PAUSE has told it");
  raise(SIGSTOP);
  server.refresh_clock();
}

namespace {

void debug_repl_pause(CommandContext& ctx) {
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

constexpr DebugSubcommand kPauseSubcommands[] = {
    {"REPL-PAUSE", 1, 1, debug_repl_pause,
     "REPL-PAUSE <clear|after-fork|before-rdb-channel|on-streaming-repl-buf>",
     "Stop the process at that point of a synchronization, until it is sent SIGCONT."},
};

}  // namespace

std::span<const DebugSubcommand> pause_debug_subcommands() {
  return kPauseSubcommands;
}

}  // namespace latchkey::replication
