#include "cluster/node_commands.h"

#include <algorithm>
#include <string>

#include "base/text/number.h"
#include "base/time_units.h"
#include "cluster/cluster.h"
#include "cluster/slot_commands.h"
#include "replication/replica_role.h"
#include "replication/replication.h"
#include "server/client/client_info.h"
#include "server/command/command_context.h"
#include "server/command/help.h"
#include "server/server.h"

namespace latchkey::cluster {

using namespace server;

namespace {

// The node named by the third word. Null when an error has been sent.
Node* read_node(CommandContext& ctx, Cluster& cluster) {
  Node* const node = cluster.nodes().find(ctx.args[2]);
  if (node == nullptr) ctx.reply.error("ERR Unknown node " + std::string(ctx.args[2]));
  return node;
}

void log_request(CommandContext& ctx, const std::string& what) {
  ctx.server.log().notice(what + " (user request from '" + describe_for_log(ctx.client) + "').");
}

void flush_dataset(CommandContext& ctx) {
  for (const auto& database : ctx.server.databases()) {
    if (database->empty()) continue;
    ctx.events.clearing(*database);
    ctx.events.count(database->size());
    database->clear(/*lazily=*/true);
  }
  ctx.events.flushed();
  ctx.server.hooks().dataset_flushed.run();
  ctx.propagate({"FLUSHALL"});
}

}  // namespace

void cluster_meet(CommandContext& ctx, Cluster& cluster) {
  constexpr size_t kMaxWords = 5;
  int64_t port = 0;
  int64_t bus_port = 0;
  if (ctx.args.size() > kMaxWords) return server::wrong_subcommand(ctx);
  if (!base::parse_int64(ctx.args[3], &port))
    return ctx.reply.error("ERR Invalid base port specified: " + std::string(ctx.args[3]));
  if (ctx.args.size() == 4) {
    bus_port = port + kBusPortDistance;
  } else if (!base::parse_int64(ctx.args[4], &bus_port)) {
    return ctx.reply.error("ERR Invalid bus port specified: " + std::string(ctx.args[4]));
  }
  // Keeps invalid ports invalid when they are narrowed to int.
  const auto narrow = [](int64_t number) {
    return static_cast<int>(std::clamp<int64_t>(number, -1, 1 << 16));
  };
  NodeAddress address{.ip = std::string(ctx.args[2]), .bus_port = narrow(bus_port)};
  (ctx.server.settings().tls_cluster ? address.tls_port : address.port) = narrow(port);
  if (cluster.meet(address)) return ctx.reply.ok();
  ctx.reply.error("ERR Invalid node address specified: " + std::string(ctx.args[2]) + ":" +
                  std::string(ctx.args[3]));
}

void cluster_forget(CommandContext& ctx, Cluster& cluster) {
  const std::string id(ctx.args[2]);
  Node* const node = cluster.nodes().find(id);
  // As gossip sees it, which the time of the data does not move.
  const int64_t now_ms = ctx.server.machine_ms();
  // Another node's gossip may have forgotten it here before.
  if (node == nullptr && cluster.nodes().is_forgotten(id, now_ms)) return ctx.reply.ok();
  if (read_node(ctx, cluster) == nullptr) return;
  if (node->is_myself()) return ctx.reply.error("ERR I tried hard but I can't forget myself...");
  if (node == cluster.myself().master) return ctx.reply.error("ERR Can't forget my master!");
  const int64_t seconds = ctx.server.settings().cluster_blacklist_ttl;
  cluster.nodes().forget(id, now_ms + seconds * base::kMsPerSecond);
  cluster.remove(*node);
  log_request(ctx, "Cluster node " + id + " was forgotten");
  commit_and_confirm(ctx, cluster);
}

// REPLICATE NO ONE: a replica becomes a master without slots and keys; a master stays what it is.
void replicate_no_one(CommandContext& ctx, Cluster& cluster) {
  if (cluster.myself().is_master()) return ctx.reply.ok();
  log_request(ctx, "Stop replication and turning myself into empty primary");
  cluster.leave_shard();
  if (!commit(ctx, cluster)) return;
  flush_dataset(ctx);
  ctx.reply.ok();
}

void cluster_replicate(CommandContext& ctx, Cluster& cluster) {
  if (ctx.args.size() == 4) {
    if (!is_word(ctx.args[2], "NO") || !is_word(ctx.args[3], "ONE")) return wrong_subcommand(ctx);
    return replicate_no_one(ctx, cluster);
  }
  if (ctx.args.size() > 4) return wrong_subcommand(ctx);
  Node* const node = read_node(ctx, cluster);
  if (node == nullptr) return;
  const Node& myself = cluster.myself();
  if (node == &myself) return ctx.reply.error("ERR Can't replicate myself");
  if (!node->is_master())
    return ctx.reply.error("ERR I can only replicate a master, not a replica.");
  if (myself.is_master() && (!myself.slots.empty() || cluster.has_keys())) {
    return ctx.reply.error(
        "ERR To set a master the node must be empty and without assigned slots.");
  }
  cluster.replicate_from(*node);
  commit_and_confirm(ctx, cluster);
}

// CLUSTER FAILOVER FORCE REPLICAID, in the stream of a master that shuts down (SHUTDOWN FAILOVER):
// the named replica replaces it.
void replace_leaving_master(CommandContext& ctx, Cluster& cluster) {
  const Node& myself = cluster.myself();
  if (ctx.args[4] == myself.id && myself.master != nullptr) {
    log_request(ctx, "Forced failover primary request accepted");
    cluster.manual_failover().begin(/*force=*/true);
  }
  ctx.reply.ok();
}

void cluster_failover(CommandContext& ctx, Cluster& cluster) {
  constexpr size_t kWordsOfMaster = 5;
  if (ctx.args.size() == kWordsOfMaster && ctx.client.has(kClientMaster) &&
      is_word(ctx.args[2], "FORCE") && is_word(ctx.args[3], "REPLICAID"))
    return replace_leaving_master(ctx, cluster);
  if (ctx.args.size() > 3 && !ctx.server.edition().is_valkey_since({9, 0}))
    return wrong_subcommand(ctx);
  bool takes_over = false;
  bool force = false;
  for (ArgReader options(ctx.args, 2); options.more();) {
    const bool takes = options.word("TAKEOVER");
    if (!takes && !options.word("FORCE")) return ctx.syntax_error();
    takes_over |= takes;
    force = true;
  }
  const Node& myself = cluster.myself();
  if (myself.is_master())
    return ctx.reply.error("ERR You should send CLUSTER FAILOVER to a replica");
  const Node* const master = myself.master;
  if (master == nullptr) return ctx.reply.error("ERR I'm a replica but my master is unknown to me");
  const bool reached = !master->has(kFailing) && master->link != nullptr;
  if (!reached && !force) {
    return ctx.reply.error("ERR Master is down or failed, please use CLUSTER FAILOVER FORCE");
  }
  if (takes_over) {
    log_request(ctx, "Taking over the master");
    cluster.bump_epoch();
    cluster.take_over();
    return commit_and_confirm(ctx, cluster);
  }
  log_request(ctx, force ? "Forced failover" : "Manual failover");
  cluster.manual_failover().begin(force);
  ctx.reply.ok();
}

void cluster_count_failure_reports(CommandContext& ctx, Cluster& cluster) {
  Node* const node = read_node(ctx, cluster);
  if (node != nullptr)
    ctx.reply.integer(static_cast<int64_t>(cluster.detector().count_reports(*node)));
}

void cluster_saveconfig(CommandContext& ctx, Cluster& cluster) {
  cluster.changed();
  commit_and_confirm(ctx, cluster);
}

void cluster_bumpepoch(CommandContext& ctx, Cluster& cluster) {
  const uint64_t before = cluster.myself().config_epoch;
  cluster.bump_epoch();
  if (!commit(ctx, cluster)) return;
  const uint64_t epoch = cluster.myself().config_epoch;
  ctx.reply.status((epoch != before ? "BUMPED " : "STILL ") + std::to_string(epoch));
}

void cluster_set_config_epoch(CommandContext& ctx, Cluster& cluster) {
  int64_t epoch = 0;
  if (!ctx.read_int64(ctx.args[2], &epoch)) return;
  if (epoch < 0)
    return ctx.reply.error("ERR Invalid config epoch specified: " + std::to_string(epoch));
  NodeTable& nodes = cluster.nodes();
  if (nodes.size() > 1) {
    return ctx.reply.error(
        "ERR The user can assign a config epoch only when the node does not know any other node.");
  }
  Node& myself = cluster.myself();
  if (myself.config_epoch != 0) return ctx.reply.error("ERR Node config epoch is already non-zero");
  myself.config_epoch = static_cast<uint64_t>(epoch);
  nodes.current_epoch = std::max(nodes.current_epoch, myself.config_epoch);
  commit_and_confirm(ctx, cluster);
}

void cluster_reset(CommandContext& ctx, Cluster& cluster) {
  if (ctx.args.size() > 3) return wrong_subcommand(ctx);
  const bool hard = ctx.args.size() == 3 && is_word(ctx.args[2], "HARD");
  if (ctx.args.size() == 3 && !hard && !is_word(ctx.args[2], "SOFT")) return ctx.syntax_error();
  const bool was_replica = cluster.myself().is_replica();
  if (!was_replica && cluster.has_keys()) {
    return ctx.reply.error("ERR CLUSTER RESET can't be called with master nodes containing keys");
  }
  cluster.reset(hard);
  if (!commit(ctx, cluster)) return;
  if (was_replica) {
    // Its dataset is its former master's, and so is the one that it may be loading.
    ctx.server.layer<replication::Replication>().replica_role().give_up_dataset();
    flush_dataset(ctx);
  }
  ctx.reply.ok();
}

}  // namespace latchkey::cluster
