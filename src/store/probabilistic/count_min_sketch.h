// A count-min sketch: estimates how often each item was counted, and never too low. Source: G.
// Cormode and S. Muthukrishnan, "An Improved Data Stream Summary: The Count-Min Sketch and its
// Applications", Journal of Algorithms 55 (2005).
//
// `depth` rows of `width` counters. An item has one counter in each row, at its MurmurHash2 with
// the row's number as seed, modulo the width; its estimate is the least of them. The layout and the
// hashes are the reference's, so that sketches in files have the same estimates there.
//
// Counters have 32 bits and stay at their greatest value. total() counts what was added, modulo
// 2^64.
//
// Costs: add and estimate O(depth), assign_sum O(different sketches * width * depth).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "store/probabilistic/zeroed_array.h"
#include "store/value/module_value.h"

namespace latchkey::store {

class CountMinSketch final : public ModuleValue {
 public:
  static constexpr Type kType = Type::kCountMinSketch;
  using Counter = uint32_t;
  static constexpr Counter kMaxCounter = std::numeric_limits<Counter>::max();
  // 1 GiB of counters.
  static constexpr uint64_t kMaxCounters = uint64_t{1} << 28;

  // Whether there can be a sketch of these dimensions: neither is 0, and there are at most
  // kMaxCounters.
  static bool are_dimensions(uint64_t width, uint64_t depth) {
    return width != 0 && depth != 0 && width <= kMaxCounters / depth;
  }

  // Null when there is not enough memory. REQUIRES: are_dimensions(width, depth).
  static std::unique_ptr<CountMinSketch> make(uint64_t width, uint64_t depth);

  uint64_t width() const { return width_; }
  uint64_t depth() const { return depth_; }
  uint64_t total() const { return total_; }
  // Row after row.
  std::span<const Counter> counters() const { return counters_.span(); }

  // Counts an item so many times more, and returns its new estimate.
  Counter add(std::string_view item, uint64_t times);
  Counter estimate(std::string_view item) const;

  struct Weighted {
    const CountMinSketch* sketch;
    int64_t weight;
  };
  // Makes this sketch the sum of others, which may include itself, each counter and total
  // multiplied by the sketch's weight. False, with nothing changed, when a result is negative or
  // too large, or a product or sum on the way to it does not fit in 64 bits. REQUIRES: all have the
  // same dimensions.
  bool assign_sum(std::span<const Weighted> terms);

  // --- Loading ----------------------------------------------------------------------------------

  std::span<Counter> loading_counters() { return counters_.span(); }
  void set_total(uint64_t total) { total_ = total; }

  // Value
  size_t free_effort() const override { return 1; }
  size_t element_count() const override { return 1; }
  size_t memory_usage() const override { return sizeof *this + counters_.size() * sizeof(Counter); }
  Value* clone() const override { return new CountMinSketch(*this); }
  void for_each_digest_part(const DigestPart& part) const override;

 private:
  CountMinSketch(uint64_t width, uint64_t depth, ZeroedArray<Counter> counters)
      : width_(width), depth_(depth), counters_(std::move(counters)) {}

  // The place of an item's counter in a row.
  size_t place(std::string_view item, uint64_t row) const;

  uint64_t width_;
  uint64_t depth_;
  uint64_t total_ = 0;
  ZeroedArray<Counter> counters_;
};

}  // namespace latchkey::store
