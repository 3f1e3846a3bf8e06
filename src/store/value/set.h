// A set of strings: an intset while it is all integers and few, a listpack while the members are
// few and short, else a hash table of members. The encoding only changes to a larger one, by the
// thresholds in ValueLimits, until compact() or choose_encoding().
//
// Costs: adding, erasing and finding are O(1) expected in a table, O(n) within the limits in the
// small encodings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/random.h"
#include "base/text/number.h"
#include "store/encoding/intset.h"
#include "store/encoding/listpack.h"
#include "store/encoding/member.h"
#include "store/hash_table.h"
#include "store/keyspace.h"
#include "store/prefetched_walk.h"
#include "store/random_sample.h"

namespace latchkey::store {

class Set final : public Value {
 public:
  static constexpr Type kType = Type::kSet;
  struct MemberTraits {
    using Item = Member;
    static std::string_view key(const Member* member) { return member->text(); }
    // Above the default, which saves a byte for each element and costs longer chains.
    static constexpr size_t kMaxLoad = 70;
  };
  using Table = HashTable<MemberTraits>;

  // The environment must outlive the set.
  explicit Set(const Environment& environment) : environment_(&environment), intset_() {}
  // A copy of packed members; without an environment a view of them.
  Set(const Environment* environment, const Packed& packed);
  Set(const Set& other);
  Set& operator=(const Set&) = delete;
  ~Set() override;

  std::string_view encoding_name() const override;
  size_t element_count() const override { return size(); }
  Packed packed() const override;
  size_t free_effort() const override;
  size_t memory_usage() const override;
  void prefetch(uint64_t hash, LookupStep step) const override;
  Value* clone() const override { return new Set(*this); }

  size_t size() const;
  bool contains(std::string_view member) const;
  // False when the member is already in the set. `member` must not lie within this set.
  bool add(std::string_view member);
  // False when the member is not in the set. `member` may lie within this set.
  bool erase(std::string_view member);
  // Chooses the encoding for `count` more members before they are added, which saves conversions.
  // Many integers begin as a listpack.
  void expect(size_t count);

  // Adopts members from a file or a dump; the caller has checked that they are valid. They
  // become a table when they are too many. REQUIRES: empty.
  void adopt(Intset members);
  void adopt(Listpack members);

  // Becomes a table, whatever the thresholds say. REQUIRES: it is none.
  void convert_to_table();
  // Converts a table within the thresholds to a listpack.
  void compact();
  // Chooses the encoding anew: a set beyond the thresholds becomes a table, a table within them a
  // listpack, or with `prefers_intset` an intset if all members are integers.
  void choose_encoding(bool prefers_intset);

  // A member chosen uniformly. REQUIRES: not empty.
  std::string random(base::Random& random) const;
  // Calls fn(std::string_view member) for `count` different members, all choices being equally
  // likely. REQUIRES: count <= size(). O(count) in a table.
  template <typename Fn>
  void random_distinct(base::Random& random, size_t count, Fn&& fn) const {
    if (count == 1) return fn(std::string_view(this->random(random)));
    if (is_table() && is_small_sample(count, size()))
      return draw_distinct(table(), random, count, [&](const Member* m) { fn(m->text()); });
    SelectionSample sample(random, count, size());
    for_each([&](std::string_view member) {
      if (sample.takes_next()) fn(member);
    });
  }

  // Calls fn(std::string_view) for every member; the view is valid during the call.
  template <typename Fn>
  void for_each(Fn&& fn) const {
    if (is_table()) {
      for_each_prefetched(table(), [&](const Member* member) { fn(member->text()); });
    } else {
      for_each_while([&](std::string_view member) {
        fn(member);
        return true;
      });
    }
  }
  // The same until fn returns false, in another order; then it looks at a few more members at most.
  // Slower than for_each() where it goes through a large table.
  template <typename Fn>
  void for_each_while(Fn&& fn) const {
    bool goes_on = true;
    if (const Intset* integers = intset_or_null()) {
      char text[base::kMaxInt64Text];
      for (size_t i = 0; i < integers->size() && goes_on; ++i)
        goes_on = fn(std::string_view(text, base::format_int64(integers->at(i), text)));
    } else if (const Listpack* pack = listpack_or_null()) {
      char text[Listpack::kScratch];
      for (auto at = pack->first(); at != Listpack::kNone && goes_on; at = pack->next(at))
        goes_on = fn(pack->get(at).text(text));
    } else {
      uint64_t cursor = 0;
      do {
        cursor = table().scan(cursor, [&](const Member* member) {
          if (goes_on) goes_on = fn(member->text());
        });
      } while (goes_on && cursor != 0);
    }
  }
  // One step of SSCAN: small encodings return all members at once and the cursor 0.
  template <typename Fn>
  uint64_t scan(uint64_t cursor, Fn&& fn) const {
    if (!is_table()) {
      for_each(fn);
      return 0;
    }
    return table().scan(cursor, [&](const Member* member) { fn(member->text()); });
  }

  bool is_intset() const { return form_ == Form::kIntset; }
  // The encodings, for DEBUG; null when the set has another one.
  const Table* table_or_null() const { return is_table() ? &table() : nullptr; }
  const Listpack* listpack_or_null() const {
    return form_ == Form::kListpack ? &listpack_ : nullptr;
  }
  const Intset* intset_or_null() const { return is_intset() ? &intset_ : nullptr; }

 private:
  enum class Form : uint8_t { kIntset, kListpack, kTable };
  struct Large {
    explicit Large(const base::HashSecret& secret) : table(secret) {}
    ~Large() { for_each_prefetched(table, Member::destroy); }
    Large(const Large&) = delete;
    Large& operator=(const Large&) = delete;
    // False when the member is in the table.
    bool add(std::string_view member);

    Table table;
    size_t member_bytes = 0;
  };

  bool is_table() const { return form_ == Form::kTable; }
  Table& table() { return large_->table; }
  const Table& table() const { return large_->table; }
  // Frees what holds the members; one of become() must follow.
  void drop();
  void become(Intset members);
  void become(Listpack members);
  void become(std::unique_ptr<Large> members);
  bool add_to_intset(std::string_view member);
  bool add_to_listpack(std::string_view member);
  void convert_to_listpack();
  bool is_within_limits() const;
  // Converts a table of few integers to an intset.
  void compact_integers();

  const ValueLimits& limits() const { return environment_->limits; }

  // In the padding of the base class, so that a set takes 32 bytes.
  Form form_ = Form::kIntset;
  const Environment* environment_;
  union {
    Intset intset_;
    Listpack listpack_;
    Large* large_;  // owned
  };
};
static_assert(sizeof(Set) == 32);

}  // namespace latchkey::store
