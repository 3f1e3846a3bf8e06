#include "base/byte_kernels.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/assert.h"
#include "base/prefetch.h"

#if defined(__x86_64__)
// GCC 12's headers make "undefined" vectors of themselves and warn of it when they are optimised a
// little (its bug 105593).
#pragma GCC diagnostic push
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop
#endif

namespace latchkey::base {

static_assert(std::endian::native == std::endian::little, "packed numbers are little-endian");

namespace {

// A vector of two words, which every 64-bit processor has, and its other readings.
using Lanes = uint64_t __attribute__((vector_size(16)));
using Bytes = uint8_t __attribute__((vector_size(16)));
using Quads = uint32_t __attribute__((vector_size(16)));

template <typename Vector = Lanes>
Vector load(const void* bytes) {
  Vector vector;
  std::memcpy(&vector, bytes, sizeof(vector));
  return vector;
}

// --- Counting, baseline --------------------------------------------------------------------------

// Adds three bit arrays, bit by bit: returns the carries; the sums stay in `sum`.
Lanes carry(Lanes& sum, Lanes b, Lanes c) {
  const Lanes half = sum ^ b;
  const Lanes both = (sum & b) | (half & c);
  sum = half ^ c;
  return both;
}

// Counts the ones of each word by sums of 2, 4, 8 bits and then the whole, as in Hacker's Delight.
Lanes ones_of_words(Lanes x) {
  x -= (x >> 1) & 0x5555555555555555;
  x = (x & 0x3333333333333333) + ((x >> 2) & 0x3333333333333333);
  x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0f;
  x += x >> 8;
  x += x >> 16;
  x += x >> 32;
  return x & 0x7f;
}

// Sixteen vectors at a time through a tree of carries (the Harley-Seal method): most vectors cost a
// bitwise addition, and only one in sixteen is counted.
uint64_t count_ones(const char* bytes, size_t size) {
  constexpr size_t kStep = 16 * sizeof(Lanes);
  const char* at = bytes;
  const char* const end = at + size;
  Lanes ones{};
  Lanes twos{};
  Lanes fours{};
  Lanes eights{};
  Lanes sixteens_counted{};
  const auto four = [&] {
    const Lanes first = carry(ones, load(at), load(at + 16));
    const Lanes second = carry(ones, load(at + 32), load(at + 48));
    at += 4 * sizeof(Lanes);
    return carry(twos, first, second);
  };
  const auto eight = [&] {
    const Lanes first = four();
    return carry(fours, first, four());
  };
  while (static_cast<size_t>(end - at) >= kStep) {
    const Lanes first = eight();
    sixteens_counted += ones_of_words(carry(eights, first, eight()));
  }
  const Lanes total = 16 * sixteens_counted + 8 * ones_of_words(eights) + 4 * ones_of_words(fours) +
                      2 * ones_of_words(twos) + ones_of_words(ones);
  uint64_t count = total[0] + total[1];
  for (; at != end; ++at) count += static_cast<unsigned>(std::popcount(static_cast<uint8_t>(*at)));
  return count;
}

// --- Packed numbers, baseline --------------------------------------------------------------------

// Takes apart four numbers in the lowest 24 bits of each quad, into a byte each.
Bytes take_apart(Quads x) {
  return reinterpret_cast<Bytes>((x & 0x3f) | (x << 2 & 0x3f00) | (x << 4 & 0x3f0000) |
                                 (x << 6 & 0x3f000000));
}

void raise(uint8_t* into, Bytes others) {
  const auto mine = load<Bytes>(into);
  const Bytes highest = mine > others ? mine : others;
  std::memcpy(into, &highest, sizeof(highest));
}

// 32 numbers in 24 bytes at a time: three bytes are moved to the place of each quad, from two loads
// that overlap.
void raise_to_sixes(uint8_t* into, const char* packed, size_t count) {
  LK_ASSERT(count % kSixesAtOnce == 0);
  for (size_t i = 0; i < count; i += 32, packed += 24) {
    const auto first = load<Bytes>(packed);
    const auto second = load<Bytes>(packed + 8);
    raise(into + i, take_apart(reinterpret_cast<Quads>(__builtin_shufflevector(
                        first, first, 0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1))));
    raise(into + i + 16,
          take_apart(reinterpret_cast<Quads>(__builtin_shufflevector(
              second, second, 4, 5, 6, -1, 7, 8, 9, -1, 10, 11, 12, -1, 13, 14, 15, -1))));
  }
}

constexpr ByteKernels kBaseline = {"baseline", count_ones, raise_to_sixes};

// --- AVX2 ----------------------------------------------------------------------------------------

#if defined(__x86_64__)

constexpr size_t kCacheLine = 64;

[[gnu::target("avx2")]] __m256i load_avx2(const void* bytes) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(bytes));
}

