// FAILOVER: a master hands its role over to one of its replicas.
//
//     none -> waiting for sync -> in progress -> none
//                   |                  |
//                   +---- aborted <----+     the server is, or becomes again, a master
//
// Writes are paused until a replica (or the named one) has acknowledged the whole stream. Then this
// server becomes its replica, and asks it by PSYNC ... FAILOVER to become the master. When it has
// accepted or refused, the paused clients go on. When the timeout passes first, the attempt ends,
// or with FORCE the named replica becomes the master even if it lags.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace latchkey::replication {

class Replica;
class Replication;

class Failover {
 public:
  enum class State : uint8_t { kNone, kWaitsForSync, kInProgress };
  struct Target {
    std::string host;
    int port = 0;
  };
  struct Order {
    std::optional<Target> target;  // none: the first replica that has acknowledged everything
    int64_t timeout_ms = 0;        // 0: none
    bool force = false;            // REQUIRES: a target and a timeout
  };

  explicit Failover(Replication& replication) : replication_(replication) {}

  State state() const { return state_; }
  bool active() const { return state_ != State::kNone; }
  bool in_progress() const { return state_ == State::kInProgress; }

  // REQUIRES: !active(), and that the server is a master.
  void begin(Order order);
  // Ends the attempt: the server is a master as before. No effect without an attempt. The reason is
  // logged.
  void abort(std::string_view reason);
  // Makes this server a replica of a replica that has caught up, or handles the timeout. To be
  // called at the end of a turn.
  void check();
  // The target has become the master: it has answered this server as a replica.
  void accepted();

 private:
  const Replica* find_synced() const;
  void hand_over(const Target& target);
  void end();
  // " to HOST:PORT", or nothing.
  std::string direction() const;

  Replication& replication_;
  State state_ = State::kNone;
  Order order_;
  int64_t deadline_ms_ = 0;
};

// "no-failover", "waiting-for-sync", "failover-in-progress".
std::string_view name_of(Failover::State state);

}  // namespace latchkey::replication
