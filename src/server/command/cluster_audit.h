// Counts commands that would not work in a cluster (INFO's cluster_incompatible_ops), on a server
// that is no node of one: commands whose keys are in several slots, and those whose handlers call
// count_incompatible(). cluster-compatibility-sample-ratio percent of the clients' commands are
// checked; each counts once. With a ratio of 0 nothing is done (kStateClusterAudit).
#pragma once

#include <cstdint>
#include <span>

#include "server/command/slot_gate.h"

namespace latchkey::server {

class Server;

class ClusterAudit {
 public:
  explicit ClusterAudit(Server& server) : server_(server) {}

  // A client's request begins, or a transaction of these requests: chooses at random whether it is
  // checked.
  void begin(std::span<const SlotGate::Request> requests);
  // The requests that follow are not a client's.
  void end() { sampling_ = false; }
  // The request that was being checked goes on, after others.
  void resume() { sampling_ = true; }
  // Whether the request that runs is being checked, and has not been counted.
  bool is_sampling() const { return sampling_; }
  // Counts the request that runs. Of no effect unless is_sampling().
  void count_incompatible();

  uint64_t count() const { return count_; }
  void reset() { count_ = 0; }

 private:
  Server& server_;
  uint64_t count_ = 0;
  bool sampling_ = false;
};

}  // namespace latchkey::server
