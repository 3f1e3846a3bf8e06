#include "store/value/hash.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace latchkey::store {

Hash::Hash(Environment& environment)
    : environment_(environment), listpack_(std::in_place), table_(environment.secret) {}

Hash::~Hash() {
  table_.for_each([](Item* item) { std::free(item); });
}

size_t Hash::memory_usage() const {
  const size_t held = is_table() ? table_.memory_usage() + item_bytes_ : listpack_->memory_usage();
  return sizeof(Hash) + held;
}

Value* Hash::clone() const {
  auto copy = std::make_unique<Hash>(environment_);
  if (!is_table()) {
    copy->listpack_ = listpack_;
    return copy.release();
  }
  copy->become_table();
  table_.for_each([&](Item* item) {
    copy->table_.insert(copy->make_item(item->field(), item->value()), table_.hash(item->field()));
  });
  return copy.release();
}

// --- Reading ------------------------------------------------------------------------------------

std::optional<std::string_view> Hash::get(std::string_view field, char* scratch) const {
  if (is_table()) {
    const Item* item = table_.find_item(field);
    if (item == nullptr) return std::nullopt;
    return item->value();
  }
  const Listpack::Position at = find(field);
  if (at == Listpack::kNone) return std::nullopt;
  return listpack_->get(listpack_->next(at)).text(scratch);
}

bool Hash::contains(std::string_view field) const {
  return is_table() ? table_.find_item(field) != nullptr : find(field) != Listpack::kNone;
}

// --- Changing -----------------------------------------------------------------------------------

void Hash::expect(size_t fields) {
  if (!is_table() && fields > environment_.limits.hash_max_listpack_entries) become_table();
}

bool Hash::set(std::string_view field, std::string_view value) {
  if (!is_table() && !fits(field, value)) become_table();
  return is_table() ? set_in_table(field, value) : set_in_listpack(field, value);
}

bool Hash::erase(std::string_view field) {
  if (!is_table()) {
    const Listpack::Position at = find(field);
    if (at == Listpack::kNone) return false;
    listpack_->erase(at, 2);
    return true;
  }
  const uint64_t hash = table_.hash(field);
  Item** slot = table_.find(field, hash);
  if (slot == nullptr) return false;
  free_item(table_.erase(slot, hash));
  return true;
}

bool Hash::fits(std::string_view field, std::string_view value) const {
  const size_t longest = environment_.limits.hash_max_listpack_value;
  if (field.size() > longest || value.size() > longest) return false;
  return listpack_->room_for(Listpack::encoded_size(field) + Listpack::encoded_size(value));
}

bool Hash::set_in_listpack(std::string_view field, std::string_view value) {
  const Listpack::Position at = find(field);
  if (at != Listpack::kNone) {
    listpack_->replace(listpack_->next(at), value);
    return false;
  }
  listpack_->append(field);
  listpack_->append(value);
  if (size() > environment_.limits.hash_max_listpack_entries) become_table();
  return true;
}

bool Hash::set_in_table(std::string_view field, std::string_view value) {
  const uint64_t hash = table_.hash(field);
  Item** slot = table_.find(field, hash);
  if (slot == nullptr) {
    table_.insert(make_item(field, value), hash);
    return true;
  }
  Item* item = *slot;
  if (Item::allocation(field.size() + value.size()) == item->allocated()) {
    std::memcpy(item->bytes() + field.size(), value.data(), value.size());
    item->value_size = static_cast<uint32_t>(value.size());
  } else {
    *slot = make_item(field, value);
    free_item(item);
  }
  return false;
}

Hash::Item* Hash::make_item(std::string_view field, std::string_view value) {
  const size_t size = Item::allocation(field.size() + value.size());
  void* memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  auto* item =
      new (memory) Item{static_cast<uint32_t>(field.size()), static_cast<uint32_t>(value.size())};
  std::memcpy(item->bytes(), field.data(), field.size());
  std::memcpy(item->bytes() + field.size(), value.data(), value.size());
  item_bytes_ += size;
  return item;
}

void Hash::free_item(Item* item) {
  item_bytes_ -= item->allocated();
  std::free(item);
}

void Hash::become_table() {
  for_each([&](std::string_view field, std::string_view value) {
    table_.insert(make_item(field, value), table_.hash(field));
  });
  listpack_.reset();
}

}  // namespace latchkey::store
