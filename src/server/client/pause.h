// Pauses: for a while, commands (or only those that write) wait until the pause ends.
//
// CLIENT PAUSE, shutdown, failover and the handoff of slots each have a pause of their own; the
// strongest of them is in force. During any pause keys do not expire either, so that the dataset
// does not change.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace latchkey::server {

class Client;
class HandoffPause;
class Server;

class PauseControl {
 public:
  enum class Kind : uint8_t { kNone, kWrites, kAll };
  enum class Reason : uint8_t { kClient, kShutdown, kFailover, kSlotHandoff };
  static constexpr int64_t kForEver = std::numeric_limits<int64_t>::max();

  explicit PauseControl(Server& server) : server_(server) {}

  // Pauses until `until_ms` (kForEver, or Unix time: for kClient the time that data lives in, else
  // the machine's). Never makes an existing pause for that reason shorter or weaker. On a replica
  // whose master sets the data's time, that time stands still while the pause holds the stream up;
  // so the pause is also bounded by the machine's clock.
  void pause(Reason reason, Kind kind, int64_t until_ms);
  // Ends the pause for that reason. When this changes the strongest kind, the requests of the
  // waiting clients run, or wait again.
  void unpause(Reason reason);
  // Ends the pauses whose time is over.
  void tick();
  // The data's clock was set back by so much, or forward if negative: pauses that end by it last as
  // long as they would have.
  void clock_went_back(int64_t by_ms);

  Kind kind() const { return kind_; }
  // The pause that is in force, if there is one: the strongest; of equally strong ones the longest.
  struct ActivePause {
    Kind kind = Kind::kNone;
    Reason reason = Reason::kClient;
    int64_t left_ms = 0;
  };
  ActivePause active() const;
  bool pauses_for(Reason reason) const {
    return pauses_[static_cast<size_t>(reason)].kind != Kind::kNone;
  }
  // When the pause of CLIENT PAUSE ends; kForEver where there is none.
  int64_t client_pause_ends_ms() const {
    const Pause& pause = pauses_[static_cast<size_t>(Reason::kClient)];
    return pause.kind == Kind::kNone ? kForEver : pause.until_ms;
  }

  // Whether a request with these flags (CommandFlag) must wait: any request, or one that may write;
  // none with kDuringPause.
  bool holds(uint32_t flags) const;
  // Makes the client wait for the end of the pause.
  void postpone(Client& client);
  size_t waiting() const { return waiting_.size(); }

 private:
  struct Pause {
    Kind kind = Kind::kNone;
    int64_t until_ms = 0;
    int64_t until_machine_ms = 0;
  };
  int64_t now_ms(Reason reason) const;
  bool is_over(Reason reason, const Pause& pause) const;
  void wake_at_end(Reason reason, const Pause& pause);
  // Determines the strongest pause again after one has changed.
  void recompute();

  Server& server_;
  std::array<Pause, 4> pauses_;    // by Reason
  Kind kind_ = Kind::kNone;        // the strongest of them
  std::vector<uint64_t> waiting_;  // client ids

  friend class HandoffPause;
  size_t handoffs_ = 0;  // how many HandoffPauses there are
};

// Pauses writes for kSlotHandoff while it exists. A handoff of slots that ends leaves the pause of
// another in force: writes go on when the last HandoffPause is gone.
// REQUIRES: `pauses` outlives it.
class HandoffPause {
 public:
  explicit HandoffPause(PauseControl& pauses) : pauses_(pauses) {
    ++pauses_.handoffs_;
    pauses_.pause(PauseControl::Reason::kSlotHandoff, PauseControl::Kind::kWrites,
                  PauseControl::kForEver);
  }
  ~HandoffPause() {
    if (--pauses_.handoffs_ == 0) pauses_.unpause(PauseControl::Reason::kSlotHandoff);
  }
  HandoffPause(const HandoffPause&) = delete;
  HandoffPause& operator=(const HandoffPause&) = delete;

 private:
  PauseControl& pauses_;
};

}  // namespace latchkey::server
