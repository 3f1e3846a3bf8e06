// CLUSTER MIGRATION, CLUSTER SYNCSLOTS, TRIMSLOTS, and the subcommands of DEBUG for them. Their
// rows are in cluster_commands.cpp and debug_commands.cpp.
#pragma once

namespace latchkey::server {
struct CommandContext;
}

namespace latchkey::cluster {

class Cluster;

void cluster_migration(server::CommandContext& ctx, Cluster& cluster);
void cluster_syncslots(server::CommandContext& ctx, Cluster& cluster);
void trimslots(server::CommandContext& ctx, Cluster& cluster);
void debug_asm_failpoint(server::CommandContext& ctx);
void debug_asm_trim_method(server::CommandContext& ctx);

}  // namespace latchkey::cluster
