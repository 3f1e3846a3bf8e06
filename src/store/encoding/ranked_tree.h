// A B+ tree of pointers to members, ordered by score and bytes, that counts the members below each
// node: the order of large sorted sets.
//
// A leaf holds up to 60 slots in one allocation of 512 bytes and links to its neighbours. An inner
// node holds up to 31 children, and for each the number of members below it, its first member and
// that member's score (so that a descent reads members only where scores are equal):
//
//     inner: | count | scores[31] | firsts[31] | children[31] | sizes[31] |      1,000 bytes
//     leaf:  | count | shift | previous | next | base | slots[60] |                512 bytes
//     slot:  | hint, 16 bits | address of a member, 48 bits |                        8 bytes
//
// A hint is the distance of a score from the leaf's base in steps of 2^shift, clamped to 0 ..
// 65,535. Distances are between the integers that the bits of the doubles make when they are
// brought into the order of the doubles. A higher score never has a lower hint, and members are
// read only where hints are equal, so a search nearly always needs only the leaf itself. Base and
// shift are chosen again when members move from one leaf to another, so that the leaf's members use
// about half of all hints.
//
// A full leaf moves members to a neighbour before it is split, and a leaf that fills up at either
// end of the tree is split so that it stays full: about 11 bytes per member in random order, 9.5 in
// ascending or descending order.
//
// Costs: insert, erase, rank and at O(log n), walking O(1) a step. The caller owns the members; no
// two may be equal. A Position is valid until the next change. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "store/encoding/scored_member.h"

namespace latchkey::store {

class RankedTree {
  struct Leaf;
  struct Inner;

 public:
  class Position {
   public:
    explicit operator bool() const { return leaf_ != nullptr; }
    ScoredMember* operator*() const { return leaf_->slots[index_].member(); }
    // Step to the next or previous member; past the ends the position becomes empty.
    void forward() {
      if (++index_ < leaf_->count) return;
      leaf_ = leaf_->next;
      index_ = 0;
    }
    void backward() {
      if (index_-- > 0) return;
      leaf_ = leaf_->previous;
      if (leaf_ != nullptr) index_ = leaf_->count - 1;
    }

   private:
    friend class RankedTree;
    Position(Leaf* leaf, size_t index) : leaf_(leaf), index_(index) {}
    Leaf* leaf_;
    size_t index_;
  };

  RankedTree() = default;
  ~RankedTree();
  RankedTree(const RankedTree&) = delete;
  RankedTree& operator=(const RankedTree&) = delete;

  size_t size() const { return size_; }
  // Bytes of the nodes; members not included.
  size_t memory_usage() const { return leaf_count_ * sizeof(Leaf) + inner_count_ * sizeof(Inner); }

  // REQUIRES: the tree has no equal member.
  void insert(ScoredMember* member);
  // REQUIRES: the member is in the tree.
  void erase(ScoredMember* member);
  // Removes `count` members from rank `rank` on, and calls fn(ScoredMember*) for each, which may
  // destroy it. REQUIRES: they exist. O(1) a member, and O(log n) a leaf.
  template <typename Fn>
  void erase_range(size_t rank, size_t count, Fn&& fn) {
    while (count > 0) {
      const auto [path, index] = path_to_rank(rank);
      const size_t here = count < path.leaf->count - index ? count : path.leaf->count - index;
      for (size_t i = index; i < index + here; ++i) fn(path.leaf->slots[i].member());
      erase_in(path, index, here);
      count -= here;
    }
  }
  // Gives a member of the tree another score and moves it to its new place.
  void move(ScoredMember* member, double score);
  // The number of members before `member`. REQUIRES: it is in the tree.
  size_t rank(const ScoredMember* member) const;
  // The member at that rank; an empty position past the end.
  Position at(size_t rank) const;

