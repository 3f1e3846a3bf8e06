// A hash table of pointers that grows and shrinks one bucket at a time.
//
// Use: the keyspace, large hashes and sets. Items are owned by the caller; the table holds
// pointers.
//
// Structure: linear hashing (W. Litwin, "Linear Hashing: A New Tool for File and Table Addressing",
// VLDB 1980). The table has N = 2^level + split buckets; bucket i with i < split has already been
// split into i and i + 2^level. An insertion that brings the load above max_load() splits the next
// bucket, an erasure that brings it below kMinLoad merges the last one back. So there is never a
// second table, no step does more than one bucket's work, and the load, and with it the memory per
// key, stays the same at every size.
//
// A bucket is one cache line: seven tagged slots. A tag is eight bits of the hash; all seven are
// compared at once, so a lookup reads the bucket's line and, nearly always, only the line of the
// item it looks for.
//
//      0       7 8      16                                    64
//     +---------+--------+--------+-- ... --+------------------+
//     | tags[7] |c| slot0 | slot1  |         | slot6            |
//     +---------+--------+--------+-- ... --+------------------+
//
// Tag 0 marks an empty slot. When a bucket is full, c is set and slot6 points to another bucket (a
// chain).
//
// Costs: find, insert, erase O(1) expected. About 14.5 bytes per item besides the item, a little
// more in tables of a few thousand; 13.3 at a load of 70, where one item in four instead of one in
// six is in a chained bucket. Hashes are keyed (HashSecret).
//
// Scanning: scan() takes a cursor and returns the next one; it keeps no state in the table. Every
// item present from the first call to the last is seen at least once, whatever is inserted or
// erased meanwhile. The cursor counts in reversed-binary order over the low `level` bits, as P.
// Noordhuis' dictScan does for tables of powers of two; a split bucket is visited together with
// its other half.
//
// No item may be inserted or erased inside a callback of for_each or scan. Not thread-safe.
#pragma once

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/assert.h"
#include "base/digest/hash.h"
#include "base/prefetch.h"
#include "base/random.h"

namespace latchkey::store {

// The steps of a batched lookup; each prefetches what the next one reads.
enum class LookupStep : uint8_t { kBucket, kItem, kChainedItem };

// Traits name the item and its key, and may raise the load at which buckets are split:
//
//     struct Traits {
//       using Item = ...;
//       static std::string_view key(const Item*);
//       static constexpr size_t kMaxLoad = 70;  // items per ten buckets; kDefaultMaxLoad without
//     };
template <typename Traits>
class HashTable {
 public:
  using Item = typename Traits::Item;

