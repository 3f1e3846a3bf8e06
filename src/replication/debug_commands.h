// DEBUG REPL-PAUSE and DEBUG REPLICATE.
#pragma once

#include <span>

#include "server/command/debug_subcommand.h"

namespace latchkey::replication {

std::span<const server::DebugSubcommand> debug_subcommands();

}  // namespace latchkey::replication
