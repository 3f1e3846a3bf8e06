// DEBUG REPL-PAUSE: places in a synchronization where the process stops itself, so that tests can
// look at it half done.
#pragma once

#include <span>

#include "server/debug_settings.h"
#include "server/debug_subcommand.h"

namespace latchkey::server {
class Server;
}

namespace latchkey::replication {

// Stops the process here until it is told to go on (SIGCONT), if that place was asked for.
void pause_if_asked(server::Server& server, server::ReplicationPause place);

std::span<const server::DebugSubcommand> pause_debug_subcommands();

}  // namespace latchkey::replication
