// The common part of SHA-1 and SHA-256 (FIPS 180-4, sections 5.1.1 and 5.2.1): a digest of words
// that absorbs a text block by block and ends with the text's length.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace latchkey::base {

inline constexpr size_t kShaBlockBytes = 64;
inline constexpr size_t kShaBlockWords = kShaBlockBytes / sizeof(uint32_t);

template <size_t kWords>
using ShaDigest = std::array<uint32_t, kWords>;

// Writes a block as big-endian words to the beginning of a schedule.
inline void load_sha_block(const uint8_t* block, uint32_t* schedule) {
  for (size_t i = 0; i < kShaBlockWords; ++i, block += sizeof(uint32_t)) {
    schedule[i] = static_cast<uint32_t>(block[0]) << 24 | static_cast<uint32_t>(block[1]) << 16 |
                  static_cast<uint32_t>(block[2]) << 8 | static_cast<uint32_t>(block[3]);
  }
}

// Starts with `digest`, calls `absorb(digest pointer, block)` for each block of the text and its
// padding, and returns the bytes of the resulting digest.
template <size_t kWords, typename Absorb>
std::array<uint8_t, kWords * sizeof(uint32_t)> sha_of_blocks(std::string_view text,
                                                             ShaDigest<kWords> digest,
                                                             Absorb absorb) {
  const auto* data = reinterpret_cast<const uint8_t*>(text.data());
  size_t left = text.size();
  for (; left >= kShaBlockBytes; left -= kShaBlockBytes, data += kShaBlockBytes)
    absorb(&digest, data);

  // The rest, a one bit, zeros, and the length in bits as 64 bits: one block or two.
  uint8_t tail[2 * kShaBlockBytes] = {};
  if (left > 0) std::memcpy(tail, data, left);
  tail[left] = 0x80;
  const bool fits_one = left + 1 + sizeof(uint64_t) <= kShaBlockBytes;
  const size_t tail_bytes = fits_one ? kShaBlockBytes : 2 * kShaBlockBytes;
  const uint64_t bits = static_cast<uint64_t>(text.size()) * 8;
  for (size_t i = 0; i < sizeof bits; ++i)
    tail[tail_bytes - 1 - i] = static_cast<uint8_t>(bits >> (8 * i));
  for (size_t at = 0; at < tail_bytes; at += kShaBlockBytes) absorb(&digest, tail + at);

  std::array<uint8_t, kWords * sizeof(uint32_t)> bytes;
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<uint8_t>(digest[i / 4] >> (24 - 8 * (i % 4)));
  return bytes;
}

}  // namespace latchkey::base
