#include "base/byte_kernels.h"

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "base/random.h"
#include "unit/catch.h"

namespace latchkey::base {

namespace {

std::string random_bytes(Random& random, size_t size) {
  std::string bytes;
  for (size_t i = 0; i < size; ++i) bytes += static_cast<char>(random.below(256));
  return bytes;
}

uint64_t ones_one_by_one(std::string_view bytes) {
  uint64_t ones = 0;
  for (const char byte : bytes)
    ones += static_cast<unsigned>(std::popcount(static_cast<uint8_t>(byte)));
  return ones;
}

// Number `index`, bit by bit.
uint8_t six_at(std::string_view packed, size_t index) {
  unsigned number = 0;
  for (size_t bit = 0; bit < 6; ++bit) {
    const size_t at = index * 6 + bit;
    number |= (static_cast<uint8_t>(packed[at / 8]) >> at % 8 & 1U) << bit;
  }
  return static_cast<uint8_t>(number);
}

}  // namespace

TEST_CASE("All forms count the same ones, whatever the size and the address", "[bytekernels]") {
  Random random(1);
  std::vector<size_t> sizes = {0,   1,   15,  16,  17,  31,   32,     33,    255,
                               256, 257, 511, 512, 513, 8191, 32'768, 70'001};
  for (int i = 0; i < 100; ++i) sizes.push_back(random.below(3000));
  for (const ByteKernels& kernels : runnable_byte_kernels()) {
    INFO(kernels.name);
    for (const size_t size : sizes) {
      const size_t offset = random.below(64);
      // Nothing around the bytes, so that sanitizers see what is read beyond.
      const std::vector<char> full(offset + size, '\xff');
      REQUIRE(kernels.count_ones(full.data() + offset, size) == 8 * size);
      const std::string bytes = random_bytes(random, offset + size);
      REQUIRE(kernels.count_ones(bytes.data() + offset, size) ==
              ones_one_by_one(std::string_view(bytes).substr(offset)));
    }
  }
}

TEST_CASE("All forms raise bytes to the same packed numbers", "[bytekernels]") {
  Random random(2);
  for (const ByteKernels& kernels : runnable_byte_kernels()) {
    INFO(kernels.name);
    for (const size_t count : {size_t{0}, kSixesAtOnce, 3 * kSixesAtOnce, size_t{16'384}}) {
      for (int round = 0; round < 10; ++round) {
        const size_t offset = random.below(64);
        std::vector<std::vector<char>> packed;
        std::vector<const char*> places;
        for (uint64_t sources = random.below(5); sources > 0; --sources) {
          const std::string bytes = random_bytes(random, offset + count / 4 * 3);
          packed.emplace_back(bytes.begin(), bytes.end());
          places.push_back(packed.back().data() + offset);
        }
        std::vector<uint8_t> raised(offset + count);
        for (uint8_t& byte : raised) byte = static_cast<uint8_t>(random.below(round < 5 ? 1 : 256));
        std::vector<uint8_t> expected = raised;
        for (size_t i = 0; i < count; ++i) {
          uint8_t& byte = expected[offset + i];
          for (const char* place : places)
            byte = std::max(byte, six_at(std::string_view(place, count / 4 * 3), i));
        }
        kernels.raise_to_sixes(raised.data() + offset, places, count);
        REQUIRE(raised == expected);
      }
    }
  }
}

TEST_CASE("Numbers that are packed are found again", "[bytekernels]") {
  Random random(3);
  for (const size_t count : {size_t{0}, kSixesAtOnce, 5 * kSixesAtOnce}) {
    std::vector<uint8_t> numbers(count);
    for (uint8_t& number : numbers) number = static_cast<uint8_t>(random.below(64));
    std::string packed(1 + count / 4 * 3, '\x55');
    pack_sixes(numbers.data(), packed.data() + 1, count);
    CHECK(packed[0] == '\x55');
    for (size_t i = 0; i < count; ++i)
      REQUIRE(six_at(std::string_view(packed).substr(1), i) == numbers[i]);
  }
}

}  // namespace latchkey::base
