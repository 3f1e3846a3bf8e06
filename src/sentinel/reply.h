// Replies of other servers, in RESP2
// (https://redis.io/docs/latest/develop/reference/protocol-spec/), the protocol in which Sentinel
// speaks to them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey::sentinel {

struct Reply {
  enum class Type : uint8_t { kStatus, kError, kInteger, kBulk, kNull, kArray };
  Type type = Type::kNull;
  std::string text;  // of a status, an error (without '-') and a bulk string
  int64_t integer = 0;
  std::vector<Reply> elements;

  bool is(Type wanted) const { return type == wanted; }
  // A bulk string or a status.
  bool is_text() const { return type == Type::kStatus || type == Type::kBulk; }
};

// Limits of what is accepted.
inline constexpr size_t kLongestReply = size_t{64} << 20;
inline constexpr size_t kMaxElements = 1024;
inline constexpr int kDeepestReply = 4;

enum class Parse : uint8_t { kDone, kIncomplete, kMalformed };

// Reads one reply from the beginning of `bytes`, and sets `used` to its length. kIncomplete: more
// bytes are needed, `wanted` of them if that is known, else 0. Costs are linear in the bytes looked
// at; an incomplete reply is read again from its beginning.
Parse parse_reply(std::string_view bytes, Reply* reply, size_t* used, size_t* wanted);

}  // namespace latchkey::sentinel
