// Formats and parses the numbers of the protocol.
//
// Parsing accepts only a complete text without surrounding space; integers are canonical: no '+',
// no leading zeros. Formatting gives the exact text that clients of the reference expect. Only the
// functions that return a std::string allocate, unless stated otherwise. Costs are linear in the
// number of digits.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace latchkey::base {

// The longest text that format_int64 and format_uint64 write, without a terminator.
inline constexpr size_t kMaxInt64Text = 20;
// The longest text that format_double writes.
inline constexpr size_t kMaxDoubleText = 32;

// True and *value set when `text` is exactly the decimal text of an int64 ("-0", "007" and "+1" are
// not).
bool parse_int64(std::string_view text, int64_t* value);

// As parse_int64 for 0 .. 2^64-1.
bool parse_uint64(std::string_view text, uint64_t* value);

// Accepts decimal, exponent, hexadecimal ("0x1.8p1"), "inf" and "infinity" in any case, with '+' or
// '-' before and any leading zeros; never NaN. Refuses other texts whose number rounds to infinity
// or to zero. Texts over 255 bytes or in a rare form cost a copy.
bool parse_double(std::string_view text, double* value);

// As parse_double, but decimal only; too large a number becomes infinite, too small a one zero.
bool parse_rounded_double(std::string_view text, double* value);

// As parse_double in extended precision, for INCRBYFLOAT; texts over 5,119 bytes are refused.
bool parse_long_double(std::string_view text, long double* value);

// Writes the decimal text of `value` at `out` (room for kMaxInt64Text) and returns its length.
size_t format_int64(int64_t value, char* out);
size_t format_uint64(uint64_t value, char* out);

// Writes a short decimal text that reads back as `value` (room for kMaxDoubleText), in the
// reference's shape: integers up to 2^62 exactly and without a point ("100000000000000000"), "-0",
// "inf", "-inf", "nan", small fractions plain ("0.00001"), the rest as "1.5e+22", "1e-7". The
// digits are those of base/text/shortest_digits.h. Returns the length.
size_t format_double(double value, char* out);
// As format_double, but integers too have the shape of the rest: "1e+17", "-1.5e+15".
size_t format_shortest_double(double value, char* out);
// Writes 17 significant digits without trailing zeros (room for kMaxDoubleText); returns the
// length.
size_t format_double_17_digits(double value, char* out);

// Fixed notation with up to 17 decimals and trailing zeros removed, as INCRBYFLOAT replies.
std::string format_long_double(long double value);

// All that fit in 64 bits. Within count_digits() GCC would copy them to the stack in each call.
inline constexpr uint64_t kPowersOfTen[] = {1,
                                            10,
                                            100,
                                            1'000,
                                            10'000,
                                            100'000,
                                            1'000'000,
                                            10'000'000,
                                            100'000'000,
                                            1'000'000'000,
                                            10'000'000'000,
                                            100'000'000'000,
                                            1'000'000'000'000,
                                            10'000'000'000'000,
                                            100'000'000'000'000,
                                            1'000'000'000'000'000,
                                            10'000'000'000'000'000,
                                            100'000'000'000'000'000,
                                            1'000'000'000'000'000'000,
                                            10'000'000'000'000'000'000U};

// Number of decimal digits of `value`.
constexpr unsigned count_digits(uint64_t value) {
  // Zero has as many digits as one, and an even number as many as the next one. 1233 / 4096 is just
  // above the base-ten logarithm of two, so the guess is right or one too low.
  const uint64_t odd = value | 1;
  const unsigned guess = static_cast<unsigned>(std::bit_width(odd)) * 1233 >> 12;
  return guess + (odd >= kPowersOfTen[guess] ? 1 : 0);
}

}  // namespace latchkey::base
