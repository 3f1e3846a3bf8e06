// Resolves conflicting claims to slots: the claim with the higher configuration epoch wins. A
// master whose last slot has gone to another becomes a replica of that one, and so do its replicas.
// A node that claims slots of a newer owner is sent an UPDATE. Of two masters with the same epoch
// the one with the smaller id takes a new epoch.
#pragma once

#include <cstdint>

#include "cluster/bus_message.h"
#include "cluster/node.h"

namespace latchkey::cluster {

class Cluster;

class SlotClaims {
 public:
  explicit SlotClaims(Cluster& cluster) : cluster_(cluster) {}

  // Applies the slots in a heartbeat: those of the sender, or of the sender's master.
  void process_heartbeat(Node& sender, const Message& message);
  // Applies an UPDATE, which has another node's slots.
  void process_update(const Message& message);
  // Sends the sender an UPDATE about the newer owner of one of the slots that it claims, if there
  // is one.
  void send_update_if_outdated(Node& sender, const Message& message);

 private:
  // REQUIRES: the claimant is a master.
  void apply(Node& claimant, uint64_t epoch, const SlotSet& slots);
  // Assigns to this node the slots that it imports from the sender and that the sender does not
  // claim any more: CLUSTER SETSLOT NODE has run there first. As Valkey does.
  void claim_imported(const Node& sender, const Message& message);
  // Takes a new epoch if the sender has this node's, and the greater id.
  void resolve_epoch_collision(const Node& sender, uint64_t epoch);

  Cluster& cluster_;
};

}  // namespace latchkey::cluster
