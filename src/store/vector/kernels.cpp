#include "store/vector/kernels.h"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace latchkey::store {

namespace {

// A sum of products of bytes fits 32 bits in each lane for at least this many elements.
constexpr size_t kBytesPerBlock = size_t{1} << 16;

// Adds up blocks of bytes whose sums fit 32 bits.
template <typename Block>
[[gnu::always_inline]] inline int64_t in_blocks(const int8_t* a, const int8_t* b, size_t count,
                                                Block block) {
  int64_t sum = 0;
  for (size_t at = 0; at < count; at += kBytesPerBlock)
    sum += block(a + at, b + at, std::min(kBytesPerBlock, count - at));
  return sum;
}

uint64_t load_word(const uint64_t* words, size_t index) {
  uint64_t word;
  std::memcpy(&word, reinterpret_cast<const char*>(words) + index * sizeof word, sizeof word);
  return word;
}

float load_float(const float* floats, size_t index) {
  float value;
  std::memcpy(&value, reinterpret_cast<const char*>(floats) + index * sizeof value, sizeof value);
  return value;
}

// --- Portable ------------------------------------------------------------------------------------

float dot_floats(const float* a, const float* b, size_t count) {
  constexpr size_t kLanes = 8;
  float lanes[kLanes] = {};
  size_t at = 0;
  for (; at + kLanes <= count; at += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane)
      lanes[lane] += load_float(a, at + lane) * load_float(b, at + lane);
  }
  float sum = 0;
  for (; at < count; ++at) sum += load_float(a, at) * load_float(b, at);
  for (const float lane : lanes) sum += lane;
  return sum;
}

int64_t dot_bytes(const int8_t* a, const int8_t* b, size_t count) {
  return in_blocks(a, b, count, [](const int8_t* left, const int8_t* right, size_t size) {
    int32_t sum = 0;
    for (size_t at = 0; at < size; ++at) sum += left[at] * right[at];
    return sum;
  });
}

uint64_t differing_bits(const uint64_t* a, const uint64_t* b, size_t words) {
  uint64_t bits = 0;
  for (size_t at = 0; at < words; ++at)
    bits += static_cast<uint64_t>(std::popcount(load_word(a, at) ^ load_word(b, at)));
  return bits;
}

// --- For newer processors ------------------------------------------------------------------------

#if defined(__x86_64__)

[[gnu::target("avx2,fma")]] float sum_of(__m256 lanes) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps(lanes, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

[[gnu::target("avx2,fma")]] float dot_floats_avx2(const float* a, const float* b, size_t count) {
  constexpr size_t kLanes = 8;
  __m256 first = _mm256_setzero_ps();
  __m256 second = _mm256_setzero_ps();
  size_t at = 0;
  for (; at + 2 * kLanes <= count; at += 2 * kLanes) {
    first = _mm256_fmadd_ps(_mm256_loadu_ps(a + at), _mm256_loadu_ps(b + at), first);
    second =
        _mm256_fmadd_ps(_mm256_loadu_ps(a + at + kLanes), _mm256_loadu_ps(b + at + kLanes), second);
  }
  float sum = sum_of(_mm256_add_ps(first, second));
  for (; at < count; ++at) sum += load_float(a, at) * load_float(b, at);
  return sum;
}

[[gnu::target("avx2")]] int32_t sum_of(__m256i lanes) {
  const __m128i four =
      _mm_add_epi32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1));
  const __m128i two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
  return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 1)));
}

[[gnu::target("avx2")]] __m256i widened(const int8_t* bytes) {
  return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes)));
}

[[gnu::target("avx2")]] int32_t dot_block_avx2(const int8_t* a, const int8_t* b, size_t count) {
  constexpr size_t kStep = 16;
  __m256i first = _mm256_setzero_si256();
  __m256i second = _mm256_setzero_si256();
  size_t at = 0;
  for (; at + 2 * kStep <= count; at += 2 * kStep) {
    first = _mm256_add_epi32(first, _mm256_madd_epi16(widened(a + at), widened(b + at)));
    second = _mm256_add_epi32(second,
                              _mm256_madd_epi16(widened(a + at + kStep), widened(b + at + kStep)));
  }
  if (at + kStep <= count) {
    first = _mm256_add_epi32(first, _mm256_madd_epi16(widened(a + at), widened(b + at)));
    at += kStep;
  }
  int32_t sum = sum_of(_mm256_add_epi32(first, second));
  for (; at < count; ++at) sum += a[at] * b[at];
  return sum;
}

int64_t dot_bytes_avx2(const int8_t* a, const int8_t* b, size_t count) {
  return in_blocks(a, b, count, dot_block_avx2);
}

#define LK_AVX512_DOT "avx512f,avx512bw,avx512vl,avx512vnni"

[[gnu::target(LK_AVX512_DOT)]] __m512i widened(const int8_t* bytes, uint32_t mask) {
  return _mm512_cvtepi8_epi16(_mm256_maskz_loadu_epi8(mask, bytes));
}

[[gnu::target(LK_AVX512_DOT)]] int32_t dot_block_avx512(const int8_t* a, const int8_t* b,
                                                        size_t count) {
  constexpr size_t kStep = 32;
  constexpr uint32_t kAll = ~uint32_t{0};
  __m512i sum = _mm512_setzero_si512();
  size_t at = 0;
  for (; at + kStep <= count; at += kStep)
    sum = _mm512_dpwssd_epi32(sum, widened(a + at, kAll), widened(b + at, kAll));
  if (at < count) {
    const uint32_t mask = (uint32_t{1} << (count - at)) - 1;
    sum = _mm512_dpwssd_epi32(sum, widened(a + at, mask), widened(b + at, mask));
  }
  int32_t lanes[16];
  _mm512_storeu_si512(lanes, sum);
  int32_t total = 0;
  for (const int32_t lane : lanes) total += lane;
  return total;
}

int64_t dot_bytes_avx512(const int8_t* a, const int8_t* b, size_t count) {
  return in_blocks(a, b, count, dot_block_avx512);
}

[[gnu::target("popcnt")]] uint64_t differing_bits_popcnt(const uint64_t* a, const uint64_t* b,
                                                         size_t words) {
  uint64_t bits = 0;
  for (size_t at = 0; at < words; ++at)
    bits += static_cast<uint64_t>(__builtin_popcountll(load_word(a, at) ^ load_word(b, at)));
  return bits;
}

#endif

}  // namespace

VectorKernels portable_kernels() {
  return {dot_floats, dot_bytes, differing_bits};
}

VectorKernels fastest_kernels() {
  VectorKernels kernels = portable_kernels();
#if defined(__x86_64__)
  if (__builtin_cpu_supports("popcnt")) kernels.differing_bits = differing_bits_popcnt;
  if (__builtin_cpu_supports("avx2")) {
    kernels.dot_bytes = dot_bytes_avx2;
    if (__builtin_cpu_supports("fma")) kernels.dot_floats = dot_floats_avx2;
  }
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512vnni"))
    kernels.dot_bytes = dot_bytes_avx512;
#endif
  return kernels;
}

}  // namespace latchkey::store
