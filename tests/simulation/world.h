// A run: a master, its replicas, their clients, the network between them, and what happens to all
// of them, chosen by a seed. In the end everything comes to rest and is compared.
//
// One run at a time in a process: a full disk is made by a limit of the process's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "simulation/dice.h"
#include "simulation/ledger.h"
#include "simulation/network.h"
#include "simulation/node.h"
#include "simulation/player.h"
#include "simulation/simulated_clock.h"
#include "simulation/steps.h"
#include "simulation/workload.h"

namespace latchkey::simulation {

class World {
 public:
  // `directory`: of its own, there and empty. `log`: the start of the names of the servers' logs;
  // empty: none.
  World(uint64_t seed, std::filesystem::path directory, Steps& steps, std::string log);

  // Throws CheckFailed.
  void run();

 private:
  using Nodes = std::vector<std::unique_ptr<Node>>;
  // How the master keeps its dataset on disk.
  enum class Disk : uint8_t { kNone, kAlways, kMayFail };
  struct Plan {
    explicit Plan(Dice& dice);
    Disk disk;
    // Whom each node follows, -1: nobody. The first one is the master.
    std::vector<int> masters;
    std::string settings;
    int script_instructions;
  };

  Node& master() { return *nodes_.front(); }
  Node& any_node() { return *dice_.pick(nodes_); }
  Node& any_replica() { return *nodes_[dice_.between(1, nodes_.size() - 1)]; }
  Nodes make_nodes(const std::filesystem::path& directory, const std::string& log);
  void start(Node& node);

  // --- Steps ------------------------------------------------------------------------------------
  void step();
  void clients_ask();
  void let_time_pass();
  void end_turns();
  void end_turn(Node& node);
  void end_turn_of_full_disk(Node& node);
  void meddle();
  void add_player(Node& node);
  void player_leaves();
  void player_is_killed();
  void stop_script(Node& node);
  void flush_all();
  void save(Node& node);
  void crash(Node& node);
  void change_role(Node& node);
  void fill_or_empty_disk();
  void read_all(Node& node);

  // --- The end ----------------------------------------------------------------------------------
  void come_to_rest();
  // What is not at rest; empty: everything is.
  std::string unrest();
  void go_on_quietly();
  // Lets the world go on, without anything new, until it is at rest.
  void go_on_until_rest();
  void check_counters(Node& node);
  void check_replicas();
  void check_datasets();
  void check_player(Player& player);
  // What the master has of the player's keys.
  Model stored(const Player& player);

  Dice dice_;
  Steps& steps_;
  SimulatedClock clock_;
  const Plan plan_;
  const std::filesystem::path directory_;
  Nodes nodes_;
  Network network_;
  Ledger ledger_;
  Workload workload_;
  std::vector<std::unique_ptr<Player>> players_;  // also those that have gone
  std::vector<std::unique_ptr<Listener>> listeners_;
  int numbers_ = 0;
  bool disk_full_ = false;
  // Of the master, in this turn: what a crash undoes is not known then.
  bool flushed_in_turn_ = false;
};

}  // namespace latchkey::simulation
