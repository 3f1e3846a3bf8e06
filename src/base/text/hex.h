// Bytes as lower-case hexadecimal digits.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace latchkey::base {

inline constexpr std::string_view kHexDigits = "0123456789abcdef";

inline void append_hex(std::string* out, uint8_t byte) {
  out->push_back(kHexDigits[byte >> 4]);
  out->push_back(kHexDigits[byte & 15]);
}

inline std::string to_hex(std::span<const uint8_t> bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const uint8_t byte : bytes) append_hex(&text, byte);
  return text;
}

}  // namespace latchkey::base
