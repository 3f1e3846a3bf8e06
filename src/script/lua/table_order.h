// The order in which libraries and the debugger write the pairs of a table.
//
// LuaJIT walks through a table in an order that differs between starts of the server, PUC Lua 5.1
// in one that is always the same, and users compare the resulting texts. So pairs are written in
// the order of PUC Lua 5.1: first the integers in its array part, then the slots of its hash part.
// Where two keys collide, that order depends on which was inserted first, which is unknown here:
// they are taken to be inserted in ascending order.
//
// The layout of such tables is described in "The Implementation of Lua 5.0" (Ierusalimschy, de
// Figueiredo, Celes; Journal of Universal Computer Science 11, 2005), section 4.
#pragma once

#include <cstddef>
#include <cstdint>
#include <lua.hpp>
#include <string_view>

#include <boost/container/small_vector.hpp>

namespace latchkey::script {

class TableOrder {
 public:
  // Reads the keys of the table on top of the stack. O(n log n) of their number. Of a small table
  // it leaves the pairs on the stack, where push_pair() finds them, until release().
  explicit TableOrder(lua_State* lua);
  // Makes the table the top of the stack again.
  void release(lua_State* lua) const { lua_settop(lua, table_); }

  // False when a key's slot differs between starts of the server, as for keys that are tables.
  bool is_known() const { return is_known_; }
  // The number of pairs, also when the order is not known.
  size_t size() const { return keys_.size(); }
  // Pushes a key and its value. REQUIRES: the stack as the constructor left it, the table
  // unchanged.
  void push_pair(lua_State* lua, size_t i) const;

 private:
  // Tables with more pairs are looked up again, and cost allocations.
  static constexpr int kFewPairs = 16;

  struct Key {
    enum class Kind : uint8_t { kNumber, kString, kFalse, kTrue } kind = Kind::kNumber;
    double number = 0;
    std::string_view text = {};
    uint64_t prefix = 0;  // its first 8 bytes, the first one highest

    bool operator<(const Key& other) const;
  };
  using Indexes = boost::container::small_vector<uint32_t, kFewPairs>;

  // Moves the keys of the array part to the front; returns how many.
  size_t array_part();
  // Sorts the keys from `first` on by their slots in the hash part.
  void order_by_place(size_t first);
  static size_t place_of(const Key& key, size_t places);

  // Appends the key below the top of the stack.
  void add_key(lua_State* lua);

  int table_;              // its place on the stack
  bool are_kept_ = false;  // pairs are on the stack, from the place behind the table's on
  boost::container::small_vector<Key, kFewPairs> keys_;  // in lua_next's order
  Indexes order_;                                        // of keys_
  bool is_known_ = true;
};

// Calls `visit` for each pair of the table on top of the stack, with the value on top and the key
// below, in PUC Lua's order or, if that is not known, in LuaJIT's. Stops when `visit` returns
// false, and then returns false. In the end the table is on top of the stack again. `order`: the
// table's, just made.
template <typename Visit>
bool for_each_pair(lua_State* lua, const TableOrder& order, Visit visit) {
  bool goes_on = true;
  if (order.is_known()) {
    for (size_t i = 0; goes_on && i < order.size(); ++i) {
      order.push_pair(lua, i);
      goes_on = visit();
      if (goes_on) lua_pop(lua, 2);
    }
  } else {
    order.release(lua);
    for (lua_pushnil(lua); goes_on && lua_next(lua, -2) != 0;) {
      goes_on = visit();
      if (goes_on) lua_pop(lua, 1);
    }
  }
  order.release(lua);
  return goes_on;
}
template <typename Visit>
bool for_each_pair(lua_State* lua, Visit visit) {
  return for_each_pair(lua, TableOrder(lua), visit);
}

}  // namespace latchkey::script
