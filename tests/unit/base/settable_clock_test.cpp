#include "base/settable_clock.h"
#include "unit/catch.h"

namespace latchkey::base {

namespace {

constexpr int64_t kStart = 1'700'000'000'000'000;
constexpr int64_t kSecond = 1'000'000;

// Each reading of its monotonic time takes a microsecond.
class SlowClock final : public Clock {
 public:
  int64_t wall_us() const override { return kStart + now_us_; }
  int64_t monotonic_us() const override { return ++now_us_; }

 private:
  mutable int64_t now_us_ = 0;
};

}  // namespace

TEST_CASE("A settable clock shows its source's time until it is told otherwise", "[clock]") {
  VirtualClock source(kStart);
  SettableClock clock(source);
  source.advance_us(5);
  CHECK(clock.wall_us() == kStart + 5);
  CHECK(clock.is_wall());
  CHECK(clock.offset_us() == 0);
  CHECK(clock.monotonic_us() == source.monotonic_us());
}

TEST_CASE("A frozen clock stands still, can be set, and runs on from there", "[clock]") {
  VirtualClock source(kStart);
  SettableClock clock(source);
  clock.freeze();
  source.advance_us(kSecond);
  CHECK(clock.wall_us() == kStart);
  CHECK_FALSE(clock.real_us_until(kStart + 1));
  CHECK(clock.real_us_until(kStart) == 0);
  clock.set(42);
  CHECK(clock.wall_us() == 42);
  clock.resume();
  source.advance_us(kSecond);
  CHECK(clock.wall_us() == 42 + kSecond);
  CHECK(clock.mode() == SettableClock::Mode::kRunning);
  CHECK(clock.offset_us() == 42 + kSecond - (kStart + 2 * kSecond));
  clock.reset();
  CHECK(clock.wall_us() == kStart + 2 * kSecond);
}

TEST_CASE("A clock runs at a multiple of its source's monotonic time", "[clock]") {
  VirtualClock source(kStart);
  SettableClock clock(source);
  clock.set_rate(60);
  source.advance_us(kSecond);
  CHECK(clock.wall_us() == kStart + 60 * kSecond);
  CHECK(clock.real_us_until(clock.wall_us() + 120 * kSecond) == 2 * kSecond + 1);
  clock.set_rate(0.5);
  source.advance_us(10 * kSecond);
  CHECK(clock.wall_us() == kStart + 65 * kSecond);
  clock.freeze();
  clock.set_rate(2);
  source.advance_us(kSecond);
  CHECK(clock.wall_us() == kStart + 65 * kSecond);
  clock.resume();
  source.advance_us(kSecond);
  CHECK(clock.wall_us() == kStart + 67 * kSecond);
}

TEST_CASE("A frozen clock that is restored shows the very time it was saved with", "[clock]") {
  SlowClock source;
  SettableClock clock(source);
  clock.restore({SettableClock::Mode::kFrozen, 2, 42});
  CHECK(clock.wall_us() == 42);
  CHECK(clock.mode() == SettableClock::Mode::kFrozen);
  CHECK(clock.rate() == 2);
  clock.restore({SettableClock::Mode::kWall, 1, 42});
  CHECK(clock.is_wall());
}

TEST_CASE("A clock does not go beyond the last time it can show", "[clock]") {
  VirtualClock source(kStart);
  SettableClock clock(source);
  clock.set(SettableClock::kMaxUs - 1);
  source.advance_us(kSecond);
  CHECK(clock.wall_us() == SettableClock::kMaxUs);
  clock.set_rate(SettableClock::kMaxRate);
  source.advance_us(SettableClock::kMaxUs / 2);
  CHECK(clock.wall_us() == SettableClock::kMaxUs);
  clock.freeze();
  CHECK(clock.wall_us() == SettableClock::kMaxUs);
}

}  // namespace latchkey::base