  explicit HashTable(const base::HashSecret& secret) : secret_(&secret) {}
  ~HashTable() { release(); }
  HashTable(const HashTable&) = delete;
  HashTable& operator=(const HashTable&) = delete;
  HashTable(HashTable&& other) noexcept { take(other); }
  HashTable& operator=(HashTable&& other) noexcept {
    if (this != &other) {
      release();
      take(other);
    }
    return *this;
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // Primary buckets; chained ones come on top.
  size_t bucket_count() const { return bucket_count_; }
  size_t chained_bucket_count() const { return chained_count_; }
  // Bytes held by the table itself.
  size_t memory_usage() const {
    return allocated_buckets_ * sizeof(Bucket) + chained_count_ * sizeof(Bucket) +
           directory_capacity_ * sizeof(Bucket*);
  }

  // Bytes of the buckets in use, without those allocated in advance.
  size_t bucket_bytes() const { return (bucket_count_ + chained_count_) * sizeof(Bucket); }

  uint64_t hash(std::string_view key) const { return secret_->hash(key); }
  const base::HashSecret& secret() const { return *secret_; }

  // First step of a batched lookup: prefetches the bucket's line.
  void prefetch_bucket(uint64_t hash) const {
    if (size_ != 0) base::prefetch(&bucket_at(index_of(hash)));
  }
  // Second step, when the bucket has arrived: prefetches the candidate items and the chained
  // bucket.
  void prefetch_item(uint64_t hash) const {
    if (size_ == 0) return;
    const Bucket& bucket = bucket_at(index_of(hash));
    if (bucket.chained != 0) base::prefetch(bucket.next());
    prefetch_candidates(bucket, hash);
  }
  // Third step: prefetches the candidates of the chained bucket. One item in six is in a chained
  // bucket.
  void prefetch_chained_item(uint64_t hash) const {
    if (size_ == 0) return;
    const Bucket* chained = bucket_at(index_of(hash)).next();
    if (chained != nullptr) prefetch_candidates(*chained, hash);
  }

  // Performs one of the three steps.
  void prefetch(uint64_t hash, LookupStep step) const {
    if (step == LookupStep::kBucket) return prefetch_bucket(hash);
    if (step == LookupStep::kItem) return prefetch_item(hash);
    prefetch_chained_item(hash);
  }

  // The slot that holds the item with `key`, or null. Valid until the next insertion or erasure.
  Item** find(std::string_view key, uint64_t hash) {
    return find_where(hash, [key](const Item* item) { return Traits::key(item) == key; });
  }
  // The slot of the item with that hash for which is_it(item), or null. Valid as long.
  template <typename Predicate>
  Item** find_where(uint64_t hash, Predicate&& is_it) {
    if (size_ == 0) return nullptr;
    const uint8_t tag = tag_of(hash);
    for (Bucket* bucket = &bucket_at(index_of(hash)); bucket != nullptr; bucket = bucket->next()) {
      for (uint32_t matches = bucket->match(tag); matches != 0; matches &= matches - 1) {
        Item** slot = &bucket->slots[std::countr_zero(matches)];
        if (is_it(*slot)) return slot;
      }
    }
    return nullptr;
  }
  Item* find_item(std::string_view key) const {
    Item** slot = const_cast<HashTable*>(this)->find(key, hash(key));
    return slot == nullptr ? nullptr : *slot;
  }

  // Adds an item. REQUIRES: its key is absent. Returns its slot, valid until the next insertion or
  // erasure.
  Item** insert(Item* item, uint64_t hash) {
    if (bucket_count_ == 0) allocate_first_bucket();
    ++size_;
    if (size_ * kLoadScale > bucket_count_ * max_load()) split_one_bucket();
    return place(bucket_at(index_of(hash)), item, tag_of(hash));
  }

  // Removes the item in `slot`, which find() or insert() returned for `hash`, and returns the item.
  Item* erase(Item** slot, uint64_t hash) {
    LK_ASSERT(slot != nullptr && size_ > 0);
    Item* item = *slot;
    remove_from_chain(bucket_at(index_of(hash)), slot);
    --size_;
    if (bucket_count_ > 1 && size_ * kLoadScale < bucket_count_ * kMinLoad) merge_last_bucket();
    if (size_ == 0) release();
    return item;
  }

  // An item chosen uniformly, or null when empty. Expected a few probes.
  Item* random(base::Random& random) const {
    if (size_ == 0) return nullptr;
    // Rejection sampling over (bucket, position): positions past a chain's end are misses, so every
    // item has the same chance.
    const size_t positions = longest_chain_ * kSlots;
    for (;;) {
      const Bucket* bucket = &bucket_at(random.below(bucket_count_));
      size_t position = random.below(positions);
      while (position >= kSlots && bucket != nullptr) {
        bucket = bucket->next();
        position -= kSlots;
      }
      if (bucket != nullptr && bucket->tags[position] != 0) return bucket->slots[position];
    }
  }

  // Prefetches an item that will be visited soon. Its key may reach into a second line.
  static void prefetch_to_visit(const Item* item) {
    constexpr size_t kUsualReach = 31;
    base::prefetch(item);
    base::prefetch(reinterpret_cast<const char*>(item) + kUsualReach);
  }

  // Calls fn(Item*) for every item, in no particular order.
  template <typename Fn>
  void for_each(Fn&& fn) const {
    // The buckets follow one another in memory, the chained ones do not.
    constexpr size_t kAhead = 4;
    for (size_t i = 0; i < bucket_count_; ++i) {
      if (i + kAhead < bucket_count_) prefetch_chained(bucket_at(i + kAhead));
      visit_chain(bucket_at(i), fn);
    }
  }

  // One step of a scan: calls fn(Item*) for the items of one bucket (or of both halves of a split
  // one) and returns the next cursor; 0 starts and 0 ends. Prefetches what the next steps read.
  template <typename Fn>
  uint64_t scan(uint64_t cursor, Fn&& fn) const {
    if (size_ == 0) return 0;
    const uint64_t low_mask = (uint64_t{1} << level_) - 1;
    const uint64_t next = reverse_bits(cursor | ~low_mask) + 1;
    prefetch_scan(next);
    for_halves(cursor & low_mask, [&](const Bucket& bucket) { visit_chain(bucket, fn); });
    return reverse_bits(next);
  }

  // Number of items in primary bucket `index` and its chain, for statistics.
  size_t chain_size(size_t index) const {
    size_t count = 0;
    visit_chain(bucket_at(index), [&](Item*) { ++count; });
    return count;
  }

  // Removes every item, without touching them, and frees the memory.
  void clear() { release(); }

 private:
  static constexpr size_t kSlots = 7;
  // Loads in items per ten buckets: split above max_load(), merge below kMinLoad.
  static constexpr size_t kLoadScale = 10;
  static constexpr size_t kDefaultMaxLoad = 56;
  static constexpr size_t kMinLoad = 14;
  static constexpr size_t max_load() {
    if constexpr (requires { Traits::kMaxLoad; }) {
      return Traits::kMaxLoad;
    } else {
      return kDefaultMaxLoad;
    }
  }
  static constexpr unsigned kSegmentShift = 10;
  static constexpr size_t kSegmentBuckets = size_t{1} << kSegmentShift;

  struct alignas(64) Bucket {
    uint8_t tags[kSlots];
    uint8_t chained;
    Item* slots[kSlots];

    // Bit i set when tags[i] == tag.
    uint32_t match(uint8_t tag) const {
#if defined(__SSE2__)
      const __m128i line = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(tags));
      const __m128i equal = _mm_cmpeq_epi8(line, _mm_set1_epi8(static_cast<char>(tag)));
      return static_cast<uint32_t>(_mm_movemask_epi8(equal)) & 0x7f;
#else
      uint32_t matches = 0;
      for (size_t i = 0; i < kSlots; ++i) matches |= static_cast<uint32_t>(tags[i] == tag) << i;
      return matches;
#endif
    }
    size_t usable_slots() const {
      return chained != 0 ? kSlots - 1 : kSlots;
    }
    Bucket* next() const {
      return chained != 0 ? reinterpret_cast<Bucket*>(slots[kSlots - 1]) : nullptr;
    }
  };
  static_assert(sizeof(Bucket) == 64);

