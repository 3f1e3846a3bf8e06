// CLUSTER MIGRATESLOTS, GETSLOTMIGRATIONS and CANCELSLOTMIGRATIONS, and Valkey's part of CLUSTER
// SYNCSLOTS. Their rows are in cluster_commands.cpp.
#pragma once

namespace latchkey::server {
struct CommandContext;
}

namespace latchkey::cluster {

class Cluster;

void cluster_migrateslots(server::CommandContext& ctx, Cluster& cluster);
void cluster_getslotmigrations(server::CommandContext& ctx, Cluster& cluster);
void cluster_cancelslotmigrations(server::CommandContext& ctx, Cluster& cluster);

void debug_slotmigration(server::CommandContext& ctx);

// Handles a request of Valkey's protocol (sender.h), from a client or the master. False when it is
// none.
bool sync_as_valkey(server::CommandContext& ctx, Cluster& cluster);

}  // namespace latchkey::cluster
