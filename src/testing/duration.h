// Durations as the commands for tests take them: a number and a unit, or a number of milliseconds.
//
//     1500   1500ms   30s   5m   2h   1d   1.5h   250us
//
// The unit may be in any case. A fraction is kept as far as it makes whole microseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace latchkey::testing {

// Microseconds; nothing when the text is no duration, is negative, or lasts longer than a hundred
// thousand years.
std::optional<int64_t> parse_duration_us(std::string_view text);

}  // namespace latchkey::testing
