// Durations and points in time as text.
#include <string_view>

#include "testing/duration.h"
#include "testing/instant.h"
#include "unit/catch.h"

namespace latchkey::testing {

TEST_CASE("Durations are a number and a unit", "[test_commands]") {
  CHECK(parse_duration_us("1500") == 1'500'000);
  CHECK(parse_duration_us("1500ms") == 1'500'000);
  CHECK(parse_duration_us("0") == 0);
  CHECK(parse_duration_us("250us") == 250);
  CHECK(parse_duration_us("30s") == 30'000'000);
  CHECK(parse_duration_us("30S") == 30'000'000);
  CHECK(parse_duration_us("5m") == 300'000'000);
  CHECK(parse_duration_us("2h") == 7'200'000'000);
  CHECK(parse_duration_us("1d") == 86'400'000'000);
  CHECK(parse_duration_us("1.5h") == 5'400'000'000);
  CHECK(parse_duration_us("0.5ms") == 500);
}

TEST_CASE("What is no duration is refused", "[test_commands]") {
  for (const std::string_view text :
       {"", "s", "-1", "+1", "1 s", " 1", "1x", "1ss", ".", "1.2.3", "1e3", "nan", "inf", "0x10",
        "999999999999d", "99999999999999999999999999", "1m\r", "ms5"}) {
    INFO(text);
    CHECK_FALSE(parse_duration_us(text));
  }
}

TEST_CASE("Points in time are dates, seconds or milliseconds", "[test_commands]") {
  constexpr int64_t kDay = 1'704'067'200'000'000;  // 2024-01-01
  CHECK(parse_instant_us("2024-01-01T00:00:00Z") == kDay);
  CHECK(parse_instant_us("2024-01-01t00:00:00z") == kDay);
  CHECK(parse_instant_us("2024-01-01") == kDay);
  CHECK(parse_instant_us("2024-01-01T00:00:00.25Z") == kDay + 250'000);
  CHECK(parse_instant_us("2024-01-01T00:00:00+00:00") == kDay);
  CHECK(parse_instant_us("2024-01-01T02:30:00.500000+02:30") == kDay + 500'000);
  CHECK(parse_instant_us("2023-12-31T23:00:00-01:00") == kDay);
  CHECK(parse_instant_us("1970-01-01T23:59:00+23:59") == 0);
  CHECK(parse_instant_us("2024-02-29T23:59:59Z") == kDay + 60 * 86'400'000'000 - 1'000'000);
  CHECK(parse_instant_us("1704067200") == kDay);
  CHECK(parse_instant_us("1704067200.5") == kDay + 500'000);
  CHECK(parse_instant_us("1704067200250ms") == kDay + 250'000);
  CHECK(parse_instant_us("0") == 0);
  CHECK(parse_instant_us("9999-12-31T23:59:59Z") == 253'402'300'799'000'000);
}

TEST_CASE("What is no point in time is refused", "[test_commands]") {
  for (const std::string_view text : {"",
                                      "now",
                                      "-1",
                                      "1e9",
                                      "2023-02-29",
                                      "2024-13-01",
                                      "2024-00-10",
                                      "2024-01-32",
                                      "2024-01-01T24:00:00Z",
                                      "2024-01-01T00:60:00Z",
                                      "2024-01-01T00:00:60Z",
                                      "2024-01-01T00:00:00",
                                      "2024-01-01T00:00Z",
                                      "2024-01-01T00:00:00.Z",
                                      "2024-01-01T00:00:00.1234567Z",
                                      "2024-01-01T00:00:00+0000",
                                      "2024-01-01T00:00:00+00:60",
                                      "2024-01-01T00:00:00+24:00",
                                      "2024-01-01T00:00:00*00:00",
                                      "2024-01-01T00:00:00+0x:00",
                                      "2024-01-01T00:00:00+00:0x",
                                      "2024-01-01T+00:00",
                                      "2024-01-01T00:00",
                                      "1970-01-01T00:00:00+00:01",
                                      "9999-12-31T23:59:59-00:01",
                                      "2024-01-01T",
                                      "2024-01-01TZ",
                                      "2024-1-1",
                                      "1969-12-31",
                                      "9223372036854775807",
                                      "99999999999999999999",
                                      "253402300800",
                                      "ms",
                                      "1704067200s",
                                      "2024-01-0x",
                                      "20240101T000000Z"}) {
    INFO(text);
    CHECK_FALSE(parse_instant_us(text));
  }
}

}  // namespace latchkey::testing
