// Numbers against the C library, and back and forth. The input is read as a text, its first eight
// bytes as a double and an integer as well.
#include <cerrno>
#include <cinttypes>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "base/text/number.h"

namespace {

using namespace latchkey::base;

void require(bool holds) {
  if (!holds) std::abort();
}

// An integer is canonical when printing it gives the text back.
void check_integers(const std::string& text) {
  int64_t value = 0;
  errno = 0;
  const long long expected = std::strtoll(text.c_str(), nullptr, 10);
  char printed[32];
  std::snprintf(printed, sizeof printed, "%lld", expected);
  const bool canonical = errno == 0 && text == printed;
  require(parse_int64(text, &value) == canonical);
  require(!canonical || value == expected);

  uint64_t natural = 0;
  errno = 0;
  const unsigned long long expected_natural = std::strtoull(text.c_str(), nullptr, 10);
  std::snprintf(printed, sizeof printed, "%llu", expected_natural);
  const bool canonical_natural = errno == 0 && text == printed;
  require(parse_uint64(text, &natural) == canonical_natural);
  require(!canonical_natural || natural == expected_natural);
}

void check_double_text(const std::string& text) {
  char* end = nullptr;
  errno = 0;
  const double expected = std::strtod(text.c_str(), &end);
  const bool whole = !text.empty() && end == text.c_str() + text.size() &&
                     std::strchr(" \t\n\v\f\r", text[0]) == nullptr;
  const bool in_range = errno != ERANGE || (std::isfinite(expected) && expected != 0);
  double value = 0;
  const bool accepted = parse_double(text, &value);
  require(accepted == (whole && in_range && !std::isnan(expected)));
  require(!accepted || (value == expected && std::signbit(value) == std::signbit(expected)));
}

void check_double(double value) {
  char text[kMaxDoubleText];
  const size_t length = format_double(value, text);
  require(length <= sizeof text);
  if (std::isnan(value)) return require(std::string_view(text, length) == "nan");
  double back = 0;
  require(parse_double({text, length}, &back));
  require(back == value && std::signbit(back) == std::signbit(value));
}

void check_integer(int64_t value) {
  char text[kMaxInt64Text];
  char expected[32];
  const size_t length = format_int64(value, text);
  std::snprintf(expected, sizeof expected, "%" PRId64, value);
  require(std::string_view(text, length) == expected);
  require(format_uint64(static_cast<uint64_t>(value), text) ==
          count_digits(static_cast<uint64_t>(value)));
}

void check_long_double_text(const std::string& text) {
  long double value = 0;
  if (!parse_long_double(text, &value) || !std::isfinite(value)) return;
  long double back = 0;
  require(parse_long_double(format_long_double(value), &back));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  check_integers(text);
  check_double_text(text);
  check_long_double_text(text);
  if (size >= sizeof(double)) {
    double number;
    int64_t integer;
    std::memcpy(&number, data, sizeof number);
    std::memcpy(&integer, data, sizeof integer);
    check_double(number);
    check_integer(integer);
  }
  return 0;
}
