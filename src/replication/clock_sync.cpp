#include "replication/clock_sync.h"

#include <cstdio>

#include "base/text/number.h"

namespace latchkey::replication {

using base::SettableClock;

std::string clock_state(const SettableClock& clock) {
  if (clock.is_wall()) return "wall";
  char rate[32];
  std::snprintf(rate, sizeof rate, "%.17g", clock.rate());
  const bool frozen = clock.mode() == SettableClock::Mode::kFrozen;
  return (frozen ? "frozen:" : "running:") + std::to_string(clock.wall_us()) + ":" + rate;
}

bool follow_clock(std::string_view state, SettableClock* clock) {
  if (state == "wall") {
    clock->reset();
    return true;
  }
  const size_t first = state.find(':');
  if (first == std::string_view::npos) return false;
  const size_t second = state.find(':', first + 1);
  if (second == std::string_view::npos) return false;
  const std::string_view mode = state.substr(0, first);
  int64_t us = 0;
  double rate = 0;
  const bool numbers = base::parse_int64(state.substr(first + 1, second - first - 1), &us) &&
                       base::parse_double(state.substr(second + 1), &rate);
  const bool in_range = numbers && us >= 0 && us <= SettableClock::kMaxUs &&
                        rate >= SettableClock::kMinRate && rate <= SettableClock::kMaxRate;
  if (!in_range || (mode != "frozen" && mode != "running")) return false;
  clock->freeze();
  clock->set(us);
  clock->set_rate(rate);
  if (mode == "running") clock->resume();
  return true;
}

}  // namespace latchkey::replication
