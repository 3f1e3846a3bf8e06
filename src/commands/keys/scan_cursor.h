// The cursor of SCAN, HSCAN, SSCAN and ZSCAN.
#pragma once

#include <cstdint>
#include <string_view>

namespace latchkey::commands {

// False when the text is not a cursor ("ERR invalid cursor").
bool parse_cursor(std::string_view text, uint64_t* cursor);

}  // namespace latchkey::commands
