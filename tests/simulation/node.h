// One whole server of a simulation: composed as main() composes it, but for sockets and children,
// in a directory of its own, from which it starts again after a crash.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "simulation/dice.h"
#include "simulation/protocol.h"
#include "simulation/simulated_clock.h"
#include "simulation/simulated_snapshots.h"

namespace latchkey::server {
class Client;
class Server;
}  // namespace latchkey::server
namespace latchkey::replication {
class ReplicaRole;
}

namespace latchkey::simulation {

class Node {
 public:
  struct Shape {
    int index = 0;
    int follows = -1;  // whom it follows from the start, or -1
    bool append_only = false;
    std::string settings;  // further lines of configuration
    // After how many instructions a script that goes on has taken too long.
    int script_instructions = 0;
  };

  // Does not start it. `directory` is there, and empty. `log`: where its log goes, or empty.
  Node(Shape shape, SimulatedClock& clock, Dice& dice, std::filesystem::path directory,
       std::string log);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  int index() const { return shape_.index; }
  bool append_only() const { return shape_.append_only; }
  std::string name() const { return "node" + std::to_string(shape_.index); }
  static int port(int index) { return kFirstPort + index; }

  // Starts a server from the files that are there. REQUIRES: !up().
  void start();
  // The process ends as if it were killed: nothing more is written.
  void crash();
  bool up() const { return parts_ != nullptr; }
  // Differs for each start.
  int generation() const { return generation_; }

  // --- While it is up ---------------------------------------------------------------------------
  server::Server& server();
  replication::ReplicaRole& replica_role();
  SimulatedSnapshots& snapshots();
  // ServerState bits.
  uint32_t state();
  // The end of a turn of the loop: what the server does by itself.
  void end_turn();
  // Runs a request by a client that comes for it and goes. What has been replied by then.
  std::string run(const Words& words, int database = 0);
  // The index of the node that it is told to follow, or -1.
  int master();

 private:
  static constexpr int kFirstPort = 7000;
  struct Parts;

  Shape shape_;
  SimulatedClock& clock_;
  Dice& dice_;
  std::filesystem::path directory_;
  std::string log_;
  std::unique_ptr<Parts> parts_;
  int generation_ = 0;
};

}  // namespace latchkey::simulation
