// Virtual time: it moves when the simulation says so, and only then.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace latchkey::simulation {

class SimulatedClock final : public base::Clock {
 public:
  int64_t wall_us() const override { return wall_us_; }
  int64_t monotonic_us() const override { return monotonic_us_; }

  int64_t wall_ms() const { return wall_us_ / 1000; }
  void advance_ms(int64_t delta_ms) {
    wall_us_ += delta_ms * 1000;
    monotonic_us_ += delta_ms * 1000;
  }

 private:
  int64_t wall_us_ = 1'700'000'000'000'000;
  int64_t monotonic_us_ = 0;
};

}  // namespace latchkey::simulation
