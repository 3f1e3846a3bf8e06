// Who serves which slot, where nodes say different things: the claim with the higher configuration
// epoch is the newer one. A master whose last slot has gone to another becomes a replica of that
// one, and so do its replicas. Whoever claims what has gone to a newer owner is told (UPDATE), and
// masters that have the same epoch by chance part.
#pragma once

#include <cstdint>

#include "cluster/bus_message.h"
#include "cluster/node.h"

namespace latchkey::cluster {

class Cluster;

class SlotClaims {
 public:
  explicit SlotClaims(Cluster& cluster) : cluster_(cluster) {}

  // What a heartbeat says of its sender's slots, or those of its master.
  void hear(Node& sender, const Message& message);
  // UPDATE: what somebody knows of another node's slots.
  void told(const Message& message);

 private:
  // REQUIRES: the claimant is a master.
  void apply(Node& claimant, uint64_t epoch, const SlotSet& slots);
  void correct(Node& sender, const Message& message);
  void part(const Node& sender, uint64_t epoch);

  Cluster& cluster_;
};

}  // namespace latchkey::cluster
