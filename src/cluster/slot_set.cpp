#include "cluster/slot_set.h"

#include <algorithm>
#include <bit>

#include "base/text/number.h"

namespace latchkey::cluster {

bool parse_slot(std::string_view text, int* slot) {
  int64_t number = 0;
  if (!base::parse_int64(text, &number) || number < 0 || number >= store::kKeySlots) return false;
  *slot = static_cast<int>(number);
  return true;
}

SlotSet SlotSet::of_bytes(std::string_view bytes) {
  SlotSet set;
  std::copy_n(bytes.begin(), kBytes, set.bytes_.begin());
  for (const uint8_t byte : set.bytes_) set.size_ += static_cast<size_t>(std::popcount(byte));
  return set;
}

bool SlotSet::has_all(const SlotSet& others) const {
  return others.without(*this).empty();
}

bool SlotSet::has_any(const SlotSet& others) const {
  return without(others).size() < size_;
}

SlotSet SlotSet::without(const SlotSet& others) const {
  SlotSet rest;
  for (size_t i = 0; i < kBytes; ++i) {
    rest.bytes_[i] = static_cast<uint8_t>(bytes_[i] & ~others.bytes_[i]);
    rest.size_ += static_cast<size_t>(std::popcount(rest.bytes_[i]));
  }
  return rest;
}

size_t SlotSet::runs() const {
  size_t count = 0;
  for_each_run([&](int, int) { ++count; });
  return count;
}

std::string SlotSet::text() const {
  std::string text;
  for_each_run([&](int first, int last) {
    text += ' ' + std::to_string(first);
    if (last != first) text += '-' + std::to_string(last);
  });
  return text;
}

bool SlotSet::add_run(std::string_view text) {
  const size_t dash = text.find('-');
  int first = 0;
  if (!parse_slot(text.substr(0, dash), &first)) return false;
  int last = first;
  if (dash != text.npos && (!parse_slot(text.substr(dash + 1), &last) || last < first))
    return false;
  for (int slot = first; slot <= last; ++slot) add(slot);
  return true;
}

}  // namespace latchkey::cluster
