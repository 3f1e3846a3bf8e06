// Checks whether elements of a listpack are all different as texts.
//
// Untrusted listpacks may encode the same number in several ways; these count as the same text.
// O(1) an element, expected; hashes are keyed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/digest/hash.h"
#include "store/encoding/listpack.h"

namespace latchkey::persist {

// The set of the elements added so far.
class DistinctElements {
 public:
  // `count`: the most elements that will be added. The listpack must not change meanwhile.
  DistinctElements(const store::Listpack& pack, size_t count, const base::HashSecret& secret);
  DistinctElements(const DistinctElements&) = delete;
  DistinctElements& operator=(const DistinctElements&) = delete;

  // `element` is the element at `at`. False when its text has been added already.
  bool add(store::Listpack::Position at, store::Listpack::Element element);

 private:
  // An element's position and half of its hash.
  struct Place {
    store::Listpack::Position at;  // kNone: free
    uint32_t hash;
  };

  const store::Listpack& pack_;
  const base::HashSecret& secret_;
  // Open addressing, at most half full; small tables need no allocation.
  static constexpr size_t kSmall = 256;
  Place small_[kSmall];
  std::vector<Place> large_;
  Place* table_;
  size_t mask_;
};

// Checks every `stride`th element, from the first on. REQUIRES: the number of elements is a
// multiple of `stride`.
bool are_distinct(const store::Listpack& pack, size_t stride, const base::HashSecret& secret);

}  // namespace latchkey::persist
