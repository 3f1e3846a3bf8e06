#include "store/vector/kernels.h"

#include <cmath>
#include <vector>

#include "base/random.h"
#include "store/vector/quantization.h"
#include "unit/catch.h"

namespace latchkey::store {

namespace {

// Bytes from -127 to 127, one in front so that nothing is aligned.
std::vector<int8_t> random_bytes(size_t count, base::Random& random) {
  std::vector<int8_t> bytes(count + 1);
  for (int8_t& byte : bytes)
    byte = static_cast<int8_t>(static_cast<int64_t>(random.below(255)) - 127);
  return bytes;
}

std::vector<float> random_floats(size_t count, base::Random& random) {
  std::vector<float> floats(count);
  for (float& one : floats) one = static_cast<float>(random.unit() * 2 - 1);
  return floats;
}

}  // namespace

TEST_CASE("All kernels give the products that a plain loop gives", "[vector]") {
  base::Random random(1);
  for (const VectorKernels& kernels : {portable_kernels(), fastest_kernels()}) {
    for (size_t size = 1; size < 200; ++size) {
      INFO(size);
      const std::vector<int8_t> a = random_bytes(size, random);
      const std::vector<int8_t> b = random_bytes(size, random);
      int64_t bytes = 0;
      for (size_t i = 1; i <= size; ++i) bytes += a[i] * b[i];
      REQUIRE(kernels.dot_bytes(a.data() + 1, b.data() + 1, size) == bytes);

      const std::vector<float> c = random_floats(size, random);
      const std::vector<float> d = random_floats(size, random);
      double floats = 0;
      for (size_t i = 0; i < size; ++i) floats += double{c[i]} * d[i];
      REQUIRE(kernels.dot_floats(c.data(), d.data(), size) ==
              Catch::Approx(floats).epsilon(1e-4).margin(1e-4));

      std::vector<uint64_t> e(size);
      std::vector<uint64_t> f(size);
      uint64_t bits = 0;
      for (size_t i = 0; i < size; ++i) {
        e[i] = random.next();
        f[i] = random.next();
        for (uint64_t word = e[i] ^ f[i]; word != 0; word >>= 1) bits += word & 1;
      }
      REQUIRE(kernels.differing_bits(e.data(), f.data(), size) == bits);
    }
  }
}

TEST_CASE("A product of many large bytes does not overflow", "[vector]") {
  constexpr size_t kSize = 300'000;
  const std::vector<int8_t> most(kSize, 127);
  for (const VectorKernels& kernels : {portable_kernels(), fastest_kernels()})
    CHECK(kernels.dot_bytes(most.data(), most.data(), kSize) == int64_t{127} * 127 * kSize);
}

TEST_CASE("Vectors are restored as exactly as their quantization allows", "[vector]") {
  const std::vector<float> components{3, -4, 0.5, 0};
  const VectorBuffer floats(Quantization::kFloat, components);
  CHECK(floats.view().length == Catch::Approx(5.02494));
  for (size_t i = 0; i < components.size(); ++i)
    CHECK(restored(Quantization::kFloat, floats.view(), 4)[i] == Catch::Approx(components[i]));
  const VectorBuffer bytes(Quantization::kByte, components);
  for (size_t i = 0; i < components.size(); ++i)
    CHECK(std::abs(restored(Quantization::kByte, bytes.view(), 4)[i] - components[i]) < 4.0 / 127);
  const VectorBuffer longest(Quantization::kByte, std::vector<float>(4, 3e38F));
  CHECK(restored(Quantization::kByte, longest.view(), 4)[3] == Catch::Approx(3e38F));
  CHECK(VectorBuffer(Quantization::kByte, std::vector<float>(4)).view().length == 1);
  const VectorBuffer bits(Quantization::kBit, components);
  CHECK(restored(Quantization::kBit, bits.view(), 4) == std::vector<float>{1, -1, 1, -1});
}

TEST_CASE("Distances are those of cosines, and never NaN", "[vector]") {
  for (const Quantization quantization : {Quantization::kFloat, Quantization::kByte}) {
    const VectorDistance distance(quantization, 2);
    const auto between = [&](std::vector<float> a, std::vector<float> b) {
      const VectorBuffer first(quantization, a);
      const VectorBuffer second(quantization, b);
      return distance(first.view(), second.view());
    };
    CHECK(between({1, 0}, {5, 0}) == Catch::Approx(0).margin(1e-6));
    CHECK(between({1, 0}, {0, 2}) == Catch::Approx(1));
    CHECK(between({1, 0}, {-3, 0}) == Catch::Approx(2));
    CHECK(between({0, 0}, {1, 0}) == 1);
  }
  const VectorDistance bits(Quantization::kBit, 4);
  const VectorBuffer a(Quantization::kBit, std::vector<float>{1, 1, -1, -1});
  const VectorBuffer b(Quantization::kBit, std::vector<float>{1, -1, -1, -1});
  CHECK(bits(a.view(), b.view()) == 0.5);
  const float nan = std::nanf("");
  const float components[] = {nan, nan};
  const VectorDistance floats(Quantization::kFloat, 2);
  const QuantizedVector broken{reinterpret_cast<const char*>(components), nan, nan};
  CHECK(floats(broken, broken) == 2);
}

}  // namespace latchkey::store
