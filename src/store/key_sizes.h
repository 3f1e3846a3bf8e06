// Counts the values of a database by size: a histogram by powers of two for each type, of bytes for
// strings and of elements for the others. INFO keysizes shows it.
//
// Costs: O(1), no allocation; 520 bytes for a type.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "store/entry.h"

namespace latchkey::store {

class KeySizes {
 public:
  // Bin 0 is for empty values, bin b for sizes from 2^(b-1) to 2^b - 1.
  static constexpr size_t kBins = 65;
  static uint8_t bin_of(size_t size) { return static_cast<uint8_t>(std::bit_width(size)); }

  void add(Type type, uint8_t bin) { ++counts_[static_cast<size_t>(type)][bin]; }
  void remove(Type type, uint8_t bin) { --counts_[static_cast<size_t>(type)][bin]; }
  uint64_t count(Type type, size_t bin) const { return counts_[static_cast<size_t>(type)][bin]; }

 private:
  std::array<std::array<uint64_t, kBins>, kTypeCount> counts_{};
};

}  // namespace latchkey::store
