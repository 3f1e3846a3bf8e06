// The periodic work of a node, ten times a second: keeps links to the others, pings those that have
// been silent, and detects those that do not answer.
#pragma once

#include <cstdint>

#include "cluster/node.h"

namespace latchkey::cluster {

class Cluster;

class Heartbeat {
 public:
  explicit Heartbeat(Cluster& cluster) : cluster_(cluster) {}

  void tick();
  // Whether nodes are pinged now and then although they are not silent (the default). For tests.
  void ping_at_random(bool on) { pings_at_random_ = on; }
  // Whether links that have been lost are opened again (the default). For tests.
  void reconnect(bool on) { reconnects_ = on; }

 private:
  void maintain_links();
  void ping_random_node();
  void check_node(Node& node);
  void send_meet_if_no_incoming_link(Node& node);
  int64_t handshake_ms() const;
  bool is_stuck(const Node& node) const;

  Cluster& cluster_;
  int64_t pinged_ms_ = 0;
  bool pings_at_random_ = true;
  bool reconnects_ = true;
};

}  // namespace latchkey::cluster
