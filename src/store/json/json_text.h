// The inside of JSON strings (RFC 8259), eight bytes at a time.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace latchkey::store::json {

inline constexpr uint64_t kEachByte = 0x0101010101010101;
inline constexpr uint64_t kHighBits = 0x8080808080808080;

inline uint64_t load_word(const char* bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

// Whether a string has this byte only as an escape: quotes, backslashes and control characters.
inline bool must_be_escaped(char c) {
  return c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20;
}

// The first byte in [at, end) that must be escaped, or `end`. O(n).
inline const char* find_escaped(const char* at, const char* end) {
  static_assert(std::endian::native == std::endian::little);
  // High bits where a byte is zero; of those above the first such byte some may be wrong.
  const auto zero_bytes = [](uint64_t word) { return (word - kEachByte) & ~word & kHighBits; };
  constexpr uint64_t kQuotes = kEachByte * '"';
  constexpr uint64_t kBackslashes = kEachByte * '\\';
  // All bytes below 0x20 lack these bits.
  constexpr uint64_t kAboveControls = kEachByte * 0xe0;
  for (; end - at >= 8; at += 8) {
    const uint64_t word = load_word(at);
    const uint64_t found = zero_bytes(word ^ kQuotes) | zero_bytes(word ^ kBackslashes) |
                           zero_bytes(word & kAboveControls);
    if (found != 0) return at + std::countr_zero(found) / 8;
  }
  while (at != end && !must_be_escaped(*at)) ++at;
  return at;
}

}  // namespace latchkey::store::json
