#include "cluster/setslot.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/number.h"
#include "base/timeout.h"
#include "cluster/cluster.h"
#include "cluster/slot_commands.h"
#include "cluster/slot_keys.h"
#include "replication/replication.h"
#include "replication/waits.h"
#include "server/client/client.h"
#include "server/command/admission.h"
#include "server/command/command_context.h"
#include "server/server.h"

namespace latchkey::cluster {

using namespace server;

namespace {

// redis-cli knows the text: a source that has given its last slot away may be a replica by now.
constexpr std::string_view kOnlyWithMasters = "ERR Please use SETSLOT only with masters.";
constexpr std::string_view kInvalid =
    "ERR Invalid CLUSTER SETSLOT action or number of arguments. Try CLUSTER HELP";

// What a request asks for. Errors of the functions below are replies, from "ERR " on.
struct Change {
  enum class Kind : uint8_t { kStable, kMigrating, kImporting, kOwner };
  Kind kind = Kind::kStable;
  int slot = 0;
  Node* node = nullptr;  // the other node, or the owner; null for kStable
};

// --- The words of the request --------------------------------------------------------------------

// Words behind the slot: the action, and a node unless it is STABLE.
base::Result<Change> read_action(Cluster& cluster, int slot, Arguments words) {
  using enum Change::Kind;
  const bool names_node = words.size() > 1;
  const auto is = [&](std::string_view action) { return is_word(words[0], action); };
  Change change{.slot = slot};
  if (is("STABLE")) return change;
  const bool is_owner = is("NODE");
  if (!names_node || (!is_owner && !is("MIGRATING") && !is("IMPORTING")))
    return base::fail(std::string(kInvalid));
  change.kind = is_owner ? kOwner : is("MIGRATING") ? kMigrating : kImporting;
  const Node* const mine = cluster.shard_master();
  const Node* const owner = cluster.nodes().owner(slot);
  if (change.kind == kMigrating && owner != mine)
    return base::fail("ERR I'm not the owner of hash slot " + std::to_string(slot));
  if (change.kind == kImporting && owner == mine)
    return base::fail("ERR I'm already the owner of hash slot " + std::to_string(slot));
  change.node = cluster.nodes().find(words[1]);
  if (change.node == nullptr)
    return base::fail((is_owner ? "ERR Unknown node " : "ERR I don't know about node ") +
                      std::string(words[1]));
  if (!is_owner && change.node == &cluster.myself() &&
      cluster.server().edition().is_valkey_since({9, 1}))
    return base::fail("ERR Target node is myself");
  if (!change.node->is_master()) return base::fail("ERR Target node is not a master");
  return change;
}

// "TIMEOUT milliseconds" behind everything else, as Valkey has it, which passes over other words.
base::Result<int64_t> read_timeout(Arguments words) {
  constexpr int64_t kDefaultTimeoutMs = 2000;
  for (size_t i = 0; i < words.size(); ++i) {
    if (!is_word(words[i], "TIMEOUT")) continue;
    int64_t timeout_ms = 0;
    if (i + 1 == words.size()) return base::fail("ERR Missing timeout value");
    if (!base::parse_int64(words[i + 1], &timeout_ms))
      return base::fail("ERR timeout is not an integer or out of range");
    if (timeout_ms < 0) return base::fail("ERR timeout is negative");
    return timeout_ms;
  }
  return kDefaultTimeoutMs;
}

// An atomic migration must not have the slot, nor have left keys of it that are not deleted yet.
base::Result<> wait_for_migration(Cluster& cluster, int slot) {
  // Valkey lets no slot be moved by hand meanwhile.
  if (cluster.slot_jobs().receives()) return base::fail("ERR Slot import in progress.");
  if (cluster.slot_jobs().sends()) return base::fail("ERR Slot export in progress.");
  SlotMigration& migration = cluster.slot_migration();
  if (migration.moves(slot))
    return base::fail("ERR Slot " + std::to_string(slot) +
                      " is in an active atomic slot migration.");
  Trimmer& trimmer = migration.trimmer();
  if (!trimmer.covers(slot)) return {};
  if (trimmer.is_held())
    return base::fail("ERR There is a pending trim job for slot " + std::to_string(slot));
  SlotSet slots;
  slots.add(slot);
  trimmer.finish(slots);
  return {};
}

// --- The change ----------------------------------------------------------------------------------

bool has_keys(Cluster& cluster, int slot) {
  return keys_in_slot(cluster.server(), slot) > 0;
}

// Fails where keys would be left behind.
base::Result<> check_owner(Cluster& cluster, const Change& change) {
  if (change.kind != Change::Kind::kOwner) return {};
  const Node& myself = cluster.myself();
  const bool leaves = cluster.nodes().owner(change.slot) == &myself && change.node != &myself;
  if (!leaves || !has_keys(cluster, change.slot)) return {};
  return base::fail("ERR Can't assign hashslot " + std::to_string(change.slot) +
                    " to a different node while I still hold keys for this hash slot.");
}

// Whether this node has become the owner of a slot that it imported.
bool set_owner(Cluster& cluster, const Change& change) {
  NodeTable& nodes = cluster.nodes();
  Node& myself = cluster.myself();
  Node* const mine = cluster.shard_master();
  Node& owner = *change.node;
  const bool was_ours = mine != nullptr && nodes.owner(change.slot) == mine;
  if (!has_keys(cluster, change.slot) || &owner == mine) nodes.set_migrating(change.slot, nullptr);
  nodes.assign(change.slot, owner);
  const bool arrived = &owner == mine && nodes.importing_from(change.slot) != nullptr;
  if (arrived) nodes.set_importing(change.slot, nullptr);
  // The other nodes believe the claim with the newer epoch.
  if (arrived && myself.is_master()) cluster.bump_epoch();
  // A replica of such a master follows the slots on its own, whatever its master does.
  if (was_ours && &owner != mine && mine->slots.empty()) {
    base::Logger& log = cluster.server().log();
    if (cluster.server().settings().cluster_allow_replica_migration) {
      log.notice("Configuration change detected. Reconfiguring myself as a replica of " +
                 title(owner));
      cluster.replicate_from(owner);
    } else if (myself.is_master()) {
      log.notice("Configuration change detected. I am now an empty master.");
    }
  }
  return arrived && myself.is_master();
}

base::Result<> make(Cluster& cluster, const Change& change) {
  NodeTable& nodes = cluster.nodes();
  Node* const other = change.node == &cluster.myself() ? nullptr : change.node;
  const bool from_master = cluster.myself().is_replica();
  bool arrived = false;
  switch (change.kind) {
    case Change::Kind::kStable:
      nodes.set_migrating(change.slot, nullptr);
      nodes.set_importing(change.slot, nullptr);
      break;
    case Change::Kind::kMigrating:
      nodes.set_migrating(change.slot, other);
      break;
    case Change::Kind::kImporting:
      // Also from itself, as the reference: the slot then gets a newer claim when it arrives.
      nodes.set_importing(change.slot, change.node);
      break;
    case Change::Kind::kOwner:
      arrived = set_owner(cluster, change);
      break;
  }
  if (!(from_master ? cluster.commit_soon() : cluster.commit()))
    return base::fail(std::string("ERR error saving the cluster node config: ") + strerror(errno));
  if (arrived) cluster.gossip().broadcast_pong();
  return {};
}

// --- Replicas ------------------------------------------------------------------------------------

size_t online_replicas(Cluster& cluster) {
  return cluster.server().layer<replication::Replication>().count_acknowledged(0);
}

// Whether there is a replica that understands such a request in the stream: Valkey since 8.0.
bool any_wants_setslot(Cluster& cluster) {
  return std::ranges::any_of(
      cluster.server().layer<replication::Replication>().replicas(), [](const auto* replica) {
        return replica->announced_version && replica->state == replication::ReplicaState::kOnline;
      });
}

// `words`: from the action on. They are read again when the replicas have answered, because the
// nodes may have changed meanwhile.
base::Result<> read_and_make(Cluster& cluster, int slot, Arguments words) {
  if (!cluster.myself().is_master()) return base::fail(std::string(kOnlyWithMasters));
  base::Result<Change> change = read_action(cluster, slot, words);
  if (!change) return change.failure();
  if (base::Result<> checked = check_owner(cluster, *change); !checked) return checked;
  return make(cluster, *change);
}

void send(const base::Result<>& result, resp::ReplyBuilder& reply) {
  result ? reply.ok() : reply.error(result.error());
}

void make_on_replicas_first(CommandContext& ctx, Cluster& cluster, int slot, int64_t timeout_ms) {
  ctx.propagate({}, ctx.args, kPropagateToReplicas);
  const Arguments words = ctx.args.subspan(3);
  auto kept = std::make_shared<std::vector<std::string>>(words.begin(), words.end());
  Client& client = ctx.client;
  const auto done = [&client, &cluster, slot, kept](bool acknowledged) {
    if (!acknowledged) return client.reply.error(kFewReplicas);
    const std::vector<std::string_view> views(kept->begin(), kept->end());
    send(read_and_make(cluster, slot, views), client.reply);
  };
  // As with WAIT, 0 is for as long as it takes.
  const int64_t deadline_ms = base::deadline_after(ctx.server.now_ms(), timeout_ms);
  ctx.server.layer<replication::Replication>().waits().wait_for_stream(
      client, online_replicas(cluster), deadline_ms, done);
}

}  // namespace

void cluster_setslot(CommandContext& ctx, Cluster& cluster) {
  const bool is_valkey = ctx.server.edition().is_valkey();
  const bool from_master = is_valkey && ctx.client.has(kClientMaster);
  if (!cluster.myself().is_master() && !from_master) return ctx.reply.error(kOnlyWithMasters);
  int slot = 0;
  if (!parse_slot(ctx.args[2], &slot)) return ctx.reply.error("ERR Invalid or out of range slot");
  const base::Result<> waited = wait_for_migration(cluster, slot);
  if (!waited) return ctx.reply.error(waited.error());
  const Arguments words = ctx.args.subspan(3);
  const size_t wanted = is_word(words[0], "STABLE") ? 1 : 2;
  if (!is_valkey && words.size() != wanted) return ctx.reply.error(kInvalid);
  const base::Result<Change> change = read_action(cluster, slot, words);
  if (!change) return ctx.reply.error(change.error());
  const base::Result<int64_t> timeout_ms = read_timeout(words.subspan(wanted));
  if (!timeout_ms) return ctx.reply.error(timeout_ms.error());
  const base::Result<> checked = check_owner(cluster, *change);
  if (!checked) return ctx.reply.error(checked.error());
  const bool may_wait = is_valkey && !from_master && !ctx.client.has(kClientDenyBlocking);
  if (may_wait && any_wants_setslot(cluster))
    return make_on_replicas_first(ctx, cluster, slot, *timeout_ms);
  send(make(cluster, *change), ctx.reply);
}

// --- Moves in a dataset --------------------------------------------------------------------------

std::string moves_text(const NodeTable& nodes) {
  std::string text;
  const auto add = [&](const NodeTable::Moves& moves, char direction) {
    for (const auto& [slot, other] : moves)
      text += std::to_string(slot) + direction + other->id + ',';
  };
  add(nodes.importing(), '<');
  add(nodes.migrating(), '>');
  return text;
}

void add_moves(std::string_view text, NodeTable* nodes) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    const std::string_view move = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t arrow = move.find_first_of("<>");
    int slot = 0;
    if (arrow == move.npos || !parse_slot(move.substr(0, arrow), &slot)) continue;
    Node* const other = nodes->find(move.substr(arrow + 1));
    if (other == nullptr || other->is_myself()) continue;
    move[arrow] == '>' ? nodes->set_migrating(slot, other) : nodes->set_importing(slot, other);
  }
}

}  // namespace latchkey::cluster
