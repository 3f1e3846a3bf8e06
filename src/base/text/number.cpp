#include "base/text/number.h"

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "base/text/shortest_digits.h"

namespace latchkey::base {

namespace {

constexpr char kDigitPairs[] =
    "0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546"
    "474849"
    "5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596"
    "979899";

// Any run of this many digits fits in 64 bits.
constexpr size_t kSafeDigits = 19;

// Parses all of `text`, which must be canonical digits.
bool parse_digits(std::string_view text, uint64_t* value) {
  if (text.empty() || text.size() > kMaxInt64Text) return false;
  if (text[0] == '0') {
    *value = 0;
    return text.size() == 1;
  }
  uint64_t sum = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const unsigned digit = static_cast<unsigned>(static_cast<unsigned char>(text[i])) - '0';
    if (digit > 9) return false;
    if (i >= kSafeDigits && (__builtin_mul_overflow(sum, uint64_t{10}, &sum) ||
                             __builtin_add_overflow(sum, uint64_t{digit}, &sum))) {
      return false;
    }
    if (i < kSafeDigits) sum = sum * 10 + digit;
  }
  *value = sum;
  return true;
}

template <typename Float>
struct FloatReader;

template <>
struct FloatReader<double> {
  // Longer texts are copied to the heap.
  static constexpr size_t kStackBytes = 256;
  static constexpr size_t kLongestText = std::numeric_limits<size_t>::max();
  static double read(const char* text, char** end) { return std::strtod(text, end); }
};

template <>
struct FloatReader<long double> {
  static constexpr size_t kStackBytes = 256;
  static constexpr size_t kLongestText = 5 * 1024 - 1;
  static long double read(const char* text, char** end) { return std::strtold(text, end); }
};

bool is_space(char byte) {
  return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

// Parses like the C library, but only a complete text without leading space, never NaN, and only if
// `rounded` a number that rounds to infinity or to zero.
template <typename Float>
bool parse_float(std::string_view text, Float* value, bool rounded = false) {
  using Reader = FloatReader<Float>;
  if (text.empty() || text.size() > Reader::kLongestText || is_space(text[0])) return false;

  char stack_copy[Reader::kStackBytes];
  std::string heap_copy;
  const char* terminated = stack_copy;
  if (text.size() < sizeof stack_copy) {
    std::memcpy(stack_copy, text.data(), text.size());
    stack_copy[text.size()] = '\0';
  } else {
    heap_copy.assign(text);
    terminated = heap_copy.c_str();
  }

  char* end = nullptr;
  errno = 0;
  const Float result = Reader::read(terminated, &end);
  if (end != terminated + text.size() || std::isnan(result)) return false;
  if (!rounded && errno == ERANGE && (std::isinf(result) || result == 0)) return false;
  *value = result;
  return true;
}

char* write_text(char* out, const char* text, size_t length) {
  std::memcpy(out, text, length);
  return out + length;
}

// digits * 10^exponent as an integer when few zeros follow, as a plain fraction when few digits
// precede or follow the point, and in scientific notation otherwise.
char* write_shaped(char* out, const char* digits, ShortestDigits shape) {
  constexpr int kMaxZerosAfter = 7;
  constexpr int kMaxDecimals = 6;
  constexpr int kMinScientificExponent = 4;
  const auto length = static_cast<size_t>(shape.length);
  const int scientific = shape.exponent + shape.length - 1;

  if (shape.exponent >= 0 && scientific < shape.length + kMaxZerosAfter) {
    out = write_text(out, digits, length);
    std::memset(out, '0', static_cast<size_t>(shape.exponent));
    return out + shape.exponent;
  }
  if (shape.exponent < 0 &&
      (shape.exponent >= -kMaxDecimals || std::abs(scientific) < kMinScientificExponent)) {
    const int before_point = shape.length + shape.exponent;
    if (before_point <= 0) {
      out = write_text(out, "0.", 2);
      std::memset(out, '0', static_cast<size_t>(-before_point));
      return write_text(out - before_point, digits, length);
    }
    const auto integral = static_cast<size_t>(before_point);
    out = write_text(out, digits, integral);
    *out++ = '.';
    return write_text(out, digits + integral, length - integral);
  }
  *out++ = digits[0];
  if (length > 1) {
    *out++ = '.';
    out = write_text(out, digits + 1, length - 1);
  }
  *out++ = 'e';
  *out++ = scientific < 0 ? '-' : '+';
  return out + format_uint64(static_cast<uint64_t>(std::abs(scientific)), out);
}

}  // namespace

bool parse_uint64(std::string_view text, uint64_t* value) {
  return parse_digits(text, value);
}

bool parse_int64(std::string_view text, int64_t* value) {
  constexpr uint64_t kMax = std::numeric_limits<int64_t>::max();
  const bool negative = !text.empty() && text[0] == '-';
  if (negative) text.remove_prefix(1);
  uint64_t magnitude;
  if (!parse_digits(text, &magnitude)) return false;
  if (negative) {
    if (magnitude == 0 || magnitude > kMax + 1) return false;
    *value = static_cast<int64_t>(0 - magnitude);
    return true;
  }
  if (magnitude > kMax) return false;
  *value = static_cast<int64_t>(magnitude);
  return true;
}

bool parse_double(std::string_view text, double* value) {
  // Most numbers need neither a terminated copy nor the C library's rarer forms.
  double quick;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, quick);
  if (error == std::errc() && stop == end && std::isfinite(quick) && quick != 0) {
    *value = quick;
    return true;
  }
  return parse_float(text, value);
}

