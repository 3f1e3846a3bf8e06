// Inner loops over many bytes, in forms for several processors.
//
// Every form gives the same result. The baseline form is 128-bit vector code that the compiler
// translates for any machine (SSE4.2, NEON); further ones use AVX2 and AVX-512 where the processor
// has them, which is looked up once. All pointers may be unaligned, and nothing is read or written
// beyond the sizes given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace latchkey::base {

// Numbers of 6 bits, packed from the lowest bit of the first byte on: four in three bytes.
// Functions on them take a multiple of kSixesAtOnce.
inline constexpr size_t kSixesAtOnce = 64;

struct ByteKernels {
  std::string_view name;  // of the instructions it needs beyond the baseline
  // The number of ones in `size` bytes.
  uint64_t (*count_ones)(const char* bytes, size_t size);
  // into[i] = max(into[i], number i of each of `packed`), for `count` numbers.
  void (*raise_to_sixes)(uint8_t* into, std::span<const char* const> packed, size_t count);
};

// The fastest form that this machine can run.
const ByteKernels& byte_kernels();
// All that it can run, the baseline first.
std::vector<ByteKernels> runnable_byte_kernels();

// Packs `count` numbers, each less than 64, into count / 4 * 3 bytes.
void pack_sixes(const uint8_t* numbers, char* packed, size_t count);

}  // namespace latchkey::base
