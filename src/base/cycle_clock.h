// A cheap stopwatch for per-command times: the processor's invariant time-stamp counter where there
// is one, calibrated against the monotonic clock at construction; the monotonic clock elsewhere.
// Reading costs about ten nanoseconds.
#pragma once

#include <cstdint>

namespace latchkey::base {

class CycleClock {
 public:
  // Calibrates in well under a millisecond.
  CycleClock();
  // Ticks since an arbitrary start.
  static uint64_t ticks();
  // A span of ticks in microseconds / nanoseconds.
  int64_t to_us(uint64_t span) const {
    return static_cast<int64_t>(static_cast<double>(span) * us_per_tick_);
  }
  int64_t to_ns(uint64_t span) const {
    return static_cast<int64_t>(static_cast<double>(span) * us_per_tick_ * 1000.0);
  }

 private:
  double us_per_tick_;
};

}  // namespace latchkey::base
