// Encodes requests as RESP arrays of bulk strings, "*2\r\n$3\r\nGET\r\n$1\r\na\r\n": what clients
// send, and what the replication stream, the append-only file and the connections between nodes
// consist of. Arrays and bulk strings of replies look the same.
//
// The put functions write to memory in which the caller has made room: they check nothing, allocate
// nothing and return the end of what they have written. The append functions write to a string.
// Costs a copy of the words; for a size, the count of its digits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "base/text/number.h"

namespace latchkey::resp {

// --- Sizes, in bytes -----------------------------------------------------------------------------

// The most that put_header() writes: the type, the digits and the line break.
inline constexpr size_t kMaxHeader = 1 + base::kMaxInt64Text + 2;

// The most that put_bulk() writes for a string of `size` bytes. Cheaper than bulk_bytes().
constexpr size_t bulk_room(size_t size) {
  return kMaxHeader + size + 2;
}

// What put_header() writes for this value.
constexpr size_t header_bytes(uint64_t value) {
  return 1 + base::count_digits(value) + 2;
}

// What put_bulk() writes for a string of `size` bytes.
constexpr size_t bulk_bytes(size_t size) {
  return header_bytes(size) + size + 2;
}

// What append_request() appends.
constexpr size_t request_bytes(std::span<const std::string_view> words) {
  size_t bytes = header_bytes(words.size());
  for (const std::string_view word : words) bytes += bulk_bytes(word.size());
  return bytes;
}

// --- To memory -----------------------------------------------------------------------------------

// "*3\r\n" or "$11\r\n": `type` is the first byte. REQUIRES: room for kMaxHeader, or for
// header_bytes(value).
inline char* put_header(char* to, char type, uint64_t value) {
  *to++ = type;
  if (value < 10) {
    *to++ = static_cast<char>('0' + value);
  } else if (value < 100) {
    *to++ = static_cast<char>('0' + value / 10);
    *to++ = static_cast<char>('0' + value % 10);
  } else {
    to += base::format_uint64(value, to);
  }
  *to++ = '\r';
  *to++ = '\n';
  return to;
}

// "$5\r\nhello\r\n". REQUIRES: room for bulk_room() or bulk_bytes() of its size.
inline char* put_bulk(char* to, std::string_view bytes) {
  to = put_header(to, '$', bytes.size());
  // An empty view may have no address.
  if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
  to += bytes.size();
  *to++ = '\r';
  *to++ = '\n';
  return to;
}

// --- To a string ---------------------------------------------------------------------------------

void append_request(std::string* out, std::span<const std::string_view> words);
inline void append_request(std::string* out, std::initializer_list<std::string_view> words) {
  append_request(out, std::span(words.begin(), words.size()));
}

// The request alone.
std::string encode_request(std::span<const std::string_view> words);
inline std::string encode_request(std::initializer_list<std::string_view> words) {
  return encode_request(std::span(words.begin(), words.size()));
}

}  // namespace latchkey::resp
