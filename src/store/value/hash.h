// A hash: fields, their values, and optional deadlines at which fields expire.
//
// Small hashes are a listpack of alternating fields and values; larger ones are a table whose items
// hold a field and its value in one allocation. A hash becomes a table when it has more fields, or
// longer fields or values, than Environment::limits allows, and stays one.
//
//     +--------------+------------+---------------+------------+-----------+-----------+
//     | flags,       | value size | place in heap | both sizes | the field | the value |
//     | field size   |            |               |            |           |           |
//     +--------------+------------+---------------+------------+-----------+-----------+
//       2 and 14 bits  2 bytes      4 bytes, when   16 bytes,
//                                   the field has   when they are
//                                   a deadline      longer
//
// prepare_deadlines() makes room for deadlines. A listpack then has a third element behind each
// value, the deadline or 0, and its fields are in the order of their deadlines, those without at
// the end, as in RDB files and in replies to HGETALL. A table has a heap of the items with
// deadlines, which costs them 20 bytes each. Hashes that were never prepared do not pay for
// deadlines.
//
// A listpack without deadlines whose fields other hashes have as well may leave their names to a
// list that all of them share, and hold the values alone, in the order of that list
// (share_names()). A field that is added or removed takes it to another such list; a deadline, or a
// field or value that is too long, ends it.
//
// A field past its deadline stays until it is removed: reading functions skip it, writing functions
// see it, size() counts it. Handlers remove the expired fields they meet with expire(); the
// keyspace removes the rest (Keyspace::index_elements).
//
// Costs: O(fields) in a listpack (a value in one with shared names is found by its index), O(1)
// expected in a table, O(log fields) for a deadline in a table. Returned views are valid until the
// next change; views of integers in a listpack, as long as the scratch buffer they are written to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "store/deadline_heap.h"
#include "store/encoding/listpack.h"
#include "store/hash_table.h"
#include "store/keyspace.h"
#include "store/prefetched_walk.h"
#include "store/random_sample.h"
#include "store/value/field_names.h"

namespace latchkey::store {

class Hash final : public Value {
 public:
  static constexpr Type kType = Type::kHash;
  // Size of the buffer that reading a value needs.
  static constexpr size_t kScratch = Listpack::kScratch;
  // Deadlines are Unix times in milliseconds from 1 to kMaxDeadline (0 is set as 1), or one of:
  static constexpr int64_t kMaxDeadline = (int64_t{1} << 46) - 1;
  static constexpr int64_t kNoDeadline = Keyspace::kNoDeadline;
  static constexpr int64_t kKeepDeadline = Keyspace::kKeepDeadline;

  explicit Hash(Environment& environment) : listpack_(), environment_(&environment) {}
  // A copy of packed fields and values; without an environment a view of them.
  Hash(Environment* environment, const Packed& packed)
      : listpack_(Listpack::open(packed.bytes, environment != nullptr)),
        environment_(environment) {}
  Hash(const Hash&) = delete;
  Hash& operator=(const Hash&) = delete;
  ~Hash() override;

  std::string_view encoding_name() const override;
  size_t free_effort() const override { return is_table() ? size() : 1; }
  size_t memory_usage() const override;
  Value* clone() const override;
  size_t element_count() const override { return size(); }
  Packed packed() const override {
    if (form_ != Form::kListpack || is_prepared_) return {};
    return {listpack_.bytes()};
  }
  void prefetch(uint64_t hash, LookupStep step) const override;

  // Number of fields, including those past their deadline.
  size_t size() const {
    if (is_table()) return table_->items.size();
    return shares_names() ? names_->size() : listpack_.size() / stride();
  }
  // Number of fields not past their deadline. O(1) while no field is, else O(fields).
  size_t living() const;
  bool is_table() const { return form_ == Form::kTable; }
  bool shares_names() const { return form_ == Form::kValues; }
  // The encodings of fields and values; null when the hash has another one.
  const auto* table_or_null() const { return is_table() ? &table_->items : nullptr; }
  const Listpack* listpack_or_null() const {
    return form_ == Form::kListpack ? &listpack_ : nullptr;
  }

  // --- Reading: fields past their deadline are skipped -------------------------------------------

