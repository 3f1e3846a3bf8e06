// Ranges of elements by index. Commands have two rules for an end before the first element:
//
//     within()           LRANGE, LTRIM, ZRANGE, ZREMRANGEBYRANK   "0 -10" of three elements: none
//     clamped_within()   GETRANGE, BITCOUNT, BITPOS               "0 -10" of three: the first
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "server/command/command_context.h"

namespace latchkey::commands {

// From `first` to `last`, both included. 0 is the first element, -1 the last one.
struct IndexRange {
  int64_t first = 0;
  int64_t last = 0;

  struct Part {
    size_t first = 0;
    size_t count = 0;  // 0: none, and `first` is 0
  };
  // The part of the range that lies within `size` elements.
  Part within(size_t size) const {
    const auto count = static_cast<int64_t>(size);
    const int64_t from = first < 0 ? std::max<int64_t>(first + count, 0) : first;
    const int64_t to = std::min(last < 0 ? last + count : last, count - 1);
    return between(from, to);
  }
  // The same where an end before the first element is taken for the first one.
  Part clamped_within(size_t size) const {
    const auto count = static_cast<int64_t>(size);
    const auto index_of = [&](int64_t end) {
      return end < 0 ? std::max<int64_t>(end + count, 0) : end;
    };
    return between(index_of(first), std::min(index_of(last), count - 1));
  }
  // Whether both ends are counted from the last element and are in reverse order: for GETRANGE and
  // BITCOUNT nothing is in such a range, even if both ends are before the first element.
  bool is_reversed_from_end() const { return first < 0 && last < 0 && first > last; }

 private:
  static Part between(int64_t from, int64_t to) {
    if (from > to) return {};
    return {static_cast<size_t>(from), static_cast<size_t>(to - from + 1)};
  }
};

// False, with the error sent, unless both are integers.
inline bool read_range(server::CommandContext& ctx, std::string_view first, std::string_view last,
                       IndexRange* range) {
  return ctx.read_int64(first, &range->first) && ctx.read_int64(last, &range->last);
}

}  // namespace latchkey::commands
