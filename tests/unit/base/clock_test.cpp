#include "base/clock.h"

#include "base/cycle_clock.h"
#include "unit/catch.h"

namespace latchkey::base {

TEST_CASE("A virtual clock moves both times, and only when told to", "[clock]") {
  VirtualClock clock(5'000'000);
  CHECK(clock.wall_us() == 5'000'000);
  CHECK(clock.monotonic_us() == 0);
  clock.advance_ms(3);
  clock.advance_us(4);
  CHECK(clock.wall_us() == 5'003'004);
  CHECK(clock.monotonic_us() == 3'004);
}

TEST_CASE("The system's monotonic clock does not go back and its wall clock is past 2020",
          "[clock]") {
  const SystemClock clock;
  const int64_t before = clock.monotonic_us();
  CHECK(clock.monotonic_us() >= before);
  CHECK(clock.wall_us() > 1'577'836'800'000'000);
}

TEST_CASE("Cycle ticks go forward and convert in proportion", "[clock]") {
  const CycleClock clock;
  const uint64_t start = CycleClock::ticks();
  const uint64_t end = CycleClock::ticks();
  CHECK(end >= start);
  CHECK(clock.to_us(0) == 0);
  const uint64_t many = uint64_t{1} << 40;
  CHECK(clock.to_us(many) > 0);
  CHECK(clock.to_ns(many) / 1000 ==
        Catch::Approx(static_cast<double>(clock.to_us(many))).epsilon(1e-6));
}

TEST_CASE("Cycle ticks agree with the monotonic clock over a span", "[clock]") {
  const CycleClock cycles;
  const SystemClock clock;
  const int64_t start_us = clock.monotonic_us();
  const uint64_t start = CycleClock::ticks();
  while (clock.monotonic_us() - start_us < 2'000) {
  }
  const int64_t measured_us = cycles.to_us(CycleClock::ticks() - start);
  CHECK(measured_us >= 1'900);
}

}  // namespace latchkey::base