  // The field's value, or nothing; integers are written to `scratch` (kScratch bytes).
  std::optional<std::string_view> get(std::string_view field, char* scratch) const;
  bool contains(std::string_view field) const;

  // Calls fn(field, value) for every field. fn changes nothing; the views are valid during the
  // call.
  template <typename Fn>
  void for_each(Fn&& fn) const {
    const bool any_due = has_due();
    for_each_stored([&](std::string_view field, std::string_view value, int64_t deadline_ms) {
      if (!any_due || !is_due(deadline_ms)) fn(field, value);
    });
  }
  // One step of a scan: see HashTable::scan. A listpack is scanned in one step.
  template <typename Fn>
  uint64_t scan(uint64_t cursor, Fn&& fn) const {
    if (!is_table()) {
      for_each(fn);
      return 0;
    }
    const bool any_due = has_due();
    return table_->items.scan(cursor, [&](Item* item) {
      if (!any_due || !is_due(table_->deadline_ms(*item))) fn(item->field(), item->value());
    });
  }

  // --- Reading all stored fields, including those past their deadline ----------------------------

  // Calls fn(field, value, deadline_ms) for every field.
  template <typename Fn>
  void for_each_stored(Fn&& fn) const {
    if (is_table()) {
      for_each_prefetched(table_->items, [&](Item* item) {
        fn(item->field(), item->value(), table_->deadline_ms(*item));
      });
      return;
    }
    if (shares_names()) return for_each_value(fn);
    for (Listpack::Position at = listpack_.first(); at != Listpack::kNone; at = after(at))
      visit(at, fn);
  }
  // Calls fn(field, value) for one field, chosen uniformly. REQUIRES: size() > 0.
  template <typename Fn>
  void random(base::Random& random, Fn&& fn) const {
    if (is_table()) {
      const Item* item = table_->items.random(random);
      return fn(item->field(), item->value());
    }
    if (shares_names()) {
      const size_t index = random.below(size());
      char scratch[kScratch];
      return fn((*names_)[index], value_at(index).text(scratch));
    }
    const auto index = static_cast<int64_t>(random.below(size()) * stride());
    visit(listpack_.at(index), without_deadline(fn));
  }
  // Calls fn(field, value) for `count` different fields, all choices being equally likely.
  // REQUIRES: count <= size(). O(count) in a table.
  template <typename Fn>
  void random_distinct(base::Random& random, size_t count, Fn&& fn) const {
    if (is_table() && is_small_sample(count, size())) {
      return draw_distinct(table_->items, random, count,
                           [&](const Item* item) { fn(item->field(), item->value()); });
    }
    SelectionSample sample(random, count, size());
    for_each_stored([&](std::string_view field, std::string_view value, int64_t) {
      if (sample.takes_next()) fn(field, value);
    });
  }

  // --- Changing ----------------------------------------------------------------------------------

  // Announces that `fields` fields will be set, so that a large hash becomes a table at once.
  void expect(size_t fields);
  // Adopts fields and values (and deadlines, when the hash is prepared for them) from a file or
  // a dump; the caller has checked that they are valid. They become a table when they are too many.
  // REQUIRES: empty.
  void adopt(Listpack fields);
  // Leaves the names of the fields to a list that other hashes share, when this is a listpack
  // without deadlines and has fields. O(fields log fields); nothing when it shares names already.
  void share_names();
  // The same for a hash of that many fields; `most` 0: of any larger number.
  void share_names_if_within(size_t least, size_t most) {
    if (form_ == Form::kListpack && size() >= least && (most == 0 || size() <= most)) share_names();
  }
  // Makes this a hash of these names and of `values`, one for each name in the list's order, of
  // which those that come first in `values` need not come first in the list: the value of name i is
  // values[order[i]]. As a table when it has too many fields or one is too long. REQUIRES: empty.
  void assign(const FieldNames& names, std::span<const uint32_t> order,
              std::span<const std::string_view> values);
  // Returns true when the field is new. Neither text may lie within this hash. A deadline other
  // than kNoDeadline and kKeepDeadline requires a prepared hash.
  bool set(std::string_view field, std::string_view value, int64_t deadline_ms = kNoDeadline);
  // False when there is no such field.
  bool erase(std::string_view field);

  // --- Deadlines ---------------------------------------------------------------------------------

