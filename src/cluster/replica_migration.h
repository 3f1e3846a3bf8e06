// Replica migration: a replica of the master with the most working replicas becomes the replica of
// a master that has lost all of its own (cluster-allow-replica-migration), if
// cluster-migration-barrier replicas remain.
#pragma once

#include "cluster/node.h"

namespace latchkey::cluster {

class Cluster;

class ReplicaMigration {
 public:
  explicit ReplicaMigration(Cluster& cluster) : cluster_(cluster) {}

  // To be called at every tick.
  void tick();

 private:
  bool is_orphan(const Node& master) const;
  void note_orphans();
  // Whether this replica is the one that migrates, among all candidates.
  bool is_chosen() const;

  Cluster& cluster_;
};

}  // namespace latchkey::cluster
