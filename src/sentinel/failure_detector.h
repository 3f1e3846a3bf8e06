// Decides which instances are down. An instance is subjectively down (SDOWN) when it has not given
// an acceptable reply to PING for its down-after-milliseconds, or is a master that has reported the
// role of a replica for too long. A master is objectively down (ODOWN) when at least as many
// Sentinels as its quorum, this one included, report it as down.
#pragma once

#include "sentinel/instance.h"

namespace latchkey::sentinel {

class Sentinel;

class FailureDetector {
 public:
  explicit FailureDetector(Sentinel& sentinel) : sentinel_(sentinel) {}

  void check_subjectively(Instance& instance);
  void check_objectively(Master& master);
  // If the master is subjectively down, asks the other Sentinels whether it is for them, and for
  // their votes if this Sentinel has started a failover. `at_once`: whenever they were asked last.
  void ask_others(Master& master, bool at_once);

 private:
  // Closes connections that seem to be dead although the system does not say so.
  void close_dead_connections(Instance& instance);
  bool is_down(Instance& instance);
  void process_master_down_reply(PeerSentinel& sentinel, const Reply& reply);

  Sentinel& sentinel_;
};

}  // namespace latchkey::sentinel
