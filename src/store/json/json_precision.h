// Numbers of less precision than a double's, which arrays of the reference are kept in when
// JSON.SET is told so (FPHA) or when nothing is lost by it. Here they are doubles: of the numbers
// that are the same at that precision the one with the fewest digits, so that they are written
// alike.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace latchkey::store::json {

// Of sixteen bits there are two: a float's upper half, and IEEE 754 binary16.
enum class Precision : uint8_t { kBrain16, kHalf, kSingle, kDouble };

// "BF16", "FP16", "FP32", "FP64" in any case. Nothing when it is another word.
std::optional<Precision> precision_named(std::string_view word);
// As errors name it: "BF16", "F16", "F32", "F64".
std::string_view precision_name(Precision precision);

// The nearest number of that precision. Nothing when it is out of range.
std::optional<double> rounded(double value, Precision precision);
// The decimal number with the fewest digits that is rounded to `value`. REQUIRES: `value` has the
// precision.
double shortest(double value, Precision precision);

// From the bits of a half or a float's upper half. REQUIRES: of kHalf or kBrain16.
double from_16_bits(uint16_t bits, Precision precision);

}  // namespace latchkey::store::json
