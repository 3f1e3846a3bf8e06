#include "store/value/array.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "unit/catch.h"

namespace latchkey::tests {

namespace {

using store::Array;
using store::ArrayCell;
using Model = std::map<uint64_t, std::string>;

std::string text_at(const Array& array, uint64_t index) {
  char scratch[store::kCellScratch];
  const ArrayCell value = array.get(index);
  return value == store::kNoCell ? "(none)" : std::string(store::cell::text(value, scratch));
}

std::vector<std::pair<uint64_t, std::string>> walked(const Array& array, uint64_t first,
                                                     uint64_t last) {
  std::vector<std::pair<uint64_t, std::string>> found;
  char scratch[store::kCellScratch];
  array.for_each(first, last, [&](uint64_t index, ArrayCell value) {
    found.emplace_back(index, store::cell::text(value, scratch));
    return true;
  });
  return found;
}

std::vector<std::pair<uint64_t, std::string>> part_of(const Model& model, uint64_t first,
                                                      uint64_t last) {
  const uint64_t low = std::min(first, last);
  const uint64_t high = std::max(first, last);
  std::vector<std::pair<uint64_t, std::string>> found(model.lower_bound(low),
                                                      model.upper_bound(high));
  if (first > last) std::reverse(found.begin(), found.end());
  return found;
}

// An index of one of the sizes at which the tree has another shape.
uint64_t any_index(base::Random& random) {
  const uint64_t bits = random.below(65);
  const uint64_t index = bits == 0 ? 0 : random.next() >> (64 - bits);
  return std::min(index, Array::kLastIndex);
}

std::string any_text(base::Random& random) {
  switch (random.below(4)) {
    case 0:
      return std::to_string(static_cast<int64_t>(random.next() >> random.below(64)));
    case 1:
      return std::string(random.below(9), 's');
    case 2:
      return std::string(random.below(300), 'l');
    default:
      return "-" + std::to_string(random.below(1000));
  }
}

}  // namespace

TEST_CASE("A cell gives back the text that it was made of", "[array]") {
  for (const std::string text :
       {"", "a", "1234567", "12345678", "-1", "007", "+5", "abcdefg", "abcdefgh",
        "1152921504606846975", "1152921504606846976", "-1152921504606846976",
        "-1152921504606846977", "9223372036854775807", "99999999999999999999", "1.50000000"}) {
    INFO(text);
    const ArrayCell cell = store::cell::make(text);
    char scratch[store::kCellScratch];
    CHECK(cell != store::kNoCell);
    CHECK(store::cell::text(cell, scratch) == text);
    store::cell::release(cell);
  }
  // Integers of up to 61 bits take no memory.
  CHECK(store::cell::memory_usage(store::cell::make("1152921504606846975")) == 0);
  const std::string zeros("a\0b", 3);
  char scratch[store::kCellScratch];
  CHECK(store::cell::text(store::cell::make(zeros), scratch) == zeros);
}

TEST_CASE("An array holds what a model holds, over many random changes", "[array]") {
  base::Random random(GENERATE(1u, 2u, 3u));
  const uint64_t spread = GENERATE(100u, 5000u, 0u);  // 0: all indexes
  Array array;
  Model model;
  for (int step = 0; step < 20'000; ++step) {
    const auto index = [&] { return spread == 0 ? any_index(random) : random.below(spread); };
    const uint64_t what = random.below(100);
    if (what < 60) {
      const uint64_t at = index();
      const std::string text = any_text(random);
      CHECK(array.set(at, text) == !model.contains(at));
      model[at] = text;
    } else if (what < 97) {
      const uint64_t at = model.empty() || random.below(3) == 0 ? index()
                          : model.lower_bound(index()) == model.end()
                              ? model.begin()->first
                              : model.lower_bound(index())->first;
      CHECK(array.erase(at) == (model.erase(at) != 0));
    } else if (what < 99) {
      const uint64_t first = index();
      const uint64_t last = first + std::min(Array::kLastIndex - first, random.below(40));
      const auto erased =
          static_cast<size_t>(std::distance(model.lower_bound(first), model.upper_bound(last)));
      CHECK(array.erase_range(first, last) == erased);
      model.erase(model.lower_bound(first), model.upper_bound(last));
    } else {
      const uint64_t first = index();
      const uint64_t last = index();
      CHECK(walked(array, first, last) == part_of(model, first, last));
    }
    REQUIRE(array.size() == model.size());
    REQUIRE(array.length() == (model.empty() ? 0 : model.rbegin()->first + 1));
  }
  CHECK(walked(array, 0, Array::kLastIndex) == part_of(model, 0, Array::kLastIndex));
  CHECK(walked(array, Array::kLastIndex, 0) == part_of(model, Array::kLastIndex, 0));
  for (const auto& [index, text] : model) REQUIRE(text_at(array, index) == text);
  const std::unique_ptr<store::Value> copy(array.clone());
  CHECK(array.erase_range(0, Array::kLastIndex) == model.size());
  CHECK(array.memory_usage() == sizeof(Array));
  CHECK(walked(static_cast<Array&>(*copy), 0, Array::kLastIndex) ==
        part_of(model, 0, Array::kLastIndex));
}

TEST_CASE("A full stretch of an array takes little more than its cells", "[array]") {
  Array dense;
  constexpr uint64_t kElements = 64 * 64;
  for (uint64_t i = 0; i < kElements; ++i) dense.set(i, std::to_string(i));
  CHECK(dense.memory_usage() < kElements * 9);
  Array sparse;
  for (uint64_t i = 0; i < 1000; ++i) sparse.set(i * 0x9E3779B97F4A7C15, "x");
  CHECK(sparse.memory_usage() < 1000 * 64);
}

TEST_CASE("Both ends of the indexes can be set", "[array]") {
  Array array;
  CHECK(array.set(Array::kLastIndex, "last"));
  CHECK(array.length() == UINT64_MAX);
  CHECK(array.set(0, "first"));
  CHECK(text_at(array, 0) == "first");
  CHECK(text_at(array, Array::kLastIndex) == "last");
  CHECK(text_at(array, 1) == "(none)");
  CHECK(array.erase(Array::kLastIndex));
  CHECK(array.length() == 1);
}

}  // namespace latchkey::tests
