// How a node leaves its cluster when its server shuts down (SHUTDOWN SAFE and FAILOVER,
// shutdown-on-sigterm): with SAFE not while it is a master with slots; with FAILOVER, as such a
// master, not before it has told a replica that has all of its writes to replace it.
#pragma once

#include <string>

namespace latchkey::cluster {

class Cluster;

class Departure {
 public:
  // Registers itself with the server's shutdown. The cluster must outlive it.
  explicit Departure(Cluster& cluster);

 private:
  bool may_leave(unsigned flags) const;
  void hand_over(unsigned flags);
  // The id of a replica that has acknowledged everything; empty if there is none.
  std::string find_successor() const;

  Cluster& cluster_;
};

}  // namespace latchkey::cluster
