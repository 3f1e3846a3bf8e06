// A hash: fields and their values.
//
// Small hashes are a listpack of fields and values by turns; the rest are a table whose items hold
// a field and its value in one allocation. A hash becomes a table when it has more fields, or
// longer ones or values, than Environment::limits allows, and stays one.
//
//     +------------+------------+-------------+-------------+
//     | field size | value size | the field   | the value   |     an item of the table
//     +------------+------------+-------------+-------------+
//       4 bytes      4 bytes
//
// Costs: O(fields) in a listpack, O(1) expected in a table. Views that are given out last until the
// next change, those of integers in a listpack as long as the scratch they are written to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "store/encoding/listpack.h"
#include "store/hash_table.h"
#include "store/keyspace.h"

namespace latchkey::store {

class Hash final : public Value {
 public:
  static constexpr Type kType = Type::kHash;
  // Room that values need when they are read.
  static constexpr size_t kScratch = Listpack::kScratch;

  explicit Hash(Environment& environment);
  ~Hash() override;

  std::string_view encoding_name() const override { return is_table() ? "hashtable" : "listpack"; }
  size_t free_effort() const override { return is_table() ? table_.size() : 1; }
  size_t memory_usage() const override;
  Value* clone() const override;

  size_t size() const { return is_table() ? table_.size() : listpack_->size() / 2; }
  bool is_table() const { return !listpack_.has_value(); }
  // For statistics; null while the fields are in a listpack.
  const auto* table_or_null() const { return is_table() ? &table_ : nullptr; }

  // The field's value, or nothing; integers are written to `scratch` (kScratch bytes).
  std::optional<std::string_view> get(std::string_view field, char* scratch) const;
  bool contains(std::string_view field) const;

  // Says that `fields` fields are about to be set, so that many become a table at once.
  void expect(size_t fields);
  // True when the field is new. Neither text may lie within this hash.
  bool set(std::string_view field, std::string_view value);
  // False when there is no such field.
  bool erase(std::string_view field);

  // Calls fn(field, value) for every field. fn changes nothing; its views last as long as the call.
  template <typename Fn>
  void for_each(Fn&& fn) const {
    if (is_table()) {
      table_.for_each([&](Item* item) { fn(item->field(), item->value()); });
    } else {
      walk(fn);
    }
  }
  // One step of a scan: see HashTable::scan. A listpack is gone through in one.
  template <typename Fn>
  uint64_t scan(uint64_t cursor, Fn&& fn) const {
    if (is_table())
      return table_.scan(cursor, [&](Item* item) { fn(item->field(), item->value()); });
    walk(fn);
    return 0;
  }
  // Calls fn(field, value) for one field, chosen uniformly. REQUIRES: size() > 0.
  template <typename Fn>
  void random(base::Random& random, Fn&& fn) const {
    if (is_table()) {
      const Item* item = table_.random(random);
      return fn(item->field(), item->value());
    }
    visit(listpack_->at(static_cast<int64_t>(random.below(size()) * 2)), fn);
  }

 private:
  struct Item {
    uint32_t field_size;
    uint32_t value_size;

    char* bytes() { return reinterpret_cast<char*>(this + 1); }
    const char* bytes() const { return reinterpret_cast<const char*>(this + 1); }
    std::string_view field() const { return {bytes(), field_size}; }
    std::string_view value() const { return {bytes() + field_size, value_size}; }
    size_t allocated() const { return allocation(field_size + size_t{value_size}); }
    static size_t allocation(size_t text) { return (sizeof(Item) + text + 7) & ~size_t{7}; }
  };
  struct Traits {
    using Item = Hash::Item;
    static std::string_view key(const Item* item) { return item->field(); }
  };

  // Calls fn with the pair at that position.
  template <typename Fn>
  void visit(Listpack::Position at, Fn& fn) const {
    char field[kScratch];
    char value[kScratch];
    fn(listpack_->get(at).text(field), listpack_->get(listpack_->next(at)).text(value));
  }
  template <typename Fn>
  void walk(Fn& fn) const {
    Listpack::Position at = listpack_->first();
    while (at != Listpack::kNone) {
      visit(at, fn);
      at = listpack_->next(listpack_->next(at));
    }
  }

  // Where the listpack holds that field.
  Listpack::Position find(std::string_view field) const {
    return listpack_->find(field, listpack_->first(), 1);
  }
  // Whether the listpack may take such a pair.
  bool fits(std::string_view field, std::string_view value) const;
  Item* make_item(std::string_view field, std::string_view value);
  void free_item(Item* item);
  void become_table();
  bool set_in_listpack(std::string_view field, std::string_view value);
  bool set_in_table(std::string_view field, std::string_view value);

  Environment& environment_;
  std::optional<Listpack> listpack_;
  HashTable<Traits> table_;
  size_t item_bytes_ = 0;
};

}  // namespace latchkey::store
