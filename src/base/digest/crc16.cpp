#include "base/digest/crc16.h"

#include <array>

namespace latchkey::base {

namespace {

constexpr uint32_t kPolynomial = 0x1021;
constexpr size_t kByteValues = 256;

constexpr std::array<uint16_t, kByteValues> make_table() {
  std::array<uint16_t, kByteValues> table{};
  for (size_t byte = 0; byte < kByteValues; ++byte) {
    auto remainder = static_cast<uint32_t>(byte << 8);
    for (int bit = 0; bit < 8; ++bit) {
      const bool carry = (remainder & 0x8000) != 0;
      remainder = (remainder << 1) ^ (carry ? kPolynomial : 0);
    }
    table[byte] = static_cast<uint16_t>(remainder);
  }
  return table;
}

constexpr auto kTable = make_table();

}  // namespace

uint16_t crc16(std::string_view bytes) {
  uint32_t crc = 0;
  for (const char byte : bytes) {
    const uint32_t index = ((crc >> 8) ^ static_cast<unsigned char>(byte)) & 0xFF;
    crc = ((crc << 8) ^ kTable[index]) & 0xFFFF;
  }
  return static_cast<uint16_t>(crc);
}

}  // namespace latchkey::base
