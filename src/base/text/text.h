// ASCII text without regard to locale, and compared without regard to case, as for the protocol's
// keywords.
#pragma once

#include <string>
#include <string_view>

namespace latchkey::base {

constexpr bool is_digit(char byte) {
  return byte >= '0' && byte <= '9';
}

constexpr char lower_case(char byte) {
  return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte + ('a' - 'A')) : byte;
}

constexpr bool equal_ignoring_case(std::string_view left, std::string_view right) {
  if (left.size() != right.size()) return false;
  for (size_t i = 0; i < left.size(); ++i) {
    if (lower_case(left[i]) != lower_case(right[i])) return false;
  }
  return true;
}

inline std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& byte : result) byte = lower_case(byte);
  return result;
}

}  // namespace latchkey::base
