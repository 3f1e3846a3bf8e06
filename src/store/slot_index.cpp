#include "store/slot_index.h"

#include "base/assert.h"

namespace latchkey::store {

Entry** SlotIndex::find(Table& table, const Entry& entry, uint64_t hash) {
  Entry** const place = table.find(entry.key(), hash);
  LK_ASSERT(place != nullptr && *place == &entry);
  return place;
}

void SlotIndex::add(Entry& entry) {
  std::unique_ptr<Table>& table = table_of(entry);
  if (table == nullptr) table = std::make_unique<Table>(secret_);
  table->insert(&entry, table->hash(entry.key()));
}

void SlotIndex::remove(const Entry& entry) {
  std::unique_ptr<Table>& table = table_of(entry);
  LK_ASSERT(table != nullptr);
  const uint64_t hash = table->hash(entry.key());
  table->erase(find(*table, entry, hash), hash);
  if (table->empty()) table.reset();
}

void SlotIndex::move(const Entry& from, Entry& to) {
  Table* const table = table_of(from).get();
  LK_ASSERT(table != nullptr);
  *find(*table, from, table->hash(from.key())) = &to;
}

}  // namespace latchkey::store
