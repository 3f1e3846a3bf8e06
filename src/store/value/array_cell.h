// The text at one index of an array, in 8 bytes where it fits: integers of up to 61 bits, and up to
// 7 bytes. Longer texts are blobs, which copies of an array share.
//
//     .... 000   a pointer to a blob; 0 is no text at all
//     .... 001   bits 3 to 5: the length; the seven bytes above: the text
//     .... 010   the upper 61 bits: an integer whose decimal text it is
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/blob.h"
#include "base/text/number.h"

namespace latchkey::store {

using ArrayCell = uint64_t;

inline constexpr ArrayCell kNoCell = 0;
// Room for the text of a cell that is no blob.
inline constexpr size_t kCellScratch = base::kMaxInt64Text;

namespace cell {

inline constexpr unsigned kTagBits = 3;
inline constexpr uint64_t kTagMask = 7;
inline constexpr uint64_t kShort = 1;
inline constexpr uint64_t kInteger = 2;
inline constexpr size_t kLongestShort = 7;

inline bool is_blob(ArrayCell value) {
  return (value & kTagMask) == 0 && value != kNoCell;
}
inline base::Blob* blob(ArrayCell value) {
  return reinterpret_cast<base::Blob*>(value);
}

// A cell of that text, which is to be released.
ArrayCell make(std::string_view text);
inline void release(ArrayCell value) {
  if (is_blob(value)) blob(value)->release();
}
// Another cell of the same text, to be released too.
inline ArrayCell share(ArrayCell value) {
  if (is_blob(value)) blob(value)->retain();
  return value;
}
// The text; what is no blob is written to `scratch` (room for kCellScratch). REQUIRES: not kNoCell.
std::string_view text(ArrayCell value, char* scratch);
// Bytes held beside the cell itself.
inline size_t memory_usage(ArrayCell value) {
  return is_blob(value) ? blob(value)->memory_usage() : 0;
}

}  // namespace cell

}  // namespace latchkey::store
