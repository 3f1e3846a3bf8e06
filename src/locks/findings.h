// The kinds of misuse of a lock that LockModel finds: their names, severities and descriptions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "server/emulation/edition.h"

namespace latchkey::locks {

enum class FindingKind : uint8_t {
  kNoDeadline,
  kNotAtomic,
  kProlongedByLoser,
  kForeignRelease,
  kLateRelease,
  kForeignToken,
  kOverwritten,
  kStaleDelete,
  kTakeoverLost,
  kStarved,
  kHeldLong,
  kOutlived,
  kReentryLost,
  kUnbalanced,
};

enum class Severity : uint8_t { kLow, kMedium, kHigh };

struct FindingDescription {
  FindingKind kind;
  std::string_view name;
  Severity severity;
  std::string_view danger;  // what may go wrong
  std::string_view remedy;  // what to do instead, with marks for commands: see remedy_of()
};

// In the order of FindingKind.
std::span<const FindingDescription> all_findings();
const FindingDescription& description_of(FindingKind kind);

// The remedy, with the commands to write: those that this release has.
std::string remedy_of(FindingKind kind, const server::Edition& edition);

// "low", "medium", "high".
std::string_view name_of(Severity severity);
std::optional<Severity> parse_severity(std::string_view text);

}  // namespace latchkey::locks
