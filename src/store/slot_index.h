// Which keys are in each slot, for a server that is a cluster node: counting a slot's keys is O(1),
// and visiting them costs by their number, whatever else the database holds.
//
// A table of pointers per slot that has keys: about 15 bytes per key, and some 150 for a slot that
// has one. Changes cost O(1) expected and the hashing of the key.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/digest/hash.h"
#include "store/entry.h"
#include "store/hash_table.h"
#include "store/key_slot.h"

namespace latchkey::store {

class SlotIndex {
 public:
  // `secret` must outlive the object.
  explicit SlotIndex(const base::HashSecret& secret) : secret_(secret) {}

  // REQUIRES: its key is not in the index. The entry must stay where it is until it is removed or
  // moved.
  void add(Entry& entry);
  // REQUIRES: the entry is in the index, and not freed yet.
  void remove(const Entry& entry);
  // The entry of a key in the index goes to another place. REQUIRES: both have the same key, and
  // `from` is not freed yet.
  void move(const Entry& from, Entry& to);

  // Number of keys in the slot. REQUIRES of all `slot`: 0 <= slot < kKeySlots.
  size_t in(int slot) const {
    const Table* const table = tables_[static_cast<size_t>(slot)].get();
    return table == nullptr ? 0 : table->size();
  }
  // One step of a scan of the slot's entries, expired ones included: see HashTable::scan.
  template <typename Fn>
  uint64_t scan(int slot, uint64_t cursor, Fn&& fn) const {
    const Table* const table = tables_[static_cast<size_t>(slot)].get();
    if (table == nullptr) return 0;
    return table->scan(cursor, [&](Entry* entry) { fn(static_cast<const Entry&>(*entry)); });
  }
  // Calls fn(const Entry&) for the slot's entries, expired ones included.
  template <typename Fn>
  void for_each(int slot, Fn&& fn) const {
    const Table* const table = tables_[static_cast<size_t>(slot)].get();
    if (table == nullptr) return;
    table->for_each([&](Entry* entry) { fn(static_cast<const Entry&>(*entry)); });
  }

 private:
  struct Traits {
    using Item = Entry;
    static std::string_view key(const Entry* entry) { return entry->key(); }
  };
  using Table = HashTable<Traits>;

  // The place of the pointer to the entry. REQUIRES: the entry is in the index.
  static Entry** find(Table& table, const Entry& entry, uint64_t hash);
  std::unique_ptr<Table>& table_of(const Entry& entry) {
    return tables_[static_cast<size_t>(key_slot(entry.key()))];
  }

  const base::HashSecret& secret_;
  // Null: no keys.
  std::array<std::unique_ptr<Table>, kKeySlots> tables_;
};

}  // namespace latchkey::store
