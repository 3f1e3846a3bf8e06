#include "store/probabilistic/count_min_sketch.h"

#include <algorithm>
#include <cstdlib>
#include <unordered_map>
#include <vector>

#include "base/assert.h"
#include "base/digest/murmur.h"

namespace latchkey::store {

namespace {

// Adds `value` times `weight`; false when it does not fit.
bool add_product(int64_t* sum, int64_t value, int64_t weight) {
  int64_t product;
  return !__builtin_mul_overflow(value, weight, &product) &&
         !__builtin_add_overflow(*sum, product, sum);
}

// Adds `counters` times `weight` to `sums`; false when one does not fit.
bool add_products(std::span<int64_t> sums, std::span<const CountMinSketch::Counter> counters,
                  int64_t weight) {
  bool fits = true;
  for (size_t i = 0; i < sums.size(); ++i) fits &= add_product(&sums[i], counters[i], weight);
  return fits;
}

// The terms with each sketch once: a request may name one of a gigabyte thousands of times. Weights
// that are so large that a sum may not fit on the way to the result stay as they are.
std::vector<CountMinSketch::Weighted> fold(std::span<const CountMinSketch::Weighted> terms) {
  constexpr int64_t kMostWeight = std::numeric_limits<int64_t>::max() / CountMinSketch::kMaxCounter;
  std::vector<CountMinSketch::Weighted> folded;
  std::unordered_map<const CountMinSketch*, size_t> places;
  int64_t weight = 0;
  for (const CountMinSketch::Weighted& term : terms) {
    if (term.weight < -kMostWeight || term.weight > kMostWeight)
      return {terms.begin(), terms.end()};
    weight += std::abs(term.weight);
    if (weight > kMostWeight) return {terms.begin(), terms.end()};
    const auto [place, is_new] = places.try_emplace(term.sketch, folded.size());
    if (is_new) {
      folded.push_back(term);
    } else {
      folded[place->second].weight += term.weight;
    }
  }
  return folded;
}

}  // namespace

std::unique_ptr<CountMinSketch> CountMinSketch::make(uint64_t width, uint64_t depth) {
  LK_ASSERT(are_dimensions(width, depth));
  ZeroedArray<Counter> counters(width * depth, std::nothrow);
  if (!counters.is_made()) return nullptr;
  return std::unique_ptr<CountMinSketch>(new CountMinSketch(width, depth, std::move(counters)));
}

size_t CountMinSketch::place(std::string_view item, uint64_t row) const {
  static_assert(kMaxCounters <= std::numeric_limits<uint32_t>::max());
  return row * width_ +
         base::murmur_hash_2(item, static_cast<uint32_t>(row)) % static_cast<uint32_t>(width_);
}

CountMinSketch::Counter CountMinSketch::add(std::string_view item, uint64_t times) {
  Counter least = kMaxCounter;
  for (uint64_t row = 0; row < depth_; ++row) {
    Counter& counter = counters_[place(item, row)];
    counter += static_cast<Counter>(std::min<uint64_t>(times, kMaxCounter - counter));
    least = std::min(least, counter);
  }
  total_ += times;
  return least;
}

CountMinSketch::Counter CountMinSketch::estimate(std::string_view item) const {
  Counter least = kMaxCounter;
  for (uint64_t row = 0; row < depth_; ++row) least = std::min(least, counters_[place(item, row)]);
  return least;
}

bool CountMinSketch::assign_sum(std::span<const Weighted> terms) {
  // So many counters at a time that their sums stay in the cache.
  constexpr size_t kBlock = 1024;
  int64_t total = 0;
  for (const Weighted& term : terms) {
    if (!add_product(&total, static_cast<int64_t>(term.sketch->total_), term.weight)) return false;
  }
  if (total < 0) return false;
  const std::vector<Weighted> folded = fold(terms);
  ZeroedArray<Counter> result(counters_.size());
  int64_t sums[kBlock];
  for (size_t from = 0; from < result.size(); from += kBlock) {
    const std::span<int64_t> block(sums, std::min(kBlock, result.size() - from));
    std::fill(block.begin(), block.end(), 0);
    for (const Weighted& term : folded) {
      if (!add_products(block, term.sketch->counters().subspan(from, block.size()), term.weight))
        return false;
    }
    for (size_t i = 0; i < block.size(); ++i) {
      if (block[i] < 0 || block[i] > kMaxCounter) return false;
      result[from + i] = static_cast<Counter>(block[i]);
    }
  }
  counters_ = std::move(result);
  total_ = static_cast<uint64_t>(total);
  return true;
}

void CountMinSketch::for_each_digest_part(const DigestPart& part) const {
  const uint64_t head[] = {width_, depth_, total_};
  part({reinterpret_cast<const char*>(head), sizeof head});
  part(counters_.bytes());
}

}  // namespace latchkey::store
