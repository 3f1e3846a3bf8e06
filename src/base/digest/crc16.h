// CRC-16/XMODEM: polynomial 0x1021, nothing reflected, initial value and final xor zero.
#pragma once

#include <cstdint>
#include <string_view>

namespace latchkey::base {

// O(bytes).
uint16_t crc16(std::string_view bytes);

}  // namespace latchkey::base
