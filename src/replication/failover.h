// FAILOVER: a master hands over to one of its replicas.
//
//     none -> waiting for sync -> in progress -> none
//                   |                  |
//                   +---- aborted <----+     the server is, or becomes again, a master
//
// Writes are paused until a replica, or the one that was named, has acknowledged all there is. Then
// this server follows that one, and asks it by PSYNC ... FAILOVER to lead. When it has, or has said
// no, those who waited to write go on. With FORCE the one that was named leads when the timeout is
// over, whether it has everything or not; without, that ends the attempt.
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
    std::optional<Target> target;  // none: whoever is first to have everything
    int64_t timeout_ms = 0;        // 0: none
    bool force = false;            // REQUIRES: a target and a timeout
  };

  explicit Failover(Replication& replication) : replication_(replication) {}

  State state() const { return state_; }
  bool active() const { return state_ != State::kNone; }
  bool in_progress() const { return state_ == State::kInProgress; }

  // REQUIRES: !active(), and that the server is a master.
  void begin(Order order);
  // Ends the attempt: the server is a master as before. Nothing when there is none. The reason goes
  // to the log.
  void abort(std::string_view reason);
  // Hands over when it is time to, or gives up. To be called when a turn has ended.
  void look();
  // The other leads now, as this server finds out when it is answered as a replica.
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
