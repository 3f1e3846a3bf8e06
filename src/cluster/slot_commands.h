// The CLUSTER commands that assign, migrate and count slots, and list their keys. Their rows are in
// cluster_commands.cpp.
#pragma once

namespace latchkey::server {
struct CommandContext;
}

namespace latchkey::cluster {

class Cluster;

void cluster_addslots(server::CommandContext& ctx, Cluster& cluster);
void cluster_addslotsrange(server::CommandContext& ctx, Cluster& cluster);
void cluster_delslots(server::CommandContext& ctx, Cluster& cluster);
void cluster_delslotsrange(server::CommandContext& ctx, Cluster& cluster);
void cluster_flushslots(server::CommandContext& ctx, Cluster& cluster);
void cluster_flushslot(server::CommandContext& ctx, Cluster& cluster);
void clusterscan(server::CommandContext& ctx, Cluster& cluster);
void cluster_setslot(server::CommandContext& ctx, Cluster& cluster);
void cluster_countkeysinslot(server::CommandContext& ctx, Cluster& cluster);
void cluster_getkeysinslot(server::CommandContext& ctx, Cluster& cluster);
void cluster_slot_stats(server::CommandContext& ctx, Cluster& cluster);

// Writes the node file. False when an error has been sent.
bool commit(server::CommandContext& ctx, Cluster& cluster);
void commit_and_confirm(server::CommandContext& ctx, Cluster& cluster);

}  // namespace latchkey::cluster
