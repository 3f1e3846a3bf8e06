// LOCK TIMELINE: a lock's log as a picture, a row for each client, time to the right.
//
//     anna  |=====R     xxx.....======E  |
//     bob   |  x.x.x.x======R            |
//           |        a             b     |
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "locks/lock_model.h"

namespace latchkey::locks {

struct TimelineOptions {
  static constexpr size_t kNarrowest = 40;
  static constexpr size_t kWidest = 1000;
  size_t width = 80;               // columns of the whole line, kNarrowest to kWidest
  std::optional<int64_t> last_ms;  // only what lies so far back
};

// Lines of printable ASCII, each of at most `width` columns.
std::string draw_timeline(const LockModel& model, const Record& record, int64_t now_ms,
                          const TimelineOptions& options);
// The same as an SVG document that needs nothing else; `width` is not used.
std::string draw_timeline_svg(const LockModel& model, const Record& record, int64_t now_ms,
                              const TimelineOptions& options);

}  // namespace latchkey::locks
