// An array: texts at indexes from 0 to 2^64 - 2, most of which may be empty.
//
// The indexes are the keys of a tree whose nodes have up to 64 children, one for each value of six
// bits of the index. A node has a bitmap of its children and only those that there are, so a full
// stretch costs 8 bytes an index and a lonely index some 50; a node that would have one child alone
// is left out.
//
//     root   level 1, indexes from 0    bitmap ..1.....11   [node, node, node]
//     leaf   level 0, indexes from 64   bitmap ..........101 [cell, cell]
//
// Values that fit into a cell (array_cell.h) need no allocation of their own.
//
// An array has a cursor, the index of the next text that is appended (ARINSERT, ARRING).
//
// Costs: O(log of the highest index, base 64), at most 11 steps, to get, set and erase; to walk a
// range what is in it, whatever its width.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "store/entry.h"
#include "store/value/array_cell.h"

namespace latchkey::store {

class Array final : public Value {
 public:
  static constexpr Type kType = Type::kArray;
  static constexpr uint64_t kLastIndex = UINT64_MAX - 1;
  // The cursor when there is no index left behind it.
  static constexpr uint64_t kExhausted = UINT64_MAX;

  Array() = default;
  Array(const Array& other);
  Array& operator=(const Array&) = delete;
  // Exchanges elements and cursors.
  void swap(Array& other);
  ~Array() override;

  std::string_view encoding_name() const override { return "sliced-array"; }
  size_t element_count() const override { return count_; }
  size_t free_effort() const override { return nodes_ + blobs_; }
  size_t memory_usage() const override { return sizeof(*this) + bytes_; }
  Value* clone() const override { return new Array(*this); }

  // --- Elements ---------------------------------------------------------------------------------

  // The number of texts.
  size_t size() const { return count_; }
  // The highest index plus one; 0 when empty.
  uint64_t length() const;
  // kNoCell where there is none.
  ArrayCell get(uint64_t index) const;
  // Whether the index was empty before. REQUIRES: index <= kLastIndex.
  bool set(uint64_t index, std::string_view text);
  // As above; takes the cell over.
  bool set_cell(uint64_t index, ArrayCell value);
  bool erase(uint64_t index);
  // Erases what is at `first` to `last`; returns how many that were. O(erased).
  size_t erase_range(uint64_t first, uint64_t last);

  // Calls fn(index, cell) for each text from `first` to `last`, upwards, or downwards if `first` is
  // above `last`, until fn returns false.
  template <typename Fn>
  void for_each(uint64_t first, uint64_t last, Fn&& fn) const {
    if (root_ == nullptr) return;
    first <= last ? static_cast<void>(walk_up(*root_, first, last, fn))
                  : static_cast<void>(walk_down(*root_, last, first, fn));
  }

  // --- The cursor -------------------------------------------------------------------------------

  uint64_t cursor() const { return cursor_; }
  void set_cursor(uint64_t cursor) { cursor_ = cursor; }

  // --- For ARINFO -------------------------------------------------------------------------------

  // The array as Redis would store it: in slices of so many indexes, of which those are dense that
  // have at least so many texts. A dense slice has a window, slots from its first text to its last,
  // a power of two of them; a sparse one has its texts alone.
  struct Slicing {
    unsigned bits;  // of the size of a slice
    size_t least_dense;
  };
  struct Shape {
    size_t inner_nodes = 0;
    size_t dense_slices = 0;
    size_t dense_slots = 0;  // of their windows
    size_t dense_elements = 0;
    size_t sparse_slices = 0;
    size_t sparse_elements = 0;
  };
  // O(nodes), or more where slices are smaller than leaves.
  Shape shape(Slicing slicing) const;
  size_t nodes() const { return nodes_; }

  static constexpr unsigned kBits = 6;
  static constexpr unsigned kFanOut = 1u << kBits;

 private:
  // Followed by `room` words: cells in a leaf (level 0), pointers to nodes above.
  struct Node {
    uint64_t bitmap;
    uint64_t first;  // the lowest index below this node, whether or not it is set
    uint8_t level;
    uint8_t room;

