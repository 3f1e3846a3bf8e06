#include "base/settable_clock.h"

#include <algorithm>

namespace latchkey::base {

int64_t SettableClock::wall_us() const {
  if (mode_ == Mode::kWall) return source_.wall_us();
  if (mode_ == Mode::kFrozen) return shown_us_;
  const int64_t elapsed_us = source_.monotonic_us() - since_us_;
  // A double holds whole microseconds of years; at rate 1 nothing is rounded at all.
  if (rate_ == 1) return std::min(shown_us_ + elapsed_us, kMaxUs);
  const double scaled_us = static_cast<double>(elapsed_us) * rate_;
  const auto room_us = static_cast<double>(kMaxUs - shown_us_);
  // The room is rounded.
  return std::min(shown_us_ + static_cast<int64_t>(std::min(scaled_us, room_us)), kMaxUs);
}

void SettableClock::run_from(int64_t us) {
  mode_ = Mode::kRunning;
  shown_us_ = std::min(us, kMaxUs);
  since_us_ = source_.monotonic_us();
}

void SettableClock::set(int64_t us) {
  if (mode_ == Mode::kFrozen) {
    shown_us_ = std::min(us, kMaxUs);
  } else {
    run_from(us);
  }
}

void SettableClock::freeze() {
  shown_us_ = std::min(wall_us(), kMaxUs);
  mode_ = Mode::kFrozen;
}

void SettableClock::resume() {
  if (mode_ == Mode::kFrozen) run_from(shown_us_);
}

void SettableClock::set_rate(double rate) {
  const int64_t now_us = wall_us();
  rate_ = rate;
  if (mode_ != Mode::kFrozen) run_from(now_us);
}

void SettableClock::reset() {
  mode_ = Mode::kWall;
  rate_ = 1;
}

void SettableClock::restore(const State& state) {
  reset();
  rate_ = state.rate;
  if (state.mode == Mode::kWall) return;
  mode_ = state.mode;
  set(state.shown_us);
}

std::optional<int64_t> SettableClock::real_us_until(int64_t us) const {
  const int64_t left_us = us - wall_us();
  if (left_us <= 0) return 0;
  if (mode_ == Mode::kFrozen) return std::nullopt;
  const double real_us = static_cast<double>(left_us) / rate_;
  return real_us >= static_cast<double>(kMaxUs) ? kMaxUs : static_cast<int64_t>(real_us) + 1;
}

}  // namespace latchkey::base