  static void prefetch_candidates(const Bucket& bucket, uint64_t hash) {
    for (uint32_t matches = bucket.match(tag_of(hash)); matches != 0; matches &= matches - 1) {
      base::prefetch(bucket.slots[std::countr_zero(matches)]);
    }
  }

  static uint8_t tag_of(uint64_t hash) {
    const auto tag = static_cast<uint8_t>(hash >> 56);
    return tag == 0 ? 1 : tag;
  }

  size_t index_of(uint64_t hash) const {
    const size_t wide = hash & ((size_t{2} << level_) - 1);
    return wide < bucket_count_ ? wide : wide & ((size_t{1} << level_) - 1);
  }

  Bucket& bucket_at(size_t index) const {
    return directory_[index >> kSegmentShift][index & (kSegmentBuckets - 1)];
  }

  static Bucket* allocate_buckets(size_t count) {
    void* memory = ::operator new (count * sizeof(Bucket), std::align_val_t{64});
    std::memset(memory, 0, count * sizeof(Bucket));
    return static_cast<Bucket*>(memory);
  }
  static void free_buckets(Bucket* buckets) {
    ::operator delete (buckets, std::align_val_t{64});
  }

  void allocate_first_bucket() {
    reserve_directory(1);
    directory_[0] = allocate_buckets(1);
    allocated_buckets_ = bucket_count_ = 1;
    level_ = 0;
    split_ = 0;
    longest_chain_ = 1;
  }

  void reserve_directory(size_t segments) {
    if (segments <= directory_capacity_) return;
    const size_t capacity = std::bit_ceil(segments);
    auto** directory = static_cast<Bucket**>(std::realloc(directory_, capacity * sizeof(Bucket*)));
    if (directory == nullptr) throw std::bad_alloc();
    directory_ = directory;
    directory_capacity_ = capacity;
  }

  // Adds the bucket with the number bucket_count_. The first segment doubles until it has
  // kSegmentBuckets; later segments are allocated with that size.
  void append_bucket() {
    if (bucket_count_ == allocated_buckets_) {
      if (allocated_buckets_ < kSegmentBuckets) {
        resize_first_segment(allocated_buckets_ * 2);
      } else {
        const size_t segment = allocated_buckets_ >> kSegmentShift;
        reserve_directory(segment + 1);
        directory_[segment] = allocate_buckets(kSegmentBuckets);
        allocated_buckets_ += kSegmentBuckets;
      }
    }
    ++bucket_count_;
  }

