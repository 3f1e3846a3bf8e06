// The slots by which a cluster distributes keys: the CRC-16 of the key, or of its tag, the text
// between the first '{' and the next '}', unless it is empty. Keys with the same tag are in the
// same slot.
#pragma once

#include <optional>
#include <string_view>

namespace latchkey::store {

inline constexpr int kKeySlots = 16384;

// O(key size).
int key_slot(std::string_view key);

// The slot of all keys that a glob pattern matches; nothing when they may be in several slots.
std::optional<int> pattern_slot(std::string_view pattern);

}  // namespace latchkey::store
