#include "testing/clock_control.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/settable_clock.h"
#include "base/text/number.h"
#include "base/text/split.h"
#include "base/time_units.h"
#include "replication/replication.h"
#include "server/client/blocking.h"
#include "server/client/pause.h"
#include "server/expiry.h"
#include "server/server.h"
#include "server/tasks.h"
#include "testing/instant.h"

namespace latchkey::testing {

using base::SettableClock;
using server::PauseControl;

bool ClockControl::start_as(std::string_view text) {
  SettableClock& clock = server_.data_clock();
  std::string_view word = base::take_word(&text);
  if (word == "wall") return base::take_word(&text).empty();
  const bool frozen = word == "frozen";
  if (frozen) word = base::take_word(&text);
  const auto us = parse_instant_us(word);
  if (!us) return false;
  double rate = 1;
  word = base::take_word(&text);
  if (word == "rate") {
    if (!base::parse_double(base::take_word(&text), &rate)) return false;
    if (!(rate >= SettableClock::kMinRate && rate <= SettableClock::kMaxRate)) return false;
    word = base::take_word(&text);
  }
  if (!word.empty()) return false;
  clock.freeze();
  clock.set(*us);
  clock.set_rate(rate);
  if (!frozen) clock.resume();
  warn_once();
  server_.refresh_clock();
  return true;
}

void ClockControl::start(Move move) {
  moves_.push_back(std::move(move));
  if (std::exchange(moving_, true)) return;
  server_.tasks().start([this] { run_moves(); });
}

void ClockControl::run_moves() {
  while (!moves_.empty()) {
    const Move move = std::move(moves_.front());
    moves_.pop_front();
    if (wait_for_other_tasks()) make(move);
    if (move.done) move.done();
  }
  moving_ = false;
}

bool ClockControl::wait_for_other_tasks() {
  server::Tasks& tasks = server_.tasks();
  constexpr uint32_t kInTheMiddle = server::kStateBusy | server::kStateLoading;
  while ((server_.state() & kInTheMiddle) != 0 && !tasks.finishing()) tasks.yield();
  return !tasks.finishing();
}

void ClockControl::make(const Move& move) {
  SettableClock& clock = server_.data_clock();
  const int64_t from_us = clock.wall_us();
  const int64_t target_us =
      std::min(move.kind == Move::Kind::kBy ? from_us + move.us : move.us, SettableClock::kMaxUs);
  if (target_us >= from_us) {
    const bool runs = clock.mode() != SettableClock::Mode::kFrozen;
    clock.freeze();
    pass_until(target_us);
    clock.set(target_us);
    if (runs) clock.resume();
  } else {
    clock.set(target_us);
  }
  moved();
}

void ClockControl::moved() {
  warn_once();
  server_.data_clock_moved();
  server_.layer<replication::Replication>().propagate_clock();
}

void ClockControl::warn_once() {
  const auto& settings = server_.settings();
  if (warned_ || (!settings.appendonly && settings.save.empty())) return;
  warned_ = true;
  server_.log().warning(
      "CLOCK has moved the time of this server. Files hold deadlines in that time: keys that have "
      "not expired in it may be expired when they are loaded under the machine's time.");
}

ClockControl::ByDeadline ClockControl::first_due(int64_t until_ms, int64_t* end_ms) {
  constexpr int64_t kTickMs = 16;
  ByDeadline due;
  if (!server_.expiry().is_enabled()) return due;
  std::vector<store::Keyspace::Due> found;
  for (int i = 0; i < server_.database_count(); ++i) {
    found.clear();
    server_.database(i).first_due(until_ms, &found);
    for (store::Keyspace::Due& each : found) due.emplace(each.deadline_ms, Due{i, std::move(each)});
  }
  if (due.empty()) return due;
  // Each database has returned the keys of one tick: only those of the earliest of these ticks can
  // be next.
  *end_ms = (due.begin()->first | (kTickMs - 1)) + 1;
  due.erase(due.lower_bound(*end_ms), due.end());
  return due;
}

void ClockControl::expire_first(ByDeadline& due, int64_t end_ms) {
  auto first = due.extract(due.begin());
  const Due& each = first.mapped();
  const int64_t next_ms = server_.database(each.database).expire(each.what);
  if (next_ms == store::Keyspace::kNoDeadline || next_ms >= end_ms) return;
  first.key() = next_ms;
  due.insert(std::move(first));
}

void ClockControl::pass_until(int64_t target_us) {
  const int64_t target_ms = target_us / base::kUsPerMs;
  server::Tasks& tasks = server_.tasks();
  ByDeadline due;
  int64_t end_ms = 0;
  int64_t reached_ms = INT64_MIN;
  bool outdated = false;
  for (;;) {
    // What others do at the moment that is shown can only make keys due later than that.
    const bool goes_on = !due.empty() && due.begin()->first <= reached_ms;
    if (due.empty() || (outdated && !goes_on)) {
      due = first_due(target_ms, &end_ms);
      outdated = false;
    }
    int64_t at_ms =
        std::min({server_.clients().next_deadline_ms(), server_.pauses().client_pause_ends_ms(),
                  server_.layer<replication::Replication>().next_delayed_ms()});
    if (!due.empty()) at_ms = std::min(at_ms, due.begin()->first);
    if (at_ms > target_ms) break;
    reached_ms = std::max(reached_ms, at_ms);
    SettableClock& clock = server_.data_clock();
    clock.set(std::max(clock.wall_us(), at_ms * base::kUsPerMs));
    server_.refresh_clock();
    bool slice_is_over = false;
    while (!due.empty() && due.begin()->first <= at_ms && !slice_is_over) {
      expire_first(due, end_ms);
      slice_is_over = tasks.slice_is_over();
    }
    happen(at_ms);
    if (!slice_is_over && !tasks.slice_is_over() && !server_.clients().any_scheduled()) continue;
    const uint64_t changes = server_.events().total();
    tasks.yield();
    if (!wait_for_other_tasks()) return;
    outdated |= server_.events().total() != changes;
  }
}

void ClockControl::happen(int64_t at_ms) {
  if (server_.pauses().client_pause_ends_ms() <= at_ms) server_.pauses().tick();
  server_.clients().end_waits();
  server_.layer<replication::Replication>().send_delayed();
  if (server_.blocking().any_ready()) server_.blocking().serve();
}

}  // namespace latchkey::testing
