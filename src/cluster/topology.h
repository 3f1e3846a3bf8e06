// The commands by which clients learn the nodes and the owners of slots. Their rows are in
// cluster_commands.cpp.
#pragma once

namespace latchkey::server {
struct CommandContext;
}

namespace latchkey::cluster {

class Cluster;

void cluster_info(server::CommandContext& ctx, Cluster& cluster);
void cluster_nodes(server::CommandContext& ctx, Cluster& cluster);
void cluster_replicas(server::CommandContext& ctx, Cluster& cluster);
void cluster_myid(server::CommandContext& ctx, Cluster& cluster);
void cluster_myshardid(server::CommandContext& ctx, Cluster& cluster);
void cluster_slots(server::CommandContext& ctx, Cluster& cluster);
void cluster_shards(server::CommandContext& ctx, Cluster& cluster);
void cluster_links(server::CommandContext& ctx, Cluster& cluster);

}  // namespace latchkey::cluster
