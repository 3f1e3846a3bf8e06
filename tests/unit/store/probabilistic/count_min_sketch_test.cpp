#include "store/probabilistic/count_min_sketch.h"

#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "unit/catch.h"

namespace latchkey::tests {

namespace {

using store::CountMinSketch;

std::vector<std::string> digest_parts(const CountMinSketch& sketch) {
  std::vector<std::string> parts;
  sketch.for_each_digest_part([&](std::string_view part) { parts.emplace_back(part); });
  return parts;
}

}  // namespace

TEST_CASE("A sketch never estimates too little, and seldom much too high", "[sketches]") {
  base::Random random(1);
  const auto sketch = CountMinSketch::make(200, 5);
  std::map<std::string, uint64_t> counts;
  for (int i = 0; i < 5000; ++i) {
    const std::string item = std::to_string(random.below(400));
    const uint64_t times = random.below(5);
    counts[item] += times;
    CHECK(sketch->add(item, times) >= counts[item]);
  }
  uint64_t total = 0;
  for (const auto& [item, count] : counts) total += count;
  CHECK(sketch->total() == total);
  int far_off = 0;
  for (const auto& [item, count] : counts) {
    CHECK(sketch->estimate(item) >= count);
    // The paper's bound: e / width of the total, but for a share of e^-depth.
    if (static_cast<double>(sketch->estimate(item) - count) >
        2.72 * static_cast<double>(total) / 200)
      ++far_off;
  }
  CHECK(far_off <= 8);
}

TEST_CASE("An item's counters are where the reference has them", "[sketches]") {
  const auto sketch = CountMinSketch::make(1000, 5);
  sketch->add("item", 3);
  std::vector<size_t> places;
  for (size_t i = 0; i < sketch->counters().size(); ++i) {
    if (sketch->counters()[i] == 3) places.push_back(i);
  }
  CHECK(places == std::vector<size_t>{984, 1632, 2476, 3775, 4948});
}

TEST_CASE("Counters stay at their greatest value", "[sketches]") {
  const auto sketch = CountMinSketch::make(8, 2);
  CHECK(sketch->add("a", CountMinSketch::kMaxCounter - 1) == CountMinSketch::kMaxCounter - 1);
  CHECK(sketch->add("a", 2) == CountMinSketch::kMaxCounter);
  CHECK(sketch->add("a", uint64_t{1} << 63) == CountMinSketch::kMaxCounter);
  CHECK(sketch->total() == (uint64_t{1} << 63) + CountMinSketch::kMaxCounter + 1);
}

TEST_CASE("A sum of sketches counts what they counted, times their weights", "[sketches]") {
  // Wider than a block of counters that are summed together.
  const auto first = CountMinSketch::make(1500, 3);
  const auto second = CountMinSketch::make(1500, 3);
  first->add("a", 5);
  first->add("b", 6);
  second->add("a", 7);
  const auto sum = CountMinSketch::make(1500, 3);
  REQUIRE(
      sum->assign_sum(std::vector<CountMinSketch::Weighted>{{first.get(), 2}, {second.get(), 3}}));
  CHECK(sum->estimate("a") == 31);
  CHECK(sum->estimate("b") == 12);
  CHECK(sum->total() == 43);
  // One of the terms may be the sketch itself.
  REQUIRE(
      sum->assign_sum(std::vector<CountMinSketch::Weighted>{{sum.get(), 1}, {first.get(), -1}}));
  CHECK(sum->estimate("a") == 26);
  CHECK(sum->total() == 32);
}

TEST_CASE("A sketch that is named many times counts as much as so many copies of it",
          "[sketches]") {
  base::Random random(3);
  const auto first = CountMinSketch::make(1500, 2);
  const auto second = CountMinSketch::make(1500, 2);
  first->add("a", 5);
  second->add("a", 7);
  second->add("b", CountMinSketch::kMaxCounter);
  constexpr int64_t kWeights[] = {1, 2, -1, -3, 100, INT32_MAX, INT64_MAX, INT64_MIN};
  size_t fitted = 0;
  for (int round = 0; round < 2000; ++round) {
    std::vector<CountMinSketch::Weighted> repeated;
    std::vector<CountMinSketch::Weighted> copied;
    std::vector<std::unique_ptr<CountMinSketch>> copies;
    const uint64_t weights = 1 + random.below(std::size(kWeights));
    for (uint64_t left = 1 + random.below(8); left > 0; --left) {
      const CountMinSketch* sketch = random.below(3) == 0 ? second.get() : first.get();
      const int64_t weight = kWeights[random.below(weights)];
      repeated.push_back({sketch, weight});
      copies.emplace_back(static_cast<CountMinSketch*>(sketch->clone()));
      copied.push_back({copies.back().get(), weight});
    }
    const auto sum = CountMinSketch::make(1500, 2);
    const auto expected = CountMinSketch::make(1500, 2);
    const bool fits = expected->assign_sum(copied);
    CHECK(sum->assign_sum(repeated) == fits);
    CHECK(digest_parts(*sum) == digest_parts(*expected));
    fitted += fits ? 1 : 0;
  }
  CHECK(fitted > 100);
}

TEST_CASE("A sum that does not fit leaves the sketch alone", "[sketches]") {
  const auto one = CountMinSketch::make(4, 2);
  one->add("a", 1);
  const auto sketch = CountMinSketch::make(4, 2);
  sketch->add("a", 3);
  const auto before = digest_parts(*sketch);
  const int64_t weight =
      GENERATE(int64_t{-1}, int64_t{CountMinSketch::kMaxCounter} + 1, INT64_MAX, INT64_MIN);
  CHECK_FALSE(sketch->assign_sum(std::vector<CountMinSketch::Weighted>{{one.get(), weight}}));
  CHECK_FALSE(sketch->assign_sum(
      std::vector<CountMinSketch::Weighted>{{one.get(), INT64_MAX}, {one.get(), INT64_MAX}}));
  CHECK(digest_parts(*sketch) == before);
  CHECK(sketch->assign_sum(
      std::vector<CountMinSketch::Weighted>{{one.get(), CountMinSketch::kMaxCounter}}));
}

TEST_CASE("Dimensions are checked before there is a sketch", "[sketches]") {
  CHECK(CountMinSketch::are_dimensions(1, 1));
  CHECK(CountMinSketch::are_dimensions(CountMinSketch::kMaxCounters, 1));
  CHECK_FALSE(CountMinSketch::are_dimensions(CountMinSketch::kMaxCounters, 2));
  CHECK_FALSE(CountMinSketch::are_dimensions(uint64_t{1} << 32, uint64_t{1} << 32));
  CHECK_FALSE(CountMinSketch::are_dimensions(0, 1));
  CHECK_FALSE(CountMinSketch::are_dimensions(1, 0));
}

TEST_CASE("A copy of a sketch counts by itself", "[sketches]") {
  const auto sketch = CountMinSketch::make(10, 2);
  sketch->add("a", 1);
  const std::unique_ptr<CountMinSketch> copy(static_cast<CountMinSketch*>(sketch->clone()));
  CHECK(digest_parts(*copy) == digest_parts(*sketch));
  copy->add("a", 1);
  CHECK(sketch->estimate("a") == 1);
  CHECK(copy->estimate("a") == 2);
  CHECK(digest_parts(*copy) != digest_parts(*sketch));
  CHECK(sketch->memory_usage() >= 10 * 2 * sizeof(CountMinSketch::Counter));
}

}  // namespace latchkey::tests
