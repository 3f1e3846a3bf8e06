#include "store/encoding/intset.h"

#include <set>
#include <string>

#include "base/random.h"
#include "unit/catch.h"

namespace latchkey::store {

TEST_CASE("An intset keeps what a std::set keeps, in order and at any width", "[intset]") {
  base::Random random(7);
  Intset members;
  std::set<int64_t> model;
  for (int round = 0; round < 20'000; ++round) {
    // Small numbers first, so that the array is widened on the way.
    const unsigned shift = round < 8'000 ? 55 : (round < 14'000 ? 40 : 0);
    const auto value = static_cast<int64_t>(random.next()) >> shift;
    if (random.below(3) == 0) {
      REQUIRE(members.erase(value) == (model.erase(value) == 1));
    } else {
      REQUIRE(members.add(value) == model.insert(value).second);
    }
    REQUIRE(members.contains(value) == model.contains(value));
  }
  REQUIRE(members.size() == model.size());
  size_t index = 0;
  for (const int64_t value : model) REQUIRE(members.at(index++) == value);
  CHECK(Intset::is_valid(members.bytes()));
}

TEST_CASE("An intset has the bytes of the RDB format", "[intset]") {
  Intset members;
  members.add(3);
  members.add(-2);
  const std::string narrow(members.bytes().data(), members.bytes().size());
  CHECK(narrow == std::string("\2\0\0\0\2\0\0\0\xfe\xff\3\0", 12));
  members.add(70'000);
  const std::string wide(members.bytes().data(), members.bytes().size());
  CHECK(wide == std::string("\4\0\0\0\3\0\0\0\xfe\xff\xff\xff\3\0\0\0\x70\x11\1\0", 20));
}

TEST_CASE("Bytes that are no intset are not taken for one", "[intset]") {
  const auto valid = [](std::string bytes) { return Intset::is_valid(bytes); };
  CHECK(valid(std::string("\2\0\0\0\2\0\0\0\1\0\2\0", 12)));
  CHECK_FALSE(valid(""));
  CHECK_FALSE(valid(std::string("\2\0\0\0\0\0\0\0", 8)));
  CHECK_FALSE(valid(std::string("\3\0\0\0\1\0\0\0\1\0\0", 11)));
  CHECK_FALSE(valid(std::string("\2\0\0\0\2\0\0\0\1\0", 10)));
  CHECK_FALSE(valid(std::string("\2\0\0\0\2\0\0\0\2\0\2\0", 12)));
  CHECK_FALSE(valid(std::string("\2\0\0\0\2\0\0\0\3\0\2\0", 12)));
}

}  // namespace latchkey::store
