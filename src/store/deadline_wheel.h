// An index of entries by deadline, which reports the entries that are due.
//
// A hierarchical timing wheel (G. Varghese and A. Lauck, 1987): ten levels of 64 slots, a tick of
// 16 ms at the bottom, enough levels for every deadline that an int64 holds. A slot is a doubly
// linked list threaded through the entries themselves, so an entry costs 24 bytes here and nothing
// more, is erased in O(1), and nothing stale is ever kept.
//
// Postponing a deadline costs nothing: the entry stays in its slot until the wheel reaches that
// slot, and is then moved to the right one. Only an earlier deadline moves the entry at once. An
// entry moves at most once per level before it is reported.
//
// Precision: advance() reports an entry at the first call that is at least one tick after its
// deadline, never before it. When the clock is set back, every entry is placed again, within the
// budgets of the following advance() calls.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace latchkey::store {

// The part of an entry that holds its deadline. Unlinked nodes have null links.
struct DeadlineNode {
  int64_t deadline_ms = 0;  // Unix time
  DeadlineNode* previous = nullptr;
  DeadlineNode* next = nullptr;
};

class DeadlineWheel {
 public:
  // `now_ms`: the wheel's start time; deadlines before it are due at once.
  explicit DeadlineWheel(int64_t now_ms);
  DeadlineWheel(const DeadlineWheel&) = delete;
  DeadlineWheel& operator=(const DeadlineWheel&) = delete;

  size_t size() const { return size_; }
  // Mean deadline of all entries, Unix time in milliseconds; 0 when there are none.
  int64_t mean_deadline_ms() const;

  // Links a node whose deadline_ms is set. O(1).
  void insert(DeadlineNode& node);
  // Unlinks. O(1).
  void erase(DeadlineNode& node);
  // Gives a linked node another deadline. O(1).
  void update(DeadlineNode& node, int64_t deadline_ms);
  // Has a linked node reported at `until_ms` although its deadline, which stays, is earlier. O(1).
  void defer(DeadlineNode& node, int64_t until_ms);
  // Puts `moved`, a copy of a linked node at another address, in its place. O(1).
  void relocate(DeadlineNode& moved);

  // Calls fn(node) for `count` nodes, or all if there are fewer. Starts at slot `chance` modulo the
  // number of slots. Sampled nodes move to the end of their slot, so that the next call sees
  // others. O(count + slots).
  template <typename Fn>
  void sample(uint64_t chance, size_t count, Fn&& fn) {
    constexpr size_t kAllSlots = kLevels * kSlots;
    for (size_t step = 0; step < kAllSlots && count > 0; ++step) {
      const size_t place = (chance + step) % kAllSlots;
      DeadlineNode& sentinel = slots_[place / kSlots][place % kSlots];
      DeadlineNode* const last = sentinel.previous;
      for (bool more = sentinel.next != &sentinel; more && count > 0; --count) {
        DeadlineNode& node = *sentinel.next;
        more = &node != last;
        unlink(node);
        link_before(sentinel, node);
        fn(static_cast<const DeadlineNode&>(node));
      }
    }
  }

  // Calls fn(node) for every node with deadline <= until_ms that shares a tick with the earliest of
  // them. fn changes nothing and returns true, or has the node deferred beyond until_ms and returns
  // false: then it is as if the node were not there. False when there is none. `now_ms` is not
  // after `until_ms`. Costs what advance() does, and a look at each node of that tick.
  template <typename Fn>
  bool first_due(int64_t now_ms, int64_t until_ms, Fn&& fn) {
    see(now_ms);
    // A node is in the slot of the tick behind its deadline's.
    const int64_t target = tick_of(until_ms) + 1;
    for (bool found = false;;) {
      DeadlineNode* node = next_candidate(target);
      if (node == nullptr) return false;
      if (is_cascading(*node)) {
        unlink(*node);
        place(*node);
        continue;
      }
      DeadlineNode& sentinel = slots_[0][static_cast<size_t>(current_) & (kSlots - 1)];
      for (node = sentinel.next; node != &sentinel;) {
        DeadlineNode& each = *node;
        node = node->next;
        if (tick_of(each.deadline_ms) >= current_) {  // it was postponed
          unlink(each);
          place(each);
        } else if (each.deadline_ms <= until_ms) {
          found |= fn(each);
        }
      }
      if (found) return true;
      if (current_ == target) return false;
    }
  }

  // Calls on_due(node), which must erase() or defer() the node, for each node with deadline <=
  // now_ms, until there are no more of them or `budget` nodes have been examined. Returns false
  // when the budget ended it.
  template <typename OnDue>
  bool advance(int64_t now_ms, size_t budget, OnDue&& on_due) {
    see(now_ms);
    const int64_t target = tick_of(now_ms);
    for (;;) {
      DeadlineNode* node = next_candidate(target);
      if (node == nullptr) return true;
      if (budget-- == 0) return false;
      __builtin_prefetch(node->next);
      if (node->deadline_ms <= now_ms) {
        on_due(*node);
      } else {
        unlink(*node);
        place(*node);
      }
    }
  }

 private:
  static constexpr unsigned kLevels = 10;
  static constexpr unsigned kSlotBits = 6;
  static constexpr size_t kSlots = size_t{1} << kSlotBits;
  static constexpr unsigned kTickShift = 4;  // 16 ms

  static int64_t tick_of(int64_t ms) { return ms < 0 ? 0 : ms >> kTickShift; }
  static void unlink(DeadlineNode& node) {
    node.previous->next = node.next;
    node.next->previous = node.previous;
  }
  static void link_before(DeadlineNode& position, DeadlineNode& node);
  void place(DeadlineNode& node);
  // Advances the wheel up to `target` and returns the next node of a slot it has reached; null when
  // there is none. The node is either due or must be placed again, because it was postponed or
  // moves down from a higher level.
  DeadlineNode* next_candidate(int64_t target);
  void enter(int64_t tick);
  bool is_cascading(const DeadlineNode& node) const { return &node == cascading_.next; }
  // Sets the wheel back when the clock was. That the wheel is ahead of the clock does not tell:
  // first_due() goes ahead, and then every node in its way has been seen.
  void see(int64_t now_ms) {
    const int64_t tick = tick_of(now_ms);
    if (tick < seen_) rewind(tick);
    seen_ = tick;
  }
  // Sets the wheel back to an earlier tick.
  void rewind(int64_t tick);
  // Moves the nodes of a slot to the end of cascading_.
  void cascade(DeadlineNode& sentinel);

  std::array<std::array<DeadlineNode, kSlots>, kLevels> slots_;  // sentinels of circular lists
  std::array<uint64_t, kLevels> occupied_{};                     // bit set: the slot may hold nodes
  DeadlineNode cascading_;  // nodes of slots just entered, which will be placed at a lower level
  int64_t current_ = 0;     // every tick before this one has been processed
  int64_t seen_ = 0;        // the tick of the time at the last call
  size_t size_ = 0;
  __int128 deadline_sum_ = 0;
};

}  // namespace latchkey::store
