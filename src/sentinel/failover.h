// The failover of a master, by the elected Sentinel: it selects a replica, promotes it, makes the
// other replicas follow it, and then updates the configuration.
//
//     none -> wait_start -> select_slave -> send_slaveof_noone -> wait_promotion
//          -> reconf_slaves -> update_config -> none
//
// A coordinated failover is one that the master makes by itself, so that no write is lost: once
// elected, this Sentinel has it pause writes and hand over to the replica when that has all of them
// (FAILOVER), and waits for the promotion as above. The protocol is Valkey's, watched between nodes
// of 9.1. A master that is found down meanwhile is failed over like any other.
//
// Up to the promotion it is given up when it takes too long. From the promotion on, the new address
// is in this Sentinel's hello messages with a greater configuration epoch, and the others take it
// over.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "sentinel/instance.h"

namespace latchkey::sentinel {

class Sentinel;

class Failover {
 public:
  // The longest random delay by which the attempts of several Sentinels are spread.
  static constexpr uint64_t kLongestDelayMs = 1000;

  explicit Failover(Sentinel& sentinel) : sentinel_(sentinel) {}

  // Starts a failover if the master is objectively down, none is in progress, and the last attempt
  // of any Sentinel began at least twice the failover-timeout ago. Returns whether it did.
  bool start_if_needed(Master& master);
  // Starts a failover without an election. REQUIRES: none is in progress.
  void force(Master& master);
  // Starts a coordinated failover. REQUIRES: none is in progress.
  void coordinate(Master& master);
  // Takes the next step of a failover, if it is due.
  void advance(Master& master);
  // Called when the promoted replica reports the role of a master.
  void promoted(Master& master, Replica& replica);
  // Called when the master has refused a coordinated failover.
  void refused(Master& master);
  // The promoted replica becomes the master. REQUIRES: state kUpdateConfig.
  void finish(Master& master);
  // The replica that would be promoted, or null.
  std::shared_ptr<Replica> choose_replica(const Master& master);
  void announce_switch(Master& master, const Address& from, const Address& to);

 private:
  void start(Master& master);
  void abort(Master& master, std::string_view event);
  void enter(Master& master, FailoverState state);
  bool timed_out(const Master& master);
  void wait_for_election(Master& master);
  void select_replica(Master& master);
  void promote_replica(Master& master);
  void hand_over(Master& master);
  void reconfigure_replicas(Master& master);
  void detect_end(Master& master);
  bool is_fit(const Master& master, const Replica& replica);

  Sentinel& sentinel_;
};

}  // namespace latchkey::sentinel