  // Callers that change or remove deadlines must call Keyspace::index_elements.

  // Makes room for deadlines, permanently. O(fields) the first time.
  void prepare_deadlines();
  bool is_prepared() const { return is_prepared_; }
  // The deadline of a stored field, kNoDeadline when it has none; nothing when there is no such
  // field.
  std::optional<int64_t> deadline_ms(std::string_view field) const;
  // REQUIRES: the field is stored, and the hash is prepared unless kNoDeadline.
  void set_deadline(std::string_view field, int64_t deadline_ms);
  bool is_due(int64_t deadline_ms) const {
    return deadline_ms >= 0 && deadline_ms <= environment().now_ms &&
           environment().expired != Environment::Expired::kShow;
  }
  // Whether any stored field is past its deadline. O(1).
  bool has_due() const { return is_prepared() && is_due(first_deadline_ms()); }
  // Removes the field if it is past its deadline, unless expired fields must stay. Returns whether
  // it was past its deadline.
  bool expire(std::string_view field);

  ElementDeadline* element_deadline() override { return is_prepared_ ? prepared_ : nullptr; }
  int64_t first_deadline_ms() const override;
  size_t expire_elements(size_t budget) override;

 private:
  struct Item {
    static constexpr uint16_t kVolatile = 1u << 15;
    static constexpr uint16_t kLong = 1u << 14;

    uint16_t field_size_and_flags;  // in a long item the sizes are 0
    uint16_t short_value_size;

    static uint16_t flags(size_t field_size, size_t value_size, bool is_volatile) {
      const bool is_long = field_size >= kLong || value_size > UINT16_MAX;
      return static_cast<uint16_t>((is_long ? kLong : 0) | (is_volatile ? kVolatile : 0));
    }
    // Offset of the field: bytes of everything before it.
    static size_t header_size(uint16_t flags) {
      return sizeof(Item) + ((flags & kVolatile) != 0 ? sizeof(uint32_t) : 0) +
             ((flags & kLong) != 0 ? 2 * sizeof(size_t) : 0);
    }
    static size_t allocation(size_t size) { return (size + 7) & ~size_t{7}; }

    uint16_t flags() const { return field_size_and_flags & (kVolatile | kLong); }
    bool is_volatile() const { return (field_size_and_flags & kVolatile) != 0; }
    bool is_long() const { return (field_size_and_flags & kLong) != 0; }
    char* bytes() { return reinterpret_cast<char*>(this); }
    const char* bytes() const { return reinterpret_cast<const char*>(this); }
    uint32_t& place() { return *reinterpret_cast<uint32_t*>(this + 1); }
    // The sizes of a long item are right before its field.
    size_t long_size(size_t index) const {
      size_t size;
      std::memcpy(&size, bytes() + header_size(flags()) - (2 - index) * sizeof(size), sizeof(size));
      return size;
    }
    size_t field_size() const {
      return is_long() ? long_size(0) : field_size_and_flags & (kLong - 1);
    }
    size_t value_size() const { return is_long() ? long_size(1) : short_value_size; }
    void set_sizes(size_t field_size, size_t value_size);
    std::string_view field() const { return {bytes() + header_size(flags()), field_size()}; }
    std::string_view value() const {
      const std::string_view name = field();
      return {name.data() + name.size(), value_size()};
    }
    char* value_bytes() { return bytes() + header_size(flags()) + field_size(); }
    size_t allocated() const {
      return allocation(header_size(flags()) + field_size() + value_size());
    }
  };
  struct ItemTraits {
    using Item = Hash::Item;
    static std::string_view key(const Item* item) { return item->field(); }
    // Above the default, which saves a byte for each element and costs longer chains.
    static constexpr size_t kMaxLoad = 70;
    static uint32_t& place(Item& item) { return item.place(); }
  };
  struct Table {
    explicit Table(const base::HashSecret& secret) : items(secret) {}
    ~Table();
    Table(const Table&) = delete;
    Table& operator=(const Table&) = delete;

