// A quicklist: a doubly linked list of listpacks, for lists of any length. An element too large for
// a shared node has its own node, as plain bytes.
//
//     node <-> node <-> node <-> node
//      |        |        |        |
//   listpack  listpack  bytes   listpack
//
// With a compression depth, all nodes except `depth` at each end are kept compressed (lzf.h) if
// compression makes them smaller:
//
//     node <-> node <-> lzf <-> lzf <-> node <-> node          depth 2
//
// A node is decompressed when a cursor reaches it, and compressed again when the cursor steps to
// another node, so that a walk keeps one or two nodes open. Other open nodes stay open until
// recompress(), which the caller must call after it has used the list.
//
// The fill (how much a node holds) and the depth are constructor arguments. Each change takes
// `plain_from`: elements of at least that many bytes get their own node; 0: elements larger than a
// node do.
//
// Costs: O(1) at the ends and for a step; at() O(nodes + elements of a node); a change in the
// middle O(bytes of a node); recompress() O(depth + nodes opened or made since the last call).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/encoding/listpack.h"

namespace latchkey::store {

// A fill is a number of elements when it is positive, and one of five sizes in bytes when it is -1
// .. -5 (4, 8, 16, 32, 64 KiB).

// Whether a node with a listpack of this size would exceed `fill`.
bool exceeds_fill(int fill, size_t bytes, size_t elements);
// Whether the only node of a list is too large for the list to be a listpack again, which is asked
// when it has been loaded (`part` 1) or has become smaller (2): whether it exceeds that part of
// `fill`, counting only elements if `fill` is positive and only bytes if it is negative.
bool exceeds_part_of_fill(int fill, size_t part, size_t bytes, size_t elements);

class Quicklist {
 public:
  struct Node {
    Node* previous = nullptr;
    Node* next = nullptr;
    size_t count = 0;
    bool is_plain = false;
    Listpack pack;
    std::string plain;
    // The compressed bytes and the decompressed size; `pack` and `plain` are empty meanwhile.
    std::string compressed;
    size_t full_size = 0;
    // compress() has processed the node, even if it did not become smaller. open() resets it.
    bool is_processed = false;
    // Index in touched_, counted from 1; 0: not in touched_.
    size_t touched_at = 0;

    bool is_compressed() const { return full_size != 0; }
    // The size in bytes when decompressed.
    size_t byte_size() const {
      if (is_compressed()) return full_size;
      return is_plain ? plain.size() : pack.byte_size();
    }
  };

  // The position of an element, valid until the list is changed, except as stated at the functions
  // that change it.
  struct Cursor {
    Node* node = nullptr;
    Listpack::Position position = Listpack::kNone;
    explicit operator bool() const { return node != nullptr; }
  };

  // `depth`: nodes at each end that recompress() leaves open; 0: no node is compressed.
  explicit Quicklist(int fill, size_t depth = 0) : fill_(fill), depth_(depth) {}
  ~Quicklist() { clear(); }
  Quicklist(const Quicklist& other);
  Quicklist& operator=(const Quicklist&) = delete;

  size_t size() const { return size_; }
  size_t nodes() const { return nodes_; }
  const Node* first_node() const { return first_; }
  // Bytes held besides this object. O(nodes).
  size_t memory_usage() const;

  Cursor first() const { return front_of(first_); }
  Cursor last() const { return back_of(last_); }
  // Invalidate the Elements of a node when the cursor leaves it.
  Cursor next(Cursor cursor) const;
  Cursor previous(Cursor cursor) const;
  // The element at that index; negative indexes count from the end, -1 being the last.
  Cursor at(int64_t index) const;
  // The first element that matches, from the cursor on; empty when there is none. Invalidates
  // Elements.
  Cursor find(const Listpack::Matcher& matcher, Cursor from) const;
  // REQUIRES: the cursor is at an element.
  Listpack::Element get(Cursor cursor) const;

  int fill() const { return fill_; }
  size_t depth() const { return depth_; }
  // Compresses all open nodes outside of both ends. Invalidates cursors and elements.
  void recompress() const;
  size_t compressed_nodes() const { return compressed_; }

  // `text` must not lie within the list.
  void push_front(std::string_view text, size_t plain_from = 0);
  void push_back(std::string_view text, size_t plain_from = 0);
  void insert_before(Cursor cursor, std::string_view text, size_t plain_from = 0);
  void insert_after(Cursor cursor, std::string_view text, size_t plain_from = 0);
  void replace(Cursor cursor, std::string_view text, size_t plain_from = 0);
  // Removes the element; returns a cursor to the element that followed it.
  Cursor erase(Cursor cursor);
  // Removes `count` elements from that index on. REQUIRES: they exist.
  void erase_range(size_t index, size_t count);
  void clear();
  // Appends the elements of a listpack as one node. REQUIRES: the listpack is not empty.
  void append_node(Listpack pack);
  // Appends a plain node with one element of any size.
  void append_plain(std::string element);
  // Moves the only node's listpack out. REQUIRES: one node, not plain.
  Listpack release();

 private:
  // The position of the only element of a plain node.
  static constexpr Listpack::Position kPlain = 1;

  // Like next(), but the node stays open.
  Cursor behind(Cursor cursor) const;
  // Compresses a node that was opened only for a walk.
  void leave(Node* node) const;
  Cursor front_of(Node* node) const;
  Cursor back_of(Node* node) const;
  // Whether `text` fits into `node`, which is decompressed for the check. False if `node` is null.
  bool fits(Node* node, std::string_view text, size_t plain_from) const;
  void open(Node* node) const;
  void compress(Node* node) const;
  // Adds the node to, or removes it from, touched_, the nodes that recompress() examines. In a list
  // with a depth, every node that is not processed is in touched_.
  void touch(Node* node) const;
  void forget_touched(Node* node) const;
  // Decompresses a node that must stay open.
  void keep_open(Node* node) const;
  // Calls fn for the `depth_` nodes at each end. REQUIRES: there are at least twice as many.
  template <typename Fn>
  void for_each_end(Fn&& fn) const;
  bool is_huge(std::string_view text, size_t plain_from) const;
  Node* make_node(std::string_view text, size_t plain_from) const;
  // Links `node` behind `before` (at the front when null).
  void link(Node* node, Node* before);
  void unlink(Node* node);
  // Splits the node so that the cursor's element is the first of its node; returns the node before
  // it, which may be null.
  Node* split_before(Cursor cursor);
  // Inserts an element between `before` and the node that follows it.
  void insert_between(Node* before, std::string_view text, size_t plain_from);

  int fill_;
  Node* first_ = nullptr;
  Node* last_ = nullptr;
  size_t size_ = 0;
  size_t nodes_ = 0;
  size_t depth_;
  // Mutable: reading opens nodes, and whether a node is open is not part of the value.
  mutable size_t compressed_ = 0;
  mutable std::vector<Node*> touched_;
};

}  // namespace latchkey::store
