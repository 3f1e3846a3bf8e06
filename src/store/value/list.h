// A list: ordered elements with fast access to both ends. Small lists are one listpack, larger ones
// a quicklist.
//
// ValueLimits decides the encoding: a listpack becomes a quicklist before it grows beyond one
// node's size (will_grow()); a quicklist of one node becomes a listpack when it has shrunk to half
// of that (has_shrunk()), so that a list at the limit does not alternate. A quicklist keeps the
// node size and the compression depth that applied when it became one.
//
// Costs are those of the quicklist (store/encoding/quicklist.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "store/encoding/listpack.h"
#include "store/encoding/quicklist.h"
#include "store/entry.h"
#include "store/value_limits.h"

namespace latchkey::store {

struct Environment;

class List final : public Value {
 public:
  static constexpr Type kType = Type::kList;
  using Element = Listpack::Element;

  // The position of an element; node is null in a listpack. Valid until the list is changed.
  struct Cursor {
    Quicklist::Node* node = nullptr;
    Listpack::Position position = Listpack::kNone;
    explicit operator bool() const { return position != Listpack::kNone; }
  };

  List() = default;
  List(const List& other);
  // A copy of packed elements; without an environment a view of them.
  List(Environment* environment, const Packed& packed)
      : pack_(Listpack::open(packed.bytes, environment != nullptr)) {}

  size_t size() const { return chain_ != nullptr ? chain_->size() : pack_.size(); }
  bool is_quicklist() const { return chain_ != nullptr; }
  const Listpack& listpack() const { return pack_; }
  const Quicklist& quicklist() const { return *chain_; }

  // --- Walking ---------------------------------------------------------------------------------

  // The element at that index; negative indexes count from the end, -1 being the last. Empty when
  // there is none.
  Cursor at(int64_t index) const;
  // These invalidate Elements returned before.
  Cursor next(Cursor cursor) const;
  Cursor previous(Cursor cursor) const;
  // The first element that matches, from the cursor on; empty when there is none.
  Cursor find(const Listpack::Matcher& matcher, Cursor from) const;
  // REQUIRES: the cursor is at an element.
  Element get(Cursor cursor) const;

  // --- Changing --------------------------------------------------------------------------------
  // `text` must not lie within the list.

  // Callers must call this before they add elements of `bytes` bytes in total.
  void will_grow(size_t bytes, size_t elements, const ValueLimits& limits);
  // Callers must call this after they removed or replaced elements; it calls recompress() too.
  void has_shrunk(const ValueLimits& limits);
  // Callers must call this after reading the list or adding to it: compresses the nodes that were
  // opened. Invalidates cursors and elements.
  void recompress() const;

  void push_front(std::string_view text, const ValueLimits& limits);
  void push_back(std::string_view text, const ValueLimits& limits);
  void insert_before(Cursor cursor, std::string_view text, const ValueLimits& limits);
  void insert_after(Cursor cursor, std::string_view text, const ValueLimits& limits);
  void replace(Cursor cursor, std::string_view text, const ValueLimits& limits);
  // Removes the element; returns a cursor to the element that followed it.
  Cursor erase(Cursor cursor);
  // Removes `count` elements from that index on. REQUIRES: they exist.
  void erase_range(size_t index, size_t count);

  // Appends elements from a file or a dump: a valid listpack that is not empty, or an element of
  // any size in its own node.
  void adopt(Listpack elements, const ValueLimits& limits);
  void adopt_plain(std::string element, const ValueLimits& limits);

  // Value
  std::string_view encoding_name() const override {
    return is_quicklist() ? "quicklist" : "listpack";
  }
  size_t element_count() const override { return size(); }
  Packed packed() const override { return is_quicklist() ? Packed() : Packed{pack_.bytes()}; }
  size_t free_effort() const override { return is_quicklist() ? chain_->nodes() : 1; }
  size_t memory_usage() const override;
  Value* clone() const override { return new List(*this); }

 private:
  static Cursor of(Quicklist::Cursor cursor) { return {cursor.node, cursor.position}; }
  // Converts the listpack to a quicklist.
  void become_chain(const ValueLimits& limits);
  static Quicklist::Cursor within(Cursor cursor) { return {cursor.node, cursor.position}; }

  Listpack pack_;                     // empty when chain_ is set
  std::unique_ptr<Quicklist> chain_;  // null in the listpack encoding
};

}  // namespace latchkey::store
