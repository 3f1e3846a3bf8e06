#include "cluster/slot_tags.h"

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/assert.h"
#include "store/key_slot.h"

namespace latchkey::cluster {

namespace {

constexpr size_t kLongest = 3;
constexpr std::string_view kAlphabet =
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

struct Tag {
  std::array<char, kLongest> text{};
  uint8_t size = 0;
};
using Tags = std::array<Tag, store::kKeySlots>;

// Gives each slot that has no tag yet the first text of that length which is in it. Returns how
// many it were.
size_t add_tags(size_t size, Tags* tags) {
  size_t added = 0;
  size_t texts = 1;
  for (size_t i = 0; i < size; ++i) texts *= kAlphabet.size();
  for (size_t number = 0; number < texts; ++number) {
    Tag tag{.size = static_cast<uint8_t>(size)};
    size_t rest = number;
    for (size_t i = size; i > 0; --i, rest /= kAlphabet.size())
      tag.text[i - 1] = kAlphabet[rest % kAlphabet.size()];
    Tag& place = (*tags)[static_cast<size_t>(store::key_slot({tag.text.data(), size}))];
    if (place.size != 0) continue;
    place = tag;
    ++added;
  }
  return added;
}

Tags make_tags() {
  Tags tags;
  size_t added = 0;
  for (size_t size = 1; size <= kLongest; ++size) added += add_tags(size, &tags);
  LK_ASSERT(added == tags.size());
  return tags;
}

}  // namespace

std::string_view slot_tag(int slot) {
  static const Tags tags = make_tags();
  const Tag& tag = tags[static_cast<size_t>(slot)];
  return {tag.text.data(), tag.size};
}

}  // namespace latchkey::cluster
