// Implements CLOCK: moves Server::data_clock(), the time of data and commands.
//
// Moving forward is a promise: the clock passes through every moment at which something is due, in
// order, and shows that moment while it happens: keys and fields of hashes expire, waits and pauses
// end, clients whose waits have ended go on with what they have sent. It stands still meanwhile, so
// that the machine's time does not mix in, and others are served between slices (server/tasks.h).
// When the move has ended all of it has been sent.
//
// Moves of several clients are done one after the other, in the order in which they came.
//
// Costs: O(log n) for what is due and about a microsecond for each key; nothing for time in which
// nothing is due.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string_view>

#include "store/keyspace.h"

namespace latchkey::server {
class Server;
}

namespace latchkey::testing {

class ClockControl {
 public:
  explicit ClockControl(server::Server& server) : server_(server) {}
  ClockControl(const ClockControl&) = delete;
  ClockControl& operator=(const ClockControl&) = delete;

  // The directive `clock`: "wall" or "[frozen] <time> [rate <factor>]". False when it is neither.
  bool start_as(std::string_view text);

  struct Move {
    enum class Kind : uint8_t { kBy, kTo };
    Kind kind;
    int64_t us;  // a duration, or Unix time; back in time is a jump
    std::function<void()> done = {};
  };
  // Begins soon, and calls `done` when all has happened.
  void start(Move move);
  // Whether a move is under way; then nothing else may set the clock.
  bool is_moving() const { return moving_; }

  // To be called after the clock was set by others: has what depends on it look again, and replicas
  // told. Where it went back, waits and pauses last as long as they would have.
  void moved();

 private:
  struct Due {
    int database;
    store::Keyspace::Due what;
  };
  using ByDeadline = std::multimap<int64_t, Due>;  // Unix time in milliseconds

  void run_moves();
  void make(const Move& move);
  void pass_until(int64_t target_us);
  // Waits while keys may not expire because something is in the middle. False when the server ends.
  bool wait_for_other_tasks();
  // The keys that are due first, up to the end of their tick, `*end_ms`.
  ByDeadline first_due(int64_t until_ms, int64_t* end_ms);
  // Has the first of them expire, and puts it back where more fields of it are due in that tick.
  void expire_first(ByDeadline& due, int64_t end_ms);
  void happen(int64_t at_ms);
  void warn_once();

  server::Server& server_;
  std::deque<Move> moves_;
  bool moving_ = false;
  bool warned_ = false;
};

}  // namespace latchkey::testing
