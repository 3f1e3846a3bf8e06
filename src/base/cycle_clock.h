// A cheap stopwatch for per-command times: uses the processor's invariant time-stamp counter,
// calibrated against the monotonic clock once in a process, if there is one; else the monotonic
// clock. Reading costs about ten nanoseconds.
#pragma once

#include <cstdint>

#include "base/time_units.h"

namespace latchkey::base {

class CycleClock {
 public:
  // The first one calibrates, in well under a millisecond.
  CycleClock();
  // Ticks since an arbitrary start.
  static uint64_t ticks();
  // Converts a span of ticks to microseconds.
  int64_t to_us(uint64_t span) const {
    return static_cast<int64_t>(static_cast<double>(span) * us_per_tick_);
  }
  // Converts microseconds to ticks; UINT64_MAX if there would be too many.
  uint64_t to_ticks(int64_t us) const {
    const double ticks = static_cast<double>(us) / us_per_tick_;
    return ticks < kMaxTicks ? static_cast<uint64_t>(ticks) : UINT64_MAX;
  }
  int64_t to_ns(uint64_t span) const {
    return static_cast<int64_t>(static_cast<double>(span) * us_per_tick_ * kNsPerUs);
  }

 private:
  static constexpr double kMaxTicks = 1e18;
  double us_per_tick_;
};

}  // namespace latchkey::base
