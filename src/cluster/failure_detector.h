// Finds out which nodes have failed. A node that does not answer in cluster-node-timeout is
// suspected by whoever asked; it is failing when most masters with slots say that they suspect it,
// and whoever finds that out tells all.
#pragma once

#include <cstddef>

#include "cluster/bus_message.h"
#include "cluster/node.h"

namespace latchkey::cluster {

class Cluster;

class FailureDetector {
 public:
  explicit FailureDetector(Cluster& cluster) : cluster_(cluster) {}

  // It has not answered in time.
  void suspect(Node& node);
  // Makes a node failing that is suspected here and by enough others.
  void mark_if_agreed(Node& node);
  // FAIL: another node has made it so.
  void told_failing(const Node& by, const Message& message);
  // A failing node has answered: it fails no more, unless it is a master whose slots others are
  // about to take.
  void forgive_if_back(Node& node);
  // Masters that suspect it, this one not counted.
  size_t count_reports(Node& node);

 private:
  void make_failing(Node& node);
  Cluster& cluster_;
};

}  // namespace latchkey::cluster
