#include "base/clock.h"

#include <ctime>

namespace latchkey::base {

namespace {

int64_t read_us(clockid_t id) {
  timespec now{};
  clock_gettime(id, &now);
  return static_cast<int64_t>(now.tv_sec) * kUsPerSecond + now.tv_nsec / kNsPerUs;
}

}  // namespace

int64_t SystemClock::wall_us() const {
  return read_us(CLOCK_REALTIME);
}

int64_t SystemClock::monotonic_us() const {
  return read_us(CLOCK_MONOTONIC);
}

}  // namespace latchkey::base
