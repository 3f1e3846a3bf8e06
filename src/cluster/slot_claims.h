// Resolves conflicting claims to slots: the claim with the higher configuration epoch wins. A
// master whose last slot has gone to another becomes a replica of that one, and so do its replicas.
// A node that claims slots of a newer owner is sent an UPDATE, and of two masters with the same
// epoch the one with the smaller id takes a new one.
#pragma once

#include <cstdint>

#include "cluster/bus_message.h"
#include "cluster/node.h"

namespace latchkey::cluster {

class Cluster;

class SlotClaims {
 public:
  explicit SlotClaims(Cluster& cluster) : cluster_(cluster) {}

  // A heartbeat with the slots of its sender, or of the sender's master.
  void hear(Node& sender, const Message& message);
  // UPDATE: another node's slots.
  void told(const Message& message);
  // Tells the sender of the newer owner of a slot that is in the message, if any has one.
  void correct(Node& sender, const Message& message);

 private:
  // REQUIRES: the claimant is a master.
  void apply(Node& claimant, uint64_t epoch, const SlotSet& slots);
  // Takes the slots that the sender does not claim any more and that this node imports from it: its
  // owner was told of the move before this node was. As Valkey does.
  void claim_imported(const Node& sender, const Message& message);
  void part(const Node& sender, uint64_t epoch);

  Cluster& cluster_;
};

}  // namespace latchkey::cluster
