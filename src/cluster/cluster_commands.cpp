// CLUSTER, READONLY, READWRITE and ASKING, of a cluster of one node (cluster/cluster.h). What needs
// other nodes is refused.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "base/number.h"
#include "base/random.h"
#include "cluster/cluster.h"
#include "cluster/rows.h"
#include "cluster/topology.h"
#include "server/client.h"
#include "server/command_context.h"
#include "server/help.h"
#include "server/server.h"

namespace latchkey::cluster {

using namespace server;

namespace {

constexpr std::string_view kAlone = "ERR This server is a cluster of one and does not meet others";

// The handler of a command that a node has, refused where the server is none.
template <void (*Handle)(CommandContext&, Cluster&)>
void of_node(CommandContext& ctx) {
  Cluster* const cluster = ctx.server.cluster();
  if (cluster == nullptr) return ctx.reply.error("ERR This instance has cluster support disabled");
  Handle(ctx, *cluster);
}

// --- Shared steps
// ---------------------------------------------------------------------------------

// Writes the state and takes it. False when an error has been sent.
bool change(CommandContext& ctx, Cluster& cluster, NodeState wanted) {
  if (cluster.change(std::move(wanted))) return true;
  ctx.reply.error(std::string("ERR error saving the cluster node config: ") + strerror(errno));
  return false;
}

void change_and_confirm(CommandContext& ctx, Cluster& cluster, NodeState wanted) {
  if (change(ctx, cluster, std::move(wanted))) ctx.reply.ok();
}

bool is_me(const Cluster& cluster, std::string_view node) {
  return node == cluster.state().id;
}

void unknown_node(CommandContext& ctx, std::string_view node) {
  ctx.reply.error("ERR Unknown node " + std::string(node));
}

bool read_slot(CommandContext& ctx, std::string_view text, int* slot) {
  if (parse_slot(text, slot)) return true;
  ctx.reply.error("ERR Invalid or out of range slot");
  return false;
}

// Each argument is a slot. False when an error has been sent.
bool read_slots(CommandContext& ctx, std::vector<int>* slots) {
  for (const std::string_view text : ctx.args.subspan(2)) {
    if (!read_slot(ctx, text, &slots->emplace_back())) return false;
  }
  return true;
}

// Each two arguments are the first and the last slot of a range. As above.
bool read_slot_ranges(CommandContext& ctx, std::vector<int>* slots) {
  const Arguments words = ctx.args.subspan(2);
  if (words.size() % 2 != 0) {
    ctx.wrong_arity();
    return false;
  }
  for (size_t i = 0; i < words.size(); i += 2) {
    int first = 0;
    int last = 0;
    if (!read_slot(ctx, words[i], &first) || !read_slot(ctx, words[i + 1], &last)) return false;
    if (first > last) {
      ctx.reply.error("ERR start slot number " + std::to_string(first) +
                      " is greater than end slot number " + std::to_string(last));
      return false;
    }
    for (int slot = first; slot <= last; ++slot) slots->push_back(slot);
  }
  return true;
}

// --- Slots
// ----------------------------------------------------------------------------------------

// Gives the node these slots or takes them, all or none.
void move_slots(CommandContext& ctx, Cluster& cluster, const std::vector<int>& slots, bool add) {
  SlotSet seen;
  NodeState wanted = cluster.state();
  for (const int slot : slots) {
    const std::string name = "ERR Slot " + std::to_string(slot);
    if (cluster.state().slots.has(slot) == add)
      return ctx.reply.error(name + (add ? " is already busy" : " is already unassigned"));
    if (seen.has(slot)) return ctx.reply.error(name + " specified multiple times");
    seen.add(slot);
    add ? wanted.slots.add(slot) : wanted.slots.remove(slot);
  }
  change_and_confirm(ctx, cluster, std::move(wanted));
}

template <bool kAdd>
void cluster_move_slots(CommandContext& ctx, Cluster& cluster) {
  std::vector<int> slots;
  if (read_slots(ctx, &slots)) move_slots(ctx, cluster, slots, kAdd);
}

template <bool kAdd>
void cluster_move_slot_ranges(CommandContext& ctx, Cluster& cluster) {
  std::vector<int> slots;
  if (read_slot_ranges(ctx, &slots)) move_slots(ctx, cluster, slots, kAdd);
}

void cluster_flushslots(CommandContext& ctx, Cluster& cluster) {
  if (!ctx.db.empty())
    return ctx.reply.error("ERR DB must be empty to perform CLUSTER FLUSHSLOTS.");
  NodeState wanted = cluster.state();
  wanted.slots.clear();
  change_and_confirm(ctx, cluster, std::move(wanted));
}

void cluster_setslot(CommandContext& ctx, Cluster& cluster) {
  int slot = 0;
  if (!read_slot(ctx, ctx.args[2], &slot)) return;
  const bool owned = cluster.state().slots.has(slot);
  const std::string_view action = ctx.args[3];
  if (is_word(action, "STABLE") && ctx.args.size() == 4) return ctx.reply.ok();
  const bool migrating = is_word(action, "MIGRATING");
  const bool importing = is_word(action, "IMPORTING");
  if (ctx.args.size() != 5 || !(migrating || importing || is_word(action, "NODE"))) {
    return ctx.reply.error(
        "ERR Invalid CLUSTER SETSLOT action or number of arguments. Try CLUSTER HELP");
  }
  const std::string_view node = ctx.args[4];
  if (migrating && !owned)
    return ctx.reply.error("ERR I'm not the owner of hash slot " + std::to_string(slot));
  if (importing && owned)
    return ctx.reply.error("ERR I'm already the owner of hash slot " + std::to_string(slot));
  if (!is_me(cluster, node)) {
    if (!migrating && !importing) return unknown_node(ctx, node);
    return ctx.reply.error("ERR I don't know about node " + std::string(node));
  }
  if (migrating || importing) return ctx.reply.error(kAlone);
  NodeState wanted = cluster.state();
  wanted.slots.add(slot);
  change_and_confirm(ctx, cluster, std::move(wanted));
}

void cluster_keyslot(CommandContext& ctx, Cluster&) {
  ctx.reply.integer(store::key_slot(ctx.args[2]));
}

void cluster_countkeysinslot(CommandContext& ctx, Cluster&) {
  int64_t slot = 0;
  if (!ctx.read_int64(ctx.args[2], &slot)) return;
  if (slot < 0 || slot >= store::kKeySlots) return ctx.reply.error("ERR Invalid slot");
  ctx.reply.integer(static_cast<int64_t>(ctx.db.slot_counts()->in(static_cast<int>(slot))));
}

// Looks through the keys until all of the slot that are wanted are found.
void cluster_getkeysinslot(CommandContext& ctx, Cluster&) {
  int64_t slot = 0;
  int64_t most = 0;
  if (!ctx.read_int64(ctx.args[2], &slot) || !ctx.read_int64(ctx.args[3], &most)) return;
  if (slot < 0 || slot >= store::kKeySlots || most < 0)
    return ctx.reply.error("ERR Invalid slot or number of keys");
  const auto wanted = static_cast<size_t>(std::min<uint64_t>(
      static_cast<uint64_t>(most), ctx.db.slot_counts()->in(static_cast<int>(slot))));
  std::vector<std::string_view> keys;
  uint64_t cursor = 0;
  while (keys.size() < wanted) {
    cursor = ctx.db.scan(cursor, [&](const store::Entry& entry) {
      if (store::key_slot(entry.key()) == slot) keys.push_back(entry.key());
    });
    if (cursor == 0) break;
  }
  keys.resize(std::min(keys.size(), wanted));
  ctx.reply.array(keys.size());
  for (const std::string_view key : keys) ctx.reply.bulk(key);
}

// --- The node's own state
// -------------------------------------------------------------------------

void cluster_saveconfig(CommandContext& ctx, Cluster& cluster) {
  change_and_confirm(ctx, cluster, cluster.state());
}

void cluster_bumpepoch(CommandContext& ctx, Cluster& cluster) {
  NodeState wanted = cluster.state();
  const bool bumped = wanted.config_epoch == 0;
  if (bumped) {
    wanted.config_epoch = ++wanted.current_epoch;
    if (!change(ctx, cluster, std::move(wanted))) return;
  }
  ctx.reply.status((bumped ? "BUMPED " : "STILL ") + std::to_string(cluster.state().config_epoch));
}

void cluster_set_config_epoch(CommandContext& ctx, Cluster& cluster) {
  int64_t epoch = 0;
  if (!ctx.read_int64(ctx.args[2], &epoch)) return;
  if (epoch < 0)
    return ctx.reply.error("ERR Invalid config epoch specified: " + std::to_string(epoch));
  NodeState wanted = cluster.state();
  if (wanted.config_epoch != 0) return ctx.reply.error("ERR Node config epoch is already non-zero");
  wanted.config_epoch = static_cast<uint64_t>(epoch);
  wanted.current_epoch = std::max(wanted.current_epoch, wanted.config_epoch);
  change_and_confirm(ctx, cluster, std::move(wanted));
}

void cluster_reset(CommandContext& ctx, Cluster& cluster) {
  if (ctx.args.size() > 3) {
    return ctx.reply.error("ERR unknown subcommand or wrong number of arguments for '" +
                           std::string(ctx.args[1]) + "'. Try CLUSTER HELP.");
  }
  const bool hard = ctx.args.size() == 3 && is_word(ctx.args[2], "HARD");
  if (ctx.args.size() == 3 && !hard && !is_word(ctx.args[2], "SOFT")) return ctx.syntax_error();
  if (!ctx.db.empty()) {
    return ctx.reply.error("ERR CLUSTER RESET can't be called with master nodes containing keys");
  }
  NodeState wanted = hard ? new_node() : cluster.state();
  wanted.slots.clear();
  if (!change(ctx, cluster, std::move(wanted))) return;
  if (hard) {
    ctx.server.log().notice("configEpoch set to 0 via CLUSTER RESET HARD");
    ctx.server.log().notice("Node hard reset, now I'm " + cluster.state().id);
  }
  ctx.reply.ok();
}

// --- What is about other nodes
// --------------------------------------------------------------------

void cluster_count_failure_reports(CommandContext& ctx, Cluster& cluster) {
  if (!is_me(cluster, ctx.args[2])) return unknown_node(ctx, ctx.args[2]);
  ctx.reply.integer(0);
}

void cluster_replicas(CommandContext& ctx, Cluster& cluster) {
  if (!is_me(cluster, ctx.args[2])) return unknown_node(ctx, ctx.args[2]);
  ctx.reply.empty_array();
}

void cluster_replicate(CommandContext& ctx, Cluster& cluster) {
  if (!is_me(cluster, ctx.args[2])) return unknown_node(ctx, ctx.args[2]);
  ctx.reply.error("ERR Can't replicate myself");
}

void cluster_forget(CommandContext& ctx, Cluster& cluster) {
  if (!is_me(cluster, ctx.args[2])) return unknown_node(ctx, ctx.args[2]);
  ctx.reply.error("ERR I tried hard but I can't forget myself...");
}

void cluster_failover(CommandContext& ctx, Cluster&) {
  const bool plain = ctx.args.size() == 2;
  if (!plain && !is_word(ctx.args[2], "FORCE") && !is_word(ctx.args[2], "TAKEOVER"))
    return ctx.syntax_error();
  ctx.reply.error("ERR You should send CLUSTER FAILOVER to a replica");
}

void cluster_meet(CommandContext& ctx, Cluster&) {
  int64_t port = 0;
  if (!base::parse_int64(ctx.args[3], &port))
    return ctx.reply.error("ERR Invalid base port specified: " + std::string(ctx.args[3]));
  if (ctx.args.size() == 5 && !base::parse_int64(ctx.args[4], &port))
    return ctx.reply.error("ERR Invalid bus port specified: " + std::string(ctx.args[4]));
  ctx.reply.error(kAlone);
}

// --- How a connection uses the cluster
// ------------------------------------------------------------

void readonly(CommandContext& ctx, Cluster&) {
  ctx.client.set(kClientReadsAnywhere);
  ctx.reply.ok();
}

void readwrite(CommandContext& ctx, Cluster&) {
  ctx.client.set(kClientReadsAnywhere, false);
  ctx.reply.ok();
}

// Says that the next request is for a slot that is being moved here, which none ever is.
void asking(CommandContext& ctx, Cluster&) {
  ctx.reply.ok();
}

void internal_secret(CommandContext& ctx) {
  const Cluster* const cluster = ctx.server.cluster();
  if (cluster == nullptr) return ctx.reply.error("ERR Internal secret is missing");
  ctx.reply.integer(cluster->secret_hash());
}

void cluster_help(CommandContext& ctx, Cluster&) {
  reply_help(ctx, {
                      "ADDSLOTS <slot> [<slot> ...]",
                      "    Serve these slots.",
                      "ADDSLOTSRANGE <first> <last> [<first> <last> ...]",
                      "    Serve all slots of these ranges.",
                      "BUMPEPOCH",
                      "    Give this node a configuration epoch, if it has none.",
                      "COUNTKEYSINSLOT <slot>",
                      "    Count the keys in a slot.",
                      "COUNT-FAILURE-REPORTS <node>",
                      "    Count the nodes that take this one for failed: none.",
                      "DELSLOTS <slot> [<slot> ...]",
                      "    Serve these slots no more.",
                      "DELSLOTSRANGE <first> <last> [<first> <last> ...]",
                      "    Serve the slots of these ranges no more.",
                      "FLUSHSLOTS",
                      "    Serve no slots; the dataset must be empty.",
                      "GETKEYSINSLOT <slot> <count>",
                      "    Name so many keys of a slot.",
                      "INFO",
                      "    Describe the cluster's state.",
                      "KEYSLOT <key>",
                      "    Tell the slot of a key.",
                      "LINKS",
                      "    Describe the connections to other nodes: there are none.",
                      "MYID",
                      "    Tell this node's number.",
                      "MYSHARDID",
                      "    Tell the number of this node's shard.",
                      "NODES",
                      "    Describe the nodes, one a line.",
                      "REPLICAS <node>",
                      "    Describe the replicas of a node: there are none.",
                      "RESET [HARD|SOFT]",
                      "    Forget the slots, and if HARD who this node was.",
                      "SAVECONFIG",
                      "    Write the configuration file.",
                      "SET-CONFIG-EPOCH <epoch>",
                      "    Give this node a configuration epoch, if it has none.",
                      "SETSLOT <slot> (STABLE|NODE <node>)",
                      "    Leave a slot where it is, or give it to this node.",
                      "SHARDS",
                      "    Tell which shards serve which slots.",
                      "SLOTS",
                      "    Tell which nodes serve which slots.",
                  });
}

constexpr CommandRow kClusterSubcommands[] = {
    {"ADDSLOTS",
     of_node<cluster_move_slots<true>>,
     "slot...",
     kAdmin | kStale | kNoAsyncLoading,
     {},
     0,
     Group::kCluster,
     "3.0.0",
     "O(N) where N is the total number of hash slot arguments",
     "Assigns new hash slots to a node."},
    {"ADDSLOTSRANGE",
     of_node<cluster_move_slot_ranges<true>>,
     "{range=start-slot:integer end-slot:integer}...",
     kAdmin | kStale | kNoAsyncLoading,
     {},
     0,
     Group::kCluster,
     "7.0.0",
     "O(N) where N is the total number of the slots between the start slot and end slot arguments.",
     "Assigns new hash slot ranges to a node."},
    {"BUMPEPOCH",
     of_node<cluster_bumpepoch>,
     "",
     kAdmin | kStale | kNoAsyncLoading,
     {},
     0,
     Group::kCluster,
     "3.0.0",
     "O(1)",
     "Advances the cluster config epoch.",
     {.tips = "nondeterministic_output"}},
    {"COUNT-FAILURE-REPORTS",
     of_node<cluster_count_failure_reports>,
     "node-id",
     kAdmin | kStale,
     {},
     0,
     Group::kCluster,
     "3.0.0",
     "O(N) where N is the number of failure reports",
     "Returns the number of active failure reports active for a node.",
     {.tips = "nondeterministic_output"}},
    {"COUNTKEYSINSLOT",
     of_node<cluster_countkeysinslot>,
     "slot",
     kStale,
     {},
     0,
     Group::kCluster,
     "3.0.0",
     "O(1)",
     "Returns the number of keys in a hash slot."},
    {"DELSLOTS",
     of_node<cluster_move_slots<false>>,
     "slot...",
     kAdmin | kStale | kNoAsyncLoading,
     {},
     0,
     Group::kCluster,
     "3.0.0",
     "O(N) where N is the total number of hash slot arguments",
     "Sets hash slots as unbound for a node."},
    {"DELSLOTSRANGE",
     of_node<cluster_move_slot_ranges<false>>,
     "{range=start-slot:integer end-slot:integer}...",
     kAdmin | kStale | kNoAsyncLoading,
     {},
     0,
     Group::kCluster,
     "7.0.0",
     "O(N) where N is the total number of the slots between the start slot and end slot arguments.",
     "Sets hash slot ranges as unbound for a node."},
    {"FAILOVER",
     of_node<cluster_failover>,
     "[options=FORCE|TAKEOVER]",
     kAdmin | kStale | kNoAsyncLoading,
     {},
     0,
     Group::kCluster,
     "3.0.0",
     "O(1)",
     "Forces a replica to perform a manual failover of its master."},
    {"FLUSHSLOTS",
     of_node<cluster_flushslots>,
     "",
     kAdmin | kStale | kNoAsyncLoading,
     {},
     0,
     Group::kCluster,
     "3.0.0",
     "O(1)",
     "Deletes all slots information from a node."},
    {"FORGET",
     of_node<cluster_forget>,
     "node-id",
     kAdmin | kStale | kNoAsyncLoading,
     {},
     0,
     Group::kCluster,
     "3.0.0",
     "O(1)",
     "Removes a node from the nodes table."},
    {"GETKEYSINSLOT",
     of_node<cluster_getkeysinslot>,
     "slot count",
     kStale,
     {},
     0,
     Group::kCluster,
     "3.0.0",
     "O(N) where N is the number of requested keys",
     "Returns the key names in a hash slot.",
     {.tips = "nondeterministic_output"}},
    {"HELP",
     of_node<cluster_help>,
     "",
     kLoading | kStale,
     {},
     0,
     Group::kCluster,
     "5.0.0",
     "O(1)",
     "Returns helpful text about the different subcommands."},
    {"INFO",
     of_node<cluster_info>,
     "",
     kStale,
     {},
     0,
     Group::kCluster,
     "3.0.0",
     "O(1)",
     "Returns information about the state of a node.",
     {.tips = "nondeterministic_output"}},
    {"KEYSLOT",
     of_node<cluster_keyslot>,
     "key:string",
     kStale,
     {},
     0,
     Group::kCluster,
     "3.0.0",
     "O(N) where N is the number of bytes in the key",
     "Returns the hash slot for a key."},
    {"LINKS",
     of_node<cluster_links>,
     "",
     kStale,
     {},
     0,
     Group::kCluster,
     "7.0.0",
     "O(N) where N is the total number of Cluster nodes",
     "Returns a list of all TCP links to and from peer nodes.",
     {.tips = "nondeterministic_output"}},
    {"MEET",
     of_node<cluster_meet>,
     "ip port [cluster-bus-port:integer]@4.0.0",
     kAdmin | kStale | kNoAsyncLoading,
     {},
     0,
     Group::kCluster,
     "3.0.0",
     "O(1)",
     "Forces a node to handshake with another node.",
     {.history = "4.0.0 Added the optional `cluster_bus_port` argument."}},
    {"MYID",
     of_node<cluster_myid>,
     "",
     kStale,
     {},
     0,
     Group::kCluster,
     "3.0.0",
     "O(1)",
     "Returns the ID of a node."},
    {"MYSHARDID",
     of_node<cluster_myshardid>,
     "",
     kStale,
     {},
     0,
     Group::kCluster,
     "7.2.0",
     "O(1)",
     "Returns the shard ID of a node.",
     {.tips = "nondeterministic_output"}},
    {"NODES",
     of_node<cluster_nodes>,
     "",
     kStale,
     {},
     0,
     Group::kCluster,
     "3.0.0",
     "O(N) where N is the total number of Cluster nodes",
     "Returns the cluster configuration for a node.",
     {.tips = "nondeterministic_output"}},
    {"REPLICAS",
     of_node<cluster_replicas>,
     "node-id",
     kAdmin | kStale,
     {},
     0,
     Group::kCluster,
     "5.0.0",
     "O(N) where N is the number of replicas.",
     "Lists the replica nodes of a master node.",
     {.tips = "nondeterministic_output"}},
    {"REPLICATE",
     of_node<cluster_replicate>,
     "node-id",
     kAdmin | kStale | kNoAsyncLoading,
     {},
     0,
     Group::kCluster,
     "3.0.0",
     "O(1)",
     "Configure a node as replica of a master node."},
    {"RESET",
     of_node<cluster_reset>,
     "[reset-type=HARD|SOFT]",
     kAdmin | kNoScript | kStale,
     {},
     0,
     Group::kCluster,
     "3.0.0",
     "O(N) where N is the number of known nodes. The command may execute a FLUSHALL as a side "
     "effect.",
     "Resets a node."},
    {"SAVECONFIG",
     of_node<cluster_saveconfig>,
     "",
     kAdmin | kStale | kNoAsyncLoading,
     {},
     0,
     Group::kCluster,
     "3.0.0",
     "O(1)",
     "Forces a node to save the cluster configuration to disk."},
    {"SET-CONFIG-EPOCH",
     of_node<cluster_set_config_epoch>,
     "config-epoch:integer",
     kAdmin | kStale | kNoAsyncLoading,
     {},
     0,
     Group::kCluster,
     "3.0.0",
     "O(1)",
     "Sets the configuration epoch for a new node."},
    {"SETSLOT",
     of_node<cluster_setslot>,
     "slot {subcommand=IMPORTING importing(node-id)|MIGRATING migrating(node-id)|NODE "
     "node(node-id)|STABLE}",
     kAdmin | kStale | kNoAsyncLoading,
     {},
     0,
     Group::kCluster,
     "3.0.0",
     "O(1)",
     "Binds a hash slot to a node."},
    {"SHARDS",
     of_node<cluster_shards>,
     "",
     kLoading | kStale,
     {},
     0,
     Group::kCluster,
     "7.0.0",
     "O(N) where N is the total number of cluster nodes",
     "Returns the mapping of cluster slots to shards.",
     {.tips = "nondeterministic_output"}},
    {"SLAVES",
     of_node<cluster_replicas>,
     "node-id",
     kAdmin | kStale,
     {},
     0,
     Group::kCluster,
     "3.0.0",
     "O(N) where N is the number of replicas.",
     "Lists the replica nodes of a master node.",
     {.tips = "nondeterministic_output",
      .deprecated_since = "5.0.0",
      .replaced_by = "`CLUSTER REPLICAS`"}},
    {"SLOTS",
     of_node<cluster_slots>,
     "",
     kLoading | kStale,
     {},
     0,
     Group::kCluster,
     "3.0.0",
     "O(N) where N is the total number of Cluster nodes",
     "Returns the mapping of cluster slots to nodes.",
     {.tips = "nondeterministic_output",
      .history = "4.0.0 Added node IDs.\n7.0.0 Added additional networking metadata field.",
      .deprecated_since = "7.0.0",
      .replaced_by = "`CLUSTER SHARDS`"}},
};

constexpr CommandRow kClusterRows[] = {
    {"ASKING",
     of_node<asking>,
     "",
     kFast,
     {},
     kAclConnection,
     Group::kCluster,
     "3.0.0",
     "O(1)",
     "Signals that a cluster client is following an -ASK redirect."},
    {"CLUSTER",
     nullptr,
     "",
     0,
     {},
     0,
     Group::kCluster,
     "3.0.0",
     "Depends on subcommand.",
     "A container for Redis Cluster commands.",
     {.subcommands = kClusterSubcommands}},
    {"READONLY",
     of_node<readonly>,
     "",
     kLoading | kStale | kFast,
     {},
     kAclConnection,
     Group::kCluster,
     "3.0.0",
     "O(1)",
     "Enables read-only queries for a connection to a Redis Cluster replica node."},
    {"READWRITE",
     of_node<readwrite>,
     "",
     kLoading | kStale | kFast,
     {},
     kAclConnection,
     Group::kCluster,
     "3.0.0",
     "O(1)",
     "Enables read-write queries for a connection to a Reids Cluster replica node."},
};

constexpr DebugSubcommand kClusterDebugSubcommands[] = {
    {"INTERNAL_SECRET", 0, 0, internal_secret, "INTERNAL_SECRET",
     "Tell a hash of what the nodes of a cluster share."},
};

}  // namespace

std::span<const CommandRow> cluster_rows() {
  return kClusterRows;
}

std::span<const DebugSubcommand> cluster_debug_subcommands() {
  return kClusterDebugSubcommands;
}

}  // namespace latchkey::cluster
