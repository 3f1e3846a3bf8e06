// The commands of this folder.
#pragma once

#include <span>

#include "server/command/command.h"

namespace latchkey::replication {

// Sent by replicas: SYNC, PSYNC, REPLCONF.
std::span<const server::CommandRow> sync_rows();
// Sent by users: ROLE, REPLICAOF, FAILOVER, WAIT.
std::span<const server::CommandRow> role_rows();

std::span<const server::CommandRow> migrate_rows();

}  // namespace latchkey::replication
