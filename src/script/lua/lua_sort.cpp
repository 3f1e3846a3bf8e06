#include "script/lua/lua_sort.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <lua.hpp>
#include <string_view>
#include <utility>

#include "script/lua/interpreter.h"
#include "script/lua/lua_text.h"

namespace latchkey::script {

namespace {

// Tables up to this size need not be interrupted, whatever the algorithm.
constexpr size_t kSmall = 4096;
// Tables up to this size are sorted by LuaJIT before their values are read from here.
constexpr size_t kTiny = 16;

// Merge sort that polls. `spare` has room for `count` values.
template <typename Value>
Value* merge_sort(lua_State* lua, Value* values, Value* spare, size_t count) {
  constexpr size_t kRun = size_t{1} << 16;
  Interpreter& interpreter = Interpreter::of(lua);
  for (size_t begin = 0; begin < count; begin += kRun) {
    std::sort(values + begin, values + std::min(begin + kRun, count));
    interpreter.poll(lua);
  }
  for (size_t run = kRun; run < count; run *= 2) {
    for (size_t begin = 0; begin < count; begin += 2 * run) {
      Value* middle = values + std::min(begin + run, count);
      Value* end = values + std::min(begin + 2 * run, count);
      std::merge(values + begin, middle, middle, end, spare + begin);
      interpreter.poll(lua);
    }
    std::swap(values, spare);
  }
  return values;
}

// Room for twice as many values, as userdata on the stack: errors do not run destructors.
template <typename Value>
Value* new_values(lua_State* lua, size_t count) {
  return static_cast<Value*>(lua_newuserdata(lua, 2 * count * sizeof(Value)));
}

// NaN has no place in an order, and -0 has that of 0, but is another number.
bool has_place_of_its_own(lua_Number number) {
  return number == number && !(number == 0 && std::signbit(number));
}

// Whether all elements are of that type, and those that are equal cannot be told apart.
bool are_all(lua_State* lua, int type, int count) {
  for (int i = 1; i <= count; ++i) {
    lua_rawgeti(lua, 1, i);
    const bool fits = lua_type(lua, -1) == type &&
                      (type != LUA_TNUMBER || has_place_of_its_own(lua_tonumber(lua, -1)));
    lua_pop(lua, 1);
    if (!fits) return false;
  }
  return true;
}

void sort_numbers(lua_State* lua, int count) {
  const auto size = static_cast<size_t>(count);
  auto* values = new_values<lua_Number>(lua, size);
  for (int i = 1; i <= count; ++i) {
    lua_rawgeti(lua, 1, i);
    values[i - 1] = lua_tonumber(lua, -1);
    lua_pop(lua, 1);
  }
  const lua_Number* sorted = merge_sort(lua, values, values + size, size);
  for (int i = 1; i <= count; ++i) {
    lua_pushnumber(lua, sorted[i - 1]);
    lua_rawseti(lua, 1, i);
  }
}

void sort_strings(lua_State* lua, int count) {
  const auto size = static_cast<size_t>(count);
  // A copy of the table keeps the strings alive while they move.
  lua_createtable(lua, count, 0);
  auto* values = new_values<std::string_view>(lua, size);
  for (int i = 1; i <= count; ++i) {
    lua_rawgeti(lua, 1, i);
    values[i - 1] = text_at(lua, -1);
    lua_rawseti(lua, -3, i);
  }
  const std::string_view* sorted = merge_sort(lua, values, values + size, size);
  for (int i = 1; i <= count; ++i) {
    push_text(lua, sorted[i - 1]);
    lua_rawseti(lua, 1, i);
  }
}

// Upvalue 1: the comparison function, or nil for the operator.
int compare(lua_State* lua) {
  Interpreter::of(lua).poll(lua);
  if (lua_isnil(lua, lua_upvalueindex(1))) {
    lua_pushboolean(lua, lua_lessthan(lua, 1, 2));
  } else {
    lua_pushvalue(lua, lua_upvalueindex(1));
    lua_insert(lua, 1);
    lua_call(lua, 2, 1);
  }
  return 1;
}

}  // namespace

int lua_sort(lua_State* lua) {
  const Interpreter::CallBack call(lua);
  luaL_checktype(lua, 1, LUA_TTABLE);
  const size_t size = lua_objlen(lua, 1);
  const bool by_operator = lua_isnoneornil(lua, 2);
  if (size > kTiny && by_operator) {
    const auto count = static_cast<int>(size);
    lua_settop(lua, 2);
    // Values of which no two equal ones can be told apart have the same order after every sorting
    // algorithm.
    const bool are_numbers = are_all(lua, LUA_TNUMBER, count);
    if (are_numbers || are_all(lua, LUA_TSTRING, count)) {
      if (are_numbers) {
        sort_numbers(lua, count);
      } else {
        sort_strings(lua, count);
      }
      call.end();
      return 0;
    }
  }
  // A comparison in Lua code can be interrupted.
  if (size > kSmall && (by_operator || lua_iscfunction(lua, 2) != 0)) {
    lua_settop(lua, 2);
    lua_pushcclosure(lua, compare, 1);
  }
  const int results = lua_tocfunction(lua, lua_upvalueindex(2))(lua);
  call.end();
  return results;
}

}  // namespace latchkey::script
