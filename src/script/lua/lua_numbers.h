// Numbers of Lua as integers. A number without an integer of that size (NaN, infinity, too large
// ones) becomes what the conversion of x86-64 makes of it, which scripts see in the reference.
#pragma once

#include <cmath>
#include <cstdint>

namespace latchkey::script {

inline constexpr double kTwoTo63 = 9223372036854775808.0;

inline int64_t as_int64(double value) {
  return value >= -kTwoTo63 && value < kTwoTo63 ? static_cast<int64_t>(value) : INT64_MIN;
}

inline int32_t as_int32(double value) {
  return value > INT32_MIN - 1.0 && value < INT32_MAX + 1.0 ? static_cast<int32_t>(value)
                                                            : INT32_MIN;
}

// Negative numbers wrap around.
inline uint64_t as_uint64(double value) {
  if (std::isnan(value) || value < kTwoTo63) return static_cast<uint64_t>(as_int64(value));
  return value < 2 * kTwoTo63 ? static_cast<uint64_t>(value) : 0;
}

// What Lua 5.1's luaL_checkint returns: the lower half of the 64-bit integer.
inline int32_t as_argument(double value) {
  return static_cast<int32_t>(as_int64(value));
}

}  // namespace latchkey::script
