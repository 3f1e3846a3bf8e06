// Which Sentinel fails a master over: the one that has, in an epoch, the votes of the majority of
// all Sentinels that are known, and of as many as the quorum. Each votes once in an epoch and
// master, for the first that asks, and writes that down before it says so.
#pragma once

#include <cstdint>
#include <string>

#include "sentinel/instance.h"

namespace latchkey::sentinel {

class Sentinel;

class Election {
 public:
  explicit Election(Sentinel& sentinel) : sentinel_(sentinel) {}

  // Votes for `candidate`, if this Sentinel has not voted in that epoch. Master::leader and
  // Master::leader_epoch tell its last vote.
  void vote(Master& master, uint64_t epoch, const std::string& candidate);
  // The id of whom the Sentinels have elected; empty while nobody is.
  std::string winner(Master& master, uint64_t epoch);

 private:
  Sentinel& sentinel_;
};

}  // namespace latchkey::sentinel
