// Points in time as the commands for tests take them.
//
//     2024-01-01T00:00:00Z   2024-01-01T00:00:00.250Z   2024-01-01     ISO 8601, UTC
//     2024-01-01T02:00:00+02:00                                       or so far ahead of it
//     1704067200   1704067200.25                                      Unix time in seconds
//     1704067200250ms                                                 in milliseconds
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace latchkey::testing {

// Unix time in microseconds; nothing when the text is none of these, or is before 1970 or after
// the year 9999.
std::optional<int64_t> parse_instant_us(std::string_view text);

}  // namespace latchkey::testing
