#include "script/host_errors.h"

#include <cstring>
#include <lua.hpp>

#include "script/lua/interpreter.h"
#include "server/emulation/valkey_words.h"

namespace latchkey::script {

namespace {

// Its address is the key in Lua's registry that says whether errors are worded as Valkey words
// them.
constexpr char kValkeyKey = 0;

void* valkey_key() {
  return const_cast<char*>(&kValkeyKey);
}

}  // namespace

void word_errors_as_valkey(lua_State* lua) {
  lua_pushlightuserdata(lua, valkey_key());
  lua_pushboolean(lua, 1);
  lua_rawset(lua, LUA_REGISTRYINDEX);
}

int push_error(lua_State* lua, const char* text) {
  lua_createtable(lua, 0, 1);
  lua_pushlightuserdata(lua, valkey_key());
  lua_rawget(lua, LUA_REGISTRYINDEX);
  const bool as_valkey = lua_toboolean(lua, -1) != 0;
  lua_pop(lua, 1);
  constexpr size_t kLongest = 256;
  char buffer[kLongest];
  size_t size = std::strlen(text);
  if (as_valkey) {
    // Lua may leave this function without destroying its objects: none is left.
    size = server::script_error_of_valkey(text).copy(buffer, kLongest);
    text = buffer;
  }
  lua_pushlstring(lua, text, size);
  lua_setfield(lua, -2, kErrorText);
  return 1;
}

int raise_error(lua_State* lua, const char* text) {
  push_error(lua, text);
  lua_error(lua);
  __builtin_unreachable();
}

}  // namespace latchkey::script
