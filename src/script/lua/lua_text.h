// Strings passed to and from Lua.
#pragma once

#include <lua.hpp>
#include <string_view>

namespace latchkey::script {

inline void push_text(lua_State* lua, std::string_view text) {
  lua_pushlstring(lua, text.data(), text.size());
}

// REQUIRES: a string at `index`. The view lives as long as the value does.
inline std::string_view text_at(lua_State* lua, int index) {
  size_t size = 0;
  const char* text = lua_tolstring(lua, index, &size);
  return {text, size};
}

// Pushes a field of the table without its metatable.
inline void push_raw_field(lua_State* lua, int table, std::string_view name) {
  push_text(lua, name);
  lua_rawget(lua, table > 0 ? table : table - 1);
}

}  // namespace latchkey::script
