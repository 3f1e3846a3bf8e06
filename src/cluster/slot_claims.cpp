#include "cluster/slot_claims.h"

#include <vector>

#include "cluster/cluster.h"
#include "server/server.h"

namespace latchkey::cluster {

namespace {

// The node that a slot is imported from was replaced by another one of its shard.
void change_source(Cluster& cluster, int slot, Node& successor) {
  cluster.nodes().set_importing(slot, &successor);
  cluster.server().log().notice(
      "Failover occurred in migration source. Update importing source for slot " +
      std::to_string(slot) + " to node " + title(successor) + " in shard " + successor.shard_id +
      ".");
}

}  // namespace

void SlotClaims::process_heartbeat(Node& sender, const Message& message) {
  const Node* const served = sender.is_master() ? &sender : sender.master;
  const bool differs = served != nullptr && served->slots != message.slots;
  if (differs && sender.is_master()) apply(sender, message.config_epoch, message.slots);
  if (differs && sender.is_master()) claim_imported(sender, message);
  if (differs) send_update_if_outdated(sender, message);
  if (sender.is_master()) resolve_epoch_collision(sender, message.config_epoch);
}

void SlotClaims::apply(Node& claimant, uint64_t epoch, const SlotSet& slots) {
  NodeTable& nodes = cluster_.nodes();
  Node& myself = cluster_.myself();
  if (&claimant == &myself) return;
  Node* const former = cluster_.shard_master();
  std::vector<int> lost;
  size_t taken_from_shard = 0;
  slots.for_each([&](int slot) {
    Node* const owner = nodes.owner(slot);
    if (owner == &claimant) return;
    // Only CLUSTER SETSLOT gives this node a slot that it imports; a replica learns from its
    // master's heartbeat that the master owns it. The owner may be replaced by another node of its
    // shard.
    if (nodes.importing_from(slot) != nullptr && &claimant != former) {
      if (owner == nullptr || owner->shard_id != claimant.shard_id) return;
      if (owner->config_epoch < epoch && nodes.importing_from(slot) != &claimant)
        change_source(cluster_, slot, claimant);
    }
    if (owner != nullptr && owner->config_epoch >= epoch) return;
    if (owner == &myself) lost.push_back(slot);
    if (owner != nullptr && owner == former) ++taken_from_shard;
    // A successor of the same shard goes on with its moves.
    if (owner == former && claimant.shard_id != myself.shard_id) nodes.set_migrating(slot, nullptr);
    if (&claimant == former) nodes.set_importing(slot, nullptr);
    nodes.assign(slot, claimant);
    cluster_.changed();
  });
  const bool left_with_none = taken_from_shard > 0 && former->slots.empty();
  const bool may_move = cluster_.server().settings().cluster_allow_replica_migration ||
                        claimant.slots.size() == taken_from_shard;
  if (left_with_none && may_move) {
    cluster_.server().log().notice(
        "Configuration change detected. Reconfiguring myself as a replica of " + title(claimant));
    return cluster_.replicate_from(claimant);
  }
  if (left_with_none && former == &myself)
    cluster_.server().log().notice("Configuration change detected. I am now an empty master.");
  cluster_.lost(lost);
}

void SlotClaims::claim_imported(const Node& sender, const Message& message) {
  const Node& myself = cluster_.myself();
  if (!myself.is_master() || !cluster_.server().edition().is_valkey()) return;
  NodeTable& nodes = cluster_.nodes();
  std::vector<int> given_up;
  for (const auto& [slot, from] : nodes.importing()) {
    if (from == &sender && !message.slots.has(slot) && nodes.owner(slot) == &sender)
      given_up.push_back(slot);
  }
  if (given_up.empty()) return;
  cluster_.bump_epoch();
  for (const int slot : given_up) {
    cluster_.server().log().notice("Slot " + std::to_string(slot) + " was given up by " +
                                   title(sender) + ", from which it was imported: it is mine.");
    nodes.set_importing(slot, nullptr);
    nodes.assign(slot, cluster_.myself());
  }
  cluster_.changed();
  cluster_.gossip().broadcast_pong();
}

void SlotClaims::send_update_if_outdated(Node& sender, const Message& message) {
  if (sender.link == nullptr) return;
  const NodeTable& nodes = cluster_.nodes();
  const Node* newer = nullptr;
  message.slots.for_each([&](int slot) {
    const Node* const owner = nodes.owner(slot);
    if (newer == nullptr && owner != nullptr && owner != &sender &&
        owner->config_epoch > message.config_epoch)
      newer = owner;
  });
  if (newer == nullptr) return;
  cluster_.server().log().verbose("Node " + title(sender) +
                                  " has old slots configuration, sending an UPDATE message about " +
                                  title(*newer));
  Message update = cluster_.message(MessageType::kUpdate);
  update.subject = newer->id;
  update.subject_epoch = newer->config_epoch;
  update.subject_slots = newer->slots;
  cluster_.bus().send(*sender.link, update);
}

void SlotClaims::resolve_epoch_collision(const Node& sender, uint64_t epoch) {
  Node& myself = cluster_.myself();
  if (!myself.is_master() || epoch != myself.config_epoch || sender.id <= myself.id) return;
  NodeTable& nodes = cluster_.nodes();
  myself.config_epoch = ++nodes.current_epoch;
  cluster_.changed();
  cluster_.server().log().verbose("WARNING: configEpoch collision with node " + title(sender) +
                                  ". configEpoch set to " + std::to_string(myself.config_epoch));
}

void SlotClaims::process_update(const Message& message) {
  Node* const node = cluster_.nodes().find(message.subject);
  if (node == nullptr || node->has(kHandshake) || node->config_epoch >= message.subject_epoch)
    return;
  // This node knows its own slots best.
  if (node == &cluster_.myself()) return;
  cluster_.nodes().make_master(*node);
  node->config_epoch = message.subject_epoch;
  cluster_.changed();
  apply(*node, message.subject_epoch, message.subject_slots);
}

}  // namespace latchkey::cluster
