// Virtual time. It moves when the simulation says so. The monotonic clock also moves a little with
// every look at it: that is how work in slices (server/tasks.h) comes to the end of its slice, at
// the same place in every run of a seed.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace latchkey::simulation {

class SimulatedClock final : public base::Clock {
 public:
  int64_t wall_us() const override { return wall_us_; }
  int64_t monotonic_us() const override { return monotonic_us_ += kLookUs; }

  int64_t wall_ms() const { return wall_us_ / 1000; }
  void advance_ms(int64_t delta_ms) {
    wall_us_ += delta_ms * 1000;
    monotonic_us_ += delta_ms * 1000;
  }

 private:
  static constexpr int64_t kLookUs = 700;
  int64_t wall_us_ = 1'700'000'000'000'000;
  mutable int64_t monotonic_us_ = 0;
};

}  // namespace latchkey::simulation
