// SHUTDOWN SAFE and SHUTDOWN FAILOVER of a node of a cluster, and the same by shutdown-on-sigterm.
// SAFE refuses to shut down a master with slots. With FAILOVER such a master first names, in the
// replication stream, a replica that has all of its writes, and that replica replaces it.
#pragma once

#include <string>

namespace latchkey::cluster {

class Cluster;

class ShutdownFailover {
 public:
  // Registers itself with the server's shutdown. The cluster must outlive it.
  explicit ShutdownFailover(Cluster& cluster);

 private:
  bool may_leave(unsigned flags) const;
  void hand_over(unsigned flags);
  // The id of a replica that has acknowledged everything; empty if there is none.
  std::string find_successor() const;

  Cluster& cluster_;
};

}  // namespace latchkey::cluster
