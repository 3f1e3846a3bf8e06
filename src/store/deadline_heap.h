// A binary heap of items by deadline. Each item knows its place in the heap, so insert(), update()
// and erase() are O(log n), and first() is O(1). Unlike the keyspace's wheel (deadline_wheel.h) it
// is exact and has no fixed size, so a program can have many of them.
//
//     struct Traits { using Item = ...; static uint32_t& place(Item& item); };
//
// place() is where the item stores its place in the heap. The heap stores the deadlines, 16 bytes
// an item. The caller owns the items; there are fewer than 2^32 of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/assert.h"

namespace latchkey::store {

template <typename Traits>
class DeadlineHeap {
 public:
  using Item = typename Traits::Item;

  size_t size() const { return nodes_.size(); }
  bool empty() const { return nodes_.empty(); }
  size_t memory_usage() const { return nodes_.capacity() * sizeof(Node); }

  // The item due first, and its deadline. REQUIRES: !empty().
  Item& first() const { return *nodes_.front().item; }
  int64_t first_deadline_ms() const { return nodes_.front().deadline_ms; }
  // REQUIRES for deadline_ms(), update() and erase(): the item is in the heap.
  int64_t deadline_ms(Item& item) const { return nodes_[Traits::place(item)].deadline_ms; }

  void insert(Item& item, int64_t deadline_ms) {
    nodes_.push_back({deadline_ms, &item});
    LK_ASSERT(nodes_.size() <= UINT32_MAX);
    rise(nodes_.size() - 1);
  }
  void update(Item& item, int64_t deadline_ms) {
    const size_t place = Traits::place(item);
    const int64_t before_ms = std::exchange(nodes_[place].deadline_ms, deadline_ms);
    if (deadline_ms < before_ms) {
      rise(place);
    } else {
      sink(place);
    }
  }
  void erase(Item& item) {
    const size_t place = Traits::place(item);
    LK_ASSERT(nodes_[place].item == &item);
    const Node last = nodes_.back();
    nodes_.pop_back();
    if (nodes_.capacity() > kKept && nodes_.size() < nodes_.capacity() / 4) nodes_.shrink_to_fit();
    if (place == nodes_.size()) return;
    put(place, last);
    rise(place);
    sink(Traits::place(*last.item));
  }

 private:
  struct Node {
    int64_t deadline_ms;
    Item* item;
  };
  // erase() shrinks nodes_ only when its capacity is above this.
  static constexpr size_t kKept = 16;

  void put(size_t place, Node node) {
    nodes_[place] = node;
    Traits::place(*node.item) = static_cast<uint32_t>(place);
  }
  void rise(size_t place) {
    const Node node = nodes_[place];
    while (place > 0) {
      const size_t parent = (place - 1) / 2;
      if (nodes_[parent].deadline_ms <= node.deadline_ms) break;
      put(place, nodes_[parent]);
      place = parent;
    }
    put(place, node);
  }
  void sink(size_t place) {
    const Node node = nodes_[place];
    for (;;) {
      size_t child = 2 * place + 1;
      if (child >= nodes_.size()) break;
      if (child + 1 < nodes_.size() && nodes_[child + 1].deadline_ms < nodes_[child].deadline_ms)
        ++child;
      if (nodes_[child].deadline_ms >= node.deadline_ms) break;
      put(place, nodes_[child]);
      place = child;
    }
    put(place, node);
  }

  std::vector<Node> nodes_;
};

}  // namespace latchkey::store
