#include "locks/lock_text.h"

#include <cstdint>
#include <limits>

#include "unit/catch.h"

namespace latchkey::tests {

using namespace locks;

TEST_CASE("Durations are told in the unit that fits, rounded to tenths", "[locks]") {
  CHECK(duration(0) == "0 ms");
  CHECK(duration(std::numeric_limits<int64_t>::max()) == "2562047788015.2 h");
  CHECK(duration(999) == "999 ms");
  CHECK(duration(1000) == "1 s");
  CHECK(duration(1049) == "1 s");
  CHECK(duration(1050) == "1.1 s");
  CHECK(duration(1949) == "1.9 s");
  CHECK(duration(1950) == "2 s");
  CHECK(duration(90'000) == "1.5 min");
  CHECK(duration(5'400'000) == "1.5 h");
}

TEST_CASE("Times are told in UTC, to the millisecond", "[locks]") {
  CHECK(clock_time(1'795'486'858'972) == "02:20:58.972");
  CHECK(date_and_time(1'795'486'858'972) == "2026-11-24 02:20:58.972");
  CHECK(date_and_time(5) == "1970-01-01 00:00:00.005");
}

TEST_CASE("Ordinal numbers end as they are spoken", "[locks]") {
  CHECK(ordinal_suffix(1) == "st");
  CHECK(ordinal_suffix(2) == "nd");
  CHECK(ordinal_suffix(3) == "rd");
  CHECK(ordinal_suffix(4) == "th");
  for (const uint64_t number : {11, 12, 13, 111, 112, 113}) CHECK(ordinal_suffix(number) == "th");
  CHECK(ordinal_suffix(21) == "st");
  CHECK(ordinal_suffix(102) == "nd");
}

TEST_CASE("Bytes that cannot be printed are told as hexadecimal numbers", "[locks]") {
  CHECK(printable("a b~") == "a b~");
  CHECK(printable(std::string_view("\0\x1f\x7f\xc3", 4)) == "\\x00\\x1f\\x7f\\xc3");
}

}  // namespace latchkey::tests
