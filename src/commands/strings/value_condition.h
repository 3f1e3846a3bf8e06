// Conditions on a string's value or its digest (IFEQ, IFNE, IFDEQ, IFDNE), for SET and DELEX.
//
// The digest of a value is its 64-bit XXH3 hash as 16 hexadecimal digits, so that a client can
// compute it (https://redis.io/docs/latest/commands/digest/).
#pragma once

#include <cstdint>
#include <string_view>

#include "server/command/command_context.h"

namespace latchkey::commands {

inline constexpr size_t kDigestDigits = 16;

// Writes the digest of `value` to `out` (room for kDigestDigits) in lower case. O(value size).
void write_digest(std::string_view value, char* out);

class ValueCondition {
 public:
  // Whether the word is the name of a condition.
  static bool is_name(std::string_view word);

  // Consumes a condition and its operand if they come next.
  bool read(server::ArgReader& options);
  bool given() const { return kind_ != Kind::kNone; }

  // Whether the condition holds for an existing string; digests are compared ignoring case. False,
  // with the error sent, when the operand cannot be a digest.
  bool check(server::CommandContext& ctx, const store::Entry& entry, bool* holds) const;
  // Whether the condition holds without a key: a missing value is unequal to every value.
  bool holds_without_key() const {
    return kind_ == Kind::kNotEqual || kind_ == Kind::kDigestNotEqual;
  }

 private:
  enum class Kind : uint8_t { kNone, kEqual, kNotEqual, kDigestEqual, kDigestNotEqual };
  struct Name {
    std::string_view word;
    Kind kind;
  };

  static const Name kNames[4];

  Kind kind_ = Kind::kNone;
  std::string_view operand_;
};

}  // namespace latchkey::commands
