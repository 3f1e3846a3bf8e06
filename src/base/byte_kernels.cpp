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
using Words = uint16_t __attribute__((vector_size(16)));
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

// Four numbers a, b, c and d are three bytes. Their first two and last two bytes are moved into
// words of their own, and a word is shifted so that b or d has its highest bits, or a or c:
//
//     bits   15         10 9            4 3        0
//     words  | c's lowest 4 |     b      |    a     |   the first: shifted by 4, and by 6 more
//            |      d       |     c      | b        |   the second: as it is, and shifted by 6
//
// So the highest word has the highest b, whatever stands below it.

// The highest of 16 numbers each.
struct Highest {
  Words odd{};  // b and d
  Words even{};

  void raise(Bytes first_and_last_two) {
    constexpr Words kFactors = {16, 1, 16, 1, 16, 1, 16, 1};
    const Words x = reinterpret_cast<Words>(first_and_last_two) * kFactors;
    const Words shifted = x << 6;
    odd = odd > x ? odd : x;
    even = even > shifted ? even : shifted;
  }
  void raise_bytes(uint8_t* into) const {
    const auto numbers = reinterpret_cast<Bytes>((odd >> 2 & 0x3f00) | even >> 10);
    const auto mine = load<Bytes>(into);
    const Bytes highest = mine > numbers ? mine : numbers;
    std::memcpy(into, &highest, sizeof(highest));
  }
};

// 32 numbers in 24 bytes at a time, from two loads that overlap.
void raise_to_sixes(uint8_t* into, std::span<const char* const> packed, size_t count) {
  LK_ASSERT(count % kSixesAtOnce == 0);
  for (size_t i = 0; i < count; i += 32) {
    Highest first;
    Highest second;
    for (const char* each : packed) {
      const auto x = load<Bytes>(each + i / 4 * 3);
      const auto y = load<Bytes>(each + i / 4 * 3 + 8);
      first.raise(__builtin_shufflevector(x, x, 0, 1, 1, 2, 3, 4, 4, 5, 6, 7, 7, 8, 9, 10, 10, 11));
      second.raise(
          __builtin_shufflevector(y, y, 4, 5, 5, 6, 7, 8, 8, 9, 10, 11, 11, 12, 13, 14, 14, 15));
    }
    first.raise_bytes(into + i);
    second.raise_bytes(into + i + 16);
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

// As the baseline form, both halves at once, and 64 numbers at a time.
[[gnu::target("avx2")]] void raise_to_sixes_avx2(uint8_t* into, std::span<const char* const> packed,
                                                 size_t count) {
  LK_ASSERT(count % kSixesAtOnce == 0);
  const __m256i places = _mm256_setr_epi8(0, 1, 1, 2, 3, 4, 4, 5, 6, 7, 7, 8, 9, 10, 10, 11,  //
                                          4, 5, 5, 6, 7, 8, 8, 9, 10, 11, 11, 12, 13, 14, 14, 15);
  const __m256i factors = _mm256_set1_epi32(1 << 16 | 16);
  constexpr size_t kParts = 2;
  for (size_t i = 0; i < count; i += kParts * 32) {
    __m256i odd[kParts] = {};
    __m256i even[kParts] = {};
    for (const char* each : packed) {
      for (size_t part = 0; part < kParts; ++part) {
        const char* const bytes = each + i / 4 * 3 + part * 24;
        const __m256i x =
            _mm256_shuffle_epi8(_mm256_loadu2_m128i(reinterpret_cast<const __m128i*>(bytes + 8),
                                                    reinterpret_cast<const __m128i*>(bytes)),
                                places);
        const __m256i shifted = _mm256_mullo_epi16(x, factors);
        odd[part] = _mm256_max_epu16(odd[part], shifted);
        even[part] = _mm256_max_epu16(even[part], _mm256_slli_epi16(shifted, 6));
      }
    }
    for (size_t part = 0; part < kParts; ++part) {
      const __m256i numbers = _mm256_or_si256(
          _mm256_and_si256(_mm256_srli_epi16(odd[part], 2), _mm256_set1_epi16(0x3f00)),
          _mm256_srli_epi16(even[part], 10));
      auto* const out = reinterpret_cast<__m256i*>(into + i + part * 32);
      _mm256_storeu_si256(out, _mm256_max_epu8(_mm256_loadu_si256(out), numbers));
    }
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
[[gnu::target(LK_AVX512)]] void raise_to_sixes_avx512(uint8_t* into,
                                                      std::span<const char* const> packed,
                                                      size_t count) {
  LK_ASSERT(count % kSixesAtOnce == 0);
  constexpr __mmask64 kPacked = (uint64_t{1} << 48) - 1;
  alignas(64) uint8_t place[64];
  for (size_t i = 0; i < sizeof(place); ++i)
    place[i] = static_cast<uint8_t>(i % 8 < 6 ? i / 8 * 6 + i % 8 : 0);
  const __m512i places = _mm512_load_si512(place);
  const __m512i shifts = _mm512_set1_epi64(0x2a241e18120c0600);
  const __m512i mask = _mm512_set1_epi8(0x3f);
  for (size_t i = 0; i < count; i += 64) {
    __m512i highest = _mm512_loadu_si512(into + i);
    for (const char* each : packed) {
      const __m512i bytes = _mm512_maskz_loadu_epi8(kPacked, each + i / 4 * 3);
      const __m512i words = _mm512_permutexvar_epi8(places, bytes);
      const __m512i numbers = _mm512_and_si512(_mm512_multishift_epi64_epi8(shifts, words), mask);
      highest = _mm512_max_epu8(highest, numbers);
    }
    _mm512_storeu_si512(into + i, highest);
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
  for (size_t i = 0; i < count; i += 16, packed += 12) {
    const auto x = load<Words>(numbers + i);
    const auto pairs = reinterpret_cast<Quads>((x & 0x3f) | (x >> 2 & 0xfc0));
    const auto fours = reinterpret_cast<Bytes>((pairs & 0xfff) | (pairs >> 4 & 0xfff000));
    const Bytes together = __builtin_shufflevector(fours, fours, 0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13,
                                                   14, -1, -1, -1, -1);
    std::memcpy(packed, &together, 12);
  }
}

}  // namespace latchkey::base
