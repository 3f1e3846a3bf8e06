#include "base/digest/sha1.h"

#include <bit>

#include "base/digest/sha_blocks.h"
#include "base/text/hex.h"

namespace latchkey::base {

namespace {

using Digest = ShaDigest<5>;

// Section 5.3.1.
constexpr Digest kInitialDigest = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};

// Section 6.1.2.
void absorb_block(Digest* digest, const uint8_t* block) {
  uint32_t schedule[80];
  load_sha_block(block, schedule);
  for (size_t t = kShaBlockWords; t < 80; ++t) {
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

std::array<uint8_t, kSha1Bytes> sha1(std::string_view bytes) {
  return sha_of_blocks(bytes, kInitialDigest, absorb_block);
}

std::string sha1_hex(std::string_view bytes) {
  return to_hex(sha1(bytes));
}

}  // namespace latchkey::base
