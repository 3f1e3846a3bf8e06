// Time as an input: code of the server reads the time only from the Clock it was given.
#pragma once

#include <cstdint>

#include "base/time_units.h"

namespace latchkey::base {

class Clock {
 public:
  virtual ~Clock() = default;
  // Microseconds since the Unix epoch; may step when the administrator sets the machine's clock.
  virtual int64_t wall_us() const = 0;
  // Microseconds since an arbitrary start; never goes back.
  virtual int64_t monotonic_us() const = 0;
};

// The machine's clocks.
class SystemClock final : public Clock {
 public:
  int64_t wall_us() const override;
  int64_t monotonic_us() const override;
};

// A clock that moves only when it is told to, for tests.
class VirtualClock final : public Clock {
 public:
  explicit VirtualClock(int64_t wall_us = 1'700'000'000'000'000) : wall_us_(wall_us) {}
  int64_t wall_us() const override { return wall_us_; }
  int64_t monotonic_us() const override { return monotonic_us_; }
  void advance_us(int64_t delta_us) {
    wall_us_ += delta_us;
    monotonic_us_ += delta_us;
  }
  void advance_ms(int64_t delta_ms) { advance_us(delta_ms * kUsPerMs); }
  // The administrator sets the wall clock: forward, or back if negative.
  void step_ms(int64_t delta_ms) { wall_us_ += delta_ms * kUsPerMs; }

 private:
  int64_t wall_us_;
  int64_t monotonic_us_ = 0;
};

}  // namespace latchkey::base
