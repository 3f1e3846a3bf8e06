// Who is down. An instance is down for this Sentinel (SDOWN) when it has not answered PING well for
// its down-after-milliseconds, or is a master that says for long that it is a replica. A master is
// down (ODOWN) when as many Sentinels as its quorum find it so, this one among them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sentinel/instance.h"

namespace latchkey::sentinel {

class Sentinel;

class Judgement {
 public:
  explicit Judgement(Sentinel& sentinel) : sentinel_(sentinel) {}

  void check_subjectively(Instance& instance);
  void check_objectively(Master& master);
  // Asks the other Sentinels whether they find the master down, if this one does; with that for
  // their votes, if this one wants to be elected. `at_once`: without regard to when they were asked
  // last.
  void ask_others(Master& master, bool at_once);

 private:
  // Closes connections that seem to be dead although the system does not say so.
  void close_dead_connections(Instance& instance);
  bool is_down(Instance& instance);
  void took_opinion(PeerSentinel& sentinel, const Reply& reply);

  Sentinel& sentinel_;
};

}  // namespace latchkey::sentinel
