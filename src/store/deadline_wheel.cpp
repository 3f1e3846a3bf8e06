#include "store/deadline_wheel.h"

#include <algorithm>
#include <bit>

namespace latchkey::store {

namespace {

void make_empty(DeadlineNode& sentinel) {
  sentinel.previous = sentinel.next = &sentinel;
}

bool is_empty(const DeadlineNode& sentinel) {
  return sentinel.next == &sentinel;
}

}  // namespace

DeadlineWheel::DeadlineWheel(int64_t now_ms) : current_(tick_of(now_ms)), seen_(current_) {
  for (auto& level : slots_) {
    for (auto& sentinel : level) make_empty(sentinel);
  }
  make_empty(cascading_);
}

int64_t DeadlineWheel::mean_deadline_ms() const {
  return size_ == 0 ? 0 : static_cast<int64_t>(deadline_sum_ / static_cast<__int128>(size_));
}

void DeadlineWheel::link_before(DeadlineNode& position, DeadlineNode& node) {
  node.previous = position.previous;
  node.next = &position;
  position.previous->next = &node;
  position.previous = &node;
}

void DeadlineWheel::insert(DeadlineNode& node) {
  ++size_;
  deadline_sum_ += node.deadline_ms;
  place(node);
}

void DeadlineWheel::erase(DeadlineNode& node) {
  --size_;
  deadline_sum_ -= node.deadline_ms;
  unlink(node);
  node.previous = node.next = nullptr;
}

void DeadlineWheel::update(DeadlineNode& node, int64_t deadline_ms) {
  deadline_sum_ += deadline_ms - node.deadline_ms;
  const bool nearer = deadline_ms < node.deadline_ms;
  node.deadline_ms = deadline_ms;
  if (nearer) {
    unlink(node);
    place(node);
  }
}

// Placed again on its way down the levels, the node comes up at once, and is deferred anew.
void DeadlineWheel::defer(DeadlineNode& node, int64_t until_ms) {
  const int64_t deadline_ms = node.deadline_ms;
  unlink(node);
  node.deadline_ms = until_ms;
  place(node);
  node.deadline_ms = deadline_ms;
}

void DeadlineWheel::relocate(DeadlineNode& moved) {
  moved.previous->next = &moved;
  moved.next->previous = &moved;
}

// A node is placed at the level of the highest six-bit digit in which its tick differs from the
// current one, so that each level is walked exactly once per turn of the level above.
void DeadlineWheel::place(DeadlineNode& node) {
  static_assert(kSlotBits * kLevels + kTickShift >= 64);
  // One tick later than the deadline's own, so that on arrival the deadline has passed.
  const int64_t tick = std::max(tick_of(node.deadline_ms) + 1, current_);
  const auto difference = static_cast<uint64_t>(tick ^ current_);
  const unsigned level =
      difference == 0 ? 0 : (static_cast<unsigned>(std::bit_width(difference)) - 1) / kSlotBits;
  const auto slot = static_cast<size_t>(tick >> (kSlotBits * level)) & (kSlots - 1);
  link_before(slots_[level][slot], node);
  occupied_[level] |= uint64_t{1} << slot;
}

DeadlineNode* DeadlineWheel::next_candidate(int64_t target) {
  for (;;) {
    if (!is_empty(cascading_)) return cascading_.next;
    const auto digit = static_cast<unsigned>(current_) & (kSlots - 1);
    const uint64_t ahead = occupied_[0] & (~uint64_t{0} << digit);
    if (ahead != 0) {
      const auto slot = static_cast<unsigned>(std::countr_zero(ahead));
      const int64_t tick = (current_ & ~static_cast<int64_t>(kSlots - 1)) + slot;
      if (tick > target) break;
      current_ = tick;
      DeadlineNode& sentinel = slots_[0][slot];
      if (!is_empty(sentinel)) return sentinel.next;
      occupied_[0] &= ~(uint64_t{1} << slot);
      continue;
    }
    // This turn of the lowest level has no more nodes: go to the next slot boundary of the lowest
    // occupied level.
    unsigned level = 1;
    while (level < kLevels && occupied_[level] == 0) ++level;
    if (level == kLevels) break;
    const int64_t boundary = (current_ | ((int64_t{1} << (kSlotBits * level)) - 1)) + 1;
    if (boundary > target) break;
    enter(boundary);
  }
  // No slot between here and the target holds nodes, so none is skipped.
  current_ = std::max(current_, target);
  return nullptr;
}

void DeadlineWheel::enter(int64_t tick) {
  const auto changed = static_cast<uint64_t>(tick ^ current_);
  current_ = tick;
  for (unsigned level = kLevels - 1; level >= 1; --level) {
    if ((changed >> (kSlotBits * level)) == 0) continue;
    const auto slot = static_cast<size_t>(tick >> (kSlotBits * level)) & (kSlots - 1);
    DeadlineNode& sentinel = slots_[level][slot];
    occupied_[level] &= ~(uint64_t{1} << slot);
    cascade(sentinel);
  }
}

void DeadlineWheel::rewind(int64_t tick) {
  for (unsigned level = 0; level < kLevels; ++level) {
    for (DeadlineNode& sentinel : slots_[level]) cascade(sentinel);
    occupied_[level] = 0;
  }
  current_ = tick;
}

void DeadlineWheel::cascade(DeadlineNode& sentinel) {
  if (is_empty(sentinel)) return;
  sentinel.next->previous = cascading_.previous;
  cascading_.previous->next = sentinel.next;
  sentinel.previous->next = &cascading_;
  cascading_.previous = sentinel.previous;
  make_empty(sentinel);
}

}  // namespace latchkey::store
