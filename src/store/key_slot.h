// The slots by which a cluster distributes keys: the CRC-16 of the key, or of its tag, the text
// between the first '{' and the next '}', unless it is empty. Keys with the same tag are in the
// same slot.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace latchkey::store {

inline constexpr int kKeySlots = 16384;

// O(key size).
int key_slot(std::string_view key);

// The slot of all keys that a glob pattern matches; nothing when they may be in several slots.
std::optional<int> pattern_slot(std::string_view pattern);

// How many keys there are in each slot.
class SlotCounts {
 public:
  void add(std::string_view key) { ++counts_[static_cast<size_t>(key_slot(key))]; }
  void remove(std::string_view key) { --counts_[static_cast<size_t>(key_slot(key))]; }
  // REQUIRES: 0 <= slot < kKeySlots.
  uint64_t in(int slot) const { return counts_[static_cast<size_t>(slot)]; }

 private:
  std::array<uint64_t, kKeySlots> counts_{};
};

}  // namespace latchkey::store
