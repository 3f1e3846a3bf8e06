// Points in a synchronization where the process stops itself if DEBUG REPL-PAUSE says so, so that
// tests can inspect the state.
#pragma once

#include "server/config/debug_settings.h"

namespace latchkey::server {
class Server;
}

namespace latchkey::replication {

// Stops the process until SIGCONT if DEBUG REPL-PAUSE has chosen `place`.
void pause_if_asked(server::Server& server, server::ReplicationPause place);

}  // namespace latchkey::replication
