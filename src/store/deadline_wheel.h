// An index of deadlines: which entries are due by now?
//
// A hierarchical timing wheel (G. Varghese and A. Lauck, 1987): ten levels of 64 slots, a tick of
// 16 ms at the bottom, enough levels for every deadline that an int64 holds. A slot is a doubly
// linked list threaded through the entries themselves, so an entry costs 24 bytes here and nothing
// more, leaves in O(1) when it is erased, and nothing stale is ever kept.
//
// Postponing a deadline costs nothing: the entry stays where it is, and when its old slot is
// reached it is put where it now belongs. Only a deadline that comes nearer moves at once. Reaching
// a deadline takes at most one move per level.
//
// Precision: an entry is reported at the first advance() that is at least one tick after its
// deadline, never before it. When the clock is set back, the wheel follows: every entry is placed
// anew, within the budget of the advances that come.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace latchkey::store {

// What an entry with a deadline carries. Unlinked nodes have null links.
struct DeadlineNode {
  int64_t deadline_ms = 0;  // Unix time
  DeadlineNode* previous = nullptr;
  DeadlineNode* next = nullptr;
};

class DeadlineWheel {
 public:
  // `now_ms`: where the wheel starts; deadlines before it are due at once.
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
  // Puts `moved`, a copy of a linked node at another address, in its place. O(1).
  void relocate(DeadlineNode& moved);

  // Calls fn(node) for `count` nodes, or all if there are fewer, from a slot chosen by `chance`,
  // any number, on. Nodes seen go to the end of their slot, so that the next call sees others.
  // O(count + slots).
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

  // Reports nodes with deadline <= now_ms by on_due(node), which must erase() the node, until all
  // such nodes have been reported or `budget` nodes have been looked at. Returns false when the
  // budget ended it.
  template <typename OnDue>
  bool advance(int64_t now_ms, size_t budget, OnDue&& on_due) {
    const int64_t target = tick_of(now_ms);
    if (target < current_) rewind(target);
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
  // The next node of a slot that `target` has reached, moving the wheel on; null when there is
  // none. The node is due, or belongs elsewhere: postponed, or on its way down from a higher level.
  DeadlineNode* next_candidate(int64_t target);
  void enter(int64_t tick);
  // Goes back to an earlier tick.
  void rewind(int64_t tick);
  // Moves the nodes of a slot to the end of the cascade.
  void cascade(DeadlineNode& sentinel);

  std::array<std::array<DeadlineNode, kSlots>, kLevels> slots_;  // sentinels of circular lists
  std::array<uint64_t, kLevels> occupied_{};                     // bit set: the slot may hold nodes
  DeadlineNode cascading_;  // nodes of slots just entered, waiting to be placed lower
  int64_t current_ = 0;     // every tick before this one has been dealt with
  size_t size_ = 0;
  __int128 deadline_sum_ = 0;
};

}  // namespace latchkey::store
