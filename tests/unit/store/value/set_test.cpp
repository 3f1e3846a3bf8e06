#include "store/value/set.h"

#include <set>
#include <string>

#include "store/value/sorted_set.h"
#include "unit/catch.h"

namespace latchkey::store {

namespace {

constexpr int kMembers = 1000;

// All members, and the number of those that a walk visits that ends with the third one.
template <typename V>
std::set<std::string> members(const V& value, size_t* visited) {
  *visited = 0;
  value.for_each_while([&](std::string_view, auto...) { return ++*visited != 3; });
  std::set<std::string> all;
  value.for_each_while(
      [&](std::string_view member, auto...) { return all.emplace(member).second; });
  return all;
}

}  // namespace

TEST_CASE("A walk through a set ends where it is told to", "[sets]") {
  const bool is_small = GENERATE(false, true);
  const char* prefix = GENERATE("", "m");
  Environment environment;
  environment.limits.set_max_intset_entries = is_small ? kMembers : 0;
  environment.limits.set_max_listpack_entries = is_small ? kMembers : 0;
  Set set(environment);
  std::set<std::string> model;
  for (int i = 0; i < kMembers; ++i) {
    set.add(prefix + std::to_string(i));
    model.insert(prefix + std::to_string(i));
  }
  CHECK((set.table_or_null() == nullptr) == is_small);
  size_t visited;
  CHECK(members(set, &visited) == model);
  CHECK(visited == 3);
  std::set<std::string> all;
  set.for_each([&](std::string_view member) { all.emplace(member); });
  CHECK(all == model);
}

TEST_CASE("A walk through a sorted set ends where it is told to", "[sorted_sets]") {
  const bool is_small = GENERATE(false, true);
  Environment environment;
  SortedSet set(environment, is_small ? 1 : SIZE_MAX, 1);
  environment.limits.zset_max_listpack_entries = kMembers;
  std::set<std::string> model;
  for (int i = 0; i < kMembers; ++i) {
    set.add(std::to_string(i), i);
    model.insert(std::to_string(i));
  }
  CHECK(set.is_listpack() == is_small);
  size_t visited;
  CHECK(members(set, &visited) == model);
  CHECK(visited == 3);
  std::string backwards;
  set.for_each_while({2, 7}, true, [&](std::string_view member, double) {
    backwards += member;
    return member != "4";
  });
  CHECK(backwards == "87654");
}

}  // namespace latchkey::store
