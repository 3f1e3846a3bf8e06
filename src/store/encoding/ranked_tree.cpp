#include "store/encoding/ranked_tree.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"

namespace latchkey::store {

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

RankedTree::Path RankedTree::path_to(double score, const ScoredMember* member) const {
  Path path;
  void* node = root_;
  for (size_t level = height_; level > 1; --level) {
    auto* inner = static_cast<Inner*>(node);
    const size_t i = last_child(inner, [&](size_t child) {
      if (inner->scores[child] != score) return inner->scores[child] < score;
      return inner->firsts[child]->member() <= member->member();
    });
    path.steps[path.depth++] = {inner, i};
    node = inner->children[i];
  }
  path.leaf = static_cast<Leaf*>(node);
  return path;
}

size_t RankedTree::index_in(const Leaf* leaf, const ScoredMember* member) {
  const size_t index = static_cast<size_t>(
      std::find(leaf->members, leaf->members + leaf->count, member) - leaf->members);
  LK_ASSERT(index < leaf->count);
  return index;
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

void RankedTree::describe(Inner* parent, size_t index, size_t child_level) {
  if (child_level == 1) {
    const auto* leaf = static_cast<const Leaf*>(parent->children[index]);
    parent->firsts[index] = leaf->members[0];
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
    describe(path.steps[i].node, path.steps[i].index, path.depth - i);
}

void RankedTree::move_children(Leaf* to, size_t at, const Leaf* from, size_t first, size_t count) {
  std::memmove(to->members + at, from->members + first, count * sizeof(*to->members));
}

void RankedTree::move_children(Inner* to, size_t at, const Inner* from, size_t first,
                               size_t count) {
  std::memmove(to->scores + at, from->scores + first, count * sizeof(*to->scores));
  std::memmove(to->firsts + at, from->firsts + first, count * sizeof(*to->firsts));
  std::memmove(to->children + at, from->children + first, count * sizeof(*to->children));
  std::memmove(to->sizes + at, from->sizes + first, count * sizeof(*to->sizes));
}

// --- Inserting ----------------------------------------------------------------------------------

void RankedTree::insert(ScoredMember* member) {
  ++size_;
  if (root_ == nullptr) {
    root_ = new Leaf{1, nullptr, nullptr, {member}};
    height_ = leaf_count_ = 1;
    return;
  }
  Path path = path_to(member->score, member);
  const auto place = [&] {
    return static_cast<size_t>(
        std::lower_bound(
            path.leaf->members, path.leaf->members + path.leaf->count, member,
            [](const ScoredMember* a, const ScoredMember* b) { return a->is_before(*b); }) -
        path.leaf->members);
  };
  size_t index = place();
  if (path.leaf->count == kLeafCapacity) {
    // Members that come in order leave full leaves behind.
    if (index == kLeafCapacity && path.leaf->next == nullptr) {
      divide_leaf(path, kLeafCapacity - 1);
    } else if (index == 0 && path.leaf->previous == nullptr) {
      divide_leaf(path, 1);
    } else if (!give_to_neighbour(path)) {
      divide_leaf(path, kLeafCapacity / 2);
    }
    path = path_to(member->score, member);
    index = place();
  }
  Leaf* leaf = path.leaf;
  std::memmove(leaf->members + index + 1, leaf->members + index,
               (leaf->count - index) * sizeof(*leaf->members));
  leaf->members[index] = member;
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
    join_children(parent, index, 1);
  } else if (index > 0 && has_room(index - 1)) {
    join_children(parent, index - 1, 1);
  } else {
    return false;
  }
  return true;
}

void RankedTree::divide_leaf(const Path& path, size_t at) {
  Leaf* left = path.leaf;
  auto* right = new Leaf;
  ++leaf_count_;
  right->count = left->count - at;
  std::memcpy(right->members, left->members + at, right->count * sizeof(*right->members));
  left->count = at;
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
    describe(root, 0, child_level);
    describe(root, 1, child_level);
    root_ = root;
    ++height_;
    LK_ASSERT(height_ < kMaxHeight);
    return;
  }
  Inner* parent = path.steps[depth - 1].node;
  size_t index = path.steps[depth - 1].index;
  describe(parent, index, child_level);
  ++index;
  if (parent->count < kInnerCapacity) {
    place_child(parent, index, child, child_level);
    return refresh(path, depth - 1);
  }
  size_t at = kInnerCapacity / 2;
  if (index == kInnerCapacity) at = kInnerCapacity - 1;
  auto* right = new Inner;
  ++inner_count_;
  right->count = parent->count - at;
  move_children(right, 0, parent, at, right->count);
  parent->count = at;
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
  describe(parent, index, child_level);
}

// --- Erasing ------------------------------------------------------------------------------------

void RankedTree::erase(ScoredMember* member) {
  const Path path = path_to(member->score, member);
  erase_in(path, index_in(path.leaf, member), 1);
}

void RankedTree::erase_in(const Path& path, size_t index, size_t count) {
  Leaf* leaf = path.leaf;
  move_children(leaf, index, leaf, index + count, leaf->count - index - count);
  leaf->count -= count;
  size_ -= count;
  shrink(path);
}

void RankedTree::move(ScoredMember* member, double score) {
  const Path path = path_to(member->score, member);
  const Leaf* leaf = path.leaf;
  const size_t index = index_in(leaf, member);
  const auto stands_before = [&](const ScoredMember& left, const ScoredMember& right) {
    const double left_score = &left == member ? score : left.score;
    const double right_score = &right == member ? score : right.score;
    return is_before(left_score, left.member(), right_score, right.member());
  };
  if (index > 0 && index + 1 < leaf->count && stands_before(*leaf->members[index - 1], *member) &&
      stands_before(*member, *leaf->members[index + 1])) {
    member->score = score;
    return;
  }
  erase(member);
  member->score = score;
  insert(member);
}

void RankedTree::shrink(const Path& path) {
  for (size_t depth = path.depth; depth > 0; --depth) {
    const auto [parent, index] = path.steps[depth - 1];
    const size_t level = path.depth - depth + 1;
    const size_t count = count_of(parent->children[index]);
    const size_t few = (level == 1 ? kLeafCapacity : kInnerCapacity) / 4;
    if (count < few && parent->count > 1) {
      join_children(parent, index > 0 ? index - 1 : 0, level);
    } else if (count == 0) {
      free_node(parent->children[index], level);
      remove_child(parent, index);
    } else {
      describe(parent, index, level);
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

void RankedTree::join_children(Inner* parent, size_t index, size_t level) {
  void* left = parent->children[index];
  void* right = parent->children[index + 1];
  const size_t total = count_of(left) + count_of(right);
  const size_t capacity = level == 1 ? kLeafCapacity : kInnerCapacity;
  const size_t to_left = total <= capacity ? total : total / 2;
  if (level == 1) {
    share_out(static_cast<Leaf*>(left), static_cast<Leaf*>(right), to_left);
  } else {
    share_out(static_cast<Inner*>(left), static_cast<Inner*>(right), to_left);
  }
  describe(parent, index, level);
  if (to_left < total) return describe(parent, index + 1, level);
  free_node(right, level);
  remove_child(parent, index + 1);
}

template <typename Node>
void RankedTree::share_out(Node* left, Node* right, size_t to_left) {
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
  left->count = to_left;
  right->count = total - to_left;
}

}  // namespace latchkey::store