    int64_t deadline_ms(Item& item) const {
      return item.is_volatile() ? deadlines.deadline_ms(item) : kNoDeadline;
    }
    Item* make_item(std::string_view field, std::string_view value, bool is_volatile);
    void free_item(Item* item);
    // REQUIRES: the field is absent.
    void insert(std::string_view field, std::string_view value, int64_t deadline_ms);
    // Sets another value and another deadline.
    void replace(Item** slot, std::string_view value, int64_t deadline_ms);
    bool erase(std::string_view field);

    HashTable<ItemTraits> items;
    DeadlineHeap<ItemTraits> deadlines;
    size_t item_bytes = 0;
  };

  // What a hash that is prepared for deadlines has in place of its pointer to the environment.
  struct Prepared : ElementDeadline {
    explicit Prepared(Environment& of) : environment(of) {}
    Environment& environment;
  };

  enum class Form : uint8_t { kListpack, kValues, kTable };

  Environment& environment() const {
    if (is_prepared_) return prepared_->environment;
    return shares_names() ? names_->environment() : *environment_;
  }

  // Adds the field's name to Environment::expired_names if the observer wants names.
  void name_expired(std::string_view field);

  // --- The listpack ------------------------------------------------------------------------------

  size_t stride() const { return is_prepared() ? 3 : 2; }
  Listpack::Position value_of(Listpack::Position at) const { return listpack_.next(at); }
  Listpack::Position deadline_of(Listpack::Position at) const {
    return listpack_.next(listpack_.next(at));
  }
  Listpack::Position after(Listpack::Position at) const {
    const Listpack::Position next = deadline_of(at);
    return is_prepared() ? listpack_.next(next) : next;
  }
  int64_t deadline_at(Listpack::Position at) const;
  // Calls fn with the field, value and deadline at that position.
  template <typename Fn>
  void visit(Listpack::Position at, Fn&& fn) const {
    char field[kScratch];
    char value[kScratch];
    fn(listpack_.get(at).text(field), listpack_.get(value_of(at)).text(value), deadline_at(at));
  }
  template <typename Fn>
  static auto without_deadline(Fn& fn) {
    return [&fn](std::string_view field, std::string_view value, int64_t) { fn(field, value); };
  }
  // The position of the field in the listpack.
  Listpack::Position find(std::string_view field) const {
    return listpack_.find(field, listpack_.first(), stride() - 1);
  }
  // Whether the field and value are short enough for the listpack.
  bool fits(std::string_view field, std::string_view value) const;
  // Inserts a field in the order of deadlines.
  void insert_in_listpack(std::string_view field, std::string_view value, int64_t deadline_ms);
  bool set_in_listpack(std::string_view field, std::string_view value, int64_t deadline_ms);
  // Moves the field at that position to where its new deadline belongs.
  void move_in_listpack(Listpack::Position at, int64_t deadline_ms);

  // --- Values whose names are shared -------------------------------------------------------------

  Listpack::Element value_at(size_t index) const {
    return listpack_.get(listpack_.at(static_cast<int64_t>(index)));
  }
  // Calls fn(field, value, kNoDeadline) for every field.
  template <typename Fn>
  void for_each_value(Fn&& fn) const {
    Listpack::Position at = listpack_.first();
    char scratch[kScratch];
    for (const std::string_view name : names_->all()) {
      fn(name, listpack_.get(at).text(scratch), kNoDeadline);
      at = listpack_.next(at);
    }
  }
  bool set_value(std::string_view field, std::string_view value);
  bool erase_value(std::string_view field);
  // Adopts the reference in place of the environment or of another list's.
  void take_names(FieldNamesRef names);
  // Makes it a listpack of fields and values again.
  void stop_sharing_names();

  void become_table();
  // Takes the table in place of the listpack.
  void replace_listpack(std::unique_ptr<Table> table);
  void prepare_node();
  bool set_in_table(std::string_view field, std::string_view value, int64_t deadline_ms);

  // Small hashes are many: these stand where the base class would be padded, and the pointers share
  // their places, so that a hash takes 32 bytes.
  Form form_ = Form::kListpack;
  bool is_prepared_ = false;
  union {
    Listpack listpack_;
    Table* table_;  // owned
  };
  union {
    Environment* environment_;
    Prepared* prepared_;       // owned
    const FieldNames* names_;  // with Form::kValues; a reference
  };
};
static_assert(sizeof(Hash) == 32);

}  // namespace latchkey::store
