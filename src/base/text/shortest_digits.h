// Decimal digits of a double by Grisu2 (Florian Loitsch, "Printing Floating-Point Numbers Quickly
// and Accurately with Integers", 2010), in integer arithmetic and a fixed number of steps. The
// digits always read back as the same double; in about two cases of a thousand they are not the
// shortest or the nearest that do. The reference prints doubles in this way, and a reply must equal
// its reply to the last digit, so an exact method would not do.
#pragma once

namespace latchkey::base {

// The longest run of digits that shortest_digits() writes.
inline constexpr int kMaxShortestDigits = 18;

// The value is the digits, read as an integer, times 10^exponent.
struct ShortestDigits {
  int length;
  int exponent;
};

// Writes the digits of |value|, which must be finite and not zero, at `out` (room for
// kMaxShortestDigits).
ShortestDigits shortest_digits(double value, char* out);

}  // namespace latchkey::base
