// Which categories of commands a server has.
#pragma once

#include <algorithm>

#include "server/command/command_table.h"

namespace latchkey::server::acl {

// Categories of commands that came late, or with modules. An emulated release that has none of the
// commands does not know the category, nor does a Sentinel.
inline constexpr uint32_t kLateCategories = kAclArray | kAclJson | kAclTimeSeries | kAclBloom |
                                            kAclCuckoo | kAclCountMin | kAclTopK | kAclTDigest;

// Whether there is this category, a bit, beside these commands. O(commands).
inline bool has_category(const CommandTable& commands, uint32_t category) {
  return (category & kLateCategories) == 0 ||
         std::ranges::any_of(commands.all(),
                             [&](const auto& command) { return (command->acl & category) != 0; });
}

}  // namespace latchkey::server::acl
