// Sums and products of times that clients and settings choose, so that none overflows.
#pragma once

#include <algorithm>
#include <climits>
#include <cstdint>

#include "base/time_units.h"

namespace latchkey::base {

// The time `timeout_ms` after `now_ms`, or INT64_MAX if that is later than an int64 can say; 0 for
// a timeout of 0, which stands for none. REQUIRES: neither is negative.
constexpr int64_t deadline_after(int64_t now_ms, int64_t timeout_ms) {
  return timeout_ms == 0 ? 0 : now_ms + std::min(timeout_ms, INT64_MAX - now_ms);
}

// The deadline of the same wait when the clock it goes by was set back by so much, or forward if
// that is negative. Returns at least 1, for 0 would mean that there is no deadline.
constexpr int64_t moved_deadline(int64_t deadline_ms, int64_t back_by_ms) {
  if (back_by_ms < 0 && deadline_ms > INT64_MAX + back_by_ms) return INT64_MAX;
  return std::max<int64_t>(deadline_ms - back_by_ms, 1);
}

// A timeout of that many seconds in milliseconds, as poll(2) takes it: at most INT_MAX, which is 24
// days. REQUIRES: `seconds` is not negative, for which poll(2) waits without end.
constexpr int poll_timeout_ms(int seconds) {
  return static_cast<int>(std::min<int64_t>(seconds * kMsPerSecond, INT_MAX));
}

}  // namespace latchkey::base
