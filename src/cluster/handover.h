// CLUSTER FAILOVER: a manual failover, in which a replica replaces its master.
//
//     replica: MFSTART -> master: pauses writes, sends its replication offset
//     replica: has that offset -> election -> becomes the master
//
// With FORCE the master is not asked, with TAKEOVER no node is. A handover that exceeds its timeout
// is given up.
#pragma once

#include <cstdint>
#include <optional>

#include "cluster/bus_message.h"
#include "cluster/node.h"

namespace latchkey::cluster {

class Cluster;

class Handover {
 public:
  explicit Handover(Cluster& cluster) : cluster_(cluster) {}

  // Called on the replica. REQUIRES: its master is known and, unless `force`, linked.
  void begin(bool force);
  // Whether a handover is going on, on the replica or the master.
  bool active() const { return deadline_ms_ != 0; }
  // Whether the replica may start an election although its master is up.
  bool may_begin() const { return may_begin_; }
  // The master has sent the offset at which it paused writes.
  void told_offset(const Node& sender, const Message& message);

  // Called on the master: one of its replicas asks for the handover.
  void asked(Node& sender);
  // The replica for which writes are paused; null when there is none.
  Node* successor() const { return successor_; }

  void tick();
  // Ends the handover.
  void reset();
  // Called when the node is removed.
  void forget(const Node& node);

 private:
  Cluster& cluster_;
  int64_t deadline_ms_ = 0;  // 0: no handover
  Node* successor_ = nullptr;
  std::optional<uint64_t> wanted_offset_;
  bool may_begin_ = false;
};

}  // namespace latchkey::cluster