bool parse_rounded_double(std::string_view text, double* value) {
  return text.find_first_of("xX") == std::string_view::npos && parse_float(text, value, true);
}

bool parse_long_double(std::string_view text, long double* value) {
  return parse_float(text, value);
}

size_t format_uint64(uint64_t value, char* out) {
  const size_t length = count_digits(value);
  char* cursor = out + length;
  while (value >= 100) {
    cursor -= 2;
    std::memcpy(cursor, kDigitPairs + 2 * (value % 100), 2);
    value /= 100;
  }
  if (value >= 10) {
    std::memcpy(out, kDigitPairs + 2 * value, 2);
  } else {
    *out = static_cast<char>('0' + value);
  }
  return length;
}

size_t format_int64(int64_t value, char* out) {
  if (value >= 0) return format_uint64(static_cast<uint64_t>(value), out);
  *out = '-';
  return 1 + format_uint64(0 - static_cast<uint64_t>(value), out + 1);
}

size_t format_double(double value, char* out) {
  constexpr double kLargestPlainInteger = 0x1p62;
  if (std::fabs(value) <= kLargestPlainInteger && value == std::trunc(value) && value != 0)
    return format_int64(static_cast<int64_t>(value), out);
  return format_shortest_double(value, out);
}

size_t format_shortest_double(double value, char* out) {
  if (std::isnan(value)) return static_cast<size_t>(write_text(out, "nan", 3) - out);
  if (std::isinf(value)) {
    return static_cast<size_t>(
        (value > 0 ? write_text(out, "inf", 3) : write_text(out, "-inf", 4)) - out);
  }
  if (value == 0) {
    return static_cast<size_t>(
        (std::signbit(value) ? write_text(out, "-0", 2) : write_text(out, "0", 1)) - out);
  }
  char digits[kMaxShortestDigits];
  const ShortestDigits shape = shortest_digits(value, digits);
  char* cursor = out;
  if (value < 0) *cursor++ = '-';
  return static_cast<size_t>(write_shaped(cursor, digits, shape) - out);
}

size_t format_double_17_digits(double value, char* out) {
  char text[kMaxDoubleText + 1];
  const int length = std::snprintf(text, sizeof text, "%.17g", value);
  std::memcpy(out, text, static_cast<size_t>(length));
  return static_cast<size_t>(length);
}

std::string format_long_double(long double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  // Room for the largest long double in fixed notation.
  char text[5 * 1024];
  const int written = std::snprintf(text, sizeof text, "%.17Lf", value);
  std::string_view kept(text, static_cast<size_t>(written));
  while (kept.back() == '0') kept.remove_suffix(1);
  if (kept.back() == '.') kept.remove_suffix(1);
  return kept == "-0" ? "0" : std::string(kept);
}

}  // namespace latchkey::base