// The ones of each byte: those of its halves, looked up in a table (W. Mula, N. Kurz, D. Lemire,
// "Faster Population Counts Using AVX2 Instructions", 2018).
[[gnu::target("avx2")]] __m256i ones_of_bytes(__m256i x) {
  const __m256i ones_of_half = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0,
                                                1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
  const __m256i low = _mm256_set1_epi8(0x0f);
  return _mm256_add_epi8(
      _mm256_shuffle_epi8(ones_of_half, _mm256_and_si256(x, low)),
      _mm256_shuffle_epi8(ones_of_half, _mm256_and_si256(_mm256_srli_epi16(x, 4), low)));
}

// The four quarters of the bytes side by side, and each ahead of time, so that memory is read in
// several places at once and at no page's end stands still. Adds up bytes, 16 times up to 8 in
// each, then words.
[[gnu::target("avx2")]] uint64_t count_ones_avx2(const char* bytes, size_t size) {
  constexpr size_t kStep = 4 * sizeof(__m256i);
  constexpr size_t kQuarters = 4;
  constexpr size_t kAhead = 2048;
  const size_t quarter = size / (kQuarters * kStep) * kStep;
  __m256i total = _mm256_setzero_si256();
  for (size_t at = 0; at < quarter; at += kStep) {
    __m256i block = _mm256_setzero_si256();
    for (size_t i = 0; i < kQuarters; ++i) {
      const char* const here = bytes + i * quarter + at;
      for (size_t line = 0; line < kStep; line += kCacheLine) prefetch(here + kAhead + line);
      for (size_t j = 0; j < kStep; j += sizeof(__m256i))
        block = _mm256_add_epi8(block, ones_of_bytes(load_avx2(here + j)));
    }
    total = _mm256_add_epi64(total, _mm256_sad_epu8(block, _mm256_setzero_si256()));
  }
  uint64_t lanes[4];
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(lanes), total);
  return lanes[0] + lanes[1] + lanes[2] + lanes[3] +
         count_ones(bytes + kQuarters * quarter, size - kQuarters * quarter);
}

// As the baseline form, both halves at once.
[[gnu::target("avx2")]] void raise_to_sixes_avx2(uint8_t* into, const char* packed, size_t count) {
  LK_ASSERT(count % kSixesAtOnce == 0);
  constexpr char kNone = -1;
  const __m256i places =
      _mm256_setr_epi8(0, 1, 2, kNone, 3, 4, 5, kNone, 6, 7, 8, kNone, 9, 10, 11, kNone,  //
                       4, 5, 6, kNone, 7, 8, 9, kNone, 10, 11, 12, kNone, 13, 14, 15, kNone);
  for (size_t i = 0; i < count; i += 32, packed += 24) {
    const auto* halves = reinterpret_cast<const __m128i*>(packed);
    const auto* others = reinterpret_cast<const __m128i*>(packed + 8);
    const __m256i x = _mm256_shuffle_epi8(_mm256_loadu2_m128i(others, halves), places);
    const auto part = [&](__m256i shifted, int mask) __attribute__((target("avx2"))) {
      return _mm256_and_si256(shifted, _mm256_set1_epi32(mask));
    };
    const __m256i numbers =
        _mm256_or_si256(_mm256_or_si256(part(x, 0x3f), part(_mm256_slli_epi32(x, 2), 0x3f00)),
                        _mm256_or_si256(part(_mm256_slli_epi32(x, 4), 0x3f0000),
                                        part(_mm256_slli_epi32(x, 6), 0x3f000000)));
    auto* const out = reinterpret_cast<__m256i*>(into + i);
    _mm256_storeu_si256(out, _mm256_max_epu8(_mm256_loadu_si256(out), numbers));
  }
}

