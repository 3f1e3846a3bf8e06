// Bytes of RDB files as tests spell them out.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/digest/crc64.h"

namespace latchkey::tests {

inline std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return bytes;
}

// So many bytes of a number, little endian.
inline std::string number(uint64_t value, size_t size) {
  std::string bytes;
  for (; size > 0; --size, value >>= 8) bytes += static_cast<char>(value);
  return bytes;
}

// One byte.
inline std::string byte(int value) {
  return std::string(1, static_cast<char>(value));
}

// A string of up to 16,383 bytes, or the length before something else.
inline std::string rdb_length(size_t length) {
  if (length < 64) return byte(static_cast<int>(length));
  return byte(static_cast<int>(0x40 | length >> 8)) + byte(static_cast<int>(length & 255));
}
inline std::string rdb_string(std::string_view text) {
  return rdb_length(text.size()) + std::string(text);
}

// A payload for RESTORE: type and value, to which version and checksum are added.
inline std::string rdb_dump(std::string body, int version = 12) {
  body += number(static_cast<uint64_t>(version), 2);
  return body + number(base::crc64(0, body), 8);
}

// A ziplist of entries that are given with their encoding, each shorter than 254 bytes.
inline std::string ziplist(std::initializer_list<std::string> entries) {
  std::string body;
  size_t last = 10;
  size_t previous = 0;
  for (const std::string& entry : entries) {
    last = 10 + body.size();
    body += byte(static_cast<int>(previous)) + entry;
    previous = entry.size() + 1;
  }
  return number(10 + body.size() + 1, 4) + number(last, 4) + number(entries.size(), 2) + body +
         byte(0xff);
}
// A ziplist's entry of up to 63 bytes.
inline std::string zip_text(std::string_view text) {
  return byte(static_cast<int>(text.size())) + std::string(text);
}

// A whole file of that version around what stands between header and end.
inline std::string rdb_file(std::string_view body, int version = 12) {
  std::string digits = std::to_string(version);
  std::string file = "REDIS" + std::string(4 - digits.size(), '0') + digits;
  file += body;
  file += byte(0xff);
  if (version < 5) return file;
  return file + number(base::crc64(0, file), 8);
}

}  // namespace latchkey::tests
