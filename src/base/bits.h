// Strings as rows of bits. Bit 0 is the highest of the first byte, bit 8 the highest of the second,
// so that rows compare as their bytes do.
//
// Counting, searching and combining go through the bytes in vectors and cost about as much as
// reading them from memory.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace latchkey::base {

// How many of the bits `from` .. `to` (not included) are one.
// REQUIRES: from <= to <= 8 * bytes.size(); likewise below.
uint64_t count_ones(std::string_view bytes, uint64_t from, uint64_t to);

// The first of the bits `from` .. `to` that is `bit`.
std::optional<uint64_t> find_bit(std::string_view bytes, bool bit, uint64_t from, uint64_t to);

// Of the sources X, Y1, Y2 ... a bit of the result says whether it is one in
enum class BitOperation : uint8_t {
  kAnd,    // all
  kOr,     // any
  kXor,    // an odd number
  kNot,    // not X, which is the only one
  kDiff,   // X, but no Y
  kDiff1,  // any Y, but not X
  kAndOr,  // X and any Y
  kOne,    // exactly one
};

// Fills `result`; what a source lacks to its length is zeros.
// REQUIRES: there are sources, none longer than `result`, which overlaps none.
void combine_bits(BitOperation operation, std::span<const std::string_view> sources,
                  std::span<char> result);

// The number that `count` bits from `offset` on are, the first the highest. Bits beyond the end are
// zero. REQUIRES: count <= 64. O(count).
uint64_t read_bits(std::string_view bytes, uint64_t offset, unsigned count);
// Writes the lowest `count` bits of `value` there. REQUIRES: they lie within `bytes`.
void write_bits(std::span<char> bytes, uint64_t offset, unsigned count, uint64_t value);

}  // namespace latchkey::base
