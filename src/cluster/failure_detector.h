// Detects failed nodes. A node that does not answer within cluster-node-timeout is suspected by the
// node that asked; it is failing when a majority of the masters with slots suspects it, and a
// master that finds this out sends FAIL to all nodes.
#pragma once

#include <cstddef>

#include "cluster/bus_message.h"
#include "cluster/node.h"

namespace latchkey::cluster {

class Cluster;

class FailureDetector {
 public:
  explicit FailureDetector(Cluster& cluster) : cluster_(cluster) {}

  // Called when a node has not answered in time.
  void suspect(Node& node);
  void mark_failing(Node& node);
  // Makes a suspected node failing if enough masters have reported it.
  void mark_failing_at_quorum(Node& node);
  // FAIL: another node has marked a node as failing.
  void receive_fail(const Node& by, const Message& message);
  // Called when a failing node has answered: clears its failing state, unless it is a master whose
  // slots a replica may be about to take over.
  void clear_failing(Node& node);
  // Number of masters that suspect the node, without this one.
  size_t count_reports(Node& node);

 private:
  Cluster& cluster_;
};

}  // namespace latchkey::cluster