constexpr ByteKernels kAvx2 = {"AVX2", count_ones_avx2, raise_to_sixes_avx2};

// --- AVX-512 -------------------------------------------------------------------------------------

#define LK_AVX512 "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vpopcntdq"

// The four quarters of the bytes side by side, from a cache line's beginning on, so that four
// streams are read from memory at once.
[[gnu::target(LK_AVX512)]] uint64_t count_ones_avx512(const char* bytes, size_t size) {
  constexpr size_t kStep = sizeof(__m512i);
  constexpr size_t kQuarters = 4;
  const size_t head = std::min(size, -reinterpret_cast<uintptr_t>(bytes) % kStep);
  const size_t quarter = (size - head) / (kQuarters * kStep) * kStep;
  const char* const rest = bytes + head + kQuarters * quarter;
  uint64_t total = count_ones(bytes, head);
  __m512i sums[kQuarters] = {};
  for (size_t at = head; at < head + quarter; at += kStep) {
    for (size_t i = 0; i < kQuarters; ++i) {
      const __m512i x = _mm512_loadu_si512(bytes + i * quarter + at);
      sums[i] = _mm512_add_epi64(sums[i], _mm512_popcnt_epi64(x));
    }
  }
  uint64_t lanes[8];
  _mm512_storeu_si512(lanes, _mm512_add_epi64(_mm512_add_epi64(sums[0], sums[1]),
                                              _mm512_add_epi64(sums[2], sums[3])));
  for (const uint64_t lane : lanes) total += lane;
  return total + count_ones(rest, static_cast<size_t>(bytes + size - rest));
}

// 64 numbers in 48 bytes at a time: six bytes are moved to the place of each word, and eight bits
// are taken from it at each multiple of six.
[[gnu::target(LK_AVX512)]] void raise_to_sixes_avx512(uint8_t* into, const char* packed,
                                                      size_t count) {
  LK_ASSERT(count % kSixesAtOnce == 0);
  constexpr __mmask64 kPacked = (uint64_t{1} << 48) - 1;
  alignas(64) uint8_t place[64];
  for (size_t i = 0; i < sizeof(place); ++i)
    place[i] = static_cast<uint8_t>(i % 8 < 6 ? i / 8 * 6 + i % 8 : 0);
  const __m512i places = _mm512_load_si512(place);
  const __m512i shifts = _mm512_set1_epi64(0x2a241e18120c0600);
  const __m512i mask = _mm512_set1_epi8(0x3f);
  for (size_t i = 0; i < count; i += 64, packed += 48) {
    const __m512i words = _mm512_permutexvar_epi8(places, _mm512_maskz_loadu_epi8(kPacked, packed));
    const __m512i numbers = _mm512_and_si512(_mm512_multishift_epi64_epi8(shifts, words), mask);
    _mm512_storeu_si512(into + i, _mm512_max_epu8(_mm512_loadu_si512(into + i), numbers));
  }
}

constexpr ByteKernels kAvx512 = {"AVX-512", count_ones_avx512, raise_to_sixes_avx512};

#endif

}  // namespace

std::vector<ByteKernels> runnable_byte_kernels() {
  std::vector<ByteKernels> runnable = {kBaseline};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) runnable.push_back(kAvx2);
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vpopcntdq"))
    runnable.push_back(kAvx512);
#endif
  return runnable;
}

const ByteKernels& byte_kernels() {
  static const ByteKernels fastest = runnable_byte_kernels().back();
  return fastest;
}

void pack_sixes(const uint8_t* numbers, char* packed, size_t count) {
  LK_ASSERT(count % kSixesAtOnce == 0);
  for (size_t i = 0; i < count; i += 8, packed += 6) {
    uint64_t x;
    std::memcpy(&x, numbers + i, sizeof(x));
    x = (x & 0x003f003f003f003f) | (x & 0x3f003f003f003f00) >> 2;
    x = (x & 0x00000fff00000fff) | (x & 0x0fff00000fff0000) >> 4;
    x = (x & 0x0000000000ffffff) | (x & 0x00ffffff00000000) >> 8;
    std::memcpy(packed, &x, 6);
  }
}

}  // namespace latchkey::base
