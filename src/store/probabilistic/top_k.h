// The k items that were probably counted most often. Source: J. Gong et al., "HeavyKeeper: An
// Accurate Algorithm for Finding Top-k Elephant Flows", USENIX ATC 2018.
//
// `depth` rows of `width` buckets: a fingerprint and a count each. An item has one bucket in each
// row, at its MurmurHash2 with the row's number as seed, modulo the width; its fingerprint is the
// same hash with another seed. Counting an item adds to the buckets that have its fingerprint,
// takes those that are empty, and lets others decay: each time, the other item's count falls by one
// with a probability of decay^count, and at 0 the bucket changes hands. The greatest count in the
// item's buckets is its own; if that reaches the least in the list, the item is in the list from
// then on.
//
// The list is a heap of `k` slots, the least count at the top, and a table of its items by text.
// The order in which equal counts move in the heap decides which item is expelled; it is the
// reference's, as are layout and hashes. What decays is chosen at random in both.
//
// Counts have 32 bits and stay at their greatest value.
//
// Costs: add O(depth + log k), and with a decaying bucket one step for each unit by which its count
// falls; contains O(1), count O(depth), list O(k log k).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/hash_table.h"
#include "store/keyspace.h"
#include "store/probabilistic/zeroed_array.h"
#include "store/value/module_value.h"

namespace latchkey::store {

class TopK final : public ModuleValue {
 public:
  static constexpr Type kType = Type::kTopK;
  // 1 GiB of buckets, and 256 MiB of slots, which files have as 384 MiB.
  static constexpr uint64_t kMaxBuckets = uint64_t{1} << 27;
  static constexpr uint64_t kMaxSlots = uint64_t{1} << 24;
  // The most that one call of add() counts.
  static constexpr uint32_t kMaxIncrement = 100'000;
  static constexpr size_t kLongestText = UINT32_MAX;

  struct Shape {
    uint64_t k = 0;
    uint64_t width = 8;
    uint64_t depth = 7;
    // Above 0 and at most 1.
    double decay = 0.9;
  };
  // Whether there can be a list of this shape.
  static bool is_sound(const Shape& shape);

  struct Bucket {
    uint32_t fingerprint;
    uint32_t count;
  };
  // One allocation: this, then the text.
  struct Item {
    uint32_t slot;
    uint32_t text_size;

    std::string_view text() const { return {reinterpret_cast<const char*>(this + 1), text_size}; }
  };
  struct Slot {
    Item* item;  // null: the slot is free
    uint32_t fingerprint;
    uint32_t count;
  };

  // Null when there is not enough memory. REQUIRES: is_sound(shape).
  static std::unique_ptr<TopK> make(Environment& environment, const Shape& shape);
  ~TopK() override;

  const Shape& shape() const { return shape_; }
  std::span<const Bucket> buckets() const { return buckets_.span(); }
  std::span<const Slot> slots() const { return slots_.span(); }

  // Counts an item, and returns the one that it expelled from the list. REQUIRES: increment <=
  // kMaxIncrement, and the item has at most kLongestText bytes.
  std::optional<std::string> add(std::string_view item, uint32_t increment, base::Random& random);
  // Whether the item is in the list.
  bool contains(std::string_view item) const { return table_.find_item(item) != nullptr; }
  // The count of an item in its buckets, in the list or not; 0 if there is none.
  uint32_t count(std::string_view item) const;
  // The slots of items that have a count, the greatest first, in the order of slots where they are
  // equal. Valid until the next change.
  std::vector<const Slot*> list() const;

  // --- Loading ----------------------------------------------------------------------------------

  std::span<Bucket> loading_buckets() { return buckets_.span(); }
  void set_slot(size_t slot, uint32_t fingerprint, uint32_t count);
  // False when there is such an item already. REQUIRES: the slot is free.
  bool set_item(size_t slot, std::string_view text);

  // Value
  size_t free_effort() const override { return table_.size(); }
  size_t element_count() const override { return 1; }
  size_t memory_usage() const override;
  Value* clone() const override { return new TopK(*this); }
  void for_each_digest_part(const DigestPart& part) const override;

 private:
  struct TableTraits {
    using Item = TopK::Item;
    static std::string_view key(const Item* item) { return item->text(); }
  };

  TopK(Environment& environment, const Shape& shape, ZeroedArray<Bucket> buckets,
       ZeroedArray<Slot> slots);
  TopK(const TopK& other);

  size_t place(std::string_view item, uint64_t row) const;
  // Counts `increment` of an item in a bucket that another one has; returns the item's count there.
  uint32_t compete(Bucket& bucket, uint32_t fingerprint, uint32_t increment, base::Random& random);
  void sift_down(size_t slot);
  void swap_slots(size_t one, size_t other);
  void put_item(size_t slot, std::string_view text, uint64_t hash);
  void free_item(Item* item);

  Environment& environment_;
  Shape shape_;
  double log_decay_;
  ZeroedArray<Bucket> buckets_;
  ZeroedArray<Slot> slots_;
  HashTable<TableTraits> table_;
  size_t item_bytes_ = 0;
};

}  // namespace latchkey::store
