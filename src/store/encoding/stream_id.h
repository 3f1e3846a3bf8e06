// The id of a stream's entry: milliseconds and a sequence number within the millisecond, compared
// in that order. Zero is below the ids of all entries.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace latchkey::store {

struct StreamId {
  uint64_t ms = 0;
  uint64_t sequence = 0;

  static constexpr StreamId max() {
    return {std::numeric_limits<uint64_t>::max(), std::numeric_limits<uint64_t>::max()};
  }
  constexpr auto operator<=>(const StreamId&) const = default;
  constexpr bool is_zero() const { return ms == 0 && sequence == 0; }

  // The smallest id above, and the largest id below, this one. REQUIRES: there is one.
  constexpr StreamId next() const {
    return sequence == std::numeric_limits<uint64_t>::max() ? StreamId{ms + 1, 0}
                                                            : StreamId{ms, sequence + 1};
  }
  constexpr StreamId previous() const {
    return sequence == 0 ? StreamId{ms - 1, std::numeric_limits<uint64_t>::max()}
                         : StreamId{ms, sequence - 1};
  }
};

}  // namespace latchkey::store