  void split_one_bucket() {
    const uint64_t high_bit = uint64_t{1} << level_;
    append_bucket();
    Bucket& low = bucket_at(split_);
    Bucket& high = bucket_at(split_ + high_bit);
    for (Bucket* bucket = &low; bucket != nullptr; bucket = bucket->next()) {
      for (size_t i = 0; i < bucket->usable_slots(); ++i) {
        if (bucket->tags[i] != 0) base::prefetch(bucket->slots[i]);
      }
    }
    // Collect the chain, then redistribute its items: chains are a handful of items.
    const Bucket old = low;
    std::memset(static_cast<void*>(&low), 0, sizeof(Bucket));
    deal_out(&old, [&](uint64_t hash) -> Bucket& { return (hash & high_bit) != 0 ? high : low; });
    Bucket* rest = old.next();
    while (rest != nullptr) {
      deal_out(rest, [&](uint64_t hash) -> Bucket& { return (hash & high_bit) != 0 ? high : low; });
      Bucket* next = rest->next();
      free_buckets(rest);
      --chained_count_;
      rest = next;
    }
    if (++split_ == high_bit) {
      split_ = 0;
      ++level_;
    }
  }

  template <typename Choose>
  void deal_out(const Bucket* bucket, Choose&& choose) {
    for (size_t i = 0; i < bucket->usable_slots(); ++i) {
      if (bucket->tags[i] == 0) continue;
      Item* item = bucket->slots[i];
      place(choose(hash(Traits::key(item))), item, bucket->tags[i]);
    }
  }

  void merge_last_bucket() {
    if (split_ == 0) {
      --level_;
      split_ = size_t{1} << level_;
    }
    --split_;
    Bucket& low = bucket_at(split_);
    Bucket& high = bucket_at(bucket_count_ - 1);
    for (Bucket* bucket = &high; bucket != nullptr;) {
      for (size_t i = 0; i < bucket->usable_slots(); ++i) {
        if (bucket->tags[i] != 0) place(low, bucket->slots[i], bucket->tags[i]);
      }
      Bucket* next = bucket->next();
      if (bucket != &high) {
        free_buckets(bucket);
        --chained_count_;
      }
      bucket = next;
    }
    std::memset(static_cast<void*>(&high), 0, sizeof(Bucket));
    --bucket_count_;
    give_back_buckets();
  }

  // Some free buckets are kept, so that a table near a boundary does not allocate and free in
  // turns.
  void give_back_buckets() {
    if (allocated_buckets_ > kSegmentBuckets) {
      if (bucket_count_ + kSegmentBuckets + kSegmentBuckets / 2 > allocated_buckets_) return;
      allocated_buckets_ -= kSegmentBuckets;
      free_buckets(directory_[allocated_buckets_ >> kSegmentShift]);
    } else if (bucket_count_ * 4 <= allocated_buckets_) {
      resize_first_segment(allocated_buckets_ / 2);
    }
  }

  void resize_first_segment(size_t buckets) {
    Bucket* moved = allocate_buckets(buckets);
    std::memcpy(static_cast<void*>(moved), directory_[0], bucket_count_ * sizeof(Bucket));
    free_buckets(directory_[0]);
    directory_[0] = moved;
    allocated_buckets_ = buckets;
  }

  Item** place(Bucket& head, Item* item, uint8_t tag) {
    Bucket* bucket = &head;
    size_t length = 1;
    for (;;) {
      uint32_t empty = bucket->match(0);
      if (bucket->chained != 0) empty &= (1u << (kSlots - 1)) - 1;
      if (empty != 0) {
        const int i = std::countr_zero(empty);
        bucket->tags[i] = tag;
        bucket->slots[i] = item;
        return &bucket->slots[i];
      }
      if (bucket->chained == 0) {
        Bucket* overflow = allocate_buckets(1);
        ++chained_count_;
        overflow->tags[0] = bucket->tags[kSlots - 1];
        overflow->slots[0] = bucket->slots[kSlots - 1];
        bucket->tags[kSlots - 1] = 0;
        bucket->slots[kSlots - 1] = reinterpret_cast<Item*>(overflow);
        bucket->chained = 1;
      }
      bucket = bucket->next();
      if (++length > longest_chain_) longest_chain_ = length;
    }
  }

