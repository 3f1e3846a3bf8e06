#include "base/bits.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/random.h"
#include "unit/catch.h"

namespace latchkey::base {

namespace {

bool bit_at(std::string_view bytes, uint64_t index) {
  if (index / 8 >= bytes.size()) return false;
  return ((static_cast<uint8_t>(bytes[index / 8]) >> (7 - index % 8)) & 1) != 0;
}

// Bytes of one kind, with few others among them.
std::string mostly(Random& random, size_t size, char usual) {
  std::string bytes(size, usual);
  for (uint64_t others = random.below(4); others > 0 && size > 0; --others)
    bytes[random.below(size)] = static_cast<char>(random.below(256));
  return bytes;
}

std::string some_bytes(Random& random, size_t size) {
  const uint64_t kind = random.below(3);
  if (kind < 2) return mostly(random, size, kind == 0 ? '\0' : '\xff');
  std::string bytes;
  for (size_t i = 0; i < size; ++i) bytes += static_cast<char>(random.below(256));
  return bytes;
}

// What a bit of the result is, given those of the sources.
bool expected_bit(BitOperation operation, const std::vector<bool>& bits) {
  const auto ones = std::count(bits.begin(), bits.end(), true);
  const auto others = ones - (bits[0] ? 1 : 0);
  switch (operation) {
    case BitOperation::kAnd:
      return ones == static_cast<std::ptrdiff_t>(bits.size());
    case BitOperation::kOr:
      return ones > 0;
    case BitOperation::kXor:
      return ones % 2 == 1;
    case BitOperation::kNot:
      return !bits[0];
    case BitOperation::kDiff:
      return bits[0] && others == 0;
    case BitOperation::kDiff1:
      return !bits[0] && others > 0;
    case BitOperation::kAndOr:
      return bits[0] && others > 0;
    case BitOperation::kOne:
      return ones == 1;
  }
  return false;
}

}  // namespace

TEST_CASE("Ones are counted as one would by hand", "[bits]") {
  Random random(1);
  for (int round = 0; round < 400; ++round) {
    const std::string bytes = some_bytes(random, random.below(700));
    const uint64_t from = random.below(bytes.size() * 8 + 1);
    const uint64_t to = from + random.below(bytes.size() * 8 - from + 1);
    uint64_t ones = 0;
    for (uint64_t i = from; i < to; ++i) ones += bit_at(bytes, i) ? 1 : 0;
    REQUIRE(count_ones(bytes, from, to) == ones);
  }
}

TEST_CASE("Many ones do not overflow what they are counted in", "[bits]") {
  const std::string bytes(3'000'017, '\xff');
  CHECK(count_ones(bytes, 0, bytes.size() * 8) == bytes.size() * 8);
  CHECK(count_ones(bytes, 3, bytes.size() * 8 - 2) == bytes.size() * 8 - 5);
}

TEST_CASE("The first bit of a kind is found wherever the range begins and ends", "[bits]") {
  Random random(2);
  for (int round = 0; round < 2000; ++round) {
    const std::string bytes = some_bytes(random, random.below(300));
    const uint64_t from = random.below(bytes.size() * 8 + 1);
    const uint64_t to = from + random.below(bytes.size() * 8 - from + 1);
    const bool bit = random.below(2) == 1;
    uint64_t expected = from;
    while (expected < to && bit_at(bytes, expected) != bit) ++expected;
    REQUIRE(find_bit(bytes, bit, from, to).value_or(to) == expected);
  }
}

TEST_CASE("A single bit that differs is found at each place of a long row", "[bits]") {
  constexpr uint64_t kBits = 8 * 200;
  for (const bool bit : {true, false}) {
    std::string bytes(kBits / 8, bit ? '\0' : '\xff');
    CHECK(find_bit(bytes, bit, 0, kBits) == std::nullopt);
    for (uint64_t place = 0; place < kBits; ++place) {
      bytes[place / 8] ^= static_cast<char>(0x80 >> (place % 8));
      REQUIRE(find_bit(bytes, bit, 0, kBits) == place);
      bytes[place / 8] ^= static_cast<char>(0x80 >> (place % 8));
    }
  }
}

TEST_CASE("A single bit is found near and far, in a row longer than is searched at a time",
          "[bits]") {
  Random random(5);
  std::string bytes(400'000, '\0');
  for (int round = 0; round < 300; ++round) {
    const uint64_t from = random.below(bytes.size() * 8);
    const uint64_t place = from + random.below(bytes.size() * 8 - from);
    bytes[place / 8] = static_cast<char>(0x80 >> (place % 8));
    REQUIRE(find_bit(bytes, true, from, bytes.size() * 8) == place);
    bytes[place / 8] = 0;
  }
  CHECK(find_bit(bytes, true, 77, bytes.size() * 8) == std::nullopt);
}

TEST_CASE("Rows of different lengths are combined bit by bit", "[bits]") {
  Random random(3);
  for (int round = 0; round < 400; ++round) {
    const auto operation = static_cast<BitOperation>(random.below(8));
    const size_t count = operation == BitOperation::kNot ? 1 : 1 + random.below(5);
    // Some longer than the pieces in which they are worked at.
    const size_t longest = random.below(10) == 0 ? 9000 : 100;
    std::vector<std::string> rows;
    size_t size = 0;
    for (size_t i = 0; i < count; ++i) {
      rows.push_back(some_bytes(random, random.below(longest)));
      size = std::max(size, rows.back().size());
    }
    const std::vector<std::string_view> sources(rows.begin(), rows.end());
    std::string result(size, 'r');
    combine_bits(operation, sources, result);
    for (uint64_t i = 0; i < size * 8; ++i) {
      std::vector<bool> bits;
      for (const std::string& row : rows) bits.push_back(bit_at(row, i));
      if (bit_at(result, i) != expected_bit(operation, bits)) FAIL("bit " << i);
    }
  }
}

TEST_CASE("A number is read where it was written, and nothing beside it changes", "[bits]") {
  Random random(4);
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = some_bytes(random, 20);
    const auto count = static_cast<unsigned>(1 + random.below(64));
    const uint64_t offset = random.below(bytes.size() * 8 - count + 1);
    const uint64_t value = random.next();
    const std::string before = bytes;
    write_bits(bytes, offset, count, value);
    REQUIRE(read_bits(bytes, offset, count) == (count == 64 ? value : value % (1ULL << count)));
    for (uint64_t i = 0; i < bytes.size() * 8; ++i) {
      if (i < offset || i >= offset + count) REQUIRE(bit_at(bytes, i) == bit_at(before, i));
    }
  }
}

TEST_CASE("Bits behind the end are zeros to who reads a number", "[bits]") {
  CHECK(read_bits("\xff", 4, 8) == 0xf0);
  CHECK(read_bits("\xff", 8, 64) == 0);
  CHECK(read_bits("", 1000, 5) == 0);
}

}  // namespace latchkey::base
