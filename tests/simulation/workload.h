// What clients of a simulation ask for.
#pragma once

#include <string>

#include "simulation/dice.h"
#include "simulation/player.h"

namespace latchkey::simulation {

// The function library that the scripts of workloads need.
extern const char kLibrary[];
// The list that all clients of database 0 share (Ledger).
inline constexpr char kQueue[] = "queue";

class Workload {
 public:
  // `may_reload`: DEBUG RELOAD is among the requests.
  Workload(Dice& dice, bool may_reload) : dice_(dice), may_reload_(may_reload) {}

  // Puts the next request, or some that belong together, on its way to a master.
  void ask(Player& player);
  // The same to a replica: nothing there is its own.
  void ask_replica(Player& player);
  // Some requests without replies. REQUIRES: nothing waits, and the server can run all of it now.
  void ask_silently(Player& player);

 private:
  std::string token(Player& player);
  Request own(Player& player);
  Request script(Player& player);
  Request shared(Player& player);
  void transaction(Player& player);
  std::string key(const Player& player, const char* name) const;

  Dice& dice_;
  bool may_reload_;
};

}  // namespace latchkey::simulation
