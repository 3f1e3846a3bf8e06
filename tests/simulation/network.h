// What stands for sockets between replicas and their masters: carries bytes in pieces, late, and
// breaks off.
//
// Each replica that is up and follows a node has at most one link. It begins when the replica has
// asked for one and the network lets it, and ends when either side closes it, goes down, or it
// breaks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "simulation/dice.h"
#include "simulation/node.h"
#include "simulation/steps.h"

namespace latchkey::simulation {

class Network {
 public:
  // `nodes` outlive it.
  Network(std::span<const std::unique_ptr<Node>> nodes, Dice& dice, Steps& steps);

  // Has what stands in the outputs of that node enter the network: at the end of its turn.
  void collect(Node& node);
  // Carries some bytes, makes and ends links.
  void carry();
  // Breaks the link of that replica, if it has one.
  void cut(int replica);
  // The network lets everything through, and quickly.
  void heal() { healed_ = true; }
  // Nothing is on its way.
  bool idle() const;

 private:
  struct Link {
    bool open = false;
    int replica_generation = 0;
    int master = 0;
    int master_generation = 0;
    uint64_t client_id = 0;  // with the master
    bool master_gone = false;
    // On their way, and arrived but not consumed.
    std::string to_master = {};
    std::string at_master = {};
    std::string to_replica = {};
    std::string at_replica = {};
  };

  server::Client* client_of(const Link& link);
  // The replica's end has asked anew, or has gone.
  bool replica_has_left(Node& replica, const Link& link);
  void look_after(Node& replica, Link& link);
  void begin(Node& replica, Link& link);
  void end(Node& replica, Link& link, const char* why);
  void carry_to_master(Link& link);
  void carry_to_replica(Node& replica, Link& link);
  void tell_replica(Node& replica);
  void collect_from_replica(Node& replica, Link& link);
  void collect_from_master(Link& link);
  size_t some(size_t size);

  std::span<const std::unique_ptr<Node>> nodes_;
  Dice& dice_;
  Steps& steps_;
  std::vector<Link> links_;  // by replica
  bool healed_ = false;
};

}  // namespace latchkey::simulation
