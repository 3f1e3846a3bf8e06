// The commands of this folder.
#pragma once

#include <span>

#include "server/command/command.h"
#include "server/command/debug_subcommand.h"

namespace latchkey::cluster {

std::span<const server::CommandRow> cluster_rows();
// CLUSTERLINK, DROP-CLUSTER-PACKET-FILTER and INTERNAL_SECRET of DEBUG.
std::span<const server::DebugSubcommand> cluster_debug_subcommands();

}  // namespace latchkey::cluster
