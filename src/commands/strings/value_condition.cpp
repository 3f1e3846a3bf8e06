#include "commands/strings/value_condition.h"

#include <algorithm>
#include <iterator>

#include "base/digest/hash.h"
#include "base/text/hex.h"
#include "base/text/number.h"
#include "base/text/text.h"

namespace latchkey::commands {

using namespace server;

void write_digest(std::string_view value, char* out) {
  uint64_t digest = base::digest(value);
  for (size_t i = kDigestDigits; i-- > 0; digest >>= 4) out[i] = base::kHexDigits[digest & 15];
}

constexpr ValueCondition::Name ValueCondition::kNames[] = {{"IFEQ", Kind::kEqual},
                                                           {"IFNE", Kind::kNotEqual},
                                                           {"IFDEQ", Kind::kDigestEqual},
                                                           {"IFDNE", Kind::kDigestNotEqual}};

bool ValueCondition::is_name(std::string_view word) {
  return std::any_of(std::begin(kNames), std::end(kNames),
                     [&](const Name& name) { return is_word(word, name.word); });
}

bool ValueCondition::read(ArgReader& options) {
  for (const auto& [name, kind] : kNames) {
    if (!options.word(name, &operand_)) continue;
    kind_ = kind;
    return true;
  }
  return false;
}

bool ValueCondition::check(CommandContext& ctx, const store::Entry& entry, bool* holds) const {
  char scratch[base::kMaxInt64Text];
  const std::string_view value = entry.string(scratch);
  if (kind_ == Kind::kEqual || kind_ == Kind::kNotEqual) {
    *holds = (value == operand_) == (kind_ == Kind::kEqual);
    return true;
  }
  if (operand_.size() != kDigestDigits)
    return ctx.refuse("ERR must be exactly 16 hexadecimal characters");
  char digest[kDigestDigits];
  write_digest(value, digest);
  const bool equal = base::equal_ignoring_case({digest, kDigestDigits}, operand_);
  *holds = equal == (kind_ == Kind::kDigestEqual);
  return true;
}

}  // namespace latchkey::commands
