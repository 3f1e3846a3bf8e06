// CLUSTER FAILOVER: a replica takes its master's place because somebody asked it to.
//
//     replica: MFSTART -> master: pauses writes, says how far its stream has come
//     replica: has come as far -> election -> leads
//
// With FORCE the master is not asked, with TAKEOVER nobody is. What is not done in time is given
// up.
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

  // The replica. REQUIRES: its master is known, and unless `force` linked.
  void begin(bool force);
  // Whether one goes on, on either side.
  bool active() const { return deadline_ms_ != 0; }
  // Whether the replica may ask for votes though its master is up.
  bool may_begin() const { return may_begin_; }
  // The master has said where its stream stands.
  void told_offset(const Node& sender, const Message& message);

  // The master. A replica of it asks.
  void asked(Node& sender);
  // Whether its writes are paused for a replica, and which.
  Node* successor() const { return successor_; }

  void tick();
  // Whatever goes on is over.
  void reset();
  // The node is removed.
  void forget(const Node& node);

 private:
  Cluster& cluster_;
  int64_t deadline_ms_ = 0;  // 0: nothing goes on
  Node* successor_ = nullptr;
  std::optional<uint64_t> wanted_offset_;
  bool may_begin_ = false;
};

}  // namespace latchkey::cluster
