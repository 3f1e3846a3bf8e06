// Random samples without repetition, for SRANDMEMBER, SPOP, HRANDFIELD and ZRANDMEMBER. Every
// choice of so many elements is equally likely.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/random.h"
#include "store/hash_table.h"

namespace latchkey::store {

// Whether a sample of a hash table is drawn element by element (draw_distinct()), because few draws
// hit an element again. Otherwise all elements are visited (SelectionSample).
constexpr bool is_small_sample(size_t count, size_t size) {
  constexpr size_t kFewOutOf = 8;
  return count < size / kFewOutOf;
}

// Calls fn(const Item*) for `count` different items. REQUIRES: is_small_sample(). Expected
// O(count).
template <typename Traits, typename Fn>
void draw_distinct(const HashTable<Traits>& table, base::Random& random, size_t count, Fn&& fn) {
  HashTable<Traits> drawn(table.secret());
  while (drawn.size() < count) {
    auto* const item = table.random(random);
    const auto key = Traits::key(item);
    const uint64_t hash = drawn.hash(key);
    if (drawn.find(key, hash) != nullptr) continue;
    drawn.insert(item, hash);
    fn(static_cast<const typename Traits::Item*>(item));
  }
}

// Decides of each element of a walk whether it belongs to the sample: with the probability (still
// wanted) / (elements left) (D. Knuth, TAOCP 3.4.2, algorithm S).
class SelectionSample {
 public:
  // REQUIRES: count <= size.
  SelectionSample(base::Random& random, size_t count, size_t size)
      : random_(random), wanted_(count), left_(size) {}
  // To be called once for each element.
  bool takes_next() {
    const bool takes = wanted_ > 0 && random_.below(left_) < wanted_;
    if (takes) --wanted_;
    --left_;
    return takes;
  }

 private:
  base::Random& random_;
  size_t wanted_;
  size_t left_;
};

}  // namespace latchkey::store
