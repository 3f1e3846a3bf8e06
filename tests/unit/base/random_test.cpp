#include "base/random.h"

#include <set>
#include <vector>

#include "unit/catch.h"

namespace latchkey::base {

TEST_CASE("The same seed gives the same numbers, another seed others", "[random]") {
  Random first(42);
  Random again(42);
  Random other(43);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const uint64_t number = first.next();
    CHECK(number == again.next());
    differs |= number != other.next();
  }
  CHECK(differs);
}

TEST_CASE("The first numbers of a seed stay what they were", "[random]") {
  Random random(0);
  CHECK(random.next() == 0x99EC5F36CB75F2B4);
  CHECK(random.next() == 0xBF6E1F784956452A);
}

TEST_CASE("below() stays under its bound and reaches all of a small one evenly", "[random]") {
  Random random(7);
  std::vector<int> counts(10);
  for (int i = 0; i < 100'000; ++i) ++counts[random.below(10)];
  for (const int count : counts) {
    CHECK(count > 9'500);
    CHECK(count < 10'500);
  }
  CHECK(random.below(1) == 0);
  const uint64_t large = (uint64_t{1} << 63) + 1;
  for (int i = 0; i < 1'000; ++i) REQUIRE(random.below(large) < large);
}

TEST_CASE("unit() is in [0, 1)", "[random]") {
  Random random(7);
  for (int i = 0; i < 10'000; ++i) {
    const double number = random.unit();
    REQUIRE(number >= 0);
    REQUIRE(number < 1);
  }
}

TEST_CASE("Secrets are hexadecimal, of the asked length, and do not repeat", "[random]") {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    const std::string secret = random_hex(40);
    CHECK(secret.size() == 40);
    CHECK(secret.find_first_not_of("0123456789abcdef") == std::string::npos);
    seen.insert(secret);
  }
  CHECK(seen.size() == 100);
}

}  // namespace latchkey::base
