#include "base/sha1.h"

#include <bit>
#include <cstring>

namespace latchkey::base {

namespace {

constexpr size_t kBlockBytes = 64;

uint32_t load_big_endian(const uint8_t* bytes) {
  return static_cast<uint32_t>(bytes[0]) << 24 | static_cast<uint32_t>(bytes[1]) << 16 |
         static_cast<uint32_t>(bytes[2]) << 8 | static_cast<uint32_t>(bytes[3]);
}

using Digest = std::array<uint32_t, 5>;

// FIPS 180-4, section 6.1.2.
void absorb_block(Digest* digest, const uint8_t* block) {
  uint32_t schedule[80];
  for (size_t t = 0; t < 16; ++t) schedule[t] = load_big_endian(block + 4 * t);
  for (size_t t = 16; t < 80; ++t) {
    schedule[t] =
        std::rotl(schedule[t - 3] ^ schedule[t - 8] ^ schedule[t - 14] ^ schedule[t - 16], 1);
  }
  auto [a, b, c, d, e] = *digest;
  for (size_t t = 0; t < 80; ++t) {
    uint32_t mixed;
    if (t < 20) {
      mixed = ((b & c) | (~b & d)) + 0x5A827999;
    } else if (t < 40) {
      mixed = (b ^ c ^ d) + 0x6ED9EBA1;
    } else if (t < 60) {
      mixed = ((b & c) | (b & d) | (c & d)) + 0x8F1BBCDC;
    } else {
      mixed = (b ^ c ^ d) + 0xCA62C1D6;
    }
    const uint32_t next = std::rotl(a, 5) + mixed + e + schedule[t];
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = next;
  }
  (*digest)[0] += a;
  (*digest)[1] += b;
  (*digest)[2] += c;
  (*digest)[3] += d;
  (*digest)[4] += e;
}

}  // namespace

std::array<uint8_t, 20> sha1(std::string_view bytes) {
  Digest digest{0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  size_t left = bytes.size();
  for (; left >= kBlockBytes; left -= kBlockBytes, data += kBlockBytes) absorb_block(&digest, data);

  // The rest, a one bit, zeros, and the length in bits as 64 bits: one block or two.
  uint8_t tail[2 * kBlockBytes] = {};
  if (left > 0) std::memcpy(tail, data, left);
  tail[left] = 0x80;
  const size_t tail_bytes =
      left + 1 + sizeof(uint64_t) <= kBlockBytes ? kBlockBytes : 2 * kBlockBytes;
  const uint64_t bits = static_cast<uint64_t>(bytes.size()) * 8;
  for (size_t i = 0; i < sizeof bits; ++i) {
    tail[tail_bytes - 1 - i] = static_cast<uint8_t>(bits >> (8 * i));
  }
  for (size_t at = 0; at < tail_bytes; at += kBlockBytes) absorb_block(&digest, tail + at);

  std::array<uint8_t, 20> result;
  for (size_t i = 0; i < result.size(); ++i) {
    result[i] = static_cast<uint8_t>(digest[i / 4] >> (24 - 8 * (i % 4)));
  }
  return result;
}

std::string sha1_hex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(40);
  for (const uint8_t byte : sha1(bytes)) {
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

}  // namespace latchkey::base
