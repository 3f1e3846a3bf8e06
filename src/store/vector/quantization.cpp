#include "store/vector/quantization.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace latchkey::store {

namespace {

constexpr float kMaxByte = 127;
constexpr size_t kWordBits = 64;

size_t words_of(size_t dimensions) {
  return (dimensions + kWordBits - 1) / kWordBits;
}

// What is no number becomes 0.
void write_bytes(std::span<const float> components, float range, char* out) {
  if (range == 0) return;
  const float scale = kMaxByte / range;
  for (size_t i = 0; i < components.size(); ++i) {
    const float rounded = std::round(components[i] * scale);
    if (!std::isnan(rounded))
      out[i] = static_cast<char>(static_cast<int8_t>(std::clamp(rounded, -kMaxByte, kMaxByte)));
  }
}

void write_bits(std::span<const float> components, char* out) {
  for (size_t i = 0; i < components.size(); ++i) {
    if (components[i] > 0) out[i / 8] = static_cast<char>(out[i / 8] | 1 << (i % 8));
  }
}

}  // namespace

std::string_view quantization_name(Quantization quantization) {
  switch (quantization) {
    case Quantization::kFloat:
      return "f32";
    case Quantization::kByte:
      return "int8";
    case Quantization::kBit:
      return "bin";
  }
  return "unknown";
}

size_t quantized_size(Quantization quantization, size_t dimensions) {
  switch (quantization) {
    case Quantization::kFloat:
      return dimensions * sizeof(float);
    case Quantization::kByte:
      return dimensions;
    case Quantization::kBit:
      return words_of(dimensions) * sizeof(uint64_t);
  }
  return 0;
}

VectorBuffer::VectorBuffer(Quantization quantization, std::span<const float> components)
    : bytes_(quantized_size(quantization, components.size())) {
  double square = 0;
  for (const float component : components) square += double{component} * component;
  constexpr double kLongest = std::numeric_limits<float>::max();
  view_.length = square == 0 ? 1 : static_cast<float>(std::min(std::sqrt(square), kLongest));
  std::vector<float> scaled(components.begin(), components.end());
  for (float& component : scaled) component /= view_.length;
  for (const float component : scaled) view_.range = std::max(view_.range, std::abs(component));
  switch (quantization) {
    case Quantization::kFloat:
      std::memcpy(bytes_.data(), scaled.data(), bytes_.size());
      break;
    case Quantization::kByte:
      write_bytes(scaled, view_.range, bytes_.data());
      break;
    case Quantization::kBit:
      write_bits(scaled, bytes_.data());
      break;
  }
  view_.bytes = bytes_.data();
}

std::vector<float> restored(Quantization quantization, const QuantizedVector& vector,
                            size_t dimensions) {
  std::vector<float> components(dimensions);
  switch (quantization) {
    case Quantization::kFloat:
      std::memcpy(components.data(), vector.bytes, dimensions * sizeof(float));
      for (float& component : components) component *= vector.length;
      break;
    case Quantization::kByte:
      for (size_t i = 0; i < dimensions; ++i) {
        const auto byte = static_cast<float>(static_cast<int8_t>(vector.bytes[i]));
        components[i] = byte * vector.range / kMaxByte * vector.length;
      }
      break;
    case Quantization::kBit:
      for (size_t i = 0; i < dimensions; ++i)
        components[i] = (vector.bytes[i / 8] >> (i % 8) & 1) != 0 ? 1.0F : -1.0F;
      break;
  }
  return components;
}

VectorDistance::VectorDistance(Quantization quantization, size_t dimensions)
    : kernels_(fastest_kernels()), quantization_(quantization), dimensions_(dimensions) {}

float VectorDistance::unclamped(const QuantizedVector& a, const QuantizedVector& b) const {
  switch (quantization_) {
    case Quantization::kFloat:
      return 1 - kernels_.dot_floats(reinterpret_cast<const float*>(a.bytes),
                                     reinterpret_cast<const float*>(b.bytes), dimensions_);
    case Quantization::kByte: {
      const int64_t dot = kernels_.dot_bytes(reinterpret_cast<const int8_t*>(a.bytes),
                                             reinterpret_cast<const int8_t*>(b.bytes), dimensions_);
      return 1 - static_cast<float>(dot) * (a.range / kMaxByte * (b.range / kMaxByte));
    }
    case Quantization::kBit: {
      const uint64_t bits = kernels_.differing_bits(reinterpret_cast<const uint64_t*>(a.bytes),
                                                    reinterpret_cast<const uint64_t*>(b.bytes),
                                                    words_of(dimensions_));
      return static_cast<float>(bits) * 2 / static_cast<float>(dimensions_);
    }
  }
  return 2;
}

}  // namespace latchkey::store
