// CLUSTER FAILOVER: a manual failover, in which a replica replaces its master.
//
//     replica: MFSTART -> master: pauses writes, sends its replication offset
//     replica: has that offset -> election -> becomes the master
//
// With FORCE the replica does not ask its master to pause writes, and with TAKEOVER there is no
// election. A manual failover that exceeds its timeout is aborted.
#pragma once

#include <cstdint>
#include <optional>

#include "cluster/bus_message.h"
#include "cluster/node.h"

namespace latchkey::cluster {

class Cluster;

class ManualFailover {
 public:
  explicit ManualFailover(Cluster& cluster) : cluster_(cluster) {}

  // Called on the replica. REQUIRES: its master is known and, unless `force`, linked.
  void begin(bool force);
  // Whether a manual failover is in progress, on the replica or the master.
  bool active() const { return deadline_ms_ != 0; }
  // Whether the replica may start an election although its master is up.
  bool may_begin() const { return may_begin_; }
  // Called on the replica: the master has sent the offset at which it paused writes.
  void receive_offset(const Node& sender, const Message& message);

  // Called on the master: one of its replicas has sent MFSTART.
  void requested(Node& sender);
  // The replica for which writes are paused; null when there is none.
  Node* successor() const { return successor_; }

  void tick();
  // Ends the manual failover.
  void reset();
  // Called when the node is removed.
  void forget(const Node& node);

 private:
  Cluster& cluster_;
  int64_t deadline_ms_ = 0;  // 0: none in progress
  Node* successor_ = nullptr;
  std::optional<uint64_t> wanted_offset_;
  bool may_begin_ = false;
};

}  // namespace latchkey::cluster
