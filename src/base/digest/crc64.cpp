#include "base/digest/crc64.h"

#include <array>
#include <bit>
#include <cstring>

namespace latchkey::base {

namespace {

// The polynomial with its bits in reverse.
constexpr uint64_t kReflectedPolynomial = 0x95AC9329AC4BC9B5;

constexpr size_t kSlices = 8;
using Table = std::array<std::array<uint64_t, 256>, kSlices>;

// tables[0][b] is the checksum of byte b; tables[n][b] that of b followed by n zero bytes.
constexpr Table make_tables() {
  Table tables{};
  for (uint64_t byte = 0; byte < 256; ++byte) {
    uint64_t crc = byte;
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? kReflectedPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (size_t slice = 1; slice < kSlices; ++slice) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint64_t before = tables[slice - 1][byte];
      tables[slice][byte] = tables[0][before & 0xFF] ^ (before >> 8);
    }
  }
  return tables;
}

constexpr Table kTables = make_tables();

}  // namespace

uint64_t crc64(uint64_t crc, std::string_view bytes) {
  static_assert(std::endian::native == std::endian::little,
                "words are folded in the order of their bytes");
  const char* cursor = bytes.data();
  size_t left = bytes.size();
  for (; left >= sizeof crc; left -= sizeof crc, cursor += sizeof crc) {
    uint64_t word;
    std::memcpy(&word, cursor, sizeof word);
    word ^= crc;
    crc = 0;
    for (size_t i = 0; i < kSlices; ++i) crc ^= kTables[kSlices - 1 - i][(word >> (8 * i)) & 0xFF];
  }
  for (; left > 0; --left, ++cursor) {
    crc = kTables[0][(crc ^ static_cast<unsigned char>(*cursor)) & 0xFF] ^ (crc >> 8);
  }
  return crc;
}

}  // namespace latchkey::base
