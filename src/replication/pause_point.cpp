#include "replication/pause_point.h"

#include <csignal>

#include "server/server.h"

namespace latchkey::replication {

void pause_if_asked(server::Server& server, server::ReplicationPause place) {
  if (server.debug_settings().replication_pause != place) return;
  server.log().notice("Process is about to stop, as DEBUG REPL-PAUSE has told it");
  raise(SIGSTOP);
  server.refresh_clock();
}

}  // namespace latchkey::replication