    uint64_t* words() { return reinterpret_cast<uint64_t*>(this + 1); }
    const uint64_t* words() const { return reinterpret_cast<const uint64_t*>(this + 1); }
    unsigned size() const { return static_cast<unsigned>(__builtin_popcountll(bitmap)); }
    unsigned digit_of(uint64_t index) const {
      return static_cast<unsigned>(index >> (level * kBits)) & (kFanOut - 1);
    }
    bool has(unsigned digit) const { return (bitmap >> digit & 1) != 0; }
    // The place of a child among the words.
    unsigned place_of(unsigned digit) const {
      return static_cast<unsigned>(__builtin_popcountll(bitmap & ((uint64_t{1} << digit) - 1)));
    }
    // Whether the index is among those that may be below this node.
    bool covers(uint64_t index) const { return first_of(index, level) == first; }
    uint64_t lowest_of(unsigned digit) const { return first | uint64_t{digit} << (level * kBits); }
    Node* child(unsigned place) const { return reinterpret_cast<Node*>(words()[place]); }
  };
  // The lowest index of the node of that level that covers `index`.
  static uint64_t first_of(uint64_t index, unsigned level) {
    const unsigned bits = (level + 1) * kBits;
    return bits >= 64 ? 0 : index >> bits << bits;
  }
  // The highest index that a node of that level covers from `first` on.
  static uint64_t last_of(uint64_t first, unsigned level) {
    const unsigned bits = (level + 1) * kBits;
    return bits >= 64 ? UINT64_MAX : first | ((uint64_t{1} << bits) - 1);
  }

  Node* make_node(uint64_t index, unsigned level, unsigned room);
  void free_node(Node* node);
  Node* copy_node(const Node& node);
  void destroy(Node* node);
  // Inserts a word; the node may move, and *node is set to where it is.
  void insert_word(Node** node, unsigned digit, uint64_t word);
  void remove_word(Node* node, unsigned digit);
  // A node above `node` and a new leaf for `index`, which `node` does not cover; returns the leaf's
  // place in it.
  void split(Node** node, uint64_t index, ArrayCell value);
  Node* make_leaf(uint64_t index, ArrayCell value);
  void drop_cell(ArrayCell value);
  void count_cell(ArrayCell value);
  // Erases the range below *node, which becomes null when nothing is left of it, or another node
  // when a single child is.
  size_t erase_below(Node** node, uint64_t first, uint64_t last);
  void shrink(Node** node);
  class SliceCounter;
  void take_shape(const Node& node, SliceCounter& counter) const;

  template <typename Fn>
  static bool walk_up(const Node& node, uint64_t first, uint64_t last, Fn& fn) {
    const uint64_t highest = last_of(node.first, node.level);
    if (highest < first || node.first > last) return true;
    unsigned place = 0;
    for (uint64_t left = node.bitmap; left != 0; left &= left - 1, ++place) {
      const auto digit = static_cast<unsigned>(__builtin_ctzll(left));
      const uint64_t lowest = node.lowest_of(digit);
      if (lowest > last) return false;
      if (node.level != 0) {
        if (!walk_up(*node.child(place), first, last, fn)) return false;
      } else if (lowest >= first && !fn(lowest, ArrayCell{node.words()[place]})) {
        return false;
      }
    }
    return true;
  }

  template <typename Fn>
  static bool walk_down(const Node& node, uint64_t first, uint64_t last, Fn& fn) {
    const uint64_t highest = last_of(node.first, node.level);
    if (highest < first || node.first > last) return true;
    unsigned place = node.size();
    for (uint64_t left = node.bitmap; left != 0;) {
      const auto digit = static_cast<unsigned>(63 - __builtin_clzll(left));
      left &= ~(uint64_t{1} << digit);
      --place;
      const uint64_t lowest = node.lowest_of(digit);
      if (node.level != 0) {
        if (!walk_down(*node.child(place), first, last, fn)) return false;
      } else if (lowest < first) {
        return false;
      } else if (lowest <= last && !fn(lowest, ArrayCell{node.words()[place]})) {
        return false;
      }
    }
    return true;
  }

  Node* root_ = nullptr;
  size_t count_ = 0;
  size_t nodes_ = 0;
  size_t blobs_ = 0;
  size_t bytes_ = 0;  // of nodes and blobs
  uint64_t cursor_ = 0;
};

}  // namespace latchkey::store