  // Fills the hole from the chain's last bucket, so that chains stay short and dense.
  void remove_from_chain(Bucket& head, Item** slot) {
    auto* holder = reinterpret_cast<Bucket*>(reinterpret_cast<uintptr_t>(slot) & ~uintptr_t{63});
    const auto hole = static_cast<size_t>(slot - holder->slots);
    holder->tags[hole] = 0;
    holder->slots[hole] = nullptr;
    if (head.chained == 0) return;
    Bucket* parent = &head;
    Bucket* last = head.next();
    while (last->chained != 0) {
      parent = last;
      last = last->next();
    }
    size_t live = 0;
    size_t index = kSlots;
    for (size_t i = 0; i < kSlots; ++i) {
      if (last->tags[i] != 0) {
        ++live;
        index = i;
      }
    }
    if (live > 0 && holder != last) {
      holder->tags[hole] = last->tags[index];
      holder->slots[hole] = last->slots[index];
      last->tags[index] = 0;
      last->slots[index] = nullptr;
      --live;
    }
    if (live == 0) {
      parent->chained = 0;
      parent->tags[kSlots - 1] = 0;
      parent->slots[kSlots - 1] = nullptr;
      free_buckets(last);
      --chained_count_;
    }
  }

  template <typename Fn>
  static void visit_chain(const Bucket& head, Fn&& fn) {
    for (const Bucket* bucket = &head; bucket != nullptr; bucket = bucket->next()) {
      for (size_t i = 0; i < bucket->usable_slots(); ++i) {
        if (bucket->tags[i] != 0) fn(bucket->slots[i]);
      }
    }
  }

  static void prefetch_chained(const Bucket& bucket) {
    if (bucket.chained != 0) base::prefetch(bucket.next());
  }

  // Calls fn(const Bucket&) for the bucket, and for its other half if it has been split.
  template <typename Fn>
  void for_halves(size_t index, Fn&& fn) const {
    fn(bucket_at(index));
    if (index < split_) fn(bucket_at(index + (size_t{1} << level_)));
  }

  // Steps of a scan go to buckets all over the table. So each step prefetches the items of the next
  // one, the chained buckets of the one after it, and the bucket of the third. `next`: the reversed
  // cursor of the next step, in which the upper `level_` bits count.
  void prefetch_scan(uint64_t next) const {
    // Smaller tables are in the cache.
    constexpr unsigned kMinLevel = 6;
    if (level_ < kMinLevel) return;
    const uint64_t low_mask = (uint64_t{1} << level_) - 1;
    const auto index_after = [&](uint64_t steps) {
      return reverse_bits(next + (steps << (64 - level_))) & low_mask;
    };
    for_halves(index_after(2), [](const Bucket& bucket) { base::prefetch(&bucket); });
    for_halves(index_after(1), prefetch_chained);
    for_halves(index_after(0),
               [](const Bucket& bucket) { visit_chain(bucket, prefetch_to_visit); });
  }

  static uint64_t reverse_bits(uint64_t value) {
    value = __builtin_bswap64(value);
    value = ((value >> 4) & 0x0f0f0f0f0f0f0f0fULL) | ((value & 0x0f0f0f0f0f0f0f0fULL) << 4);
    value = ((value >> 2) & 0x3333333333333333ULL) | ((value & 0x3333333333333333ULL) << 2);
    return ((value >> 1) & 0x5555555555555555ULL) | ((value & 0x5555555555555555ULL) << 1);
  }

  void release() {
    for (size_t i = 0; i < bucket_count_ && chained_count_ > 0; ++i) {
      Bucket* bucket = bucket_at(i).next();
      while (bucket != nullptr) {
        Bucket* next = bucket->next();
        free_buckets(bucket);
        --chained_count_;
        bucket = next;
      }
    }
    for (size_t first = 0; first < allocated_buckets_; first += kSegmentBuckets) {
      free_buckets(directory_[first >> kSegmentShift]);
    }
    std::free(directory_);
    forget();
  }

  void forget() {
    directory_ = nullptr;
    directory_capacity_ = allocated_buckets_ = bucket_count_ = split_ = size_ = chained_count_ = 0;
    level_ = 0;
    longest_chain_ = 1;
  }

  void take(HashTable& other) {
    secret_ = other.secret_;
    directory_ = other.directory_;
    directory_capacity_ = other.directory_capacity_;
    allocated_buckets_ = other.allocated_buckets_;
    bucket_count_ = other.bucket_count_;
    split_ = other.split_;
    size_ = other.size_;
    chained_count_ = other.chained_count_;
    longest_chain_ = other.longest_chain_;
    level_ = other.level_;
    other.forget();
  }

  const base::HashSecret* secret_ = nullptr;
  Bucket** directory_ = nullptr;
  size_t bucket_count_ = 0;
  size_t size_ = 0;
  unsigned level_ = 0;
  size_t split_ = 0;
  size_t allocated_buckets_ = 0;
  size_t directory_capacity_ = 0;
  size_t chained_count_ = 0;
  // Upper bound of buckets in any chain since the table was last empty.
  size_t longest_chain_ = 1;
};

}  // namespace latchkey::store
