#include "base/digest/sha256.h"

#include <bit>

#include "base/digest/sha_blocks.h"
#include "base/text/hex.h"

namespace latchkey::base {

namespace {

constexpr size_t kRounds = 64;

// The fractional parts of the cube roots of the first 64 primes (FIPS 180-4, section 4.2.2).
constexpr uint32_t kRoundConstants[kRounds] = {
    0x428A2F98, 0x71374491, 0xB5C0FBCF, 0xE9B5DBA5, 0x3956C25B, 0x59F111F1, 0x923F82A4, 0xAB1C5ED5,
    0xD807AA98, 0x12835B01, 0x243185BE, 0x550C7DC3, 0x72BE5D74, 0x80DEB1FE, 0x9BDC06A7, 0xC19BF174,
    0xE49B69C1, 0xEFBE4786, 0x0FC19DC6, 0x240CA1CC, 0x2DE92C6F, 0x4A7484AA, 0x5CB0A9DC, 0x76F988DA,
    0x983E5152, 0xA831C66D, 0xB00327C8, 0xBF597FC7, 0xC6E00BF3, 0xD5A79147, 0x06CA6351, 0x14292967,
    0x27B70A85, 0x2E1B2138, 0x4D2C6DFC, 0x53380D13, 0x650A7354, 0x766A0ABB, 0x81C2C92E, 0x92722C85,
    0xA2BFE8A1, 0xA81A664B, 0xC24B8B70, 0xC76C51A3, 0xD192E819, 0xD6990624, 0xF40E3585, 0x106AA070,
    0x19A4C116, 0x1E376C08, 0x2748774C, 0x34B0BCB5, 0x391C0CB3, 0x4ED8AA4A, 0x5B9CCA4F, 0x682E6FF3,
    0x748F82EE, 0x78A5636F, 0x84C87814, 0x8CC70208, 0x90BEFFFA, 0xA4506CEB, 0xBEF9A3F7, 0xC67178F2,
};

using Digest = ShaDigest<8>;

// The fractional parts of the square roots of the first eight primes (section 5.3.3).
constexpr Digest kInitialDigest = {0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A,
                                   0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19};

// Section 6.2.2.
void absorb_block(Digest* digest, const uint8_t* block) {
  uint32_t schedule[kRounds];
  load_sha_block(block, schedule);
  for (size_t t = kShaBlockWords; t < kRounds; ++t) {
    const uint32_t late = schedule[t - 2];
    const uint32_t early = schedule[t - 15];
    schedule[t] = (std::rotr(late, 17) ^ std::rotr(late, 19) ^ late >> 10) + schedule[t - 7] +
                  (std::rotr(early, 7) ^ std::rotr(early, 18) ^ early >> 3) + schedule[t - 16];
  }
  auto [a, b, c, d, e, f, g, h] = *digest;
  for (size_t t = 0; t < kRounds; ++t) {
    const uint32_t chosen = (e & f) ^ (~e & g);
    const uint32_t first = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + chosen +
                           kRoundConstants[t] + schedule[t];
    const uint32_t majority = (a & b) ^ (a & c) ^ (b & c);
    const uint32_t second = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + majority;
    h = g;
    g = f;
    f = e;
    e = d + first;
    d = c;
    c = b;
    b = a;
    a = first + second;
  }
  const Digest added = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < added.size(); ++i) (*digest)[i] += added[i];
}

}  // namespace

std::array<uint8_t, kSha256Bytes> sha256(std::string_view bytes) {
  return sha_of_blocks(bytes, kInitialDigest, absorb_block);
}

std::string sha256_hex(std::string_view bytes) {
  return to_hex(sha256(bytes));
}

}  // namespace latchkey::base
