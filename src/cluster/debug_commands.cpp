// The DEBUG subcommands of the cluster.
#include <string>
#include <string_view>

#include "cluster/cluster.h"
#include "cluster/rows.h"
#include "cluster/slot_jobs/commands.h"
#include "cluster/slot_migration/commands.h"
#include "server/command/command_context.h"
#include "server/server.h"

namespace latchkey::cluster {

using namespace server;

namespace {

constexpr std::string_view kNoCluster =
    "ERR Debug option only available for cluster mode enabled setup!";

void internal_secret(CommandContext& ctx) {
  const Cluster* const cluster = ctx.server.find_layer<Cluster>();
  if (cluster == nullptr) return ctx.reply.error("ERR Internal secret is missing");
  ctx.reply.integer(cluster->secret_hash());
}

void drop_packets(CommandContext& ctx) {
  int64_t type = 0;
  constexpr auto kLastType = static_cast<int64_t>(kMessageTypes) - 1;
  if (!ctx.read_int64_in(ctx.args[2], Bus::kAllTypes, kLastType, &type)) return;
  if (Cluster* const cluster = ctx.server.find_layer<Cluster>(); cluster != nullptr)
    cluster->bus().set_packet_filter(static_cast<int>(type));
  ctx.reply.ok();
}

void close_on_drop(CommandContext& ctx) {
  Cluster* const cluster = ctx.server.find_layer<Cluster>();
  if (cluster == nullptr) return ctx.reply.error(kNoCluster);
  int64_t closing = 0;
  if (!ctx.read_int64_in(ctx.args[2], 0, 1, &closing)) return;
  cluster->bus().close_filtered_links(closing == 1);
  ctx.reply.ok();
}

void disable_random_ping(CommandContext& ctx) {
  Cluster* const cluster = ctx.server.find_layer<Cluster>();
  if (cluster == nullptr) return ctx.reply.error(kNoCluster);
  int64_t disabled = 0;
  if (!ctx.read_int64_in(ctx.args[2], 0, 1, &disabled)) return;
  cluster->heartbeat().ping_at_random(disabled == 0);
  ctx.reply.ok();
}

void disable_reconnection(CommandContext& ctx) {
  Cluster* const cluster = ctx.server.find_layer<Cluster>();
  if (cluster == nullptr) return ctx.reply.error(kNoCluster);
  int64_t disabled = 0;
  if (!ctx.read_int64_in(ctx.args[2], 0, 1, &disabled)) return;
  cluster->heartbeat().reconnect(disabled == 0);
  ctx.reply.ok();
}

void kill_links(CommandContext& ctx) {
  Cluster* const cluster = ctx.server.find_layer<Cluster>();
  if (cluster == nullptr) return ctx.reply.error(kNoCluster);
  if (!is_word(ctx.args[2], "KILL")) return ctx.syntax_error();
  Node* const node = cluster->nodes().find(ctx.args[4]);
  if (node == nullptr) return ctx.reply.error("ERR Unknown node " + std::string(ctx.args[4]));
  const bool all = is_word(ctx.args[3], "ALL");
  const bool to = all || is_word(ctx.args[3], "TO");
  const bool from = all || is_word(ctx.args[3], "FROM");
  if (!to && !from) return ctx.reply.error("ERR Unknown direction " + std::string(ctx.args[3]));
  if (to && node->link != nullptr) cluster->bus().drop(*node->link);
  if (from && node->incoming != nullptr) cluster->bus().drop(*node->incoming);
  ctx.reply.ok();
}

constexpr DebugSubcommand kDebugSubcommands[] = {
    {"ASM-FAILPOINT", 2, 2, debug_asm_failpoint, "ASM-FAILPOINT <channel> <state>",
     "Have slot migrations fail where a channel comes to a state; two empty words: nowhere."},
    {"ASM-TRIM-METHOD", 1, 2, debug_asm_trim_method,
     "ASM-TRIM-METHOD (default|none|active|bg) [<delay>]",
     "Choose how the keys of lost slots are deleted; active: with so many microseconds between "
     "keys, or not at all if that is negative."},
    {"CLOSE-CLUSTER-LINK-ON-PACKET-DROP", 1, 1, close_on_drop,
     "CLOSE-CLUSTER-LINK-ON-PACKET-DROP <0|1>",
     "Close the links of messages that DROP-CLUSTER-PACKET-FILTER throws away, or keep them."},
    {"CLUSTERLINK", 3, 3, kill_links, "CLUSTERLINK KILL (TO|FROM|ALL) <node>",
     "Cut the links to a node of the cluster, from it, or both."},
    {"DISABLE-CLUSTER-RECONNECTION", 1, 1, disable_reconnection,
     "DISABLE-CLUSTER-RECONNECTION <0|1>",
     "Leave links to other nodes that are lost as they are, or open them again."},
    {"DISABLE-CLUSTER-RANDOM-PING", 1, 1, disable_random_ping, "DISABLE-CLUSTER-RANDOM-PING <0|1>",
     "Ping only the nodes that have been silent for half of cluster-node-timeout, or others too."},
    {"DROP-CLUSTER-PACKET-FILTER", 1, 1, drop_packets, "DROP-CLUSTER-PACKET-FILTER <type>",
     "Throw messages of this type away that other nodes send; -1: none, -2: all."},
    {"INTERNAL_SECRET", 0, 0, internal_secret, "INTERNAL_SECRET",
     "Tell a hash of what the nodes of a cluster share."},
    {"SLOTMIGRATION", 2, 2, debug_slotmigration,
     "SLOTMIGRATION (PREVENT-PAUSE|PREVENT-FAILOVER) (0|1)",
     "Keep CLUSTER MIGRATESLOTS from pausing writes here, or from taking slots over."},
};

}  // namespace

std::span<const DebugSubcommand> cluster_debug_subcommands() {
  return kDebugSubcommands;
}

}  // namespace latchkey::cluster
