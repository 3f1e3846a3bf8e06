// Counts commands that would not do in a cluster (INFO's cluster_incompatible_ops), on a server
// that is no node of one: those whose keys are in several slots, and those that say so themselves.
// cluster-compatibility-sample-ratio percent of the clients' commands are looked at, each counts
// once. With 0 nothing is done (kStateClusterAudit).
#pragma once

#include <cstdint>
#include <span>

#include "server/command/slot_gate.h"

namespace latchkey::server {

class Server;

class ClusterAudit {
 public:
  explicit ClusterAudit(Server& server) : server_(server) {}

  // A client's request begins, or the transaction of these: by chance it is looked at.
  void begin(std::span<const SlotGate::Request> requests);
  // What follows is no client's.
  void end() { looking_ = false; }
  // The request that was looked at goes on, after others.
  void go_on() { looking_ = true; }
  // Whether the request that runs is looked at, and has been found fit so far.
  bool looking() const { return looking_; }
  // It is not fit. Of no effect unless looking().
  void unfit();

  uint64_t count() const { return count_; }
  void reset() { count_ = 0; }

 private:
  Server& server_;
  uint64_t count_ = 0;
  bool looking_ = false;
};

}  // namespace latchkey::server
