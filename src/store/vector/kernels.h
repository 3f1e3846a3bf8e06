// The inner loops of vector search: dot products of floats and of signed bytes, and the number of
// bits in which two bitmaps differ.
//
// Each has a form for the instructions of newer machines (AVX2, AVX-512) and a portable one, which
// compilers vectorize for the baseline (SSE4.2, NEON). kernels() looks at the processor once for
// each caller that asks; callers keep the result. All read from unaligned memory.
//
// Float sums are added up in several lanes, so their last bits depend on the form. Sums of bytes
// and of bits are exact.
#pragma once

#include <cstddef>
#include <cstdint>

namespace latchkey::store {

struct VectorKernels {
  float (*dot_floats)(const float* a, const float* b, size_t count);
  int64_t (*dot_bytes)(const int8_t* a, const int8_t* b, size_t count);
  // `words`: 64-bit words of each bitmap.
  uint64_t (*differing_bits)(const uint64_t* a, const uint64_t* b, size_t words);
};

// The fastest kernels that this machine can run.
VectorKernels fastest_kernels();
// The portable ones, to compare with.
VectorKernels portable_kernels();

}  // namespace latchkey::store
