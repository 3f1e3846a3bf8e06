#include "store/deadline_heap.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "base/random.h"
#include "unit/catch.h"

namespace latchkey::tests {

namespace {

struct Thing {
  int64_t deadline_ms;
  uint32_t place = 0;
};
struct Traits {
  using Item = Thing;
  static uint32_t& place(Thing& thing) { return thing.place; }
};
using Heap = store::DeadlineHeap<Traits>;

}  // namespace

TEST_CASE("A deadline heap gives its items in the order of their deadlines", "[deadline_heap]") {
  Heap heap;
  std::vector<Thing> things = {{30}, {10}, {20}, {10}, {5}};
  for (Thing& thing : things) heap.insert(thing, thing.deadline_ms);
  std::vector<int64_t> order;
  while (!heap.empty()) {
    order.push_back(heap.first_deadline_ms());
    heap.erase(heap.first());
  }
  CHECK(order == std::vector<int64_t>{5, 10, 10, 20, 30});
}

TEST_CASE("Any item of a deadline heap can leave or be given another deadline", "[deadline_heap]") {
  base::Random random(7);
  Heap heap;
  std::vector<std::unique_ptr<Thing>> things;
  for (int step = 0; step < 20'000; ++step) {
    const uint64_t choice = random.below(things.size() < 200 ? 3 : 4);
    if (choice == 0 || things.empty()) {
      things.push_back(std::make_unique<Thing>(Thing{static_cast<int64_t>(random.below(500))}));
      heap.insert(*things.back(), things.back()->deadline_ms);
    } else if (choice == 1) {
      Thing& thing = *things[random.below(things.size())];
      thing.deadline_ms = static_cast<int64_t>(random.below(500));
      heap.update(thing, thing.deadline_ms);
    } else {
      std::swap(things[random.below(things.size())], things.back());
      heap.erase(*things.back());
      things.pop_back();
    }
    REQUIRE(heap.size() == things.size());
    if (things.empty()) continue;
    const auto first = std::min_element(
        things.begin(), things.end(),
        [](const auto& left, const auto& right) { return left->deadline_ms < right->deadline_ms; });
    REQUIRE(heap.first_deadline_ms() == (*first)->deadline_ms);
    const Thing& any = *things[random.below(things.size())];
    REQUIRE(heap.deadline_ms(const_cast<Thing&>(any)) == any.deadline_ms);
  }
}

}  // namespace latchkey::tests
