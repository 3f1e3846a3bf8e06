// Elects the Sentinel that fails a master over. It needs, in one epoch, the votes of the majority
// of all known Sentinels, and at least as many as the quorum. Each Sentinel has one vote per epoch
// and master, gives it to the first candidate that asks, and saves it before it replies.
#pragma once

#include <cstdint>
#include <string>

#include "sentinel/instance.h"

namespace latchkey::sentinel {

class Sentinel;

class Election {
 public:
  explicit Election(Sentinel& sentinel) : sentinel_(sentinel) {}

  // Votes for `candidate`, if this Sentinel has not voted in that epoch. Its last vote is in
  // Master::leader and Master::leader_epoch.
  void vote(Master& master, uint64_t epoch, const std::string& candidate);
  // The id of the elected Sentinel; empty: none is elected yet.
  std::string winner(Master& master, uint64_t epoch);

 private:
  Sentinel& sentinel_;
};

}  // namespace latchkey::sentinel
