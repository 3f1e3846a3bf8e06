// Automatic failover: a replica of a failing master asks the masters with slots for their votes.
// Each of them has one vote per epoch, and the replica with a majority becomes the master. A
// replica is a candidate only if its data is not too old; a replica with a higher offset starts
// earlier. A ManualFailover uses the same votes without waiting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "cluster/bus_message.h"
#include "cluster/node.h"

namespace latchkey::cluster {

class Cluster;

class Election {
 public:
  explicit Election(Cluster& cluster) : cluster_(cluster) {}

  // Starts or continues an election. To be called at every tick.
  void tick();
  // Ends the current election; the next may begin at once.
  void reset();
  // Whether this node waits for votes.
  bool in_progress() const;
  // The epoch of the election. REQUIRES: in_progress().
  uint64_t epoch() const { return epoch_; }

  // A replica asks for this node's vote, which it gets or not.
  void vote_requested(Node& candidate, const Message& message);
  // A master has voted for this node.
  void vote_received(const Node& voter, const Message& message);

 private:
  bool is_eligible() const;
  bool data_is_too_old() const;
  // Number of replicas of the same master with a higher offset, or the same one and a smaller id.
  int rank() const;
  // Number of failed masters whose replicas begin before those of this one's.
  int rank_of_master() const;
  // Whether this replica need not wait for others (Valkey 9.1): it is the best one of the first
  // failed master, and all replicas of that one know that it is failing, and so how far each is.
  bool is_best() const;
  void schedule(int64_t now_ms);
  // Ranks may change until the election begins.
  void update_delay(int64_t now_ms);
  void ask_for_votes();
  void win();
  // Why the vote is refused; empty when it is granted.
  std::string refusal_for(const Node& candidate, const Message& message) const;

  Cluster& cluster_;
  int64_t begins_ms_ = 0;  // 0: no election
  bool hurries_ = false;   // begins at once, as the best replica
  int rank_ = 0;
  bool votes_requested_ = false;
  bool expired_ = false;  // not enough votes came in time
  size_t votes_ = 0;
  uint64_t epoch_ = 0;
};

}  // namespace latchkey::cluster
