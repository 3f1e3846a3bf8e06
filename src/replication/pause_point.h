// Places in a synchronization where the process stops itself if DEBUG REPL-PAUSE has told it to, so
// that tests can look at it half done.
#pragma once

#include "server/config/debug_settings.h"

namespace latchkey::server {
class Server;
}

namespace latchkey::replication {

// Stops the process here until it is told to go on (SIGCONT), if that place was asked for.
void pause_if_asked(server::Server& server, server::ReplicationPause place);

}  // namespace latchkey::replication
