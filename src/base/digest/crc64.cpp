#include "base/digest/crc64.h"

#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace latchkey::base {

namespace {

// The polynomial with its bits in reverse.
constexpr uint64_t kReflectedPolynomial = 0x95AC9329AC4BC9B5;

constexpr size_t kSlices = 8;
using Table = std::array<std::array<uint64_t, 256>, kSlices>;

// tables[0][b] is the checksum of byte b; tables[n][b] that of b followed by n zero bytes.
constexpr Table make_tables() {
  Table tables{};
  for (uint64_t byte = 0; byte < 256; ++byte) {
    uint64_t crc = byte;
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? kReflectedPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (size_t slice = 1; slice < kSlices; ++slice) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint64_t before = tables[slice - 1][byte];
      tables[slice][byte] = tables[0][before & 0xFF] ^ (before >> 8);
    }
  }
  return tables;
}

constexpr Table kTables = make_tables();

uint64_t crc64_by_tables(uint64_t crc, std::string_view bytes) {
  static_assert(std::endian::native == std::endian::little,
                "words are folded in the order of their bytes");
  const char* cursor = bytes.data();
  size_t left = bytes.size();
  for (; left >= sizeof crc; left -= sizeof crc, cursor += sizeof crc) {
    uint64_t word;
    std::memcpy(&word, cursor, sizeof word);
    word ^= crc;
    crc = 0;
    for (size_t i = 0; i < kSlices; ++i) crc ^= kTables[kSlices - 1 - i][(word >> (8 * i)) & 0xFF];
  }
  for (; left > 0; --left, ++cursor) {
    crc = kTables[0][(crc ^ static_cast<unsigned char>(*cursor)) & 0xFF] ^ (crc >> 8);
  }
  return crc;
}

// --- By carry-less multiplication ----------------------------------------------------------------

#if defined(__x86_64__)

// Bytes are coefficients of a polynomial over GF(2), of which a checksum is the remainder. 16 bytes
// that stand D bits before others may be added to those, multiplied by the remainder of x^D: then
// the whole has the same remainder, and is 16 bytes shorter (V. Gopal et al., "Fast CRC Computation
// for Generic Polynomials Using PCLMULQDQ Instruction", 2009). What is left at the end is summed by
// the tables.

// The remainder of x^exponent, its bits in reverse.
constexpr uint64_t remainder_of_power(unsigned exponent) {
  uint64_t remainder = uint64_t{1} << 63;
  for (; exponent > 0; --exponent)
    remainder = (remainder >> 1) ^ ((remainder & 1) != 0 ? kReflectedPolynomial : 0);
  return remainder;
}

#define LK_CLMUL "pclmul,sse4.1"

// The factors for a distance: for the first eight of 16 bytes, which are 64 bits farther away, and
// for the last. The product of two numbers in reverse is itself in reverse, but one bit lower.
template <unsigned kBits>
[[gnu::target(LK_CLMUL)]] __m128i factors() {
  constexpr uint64_t kOfFirst = remainder_of_power(kBits + 63);
  constexpr uint64_t kOfLast = remainder_of_power(kBits - 1);
  return _mm_set_epi64x(static_cast<int64_t>(kOfLast), static_cast<int64_t>(kOfFirst));
}

[[gnu::target(LK_CLMUL)]] __m128i load(const char* bytes) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
}

// Adds `front`, moved by the distance of the factors, to `behind`.
[[gnu::target(LK_CLMUL)]] __m128i fold(__m128i front, __m128i factors, __m128i behind) {
  return _mm_xor_si128(behind, _mm_xor_si128(_mm_clmulepi64_si128(front, factors, 0x00),
                                             _mm_clmulepi64_si128(front, factors, 0x11)));
}

// Eight sums of 16 bytes each, because a multiplication takes several cycles.
[[gnu::target(LK_CLMUL)]] uint64_t crc64_by_multiplying(uint64_t crc, std::string_view bytes) {
  constexpr size_t kSize = sizeof(__m128i);
  constexpr size_t kSums = 8;
  constexpr size_t kStep = kSums * kSize;
  if (bytes.size() < kStep) return crc64_by_tables(crc, bytes);
  __m128i sums[kSums];
  for (size_t i = 0; i < kSums; ++i) sums[i] = load(bytes.data() + i * kSize);
  sums[0] = _mm_xor_si128(sums[0], _mm_cvtsi64_si128(static_cast<int64_t>(crc)));
  bytes.remove_prefix(kStep);
  const __m128i by_step = factors<8 * kStep>();
  for (; bytes.size() >= kStep; bytes.remove_prefix(kStep)) {
    for (size_t i = 0; i < kSums; ++i)
      sums[i] = fold(sums[i], by_step, load(bytes.data() + i * kSize));
  }
  const __m128i by_size = factors<8 * kSize>();
  __m128i sum = sums[0];
  for (size_t i = 1; i < kSums; ++i) sum = fold(sum, by_size, sums[i]);
  for (; bytes.size() >= kSize; bytes.remove_prefix(kSize))
    sum = fold(sum, by_size, load(bytes.data()));
  char left[kSize];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(left), sum);
  return crc64_by_tables(crc64_by_tables(0, {left, sizeof left}), bytes);
}

#endif

}  // namespace

std::vector<Crc64Form> runnable_crc64_forms() {
  std::vector<Crc64Form> runnable = {crc64_by_tables};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("pclmul")) runnable.push_back(crc64_by_multiplying);
#endif
  return runnable;
}

uint64_t crc64(uint64_t crc, std::string_view bytes) {
  static const Crc64Form fastest = runnable_crc64_forms().back();
  return fastest(crc, bytes);
}

}  // namespace latchkey::base
