// A list: elements in order, quick at both ends. Small ones are one listpack, larger ones a
// quicklist.
//
// Which it is follows from ValueLimits: a listpack becomes a quicklist before it grows beyond one
// node's size (will_grow()), a quicklist of one node becomes a listpack when it has shrunk to half
// of that (has_shrunk()), so that a list at the limit does not go to and fro. A quicklist keeps the
// size of nodes and the depth of compression that held when it became one.
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

class List final : public Value {
 public:
  static constexpr Type kType = Type::kList;
  using Element = Listpack::Element;

  // An element's place; node is null in a listpack. Valid until the list is changed.
  struct Cursor {
    Quicklist::Node* node = nullptr;
    Listpack::Position position = Listpack::kNone;
    explicit operator bool() const { return position != Listpack::kNone; }
  };

  List() = default;
  List(const List& other);

  size_t size() const { return chain_ != nullptr ? chain_->size() : pack_.size(); }
  bool is_quicklist() const { return chain_ != nullptr; }
  const Listpack& listpack() const { return pack_; }
  const Quicklist& quicklist() const { return *chain_; }

  // --- Walking ---------------------------------------------------------------------------------

  // The element of that index; negative ones count from the end, -1 being the last. Empty when
  // there is none.
  Cursor at(int64_t index) const;
  // Elements that were got before end their life.
  Cursor next(Cursor cursor) const;
  Cursor previous(Cursor cursor) const;
  // REQUIRES: an element stands there.
  Element get(Cursor cursor) const;

  // --- Changing --------------------------------------------------------------------------------
  // Texts must not lie within the list.

  // To be called before elements of so many bytes in all are added.
  void will_grow(size_t bytes, size_t elements, const ValueLimits& limits);
  // To be called after elements were removed or replaced; settles the list too.
  void has_shrunk(const ValueLimits& limits);
  // To be called when one is done with reading the list or with adding to it: what was opened for
  // that is compressed again. Ends the life of cursors and elements.
  void recompress() const;

  void push_front(std::string_view text, const ValueLimits& limits);
  void push_back(std::string_view text, const ValueLimits& limits);
  void insert_before(Cursor cursor, std::string_view text, const ValueLimits& limits);
  void insert_after(Cursor cursor, std::string_view text, const ValueLimits& limits);
  void replace(Cursor cursor, std::string_view text, const ValueLimits& limits);
  // Removes the element; gives the place of the one that followed.
  Cursor erase(Cursor cursor);
  // Removes `count` elements from that index on. REQUIRES: they exist.
  void erase_range(size_t index, size_t count);

  // Takes elements in behind those that are there, as a file or a dump holds them: a listpack that
  // is one, not empty, or an element of any size in a node of its own.
  void adopt(Listpack elements, const ValueLimits& limits);
  void adopt_plain(std::string element, const ValueLimits& limits);

  // Value
  std::string_view encoding_name() const override {
    return is_quicklist() ? "quicklist" : "listpack";
  }
  size_t element_count() const override { return size(); }
  size_t free_effort() const override { return is_quicklist() ? chain_->nodes() : 1; }
  size_t memory_usage() const override;
  Value* clone() const override { return new List(*this); }

 private:
  static Cursor of(Quicklist::Cursor cursor) { return {cursor.node, cursor.position}; }
  // Makes a chain of what is there.
  void become_chain(const ValueLimits& limits);
  static Quicklist::Cursor within(Cursor cursor) { return {cursor.node, cursor.position}; }

  Listpack pack_;                     // empty when there is a chain
  std::unique_ptr<Quicklist> chain_;  // null while the listpack is enough
};

}  // namespace latchkey::store
