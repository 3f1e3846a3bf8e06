// Strings as bit arrays. Bit 0 is the highest bit of the first byte, bit 8 the highest of the
// second, so that bit arrays compare as their bytes do.
//
// Counting, searching and combining use vector operations and cost about as much as reading the
// bytes from memory.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace latchkey::base {

// The number of ones among bits `from` .. `to` (not included). REQUIRES, here and below: from <= to
// <= 8 * bytes.size().
uint64_t count_ones(std::string_view bytes, uint64_t from, uint64_t to);

// The position of the first of the bits `from` .. `to` (not included) that equals `bit`.
std::optional<uint64_t> find_bit(std::string_view bytes, bool bit, uint64_t from, uint64_t to);

// For sources X, Y1, Y2 ..., a bit of the result is one if it is one in
enum class BitOperation : uint8_t {
  kAnd,    // all
  kOr,     // any
  kXor,    // an odd number
  kNot,    // not in X, the only source
  kDiff,   // X, but in no Y
  kDiff1,  // any Y, but not in X
  kAndOr,  // X and in any Y
  kOne,    // exactly one
};

// Fills `result`; sources shorter than `result` are extended with zeros. REQUIRES: at least one
// source, none longer than `result` or overlapping it.
void combine_bits(BitOperation operation, std::span<const std::string_view> sources,
                  std::span<char> result);

// The number in the `count` bits from `offset` on, the highest bit first. Bits beyond the end are
// zero. REQUIRES: count <= 64. O(count).
uint64_t read_bits(std::string_view bytes, uint64_t offset, unsigned count);
// Writes the lowest `count` bits of `value` at `offset`. REQUIRES: they lie within `bytes`.
void write_bits(std::span<char> bytes, uint64_t offset, unsigned count, uint64_t value);

}  // namespace latchkey::base
