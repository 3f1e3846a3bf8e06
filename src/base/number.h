// Numbers as the protocol writes and reads them.
//
// Parsing is strict: no leading or trailing space, no '+', no leading zeros, the whole text or nothing.
// Formatting gives the exact text that clients of the reference expect. Nothing here allocates but where it
// returns a std::string. Costs are linear in the number of digits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace latchkey::base {

// Longest text format_int64 and format_uint64 write, without a terminator.
inline constexpr size_t kMaxInt64Text = 20;
// Longest text format_double writes.
inline constexpr size_t kMaxDoubleText = 32;

// True and *value set when `text` is exactly the decimal text of an int64 ("-0", "007" and "+1" are not).
bool parse_int64(std::string_view text, int64_t* value);

// As parse_int64 for 0 .. 2^64-1.
bool parse_uint64(std::string_view text, uint64_t* value);

// Decimal, exponent, hexadecimal, "inf", "-inf", "+inf", "infinity"; never NaN. Out-of-range is refused.
bool parse_double(std::string_view text, double* value);

// As parse_double in extended precision, for INCRBYFLOAT.
bool parse_long_double(std::string_view text, long double* value);

// Writes the decimal text of `value` at `out` (room for kMaxInt64Text) and returns its length.
size_t format_int64(int64_t value, char* out);
size_t format_uint64(uint64_t value, char* out);

// Writes the shortest decimal text that reads back as `value` (room for kMaxDoubleText), in the reference's shape:
// integers without a point, "inf", "-inf", "nan", exponents as %.17g writes them. Returns its length.
size_t format_double(double value, char* out);

// Fixed notation with up to 17 decimals and trailing zeros removed, as INCRBYFLOAT replies.
std::string format_long_double(long double value);

// Number of decimal digits of `value`.
constexpr unsigned count_digits(uint64_t value) {
  unsigned digits = 1;
  while (value >= 10) {
    value /= 10;
    ++digits;
  }
  return digits;
}

}  // namespace latchkey::base
