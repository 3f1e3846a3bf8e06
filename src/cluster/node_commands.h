// The CLUSTER commands about nodes: meeting, forgetting, replicating and failing over, and this
// node's own state. Their rows are in cluster_commands.cpp.
#pragma once

namespace latchkey::server {
struct CommandContext;
}

namespace latchkey::cluster {

class Cluster;

void cluster_meet(server::CommandContext& ctx, Cluster& cluster);
void cluster_forget(server::CommandContext& ctx, Cluster& cluster);
void cluster_replicate(server::CommandContext& ctx, Cluster& cluster);
void cluster_failover(server::CommandContext& ctx, Cluster& cluster);
void cluster_count_failure_reports(server::CommandContext& ctx, Cluster& cluster);
void cluster_saveconfig(server::CommandContext& ctx, Cluster& cluster);
void cluster_bumpepoch(server::CommandContext& ctx, Cluster& cluster);
void cluster_set_config_epoch(server::CommandContext& ctx, Cluster& cluster);
void cluster_reset(server::CommandContext& ctx, Cluster& cluster);

}  // namespace latchkey::cluster
