// How a vector set keeps its vectors: as floats, as signed bytes or as bits.
//
// A vector is first scaled to length one; its length is kept beside it, so that it can be given
// back. Then
//
//     kFloat   four bytes for each component
//     kByte    one: component * 127 / range, rounded, where `range` is the largest component's size
//     kBit     one bit, set for components above zero, in 64-bit words
//
// These are also the forms in RDB files, and the numbers of the enumeration stand there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "store/vector/kernels.h"

namespace latchkey::store {

enum class Quantization : uint8_t { kFloat = 0, kByte = 1, kBit = 2 };

// The name that VINFO and VEMB RAW give: "f32", "int8", "bin".
std::string_view quantization_name(Quantization quantization);

// Bytes of one vector.
size_t quantized_size(Quantization quantization, size_t dimensions);

// A vector as it is kept; the bytes are somebody else's.
struct QuantizedVector {
  const char* bytes = nullptr;
  float length = 0;  // of the vector before it was scaled; 1 for one of zeros
  float range = 0;   // of kByte
};

// A vector in that form with bytes of its own.
class VectorBuffer {
 public:
  // O(dimensions). Components are finite, unless they come from a vector of a file that is not: of
  // these, kByte keeps NaN as 0.
  VectorBuffer(Quantization quantization, std::span<const float> components);

  const QuantizedVector& view() const { return view_; }
  VectorBuffer(const VectorBuffer&) = delete;
  VectorBuffer& operator=(const VectorBuffer&) = delete;

 private:
  std::vector<char> bytes_;
  QuantizedVector view_;
};

// The components with their original length (those of kBit are 1 and -1).
std::vector<float> restored(Quantization quantization, const QuantizedVector& vector,
                            size_t dimensions);

// The cosine distance of two vectors, 0 (the same direction) to 2 (opposite); for kBit twice the
// share of bits that differ. 2 for vectors with components that are no numbers.
class VectorDistance {
 public:
  VectorDistance(Quantization quantization, size_t dimensions);

  Quantization quantization() const { return quantization_; }
  size_t dimensions() const { return dimensions_; }
  size_t vector_size() const { return quantized_size(quantization_, dimensions_); }

  float operator()(const QuantizedVector& a, const QuantizedVector& b) const {
    const float distance = unclamped(a, b);
    // NaN is neither.
    if (!(distance < 2)) return 2;
    return distance > 0 ? distance : 0;
  }

 private:
  float unclamped(const QuantizedVector& a, const QuantizedVector& b) const;

  VectorKernels kernels_;
  Quantization quantization_;
  size_t dimensions_;
};

}  // namespace latchkey::store
