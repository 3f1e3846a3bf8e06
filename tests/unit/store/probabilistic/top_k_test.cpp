#include "store/probabilistic/top_k.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "unit/catch.h"

namespace latchkey::tests {

namespace {

using store::TopK;

// So small that nothing decays.
constexpr double kNoDecay = 1e-10;

std::string listed(const TopK& list) {
  std::string text;
  for (const TopK::Slot* slot : list.list())
    text += std::string(slot->item->text()) + ":" + std::to_string(slot->count) + " ";
  return text;
}

std::string expelled(const std::optional<std::string>& item) {
  return item.value_or("(none)");
}

}  // namespace

TEST_CASE("A list keeps the items with the greatest counts", "[top-k]") {
  store::Environment environment;
  base::Random random(1);
  const auto list = TopK::make(environment, {3, 2000, 7, kNoDecay});
  for (const char* item : {"a", "b", "c"}) CHECK(expelled(list->add(item, 5, random)) == "(none)");
  CHECK(expelled(list->add("d", 4, random)) == "(none)");
  CHECK_FALSE(list->contains("d"));
  CHECK(list->count("d") == 4);
  CHECK(expelled(list->add("a", 1, random)) == "(none)");
  CHECK(expelled(list->add("d", 3, random)) == "c");
  CHECK(listed(*list) == "d:7 a:6 b:5 ");
  CHECK(list->count("c") == 5);
  CHECK(list->count("e") == 0);
}

TEST_CASE("A bucket that always decays changes hands at 0", "[top-k]") {
  store::Environment environment;
  base::Random random(1);
  const auto list = TopK::make(environment, {2, 1, 1, 1});
  list->add("a", 3, random);
  list->add("b", 2, random);
  CHECK(list->count("a") == 1);
  CHECK(list->count("b") == 0);
  list->add("b", 3, random);
  CHECK(list->count("a") == 0);
  CHECK(list->count("b") == 3);
}

TEST_CASE("The probability of decay falls with the count", "[top-k]") {
  store::Environment environment;
  base::Random random(GENERATE(1, 2));
  constexpr int kTrials = 4000;
  const uint32_t count = GENERATE(1, 3, 6);
  int fallen = 0;
  for (int i = 0; i < kTrials; ++i) {
    const auto list = TopK::make(environment, {1, 1, 1, 0.8});
    list->add("a", count, random);
    list->add("b", 1, random);
    if (list->count("a") < count) ++fallen;
  }
  double probability = 1;
  for (uint32_t i = 0; i < count; ++i) probability *= 0.8;
  CHECK(fallen > kTrials * (probability - 0.03));
  CHECK(fallen < kTrials * (probability + 0.03));
}

TEST_CASE("An increment decays as often as so many single ones", "[top-k]") {
  store::Environment environment;
  base::Random random(3);
  constexpr int kTrials = 4000;
  int64_t at_once = 0;
  int64_t single = 0;
  for (int i = 0; i < kTrials; ++i) {
    const auto one = TopK::make(environment, {1, 1, 1, 0.9});
    const auto other = TopK::make(environment, {1, 1, 1, 0.9});
    one->add("a", 30, random);
    other->add("a", 30, random);
    one->add("b", 20, random);
    for (int step = 0; step < 20; ++step) other->add("b", 1, random);
    at_once += one->count("a");
    single += other->count("a");
  }
  CHECK(std::abs(at_once - single) < kTrials / 8);
}

TEST_CASE("Counts stay at their greatest value", "[top-k]") {
  store::Environment environment;
  base::Random random(1);
  const auto list = TopK::make(environment, {1, 1, 1, 0.9});
  list->add("a", 1, random);
  list->loading_buckets()[0].count = UINT32_MAX - 5;
  list->add("a", 10, random);
  CHECK(list->count("a") == UINT32_MAX);
  CHECK(listed(*list) == "a:4294967295 ");
}

TEST_CASE("The most frequent of many items are found", "[top-k]") {
  store::Environment environment;
  base::Random random(5);
  const auto list = TopK::make(environment, {10, 200, 5, 0.9});
  for (int i = 0; i < 20'000; ++i) {
    list->add("rare" + std::to_string(random.below(5000)), 1, random);
    list->add("often" + std::to_string(i % 10), 1, random);
  }
  for (int i = 0; i < 10; ++i) CHECK(list->contains("often" + std::to_string(i)));
}

TEST_CASE("A copy of a list counts by itself", "[top-k]") {
  store::Environment environment;
  base::Random random(1);
  const auto list = TopK::make(environment, {3, 8, 7, kNoDecay});
  list->add("a", 1, random);
  list->add("", 2, random);
  const std::unique_ptr<TopK> copy(static_cast<TopK*>(list->clone()));
  CHECK(listed(*copy) == listed(*list));
  copy->add("a", 5, random);
  CHECK(listed(*copy) == "a:6 :2 ");
  CHECK(listed(*list) == ":2 a:1 ");
  CHECK(copy->free_effort() == 2);
}

TEST_CASE("Shapes are checked before there is a list", "[top-k]") {
  CHECK(TopK::is_sound({1, 1, 1, 1}));
  CHECK_FALSE(TopK::is_sound({0, 1, 1, 0.9}));
  CHECK_FALSE(TopK::is_sound({TopK::kMaxSlots + 1, 1, 1, 0.9}));
  CHECK_FALSE(TopK::is_sound({1, uint64_t{1} << 32, uint64_t{1} << 32, 0.9}));
  CHECK_FALSE(TopK::is_sound({1, 0, 1, 0.9}));
  CHECK_FALSE(TopK::is_sound({1, 1, 0, 0.9}));
  CHECK_FALSE(TopK::is_sound({1, 1, 1, 0}));
  CHECK_FALSE(TopK::is_sound({1, 1, 1, 1.1}));
}

TEST_CASE("No item is loaded twice", "[top-k]") {
  store::Environment environment;
  const auto list = TopK::make(environment, {3, 1, 1, 0.9});
  CHECK(list->set_item(0, "a"));
  CHECK_FALSE(list->set_item(1, "a"));
  CHECK(list->set_item(1, "b"));
}

}  // namespace latchkey::tests
