// A quicklist: a doubly linked list of listpacks, for lists of any length. Elements too large to
// share a node have one of their own, as plain bytes.
//
//     node <-> node <-> node <-> node
//      |        |        |        |
//   listpack  listpack  bytes   listpack
//
// How much a node holds is told with each change (`fill`): elements when positive, one of five
// sizes in bytes when -1 .. -5 (4, 8, 16, 32, 64 KiB); it concerns the nodes that the change
// touches.
//
// Costs: O(1) at the ends and for a step; at() O(nodes + elements of a node); a change within
// O(bytes of a node).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "store/encoding/listpack.h"

namespace latchkey::store {

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

    size_t byte_size() const { return is_plain ? plain.size() : pack.byte_size(); }
  };

  // An element's place, valid until the list is changed but for what the changing function says.
  struct Cursor {
    Node* node = nullptr;
    Listpack::Position position = Listpack::kNone;
    explicit operator bool() const { return node != nullptr; }
  };

  Quicklist() = default;
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
  Cursor next(Cursor cursor) const;
  Cursor previous(Cursor cursor) const;
  // The element of that index; negative ones count from the end, -1 being the last.
  Cursor at(int64_t index) const;
  // REQUIRES: an element stands there.
  static Listpack::Element get(Cursor cursor);

  // Texts must not lie within the list.
  void push_front(std::string_view text, int fill);
  void push_back(std::string_view text, int fill);
  void insert_before(Cursor cursor, std::string_view text, int fill);
  void insert_after(Cursor cursor, std::string_view text, int fill);
  void replace(Cursor cursor, std::string_view text, int fill);
  // Removes the element; gives the place of the one that followed.
  Cursor erase(Cursor cursor);
  // Removes `count` elements from that index on. REQUIRES: they exist.
  void erase_range(size_t index, size_t count);
  void clear();
  // Takes the elements of a listpack in as one node. REQUIRES: the list is empty.
  void adopt(Listpack pack);
  // Gives the only node's listpack away. REQUIRES: one node, not plain.
  Listpack release();

 private:
  // What stands for a plain node's only element.
  static constexpr Listpack::Position kPlain = 1;

  static Cursor front_of(Node* node);
  static Cursor back_of(Node* node);
  static bool fits(const Node* node, std::string_view text, int fill);
  static bool is_huge(std::string_view text, int fill);
  static Node* make_node(std::string_view text, int fill);
  // Links `node` behind `before` (at the front when null).
  void link(Node* node, Node* before);
  void unlink(Node* node);
  // Splits the node so that the cursor's element begins a node; gives the one before it, which may
  // be null.
  Node* split_before(Cursor cursor);
  // Puts an element between `before` and what follows it.
  void insert_between(Node* before, std::string_view text, int fill);
  // Joins the node with the one behind it when both fit in one.
  void join_with_next(Node* node, int fill);

  Node* first_ = nullptr;
  Node* last_ = nullptr;
  size_t size_ = 0;
  size_t nodes_ = 0;
};

}  // namespace latchkey::store
