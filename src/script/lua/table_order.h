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

#include "script/lua/lua_text.h"

namespace latchkey::script {

class TableOrder {
 public:
  struct Pair {
    // Places on the stack, counted from its bottom.
    int key;
    int value;
    // The key, if it is a string; otherwise its data is null.
    std::string_view text = {};
  };

  // Reads the keys of the table at that place of the stack, counted from its bottom. O(n log n) of
  // their number. Of a small table it leaves the pairs on the stack until release().
  TableOrder(lua_State* lua, int table);
  // Gives the stack the height that it had.
  void release(lua_State* lua) const { lua_settop(lua, height_); }

  // False when a key's slot differs between starts of the server, as for keys that are tables.
  bool is_known() const { return is_known_; }
  // The number of pairs, also when the order is not known.
  size_t size() const { return keys_.size(); }
  // A pair, which is pushed if it is not there yet. REQUIRES: the stack as the constructor left it,
  // the table unchanged.
  Pair pair(lua_State* lua, size_t i) const;
  // Takes what pair() has pushed from the stack. REQUIRES: nothing is on top of it.
  void drop_pair(lua_State* lua) const {
    if (!are_kept_) lua_settop(lua, height_);
  }

 private:
  // Tables with more pairs are looked up again, and cost allocations.
  static constexpr int kFewPairs = 16;

  struct Key {
    enum class Kind : uint8_t { kNumber, kString, kFalse, kTrue } kind = Kind::kNumber;
    double number = 0;
    std::string_view text = {};
    uint64_t prefix = 0;  // its first 8 bytes, the first one highest
    size_t place = 0;     // its main slot in the hash part

    bool operator<(const Key& other) const;
  };
  using Indexes = boost::container::small_vector<uint32_t, kFewPairs>;

  // Moves the keys of the array part to the front; returns how many.
  size_t array_part();
  // Sorts the keys from `first` on by the slots of the hash part that they get.
  void order_by_place(size_t first);
  static size_t place_of(const Key& key, size_t places);

  // Appends the key below the top of the stack.
  void add_key(lua_State* lua);

  int table_;              // its place on the stack
  int height_;             // of the stack before
  bool are_kept_ = false;  // pairs are on the stack, from that height on
  boost::container::small_vector<Key, kFewPairs> keys_;  // in lua_next's order
  Indexes order_;                                        // of keys_
  bool is_known_ = true;
};

// Calls `visit` with each TableOrder::Pair of a table, in PUC Lua's order or, if that is not known,
// in LuaJIT's. Stops when `visit` returns false, and then returns false. Only then may `visit`
// leave something on the stack. In the end the stack is as high as before. `order`: the table's,
// just made.
template <typename Visit>
bool for_each_pair(lua_State* lua, int table, const TableOrder& order, Visit visit) {
  bool goes_on = true;
  if (order.is_known()) {
    for (size_t i = 0; goes_on && i < order.size(); ++i) {
      goes_on = visit(order.pair(lua, i));
      if (goes_on) order.drop_pair(lua);
    }
  } else {
    order.release(lua);
    const int key = lua_gettop(lua) + 1;
    for (lua_pushnil(lua); goes_on && lua_next(lua, table) != 0;) {
      const bool is_text = lua_type(lua, key) == LUA_TSTRING;
      goes_on =
          visit(TableOrder::Pair{key, key + 1, is_text ? text_at(lua, key) : std::string_view()});
      if (goes_on) lua_settop(lua, key);
    }
  }
  order.release(lua);
  return goes_on;
}
template <typename Visit>
bool for_each_pair(lua_State* lua, int table, Visit visit) {
  return for_each_pair(lua, table, TableOrder(lua, table), visit);
}

}  // namespace latchkey::script
