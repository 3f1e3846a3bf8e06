// Intervals of periodic work, measured by a wall clock that may be set back.
#pragma once

#include <cstdint>

namespace latchkey::base {

// Whether work that was last done at `since_ms` is due at `now_ms` (Unix times). It is due as well
// when the clock shows an earlier time than `since_ms`: it was set back, and would stop the work
// for as long.
constexpr bool has_passed(int64_t interval_ms, int64_t since_ms, int64_t now_ms) {
  return now_ms < since_ms || now_ms - since_ms >= interval_ms;
}

}  // namespace latchkey::base
