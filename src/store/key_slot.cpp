#include "store/key_slot.h"

#include "base/digest/crc16.h"

namespace latchkey::store {

namespace {

int slot_of_bytes(std::string_view bytes) {
  return base::crc16(bytes) % kKeySlots;
}

}  // namespace

int key_slot(std::string_view key) {
  const size_t open = key.find('{');
  if (open == key.npos) return slot_of_bytes(key);
  const size_t close = key.find('}', open);
  if (close == key.npos || close == open + 1) return slot_of_bytes(key);
  return slot_of_bytes(key.substr(open + 1, close - open - 1));
}

std::optional<int> pattern_slot(std::string_view pattern) {
  // The pattern must be literal up to the end of the tag.
  constexpr std::string_view kSpecial = "*?[\\";
  const size_t special = pattern.find_first_of(kSpecial);
  if (special == pattern.npos) return key_slot(pattern);
  const std::string_view same = pattern.substr(0, special);
  const size_t open = same.find('{');
  if (open == same.npos) return std::nullopt;
  const size_t close = same.find('}', open);
  if (close == same.npos || close == open + 1) return std::nullopt;
  return key_slot(same);
}

}  // namespace latchkey::store
