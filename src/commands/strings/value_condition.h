// Conditions on a string's value or its digest (IFEQ, IFNE, IFDEQ, IFDNE), as SET and DELEX take
// them.
//
// The digest of a value is its XXH3 hash of 64 bits as 16 hexadecimal digits, so that a client can
// work it out itself (https://redis.io/docs/latest/commands/digest/).
#pragma once

#include <cstdint>
#include <string_view>

#include "server/command/command_context.h"

namespace latchkey::commands {

inline constexpr size_t kDigestDigits = 16;

// Writes the digest of `value` at `out` (room for kDigestDigits) in lower case. Linear in the
// value.
void write_digest(std::string_view value, char* out);

class ValueCondition {
 public:
  // Steps over a condition and its operand when that is what comes next.
  bool read(server::ArgReader& options);
  bool given() const { return kind_ != Kind::kNone; }

  // Whether the condition holds for an existing string: of a digest, upper and lower case are the
  // same. False, with the error sent, when the operand cannot be a digest.
  bool check(server::CommandContext& ctx, const store::Entry& entry, bool* holds) const;
  // Whether it holds where there is no key: no value equals nothing.
  bool holds_without_key() const {
    return kind_ == Kind::kNotEqual || kind_ == Kind::kDigestNotEqual;
  }

 private:
  enum class Kind : uint8_t { kNone, kEqual, kNotEqual, kDigestEqual, kDigestNotEqual };

  Kind kind_ = Kind::kNone;
  std::string_view operand_;
};

}  // namespace latchkey::commands
