#include "store/random_sample.h"

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "store/value/set.h"
#include "store/value/sorted_set.h"
#include "unit/catch.h"

namespace latchkey::store {

namespace {

constexpr size_t kMembers = 40;

// Every collection goes into a table, unless `entries` says otherwise.
Environment& limited(Environment& environment, size_t entries) {
  environment.limits.set_max_listpack_entries = entries;
  environment.limits.zset_max_listpack_entries = entries;
  return environment;
}

// Draws from `collection` again and again: each sample has different members, and all members come
// equally often.
template <typename Collection, typename Draw>
void check_samples(const Collection& collection, Draw&& draw) {
  base::Random random(1);
  for (const size_t count : {size_t{0}, size_t{1}, size_t{3}, size_t{30}, kMembers}) {
    constexpr size_t kRounds = 4000;
    std::map<std::string, size_t> drawn;
    for (size_t round = 0; round < kRounds; ++round) {
      std::set<std::string> seen;
      draw(collection, random, count, [&](std::string_view member) { seen.emplace(member); });
      REQUIRE(seen.size() == count);
      for (const std::string& member : seen) ++drawn[member];
    }
    if (count == 0) continue;
    CHECK(drawn.size() == kMembers);
    // Five standard deviations and more to either side.
    const double expected = static_cast<double>(kRounds * count) / kMembers;
    for (const auto& [member, times] : drawn)
      CHECK(static_cast<double>(times) == Catch::Approx(expected).margin(110));
  }
}

}  // namespace

TEST_CASE("Members of a set drawn without repetition are all equally likely", "[set][sample]") {
  for (const size_t entries : {size_t{0}, size_t{512}}) {
    Environment environment;
    Set set(limited(environment, entries));
    for (size_t i = 0; i < kMembers; ++i) set.add("m" + std::to_string(i));
    CHECK((set.table_or_null() != nullptr) == (entries == 0));
    check_samples(set, [](const Set& from, base::Random& random, size_t count, auto&& fn) {
      from.random_distinct(random, count, fn);
    });
  }
}

TEST_CASE("Members of a sorted set drawn without repetition are all equally likely",
          "[sorted_set][sample]") {
  for (const size_t entries : {size_t{0}, size_t{512}}) {
    Environment environment;
    SortedSet set(limited(environment, entries));
    for (size_t i = 0; i < kMembers; ++i)
      set.set("m" + std::to_string(i), static_cast<double>(i % 7));
    CHECK(set.is_listpack() == (entries != 0));
    check_samples(set, [](const SortedSet& from, base::Random& random, size_t count, auto&& fn) {
      from.random_distinct(random, count, [&](std::string_view member, double score) {
        CHECK(from.score(member) == score);
        fn(member);
      });
    });
  }
}

}  // namespace latchkey::store
