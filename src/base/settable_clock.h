// A wall clock that can be moved, stopped, and run at another rate: it shows the time of a source
// until set(), freeze() or set_rate() is called. Its monotonic time is always the source's.
//
//     kWall     shows the source's wall time
//     kRunning  runs from where it was set, `rate` times as fast as the source's monotonic time
//     kFrozen   stands still
//
// Times that it would show beyond kMaxUs are shown as kMaxUs.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace latchkey::base {

class SettableClock final : public Clock {
 public:
  enum class Mode : uint8_t { kWall, kRunning, kFrozen };

  static constexpr double kMinRate = 0.001;
  static constexpr double kMaxRate = 1'000'000;
  // Microseconds since the Unix epoch, the last of the year 9999. Sums of such times do not
  // overflow.
  static constexpr int64_t kMaxUs = 253'402'300'799'999'999;

  // `source` must outlive the clock.
  explicit SettableClock(const Clock& source) : source_(source) {}

  int64_t wall_us() const override;
  int64_t monotonic_us() const override { return source_.monotonic_us(); }

  Mode mode() const { return mode_; }
  bool is_wall() const { return mode_ == Mode::kWall; }
  // At which it runs, or will run when it is resumed.
  double rate() const { return rate_; }
  // By how much it is ahead of the source's wall time.
  int64_t offset_us() const { return wall_us() - source_.wall_us(); }

  // Shows this time from now on, and stands still or runs on as before. REQUIRES: 0 <= us <=
  // kMaxUs, as everywhere here.
  void set(int64_t us);
  void freeze();
  // Runs on from where it stands. Nothing when it runs.
  void resume();
  // REQUIRES: kMinRate <= rate <= kMaxRate.
  void set_rate(double rate);
  // The source's time again.
  void reset();

  // What it shows and how it runs, to be shown again.
  struct State {
    Mode mode;
    double rate;
    int64_t shown_us;
  };
  State state() const { return {mode_, rate_, wall_us()}; }
  void restore(const State& state);

  // Microseconds of the source's monotonic time until the clock shows `us`: 0 when it does already;
  // nothing when it stands still.
  std::optional<int64_t> real_us_until(int64_t us) const;

 private:
  void run_from(int64_t us);

  const Clock& source_;
  Mode mode_ = Mode::kWall;
  double rate_ = 1;
  int64_t shown_us_ =
      0;  // when the source's monotonic time was since_us_, or while it stands still
  int64_t since_us_ = 0;
};

}  // namespace latchkey::base
