#include "store/encoding/intset.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <vector>

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

namespace {

// About `count` different numbers of at most `bits` bits.
std::set<int64_t> random_values(base::Random& random, size_t count, unsigned bits) {
  std::set<int64_t> values;
  for (size_t i = 0; i < count; ++i)
    values.insert(static_cast<int64_t>(random.next()) >> (64 - bits));
  return values;
}

Intset intset_of(const std::set<int64_t>& values) {
  Intset members;
  for (const int64_t value : values) members.add(value);
  return members;
}

std::vector<int64_t> in_both(const std::set<int64_t>& one, const std::set<int64_t>& other) {
  std::vector<int64_t> both;
  std::set_intersection(one.begin(), one.end(), other.begin(), other.end(),
                        std::back_inserter(both));
  return both;
}

}  // namespace

TEST_CASE("The values that an intset retains are those it contains", "[intset]") {
  base::Random random(11);
  for (int round = 0; round < 500; ++round) {
    const auto bits = static_cast<unsigned>(4 + random.below(round % 5 == 0 ? 60 : 12));
    const auto members = random_values(random, random.below(1500), bits);
    const auto wanted = random_values(random, random.below(round % 3 == 0 ? 5 : 600), bits);
    std::vector<int64_t> values(wanted.begin(), wanted.end());
    values.resize(intset_of(members).retain(values));
    REQUIRE(values == in_both(wanted, members));
  }
}

TEST_CASE("What is in all intsets is visited in order, until the visitor stops", "[intset]") {
  base::Random random(12);
  for (int round = 0; round < 100; ++round) {
    // Widths differ, and the first has more members than are taken at a time.
    const auto a = random_values(random, 1 + random.below(2000), 12);
    const auto b = random_values(random, 1 + random.below(4000), 13);
    const auto c = random_values(random, 1 + random.below(30'000), 18);
    const auto both = in_both(a, b);
    const auto all = in_both({both.begin(), both.end()}, c);
    const Intset intsets[] = {intset_of(a), intset_of(b), intset_of(c)};
    const Intset* sets[] = {&intsets[0], &intsets[1], &intsets[2]};
    std::vector<int64_t> visited;
    const auto visit = [&](int64_t value) {
      visited.push_back(value);
      return true;
    };
    for_each_in_all(sets, visit);
    REQUIRE(visited == all);
    visited.clear();
    for_each_in_all(std::span(sets).first(1), visit);
    REQUIRE(visited == std::vector<int64_t>(a.begin(), a.end()));
    size_t visits = 0;
    for_each_in_all(std::span(sets).first(2), [&](int64_t) { return ++visits != 2; });
    REQUIRE(visits == std::min<size_t>(both.size(), 2));
  }
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
