#include "base/text/number.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>

#include "base/random.h"
#include "unit/catch.h"

namespace latchkey::base {

namespace {

std::string int_text(int64_t value) {
  char text[kMaxInt64Text];
  return std::string(text, format_int64(value, text));
}

std::string double_text(double value) {
  char text[kMaxDoubleText];
  const size_t length = format_double(value, text);
  REQUIRE(length <= kMaxDoubleText);
  return std::string(text, length);
}

bool refused_as_double(std::string_view text) {
  double value;
  return !parse_double(text, &value);
}

double parsed_double(std::string_view text) {
  double value = 0;
  REQUIRE(parse_double(text, &value));
  return value;
}

std::string float_sum(std::string_view text, long double addend) {
  long double value = 0;
  REQUIRE(parse_long_double(text, &value));
  return format_long_double(value + addend);
}

}  // namespace

TEST_CASE("Integers of every length are written and read back", "[number]") {
  int64_t value = 0;
  for (int64_t power = 1;; power *= 10) {
    for (const int64_t candidate : {power - 1, power, power + 1, -power, 7 * (power / 7)}) {
      CAPTURE(candidate);
      CHECK(int_text(candidate) == std::to_string(candidate));
      CHECK(parse_int64(std::to_string(candidate), &value));
      CHECK(value == candidate);
      CHECK(count_digits(static_cast<uint64_t>(std::abs(candidate))) ==
            std::to_string(std::abs(candidate)).size());
    }
    if (power > std::numeric_limits<int64_t>::max() / 10) break;
  }
}

TEST_CASE("The ends of the integer ranges are in, the next numbers out", "[number]") {
  int64_t value = 0;
  CHECK(int_text(INT64_MIN) == "-9223372036854775808");
  CHECK((parse_int64("-9223372036854775808", &value) && value == INT64_MIN));
  CHECK((parse_int64("9223372036854775807", &value) && value == INT64_MAX));
  CHECK_FALSE(parse_int64("9223372036854775808", &value));
  CHECK_FALSE(parse_int64("-9223372036854775809", &value));
  uint64_t natural = 0;
  CHECK((parse_uint64("18446744073709551615", &natural) && natural == UINT64_MAX));
  CHECK_FALSE(parse_uint64("18446744073709551616", &natural));
  CHECK_FALSE(parse_uint64("99999999999999999999", &natural));
  CHECK_FALSE(parse_uint64("-1", &natural));
  char text[kMaxInt64Text];
  CHECK(std::string(text, format_uint64(UINT64_MAX, text)) == "18446744073709551615");
}

TEST_CASE("Only canonical integers are read", "[number]") {
  int64_t value = 0;
  for (const char* text : {"", "-", "+1", "-0", "007", "00", " 1", "1 ", "1a", "0x10", "1.0", "--1",
                           "100000000000000000000"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_int64(text, &value));
  }
  CHECK_FALSE(parse_int64(std::string_view("1\0", 2), &value));
}

TEST_CASE("Doubles are read as the C library reads them", "[number]") {
  CHECK(parsed_double("3.25") == 3.25);
  CHECK(parsed_double("+.5") == 0.5);
  CHECK(parsed_double("1.") == 1);
  CHECK(parsed_double("007") == 7);
  CHECK(parsed_double("1E5") == 1e5);
  CHECK(parsed_double("0x1.8p1") == 3);
  CHECK(parsed_double("-0X10") == -16);
  CHECK(std::signbit(parsed_double("-0")));
  CHECK(parsed_double("0e999999") == 0);
  CHECK(parsed_double("4e-324") == 5e-324);
  CHECK(parsed_double("Infinity") == std::numeric_limits<double>::infinity());
  CHECK(parsed_double("-INF") == -std::numeric_limits<double>::infinity());
  CHECK(parsed_double(std::string(300, '0') + "1") == 1);
}

TEST_CASE("Doubles with rest, space, NaN or out of range are refused", "[number]") {
  for (const char* text :
       {"",   ".",   "1e",  "1e+",  "0x",     "0x1P",  " 1",    "1 ",     "\t1",    "1,5",   "1_0",
        "1f", "--1", "nan", "-NaN", "nan(1)", "infin", "1e400", "-1e400", "1e-400", "2e-324"}) {
    CAPTURE(text);
    CHECK(refused_as_double(text));
  }
  CHECK(refused_as_double(std::string_view("1\0", 2)));
  CHECK(refused_as_double(std::string(400, '9')));
}

TEST_CASE("No kind of space may stand before or behind a number", "[number]") {
  for (const char space : {' ', '\t', '\n', '\v', '\f', '\r'}) {
    CAPTURE(static_cast<int>(space));
    const std::string before = std::string(1, space) + "1";
    const std::string behind = std::string("1") + space;
    int64_t integer = 0;
    long double wide = 0;
    for (const std::string& text : {before, behind}) {
      CHECK(refused_as_double(text));
      CHECK_FALSE(parse_int64(text, &integer));
      CHECK_FALSE(parse_long_double(text, &wide));
    }
  }
}

TEST_CASE("Rounded doubles may leave the range, and are never hexadecimal", "[number]") {
  double value = 0;
  CHECK(base::parse_rounded_double("1e400", &value));
  CHECK(value == std::numeric_limits<double>::infinity());
  CHECK(base::parse_rounded_double("-1e-400", &value));
  CHECK(value == 0);
  CHECK(base::parse_rounded_double("-inf", &value));
  CHECK_FALSE(base::parse_rounded_double("0x1", &value));
  CHECK_FALSE(base::parse_rounded_double(" 1", &value));
  CHECK_FALSE(base::parse_rounded_double("nan", &value));
}

TEST_CASE("Doubles are written shortest, integers too", "[number]") {
  char text[base::kMaxDoubleText];
  const auto written = [&](double value) {
    return std::string(text, base::format_shortest_double(value, text));
  };
  CHECK(written(0.1) == "0.1");
  CHECK(written(1e5) == "100000");
  CHECK(written(-1e15) == "-1e+15");
  CHECK(written(1234567890123456) == "1234567890123456");
  CHECK(written(0) == "0");
}

TEST_CASE("Doubles are written with 17 digits", "[number]") {
  char text[base::kMaxDoubleText];
  const auto written = [&](double value) {
    return std::string(text, base::format_double_17_digits(value, text));
  };
  CHECK(written(0.1) == "0.10000000000000001");
  CHECK(written(1e17) == "1e+17");
  CHECK(written(3) == "3");
  CHECK(written(-std::numeric_limits<double>::infinity()) == "-inf");
}

TEST_CASE("Doubles are written in the reference's shape", "[number]") {
  CHECK(double_text(3) == "3");
  CHECK(double_text(3.14) == "3.14");
  CHECK(double_text(-0.0) == "-0");
  CHECK(double_text(0.30000000000000004) == "0.30000000000000004");
  CHECK(double_text(std::numeric_limits<double>::infinity()) == "inf");
  CHECK(double_text(-std::numeric_limits<double>::infinity()) == "-inf");
  CHECK(double_text(std::nan("")) == "nan");
  SECTION("integers up to 2^62 are exact, larger ones shortest") {
    CHECK(double_text(1e17) == "100000000000000000");
    CHECK(double_text(1.5e18) == "1500000000000000000");
    CHECK(double_text(4611686018427387904.0) == "4611686018427387904");
    CHECK(double_text(-4611686018427388928.0) == "-4611686018427389000");
    CHECK(double_text(9223372036854775807.0) == "9223372036854776000");
    CHECK(double_text(1e19) == "1e+19");
    CHECK(double_text(1.2e20) == "1.2e+20");
    CHECK(double_text(1.7976931348623157e308) == "1.7976931348623157e+308");
  }
  SECTION("small and long fractions") {
    CHECK(double_text(0.000001) == "0.000001");
    CHECK(double_text(1e-7) == "1e-7");
    CHECK(double_text(1.1e-4) == "0.00011");
    CHECK(double_text(1.23456e-5) == "1.23456e-5");
    CHECK(double_text(1234.12345678) == "1234.12345678");
    CHECK(double_text(12345.12345678) == "1.234512345678e+4");
    CHECK(double_text(5e-324) == "5e-324");
  }
  SECTION("digits that are not the shortest, where the reference's are not") {
    CHECK(double_text(1e23) == "99999999999999990000000");
    CHECK(double_text(5519.96884) == "5519.9688399999995");
    CHECK(double_text(7.99e21) == "7990000000000001000000");
  }
}

TEST_CASE("Any finite double reads back as itself", "[number]") {
  Random random(1);
  for (int i = 0; i < 200'000; ++i) {
    const uint64_t bits = random.next();
    double value;
    static_assert(sizeof value == sizeof bits);
    std::memcpy(&value, &bits, sizeof value);
    if (!std::isfinite(value)) continue;
    const std::string text = double_text(value);
    CAPTURE(text);
    REQUIRE(parsed_double(text) == value);
  }
}

TEST_CASE("Long doubles are summed and written as INCRBYFLOAT replies", "[number]") {
  CHECK(float_sum("10.5", 0.1L) == "10.6");
  CHECK(float_sum("5.0e3", 200) == "5200");
  CHECK(float_sum("3", 0) == "3");
  CHECK(float_sum("-0", 0) == "0");
  CHECK(float_sum("1e-310", 0) == "0");
  CHECK(float_sum("0x10", 0) == "16");
  CHECK(float_sum(std::string(5118, '0') + "1", 0) == "1");
  long double value;
  CHECK_FALSE(parse_long_double(std::string(5119, '0') + "1", &value));
  CHECK_FALSE(parse_long_double("1e4933", &value));
  CHECK_FALSE(parse_long_double("1e-5000", &value));
  CHECK_FALSE(parse_long_double("nan", &value));
  CHECK(format_long_double(-std::numeric_limits<long double>::infinity()) == "-inf");
}

}  // namespace latchkey::base
