#include "cluster/slot_set.h"

#include <initializer_list>

#include "unit/catch.h"

namespace latchkey::cluster {

namespace {

SlotSet slots_of(std::initializer_list<int> slots) {
  SlotSet set;
  for (const int slot : slots) set.add(slot);
  return set;
}

}  // namespace

TEST_CASE("A set of slots has all, some or none of another one", "[cluster]") {
  const SlotSet set = slots_of({0, 7, 8, 16383});
  CHECK(set.has_all(slots_of({0, 16383})));
  CHECK(set.has_all(set));
  CHECK_FALSE(set.has_all(slots_of({0, 1})));
  CHECK(set.has_any(slots_of({1, 8})));
  CHECK_FALSE(set.has_any(slots_of({1, 9, 16382})));
  CHECK(set.has_all({}));
  CHECK_FALSE(set.has_any({}));
  CHECK_FALSE(SlotSet().has_all(set));
  CHECK_FALSE(SlotSet().has_any(set));
}

TEST_CASE("What is left of a set without another one", "[cluster]") {
  const SlotSet set = slots_of({0, 7, 8, 16383});
  CHECK(set.without(slots_of({1, 7, 16383})) == slots_of({0, 8}));
  CHECK(set.without({}) == set);
  CHECK(set.without(set).empty());
  CHECK(SlotSet().without(set).empty());
}

}  // namespace latchkey::cluster
