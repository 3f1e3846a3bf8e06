#include "store/json/json_precision.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>

#include "base/text/text.h"

namespace latchkey::store::json {

namespace {

struct Format {
  int bits;     // of precision
  int least;    // exponent of the smallest normal number, of a fraction in [0.5, 1)
  double most;  // the largest number
};

Format format_of(Precision precision) {
  switch (precision) {
    case Precision::kBrain16:
      return {8, -125, 0x1.fep127};
    case Precision::kHalf:
      return {11, -13, 65504};
    default:
      return {24, -125, 0x1.fffffep127};
  }
}

// To the nearest number of the format, of two the even one.
double rounded_in(double value, const Format& format) {
  if (value == 0) return value;
  int exponent;
  std::frexp(value, &exponent);
  const int unit = std::max(exponent, format.least) - format.bits;
  return std::ldexp(std::nearbyint(std::ldexp(value, -unit)), unit);
}

}  // namespace

std::optional<Precision> precision_named(std::string_view word) {
  constexpr std::pair<std::string_view, Precision> kWords[] = {{"BF16", Precision::kBrain16},
                                                               {"FP16", Precision::kHalf},
                                                               {"FP32", Precision::kSingle},
                                                               {"FP64", Precision::kDouble}};
  for (const auto& [name, precision] : kWords) {
    if (base::equal_ignoring_case(word, name)) return precision;
  }
  return std::nullopt;
}

std::string_view precision_name(Precision precision) {
  constexpr std::string_view kNames[] = {"BF16", "F16", "F32", "F64"};
  return kNames[static_cast<size_t>(precision)];
}

std::optional<double> rounded(double value, Precision precision) {
  if (precision == Precision::kDouble) return value;
  const Format format = format_of(precision);
  const double nearest = rounded_in(value, format);
  if (std::abs(nearest) > format.most) return std::nullopt;
  return nearest;
}

double shortest(double value, Precision precision) {
  if (precision == Precision::kDouble) return value;
  char text[40];
  double decimal = value;
  if (precision == Precision::kSingle) {
    const char* const end = std::to_chars(text, text + sizeof text, static_cast<float>(value)).ptr;
    std::from_chars(text, end, decimal);
    return decimal;
  }
  // Integers are written in full.
  if (value == std::trunc(value)) return value;
  const Format format = format_of(precision);
  // Both have at most five digits.
  constexpr int kMostDecimals = 5;
  for (int decimals = 0; decimals < kMostDecimals; ++decimals) {
    const char* const end =
        std::to_chars(text, text + sizeof text, value, std::chars_format::scientific, decimals).ptr;
    std::from_chars(text, end, decimal);
    if (rounded_in(decimal, format) == value) return decimal;
  }
  return value;
}

double from_16_bits(uint16_t bits, Precision precision) {
  constexpr unsigned kUpperHalf = 16;
  if (precision == Precision::kBrain16)
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << kUpperHalf);
  constexpr int kMantissaBits = 10;
  constexpr int kLeastExponent = -24;
  constexpr unsigned kMaxExponent = 31;
  const unsigned exponent = bits >> kMantissaBits & kMaxExponent;
  const unsigned mantissa = bits & ((1u << kMantissaBits) - 1);
  double value = 0;
  if (exponent == kMaxExponent)
    value = mantissa == 0 ? HUGE_VAL : std::nan("");
  else if (exponent == 0)
    value = std::ldexp(mantissa, kLeastExponent);
  else
    value =
        std::ldexp(mantissa | 1u << kMantissaBits, kLeastExponent - 1 + static_cast<int>(exponent));
  return (bits >> 15 & 1) != 0 ? -value : value;
}

}  // namespace latchkey::store::json
