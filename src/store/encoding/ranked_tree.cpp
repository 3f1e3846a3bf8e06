#include "store/encoding/ranked_tree.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/assert.h"
#include "base/prefetch.h"

namespace latchkey::store {

namespace {

// Maps a score to an integer of the same order. Zeros of both signs map to the same integer.
uint64_t ordered_bits(double score) {
  constexpr uint64_t kSign = uint64_t{1} << 63;
  const auto bits = std::bit_cast<uint64_t>(score + 0.0);
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}

void prefetch_lines(const void* address, size_t size) {
  constexpr size_t kLine = 64;
  for (size_t offset = 0; offset < size; offset += kLine)
    base::prefetch(static_cast<const char*>(address) + offset);
}

}  // namespace

RankedTree::~RankedTree() {
  if (root_ != nullptr) free_nodes(root_, height_);
}

void RankedTree::free_nodes(void* node, size_t level) {
  if (level == 1) {
    delete static_cast<Leaf*>(node);
    return;
  }
  auto* inner = static_cast<Inner*>(node);
  for (size_t i = 0; i < inner->count; ++i) free_nodes(inner->children[i], level - 1);
  delete inner;
}

// --- Finding ------------------------------------------------------------------------------------

size_t RankedTree::child_for(const Inner* inner, double score, std::string_view member) {
  // Counts without branches, which would be unpredictable.
  size_t low = 0;
  size_t high = 0;
  for (size_t i = 1; i < inner->count; ++i) {
    low += inner->scores[i] < score ? 1 : 0;
    high += inner->scores[i] <= score ? 1 : 0;
  }
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (inner->firsts[middle + 1]->member() <= member) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

RankedTree::Path RankedTree::path_to(double score, const ScoredMember* member) const {
  Path path;
  void* node = root_;
  for (size_t level = height_; level > 1; --level) {
    auto* inner = static_cast<Inner*>(node);
    const size_t i = child_for(inner, score, member->member());
    path.steps[path.depth++] = {inner, i};
    node = inner->children[i];
  }
  path.leaf = static_cast<Leaf*>(node);
  // The search in the leaf reads several of its lines, one after the other.
  prefetch_lines(path.leaf, sizeof(Leaf));
  return path;
}

uint16_t RankedTree::hint_of(const Leaf* leaf, double score) {
  const uint64_t bits = ordered_bits(score);
  if (bits <= leaf->base) return 0;
  return static_cast<uint16_t>(std::min<uint64_t>((bits - leaf->base) >> leaf->shift, UINT16_MAX));
}

size_t RankedTree::first_hinted(const Leaf* leaf, uint32_t hint) {
  size_t first = 0;
  for (size_t left = leaf->count; left > 0;) {
    const size_t half = (left + 1) / 2;
    first += leaf->slots[first + half - 1].hint() < hint ? half : 0;
    left -= half;
  }
  return first;
}

size_t RankedTree::index_in(const Leaf* leaf, const ScoredMember* member) {
  const uint16_t hint = hint_of(leaf, member->score);
  size_t index = first_hinted(leaf, hint);
  while (index < leaf->count && leaf->slots[index].member() != member) ++index;
  LK_ASSERT(index < leaf->count);
  return index;
}

size_t RankedTree::place_in(const Leaf* leaf, const ScoredMember* member) {
  const uint32_t hint = hint_of(leaf, member->score);
  size_t low = first_hinted(leaf, hint);
  if (low == leaf->count || leaf->slots[low].hint() != hint) return low;
  for (size_t high = first_hinted(leaf, hint + 1); low < high;) {
    const size_t middle = (low + high) / 2;
    if (leaf->slots[middle].member()->is_before(*member)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

size_t RankedTree::rank(const ScoredMember* member) const {
  const Path path = path_to(member->score, member);
  size_t before = index_in(path.leaf, member);
  for (size_t i = 0; i < path.depth; ++i) {
    const Step& step = path.steps[i];
    for (size_t j = 0; j < step.index; ++j) before += step.node->sizes[j];
  }
  return before;
}

std::pair<RankedTree::Path, size_t> RankedTree::path_to_rank(size_t rank) const {
  Path path;
  void* node = root_;
  for (size_t level = height_; level > 1; --level) {
    auto* inner = static_cast<Inner*>(node);
    size_t i = 0;
    while (rank >= inner->sizes[i]) rank -= inner->sizes[i++];
    path.steps[path.depth++] = {inner, i};
    node = inner->children[i];
  }
  path.leaf = static_cast<Leaf*>(node);
  return {path, rank};
}

RankedTree::Position RankedTree::at(size_t rank) const {
  if (rank >= size_) return {nullptr, 0};
  const auto [path, index] = path_to_rank(rank);
  return {path.leaf, index};
}

// --- Upkeep of inner nodes ----------------------------------------------------------------------

void RankedTree::update_child(Inner* parent, size_t index, size_t child_level) {
  if (child_level == 1) {
    const auto* leaf = static_cast<const Leaf*>(parent->children[index]);
    parent->firsts[index] = leaf->slots[0].member();
    parent->sizes[index] = leaf->count;
  } else {
    const auto* inner = static_cast<const Inner*>(parent->children[index]);
    parent->firsts[index] = inner->firsts[0];
    size_t size = 0;
    for (size_t i = 0; i < inner->count; ++i) size += inner->sizes[i];
    parent->sizes[index] = size;
  }
  parent->scores[index] = parent->firsts[index]->score;
}

void RankedTree::refresh(const Path& path, size_t depth) {
  for (size_t i = depth; i-- > 0;)
    update_child(path.steps[i].node, path.steps[i].index, path.depth - i);
}

void RankedTree::move_children(Leaf* to, size_t at, const Leaf* from, size_t first, size_t count) {
  std::memmove(to->slots + at, from->slots + first, count * sizeof(*to->slots));
}

void RankedTree::move_children(Inner* to, size_t at, const Inner* from, size_t first,
                               size_t count) {
  std::memmove(to->scores + at, from->scores + first, count * sizeof(*to->scores));
  std::memmove(to->firsts + at, from->firsts + first, count * sizeof(*to->firsts));
  std::memmove(to->children + at, from->children + first, count * sizeof(*to->children));
  std::memmove(to->sizes + at, from->sizes + first, count * sizeof(*to->sizes));
}

// --- Inserting ----------------------------------------------------------------------------------

void RankedTree::hint_anew(Leaf* leaf) {
  if (leaf->count == 0) return;
  const uint64_t low = ordered_bits(leaf->slots[0].member()->score);
  const uint64_t span = ordered_bits(leaf->slots[leaf->count - 1].member()->score) - low;
  constexpr unsigned kHalfOfHints = 15;
  // A single score has no distances: the shift that the leaf had, or was given, is a better guess.
  if (span > 0)
    leaf->shift =
        std::max(static_cast<unsigned>(std::bit_width(span)), kHalfOfHints) - kHalfOfHints;
  const uint64_t margin = uint64_t{1} << (leaf->shift + kHalfOfHints - 1);
  leaf->base = low > margin ? low - margin : 0;
  for (size_t i = 0; i < leaf->count; ++i) base::prefetch(leaf->slots[i].member());
  for (size_t i = 0; i < leaf->count; ++i) {
    ScoredMember* member = leaf->slots[i].member();
    leaf->slots[i] = {member, hint_of(leaf, member->score)};
  }
}

void RankedTree::insert(ScoredMember* member) {
  LK_ASSERT(Slot(member, 0).member() == member);
  ++size_;
  if (root_ == nullptr) {
    auto* leaf = new Leaf{1, 0, nullptr, nullptr, 0, {{member, 0}}};
    hint_anew(leaf);
    root_ = leaf;
    height_ = leaf_count_ = 1;
    return;
  }
  Path path = path_to(member->score, member);
  if (path.leaf->count == kLeafCapacity) {
    const size_t index = place_in(path.leaf, member);
    // Members inserted in order leave full leaves behind.
    if (index == kLeafCapacity && path.leaf->next == nullptr) {
      split_leaf(path, kLeafCapacity - 1);
    } else if (index == 0 && path.leaf->previous == nullptr) {
      split_leaf(path, 1);
    } else if (!give_to_neighbour(path)) {
      split_leaf(path, kLeafCapacity / 2);
    }
    path = path_to(member->score, member);
  }
  place(path, member);
}

void RankedTree::place(const Path& path, ScoredMember* member) {
  Leaf* leaf = path.leaf;
  const size_t index = place_in(leaf, member);
  move_children(leaf, index + 1, leaf, index, leaf->count - index);
  leaf->slots[index] = {member, hint_of(leaf, member->score)};
  ++leaf->count;
  if (index == 0) return refresh(path, path.depth);
  for (size_t i = 0; i < path.depth; ++i) ++path.steps[i].node->sizes[path.steps[i].index];
}

bool RankedTree::give_to_neighbour(const Path& path) {
  if (path.depth == 0) return false;
  Inner* const parent = path.steps[path.depth - 1].node;
  const size_t index = path.steps[path.depth - 1].index;
  constexpr size_t kWorthwhile = kLeafCapacity * 7 / 8;
  const auto has_room = [&](size_t child) {
    return child < parent->count && count_of(parent->children[child]) <= kWorthwhile;
  };
  if (has_room(index + 1)) {
    merge_children(parent, index, 1);
  } else if (index > 0 && has_room(index - 1)) {
    merge_children(parent, index - 1, 1);
  } else {
    return false;
  }
  return true;
}

void RankedTree::split_leaf(const Path& path, size_t at) {
  Leaf* left = path.leaf;
  auto* right = new Leaf;
  ++leaf_count_;
  right->count = static_cast<uint32_t>(left->count - at);
  right->shift = left->shift;
  move_children(right, 0, left, at, right->count);
  left->count = static_cast<uint32_t>(at);
  hint_anew(left);
  hint_anew(right);
  right->previous = left;
  right->next = left->next;
  if (left->next != nullptr) left->next->previous = right;
  left->next = right;
  add_child(path, path.depth, right);
}

void RankedTree::add_child(const Path& path, size_t depth, void* child) {
  const size_t child_level = path.depth - depth + 1;
  if (depth == 0) {
    auto* root = new Inner;
    ++inner_count_;
    root->count = 2;
    root->children[0] = root_;
    root->children[1] = child;
    update_child(root, 0, child_level);
    update_child(root, 1, child_level);
    root_ = root;
    ++height_;
    LK_ASSERT(height_ < kMaxHeight);
    return;
  }
  Inner* parent = path.steps[depth - 1].node;
  size_t index = path.steps[depth - 1].index;
  update_child(parent, index, child_level);
  ++index;
  if (parent->count < kInnerCapacity) {
    place_child(parent, index, child, child_level);
    return refresh(path, depth - 1);
  }
  size_t at = kInnerCapacity / 2;
  if (index == kInnerCapacity) at = kInnerCapacity - 1;
  auto* right = new Inner;
  ++inner_count_;
  right->count = static_cast<uint32_t>(parent->count - at);
  move_children(right, 0, parent, at, right->count);
  parent->count = static_cast<uint32_t>(at);
  if (index <= at) {
    place_child(parent, index, child, child_level);
  } else {
    place_child(right, index - at, child, child_level);
  }
  add_child(path, depth - 1, right);
}

void RankedTree::place_child(Inner* parent, size_t index, void* child, size_t child_level) {
  move_children(parent, index + 1, parent, index, parent->count - index);
  ++parent->count;
  parent->children[index] = child;
  update_child(parent, index, child_level);
}

// --- Erasing ------------------------------------------------------------------------------------

void RankedTree::erase(ScoredMember* member) {
  const Path path = path_to(member->score, member);
  erase_in(path, index_in(path.leaf, member), 1);
}

void RankedTree::erase_in(const Path& path, size_t index, size_t count) {
  Leaf* leaf = path.leaf;
  move_children(leaf, index, leaf, index + count, leaf->count - index - count);
  leaf->count -= static_cast<uint32_t>(count);
  size_ -= count;
  if (index == 0 || leaf->count < kFewInLeaf) return shrink(path);
  for (size_t i = 0; i < path.depth; ++i) path.steps[i].node->sizes[path.steps[i].index] -= count;
}

void RankedTree::move(ScoredMember* member, double score) {
  const Path from = path_to(member->score, member);
  const Path to = path_to(score, member);
  const size_t index = index_in(from.leaf, member);
  const bool keeps_nodes =
      from.leaf->count > kFewInLeaf && (to.leaf == from.leaf || to.leaf->count < kLeafCapacity);
  if (index > 0 && keeps_nodes) {
    // Neither path changes.
    erase_in(from, index, 1);
    member->score = score;
    place(to, member);
    ++size_;
    return;
  }
  erase_in(from, index, 1);
  member->score = score;
  insert(member);
}

void RankedTree::shrink(const Path& path) {
  for (size_t depth = path.depth; depth > 0; --depth) {
    const auto [parent, index] = path.steps[depth - 1];
    const size_t level = path.depth - depth + 1;
    const size_t count = count_of(parent->children[index]);
    const size_t few = level == 1 ? kFewInLeaf : kInnerCapacity / 4;
    if (count < few && parent->count > 1) {
      merge_children(parent, index > 0 ? index - 1 : 0, level);
    } else if (count == 0) {
      free_node(parent->children[index], level);
      remove_child(parent, index);
    } else {
      update_child(parent, index, level);
    }
  }
  while (height_ > 1 && count_of(root_) == 1) {
    void* child = static_cast<Inner*>(root_)->children[0];
    free_node(root_, height_--);
    root_ = child;
  }
  if (size_ > 0) return;
  free_node(root_, height_);
  root_ = nullptr;
  height_ = 0;
}

void RankedTree::free_node(void* node, size_t level) {
  if (level > 1) {
    --inner_count_;
    delete static_cast<Inner*>(node);
    return;
  }
  --leaf_count_;
  auto* leaf = static_cast<Leaf*>(node);
  if (leaf->previous != nullptr) leaf->previous->next = leaf->next;
  if (leaf->next != nullptr) leaf->next->previous = leaf->previous;
  delete leaf;
}

void RankedTree::remove_child(Inner* parent, size_t index) {
  move_children(parent, index, parent, index + 1, parent->count - index - 1);
  --parent->count;
}

void RankedTree::merge_children(Inner* parent, size_t index, size_t level) {
  void* left = parent->children[index];
  void* right = parent->children[index + 1];
  const size_t total = count_of(left) + count_of(right);
  const size_t capacity = level == 1 ? kLeafCapacity : kInnerCapacity;
  const size_t to_left = total <= capacity ? total : total / 2;
  if (level == 1) {
    redistribute(static_cast<Leaf*>(left), static_cast<Leaf*>(right), to_left);
    hint_anew(static_cast<Leaf*>(left));
    hint_anew(static_cast<Leaf*>(right));
  } else {
    redistribute(static_cast<Inner*>(left), static_cast<Inner*>(right), to_left);
  }
  update_child(parent, index, level);
  if (to_left < total) return update_child(parent, index + 1, level);
  free_node(right, level);
  remove_child(parent, index + 1);
}

template <typename Node>
void RankedTree::redistribute(Node* left, Node* right, size_t to_left) {
  const size_t total = left->count + right->count;
  if (to_left >= left->count) {
    const size_t moved = to_left - left->count;
    move_children(left, left->count, right, 0, moved);
    move_children(right, 0, right, moved, right->count - moved);
  } else {
    const size_t moved = left->count - to_left;
    move_children(right, moved, right, 0, right->count);
    move_children(right, 0, left, to_left, moved);
  }
  left->count = static_cast<uint32_t>(to_left);
  right->count = static_cast<uint32_t>(total - to_left);
}

}  // namespace latchkey::store
