// Keyspace: how many keys there are, in which slots and of which sizes.
#include <memory>

#include "base/assert.h"
#include "store/keyspace.h"
#include "store/slot_index.h"
#include "store/time_series/label_index.h"

namespace latchkey::store {

size_t Keyspace::visible_size() const {
  if (hidden_slots_ == nullptr || !hidden_slots_->any()) return size();
  size_t hidden = 0;
  for (int slot = 0; slot < kKeySlots; ++slot) {
    if (hidden_slots_->has(slot)) hidden += slot_index_->in(slot);
  }
  return size() - hidden;
}

const Entry* Keyspace::any_visible_entry() const {
  const auto first = static_cast<int>(environment_.random.below(kKeySlots));
  for (int i = 0; i < kKeySlots; ++i) {
    const int slot = (first + i) % kKeySlots;
    if (slot_index_->in(slot) == 0) continue;
    if (hidden_slots_ != nullptr && hidden_slots_->has(slot)) continue;
    const Entry* found = nullptr;
    for (uint64_t cursor = 0; found == nullptr;)
      cursor = slot_index_->scan(slot, cursor, [&](const Entry& entry) { found = &entry; });
    return found;
  }
  return nullptr;
}

void Keyspace::index_slots(std::shared_ptr<HiddenSlots> hidden) {
  LK_ASSERT(empty());
  slot_index_ = std::make_unique<SlotIndex>(environment_.secret);
  hidden_slots_ = std::move(hidden);
}

void Keyspace::count_in(Entry& entry) {
  if (slot_index_ != nullptr) slot_index_->add(entry);
  if (sizes_ == nullptr) sizes_ = std::make_unique<KeySizes>();
  if (entry.is_string()) return sizes_->add(Type::kString, KeySizes::bin_of(entry.string_size()));
  if (entry.is_packed()) return sizes_->add(entry.type(), KeySizes::bin_of(entry.element_count()));
  Value& value = *entry.value();
  value.size_bin_ = KeySizes::bin_of(value.element_count());
  sizes_->add(entry.type(), value.size_bin_);
  if (entry.type() == Type::kTimeSeries) index_series(entry);
}

void Keyspace::index_series(Entry& entry) {
  if (series_index_ == nullptr) series_index_ = std::make_unique<SeriesIndex>(environment_.secret);
  series_index_->add(entry, environment_.series_numbered,
                     [this](std::string_view key) { return table_.find_item(key); });
}

void Keyspace::count_out(Entry& entry) {
  if (slot_index_ != nullptr) slot_index_->remove(entry);
  if (entry.is_string())
    return sizes_->remove(Type::kString, KeySizes::bin_of(entry.string_size()));
  if (entry.is_packed())
    return sizes_->remove(entry.type(), KeySizes::bin_of(entry.element_count()));
  Value& value = *entry.value();
  sizes_->remove(entry.type(), value.size_bin_);
  if (entry.type() == Type::kTimeSeries) series_index_->remove(entry);
  if (value.changed_at_ == 0) return;
  environment_.changed[value.changed_at_ - 1].value = nullptr;
  value.changed_at_ = 0;
}

void Keyspace::count_resized(size_t old_size, size_t new_size) {
  const uint8_t old_bin = KeySizes::bin_of(old_size);
  const uint8_t new_bin = KeySizes::bin_of(new_size);
  if (old_bin == new_bin) return;
  sizes_->remove(Type::kString, old_bin);
  sizes_->add(Type::kString, new_bin);
}

void Keyspace::prepare_change(const KeyRef& ref) {
  Entry& entry = **ref.slot_;
  if (entry.is_packed()) unpack(entry);
  Value& value = *entry.value();
  if (value.changed_at_ != 0) return;
  environment_.changed.push_back({this, ref.hash_, &entry, &value});
  value.changed_at_ = static_cast<uint32_t>(environment_.changed.size());
}

void Keyspace::recount(const Entry& entry) {
  Value& value = *entry.value();
  const uint8_t bin = KeySizes::bin_of(value.element_count());
  if (bin == value.size_bin_) return;
  sizes_->remove(entry.type(), value.size_bin_);
  sizes_->add(entry.type(), bin);
  value.size_bin_ = bin;
}

void Keyspace::update_sizes() {
  for (const ChangedValue& changed : environment_.changed) {
    if (changed.value != nullptr) changed.keyspace->recount(*changed.entry);
  }
}

void Keyspace::forget_changed() {
  for (ChangedValue& changed : environment_.changed) {
    if (changed.keyspace != this || changed.value == nullptr) continue;
    changed.value->changed_at_ = 0;
    changed.value = nullptr;
  }
}

}  // namespace latchkey::store
