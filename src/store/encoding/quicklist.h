// A quicklist: a doubly linked list of listpacks, for lists of any length. Elements too large to
// share a node have one of their own, as plain bytes.
//
//     node <-> node <-> node <-> node
//      |        |        |        |
//   listpack  listpack  bytes   listpack
//
// With a compression depth, all nodes but so many at each end are kept compressed (lzf.h) where
// that makes them smaller:
//
//     node <-> node <-> lzf <-> lzf <-> node <-> node          depth 2
//
// A node is opened when a cursor comes to it, and compressed again when the cursor steps to
// another, so that a walk has one or two of them open. Others stay open until recompress(), which
// is to be called when one is done with the list.
//
// How much a node holds (its fill) and the depth are told once, when the list is new. From how many
// bytes on an element has a node of its own is told with each change (`plain_from`); 0: when it is
// larger than a node.
//
// Costs: O(1) at the ends and for a step; at() O(nodes + elements of a node); a change within
// O(bytes of a node); recompress() O(depth + nodes opened or made since).
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

// Whether a listpack of so many bytes and elements is more than `fill` allows a node.
bool exceeds_fill(int fill, size_t bytes, size_t elements);
// Whether it is more than half of that, by the measure alone that `fill` names: bytes do not matter
// where elements are counted.
bool exceeds_half_of_fill(int fill, size_t bytes, size_t elements);

class Quicklist {
 public:
  struct Node {
    Node* previous = nullptr;
    Node* next = nullptr;
    size_t count = 0;
    bool is_plain = false;
    Listpack pack;
    std::string plain;
    // While the node is compressed, and then of what size it is not; pack and plain are empty.
    std::string compressed;
    size_t full_size = 0;
    // Compressed, or not to be made smaller by it. Not so once it is looked at.
    bool is_settled = false;
    // The place in touched_, from 1 on; 0: not there.
    size_t touched_at = 0;

    bool is_compressed() const { return full_size != 0; }
    // Of the open node.
    size_t byte_size() const {
      if (is_compressed()) return full_size;
      return is_plain ? plain.size() : pack.byte_size();
    }
  };

  // An element's place, valid until the list is changed but for what the changing function says.
  struct Cursor {
    Node* node = nullptr;
    Listpack::Position position = Listpack::kNone;
    explicit operator bool() const { return node != nullptr; }
  };

  // `depth`: nodes at each end that recompress() leaves open; 0: none is compressed.
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
  // Elements of a node end their life when a cursor leaves it.
  Cursor next(Cursor cursor) const;
  Cursor previous(Cursor cursor) const;
  // The element of that index; negative ones count from the end, -1 being the last.
  Cursor at(int64_t index) const;
  // REQUIRES: an element stands there.
  Listpack::Element get(Cursor cursor) const;

  int fill() const { return fill_; }
  size_t depth() const { return depth_; }
  // Compresses the nodes that are open and need not be. Ends the life of cursors and elements.
  void recompress() const;
  size_t compressed_nodes() const { return compressed_; }

  // Texts must not lie within the list.
  void push_front(std::string_view text, size_t plain_from = 0);
  void push_back(std::string_view text, size_t plain_from = 0);
  void insert_before(Cursor cursor, std::string_view text, size_t plain_from = 0);
  void insert_after(Cursor cursor, std::string_view text, size_t plain_from = 0);
  void replace(Cursor cursor, std::string_view text, size_t plain_from = 0);
  // Removes the element; gives the place of the one that followed.
  Cursor erase(Cursor cursor);
  // Removes `count` elements from that index on. REQUIRES: they exist.
  void erase_range(size_t index, size_t count);
  void clear();
  // Takes the elements of a listpack in as one node behind the last. REQUIRES: there are some.
  void append_node(Listpack pack);
  // The same with a node of one element, of any size.
  void append_plain(std::string element);
  // Gives the only node's listpack away. REQUIRES: one node, not plain.
  Listpack release();

 private:
  // What stands for a plain node's only element.
  static constexpr Listpack::Position kPlain = 1;

  // As next(), and the node stays open.
  Cursor behind(Cursor cursor) const;
  // Compresses a node that was open for a walk only.
  void leave(Node* node) const;
  Cursor front_of(Node* node) const;
  Cursor back_of(Node* node) const;
  // Whether the node, which is opened to find out, has room. Null has none.
  bool fits(Node* node, std::string_view text, size_t plain_from) const;
  void open(Node* node) const;
  void compress(Node* node) const;
  // Has recompress() look at the node, or not. Of a list with a depth, every node that is not
  // settled has been touched.
  void touch(Node* node) const;
  void untouch(Node* node) const;
  // Opens a node that is to stay so.
  void keep_open(Node* node) const;
  // The `depth_` nodes of each end. REQUIRES: there are twice as many.
  template <typename Fn>
  void for_each_end(Fn&& fn) const;
  bool is_huge(std::string_view text, size_t plain_from) const;
  Node* make_node(std::string_view text, size_t plain_from) const;
  // Links `node` behind `before` (at the front when null).
  void link(Node* node, Node* before);
  void unlink(Node* node);
  // Splits the node so that the cursor's element begins a node; gives the one before it, which may
  // be null.
  Node* split_before(Cursor cursor);
  // Puts an element between `before` and what follows it.
  void insert_between(Node* before, std::string_view text, size_t plain_from);
  // Joins the node with the one behind it when both fit in one.
  void merge_with_next(Node* node);

  int fill_;
  Node* first_ = nullptr;
  Node* last_ = nullptr;
  size_t size_ = 0;
  size_t nodes_ = 0;
  size_t depth_;
  // How a node is held is not part of the value: reading opens nodes.
  mutable size_t compressed_ = 0;
  mutable std::vector<Node*> touched_;
};

}  // namespace latchkey::store