  // The number of members for which `is_in(score, member)` holds. REQUIRES: it holds for a prefix
  // of the order and for no member behind it.
  template <typename Predicate>
  size_t count_first(Predicate&& is_in) const {
    size_t before = 0;
    const void* node = root_;
    for (size_t level = height_; level > 1; --level) {
      const auto* inner = static_cast<const Inner*>(node);
      const size_t i = last_child(inner, [&](size_t child) {
        return is_in(inner->scores[child], inner->firsts[child]->member());
      });
      for (size_t j = 0; j < i; ++j) before += inner->sizes[j];
      node = inner->children[i];
    }
    const auto* leaf = static_cast<const Leaf*>(node);
    size_t low = 0;
    for (size_t high = leaf == nullptr ? 0 : leaf->count; low < high;) {
      const size_t middle = (low + high) / 2;
      const ScoredMember& member = *leaf->slots[middle].member();
      if (is_in(member.score, member.member())) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return before + low;
  }

 private:
  static constexpr size_t kLeafCapacity = 60;
  static constexpr size_t kInnerCapacity = 31;
  // Every node except those on the tree's edges is at least a quarter full.
  static constexpr size_t kFewInLeaf = kLeafCapacity / 4;
  static constexpr size_t kMaxHeight = 24;

  class Slot {
   public:
    Slot() = default;
    // REQUIRES: an address of 48 bits, which is what systems give to programs that do not ask for
    // longer ones.
    Slot(ScoredMember* member, uint16_t hint)
        : bits_(reinterpret_cast<uintptr_t>(member) | uint64_t{hint} << kAddressBits) {}
    ScoredMember* member() const {
      return reinterpret_cast<ScoredMember*>(bits_ & ((uint64_t{1} << kAddressBits) - 1));
    }
    uint16_t hint() const { return static_cast<uint16_t>(bits_ >> kAddressBits); }

   private:
    static constexpr unsigned kAddressBits = 48;
    uint64_t bits_;
  };
  struct Leaf {
    uint32_t count;
    uint32_t shift;
    Leaf* previous;
    Leaf* next;
    uint64_t base;
    Slot slots[kLeafCapacity];
  };
  struct Inner {
    uint32_t count;
    double scores[kInnerCapacity];
    ScoredMember* firsts[kInnerCapacity];
    void* children[kInnerCapacity];
    size_t sizes[kInnerCapacity];
  };
  static_assert(sizeof(Leaf) == 512 && sizeof(Inner) <= 1024);

  // The path from the root to a leaf: the inner nodes, and the child index taken in each.
  struct Step {
    Inner* node;
    size_t index;
  };
  struct Path {
    Step steps[kMaxHeight];
    size_t depth = 0;
    Leaf* leaf = nullptr;
  };

  // The last child after the first for which the predicate holds, or the first child if there is
  // none.
  template <typename Predicate>
  static size_t last_child(const Inner* inner, Predicate&& holds) {
    size_t low = 1;
    for (size_t high = inner->count; low < high;) {
      const size_t middle = (low + high) / 2;
      if (holds(middle)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low - 1;
  }

  // The path to the leaf that contains `member`, or would contain it if it had that score.
  Path path_to(double score, const ScoredMember* member) const;
  // The index of the child that contains a member with that score and these bytes.
  static size_t child_for(const Inner* inner, double score, std::string_view member);
  // The path to the member of that rank, and its index in the leaf. REQUIRES: it exists.
  std::pair<Path, size_t> path_to_rank(size_t rank) const;
  // Removes `count` members from the leaf at the path's end.
  void erase_in(const Path& path, size_t index, size_t count);
  static uint16_t hint_of(const Leaf* leaf, double score);
  // The index of the first slot with at least that hint.
  static size_t first_hinted(const Leaf* leaf, uint32_t hint);
  // The index of `member`, which is in the leaf.
  static size_t index_in(const Leaf* leaf, const ScoredMember* member);
  // The index at which `member`, which is not in the leaf, would be inserted.
  static size_t place_in(const Leaf* leaf, const ScoredMember* member);
  // Inserts a member into the leaf at the path's end. REQUIRES: the leaf has room.
  void place(const Path& path, ScoredMember* member);
  // Chooses base and shift for the members of a leaf, and recomputes their hints.
  static void hint_anew(Leaf* leaf);
  // Copies the child's size, first member and score into its parent.
  static void update_child(Inner* parent, size_t index, size_t child_level);
  // Updates sizes and first members along the path, from that depth up to the root.
  static void refresh(const Path& path, size_t depth);
  bool give_to_neighbour(const Path& path);
  void split_leaf(const Path& path, size_t at);
  // Adds a child behind the one that the path takes at that depth.
  void add_child(const Path& path, size_t depth, void* child);
  static void place_child(Inner* parent, size_t index, void* child, size_t child_level);
  // Rebalances after an erasure at the path's end: nodes that are too small, sizes, first members.
  void shrink(const Path& path);
  // Merges or balances children `index` and `index + 1`, which are at that level.
  void merge_children(Inner* parent, size_t index, size_t level);
  // Moves members or children between two neighbours so that the left one has `to_left`.
  template <typename Node>
  static void redistribute(Node* left, Node* right, size_t to_left);
  void free_node(void* node, size_t level);
  static void remove_child(Inner* parent, size_t index);
  static size_t count_of(const void* node) { return *static_cast<const uint32_t*>(node); }
  static void move_children(Leaf* to, size_t at, const Leaf* from, size_t first, size_t count);
  static void move_children(Inner* to, size_t at, const Inner* from, size_t first, size_t count);
  void free_nodes(void* node, size_t level);

  void* root_ = nullptr;
  size_t height_ = 0;  // levels; 1: the root is a leaf
  size_t size_ = 0;
  size_t leaf_count_ = 0;
  size_t inner_count_ = 0;
};

}  // namespace latchkey::store
