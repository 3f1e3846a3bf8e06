#include "script/lua/lua_json.h"

#include <climits>
#include <lua.hpp>
#include <new>

#include "script/lua/interpreter.h"
#include "script/lua/json_decoder.h"
#include "script/lua/json_encoder.h"
#include "script/lua/lua_text.h"

namespace latchkey::script {

namespace {

constexpr char kNoMemory[] = "not enough memory";
constexpr int kHighestPrecision = 14;

// The settings: the first upvalue of all functions of the library.
JsonOptions& options(lua_State* lua) {
  return *static_cast<JsonOptions*>(lua_touserdata(lua, lua_upvalueindex(1)));
}

int encode(lua_State* lua) {
  luaL_argcheck(lua, lua_gettop(lua) == 1, 1, "expected 1 argument");
  Interpreter& interpreter = Interpreter::of(lua);
  {
    // Errors do not run destructors: the limit is suspended so that memory errors cannot occur
    // here.
    const LuaMemory::Exemption no_limit(interpreter.memory());
    JsonEncoder encoder(lua, options(lua));
    const bool encoded = encoder.encode();
    if (encoded && encoder.text().size() <= interpreter.memory().left()) {
      push_text(lua, encoder.text());
      return 1;
    }
    lua_settop(lua, 1);
    lua_pushstring(lua, encoded ? kNoMemory : encoder.error());
  }
  interpreter.pass_on_stop(lua);
  return luaL_error(lua, "%s", lua_tostring(lua, -1));
}

int decode(lua_State* lua) {
  luaL_argcheck(lua, lua_gettop(lua) == 1, 1, "expected 1 argument");
  luaL_checkstring(lua, 1);
  {
    const LuaMemory::Exemption no_limit(Interpreter::of(lua).memory());
    JsonDecoder decoder(lua, text_at(lua, 1), options(lua));
    if (decoder.decode()) return 1;
    lua_settop(lua, 1);
    lua_pushstring(lua, decoder.error());
  }
  return luaL_error(lua, "%s", lua_tostring(lua, -1));
}

// --- Settings -----------------------------------------------------------------------------------

// Each takes the new values, or none (nil) to leave one unchanged, and returns the current values.

void take_arguments(lua_State* lua, int most) {
  luaL_argcheck(lua, lua_gettop(lua) <= most, most + 1, "found too many arguments");
  lua_settop(lua, most);
}

int integer_setting(lua_State* lua, int argument, int low, int high, int* setting) {
  if (!lua_isnil(lua, argument)) {
    const auto value = static_cast<int>(luaL_checkinteger(lua, argument));
    if (value < low || value > high) {
      lua_pushfstring(lua, "expected integer between %d and %d", low, high);
      luaL_argcheck(lua, false, 1, lua_tostring(lua, -1));
    }
    *setting = value;
  }
  lua_pushinteger(lua, *setting);
  return 1;
}

// A setting that is one of the words, or a boolean for the first two.
int word_setting(lua_State* lua, int argument, const char* const* words, int* setting) {
  if (lua_isboolean(lua, argument)) {
    *setting = lua_toboolean(lua, argument);
  } else if (!lua_isnil(lua, argument)) {
    *setting = luaL_checkoption(lua, argument, nullptr, words);
  }
  if (*setting <= 1) {
    lua_pushboolean(lua, *setting);
  } else {
    lua_pushstring(lua, words[*setting]);
  }
  return 1;
}

int switch_setting(lua_State* lua, int argument, bool* setting) {
  static constexpr const char* kWords[] = {"off", "on", nullptr};
  int value = *setting ? 1 : 0;
  word_setting(lua, argument, kWords, &value);
  *setting = value != 0;
  return 1;
}

int encode_sparse_array(lua_State* lua) {
  JsonOptions& self = options(lua);
  take_arguments(lua, 3);
  return switch_setting(lua, 1, &self.sparse_convert) +
         integer_setting(lua, 2, 0, INT_MAX, &self.sparse_ratio) +
         integer_setting(lua, 3, 0, INT_MAX, &self.sparse_safe);
}

int encode_max_depth(lua_State* lua) {
  take_arguments(lua, 1);
  return integer_setting(lua, 1, 1, INT_MAX, &options(lua).encode_max_depth);
}

int decode_max_depth(lua_State* lua) {
  take_arguments(lua, 1);
  return integer_setting(lua, 1, 1, INT_MAX, &options(lua).decode_max_depth);
}

int encode_number_precision(lua_State* lua) {
  take_arguments(lua, 1);
  return integer_setting(lua, 1, 1, kHighestPrecision, &options(lua).encode_number_precision);
}

int encode_keep_buffer(lua_State* lua) {
  take_arguments(lua, 1);
  return switch_setting(lua, 1, &options(lua).encode_keep_buffer);
}

int encode_invalid_numbers(lua_State* lua) {
  static constexpr const char* kWords[] = {"off", "on", "null", nullptr};
  take_arguments(lua, 1);
  return word_setting(lua, 1, kWords, &options(lua).encode_invalid_numbers);
}

int decode_invalid_numbers(lua_State* lua) {
  take_arguments(lua, 1);
  return switch_setting(lua, 1, &options(lua).decode_invalid_numbers);
}

int decode_array_with_array_mt(lua_State* lua) {
  take_arguments(lua, 1);
  return switch_setting(lua, 1, &options(lua).mark_arrays);
}

int new_library(lua_State* lua) {
  push_json_library(lua);
  return 1;
}

}  // namespace

void push_json_array_mark(lua_State* lua) {
  lua_newtable(lua);
  lua_pushboolean(lua, 1);
  lua_setfield(lua, -2, kArrayMark);
}

void push_json_library(lua_State* lua) {
  constexpr luaL_Reg kFunctions[] = {
      {"encode", encode},
      {"decode", decode},
      {"encode_sparse_array", encode_sparse_array},
      {"encode_max_depth", encode_max_depth},
      {"decode_max_depth", decode_max_depth},
      {"encode_number_precision", encode_number_precision},
      {"encode_keep_buffer", encode_keep_buffer},
      {"encode_invalid_numbers", encode_invalid_numbers},
      {"decode_invalid_numbers", decode_invalid_numbers},
      {"decode_array_with_array_mt", decode_array_with_array_mt},
      {"new", new_library},
  };
  lua_newtable(lua);
  new (lua_newuserdata(lua, sizeof(JsonOptions))) JsonOptions();
  for (const luaL_Reg& function : kFunctions) {
    lua_pushvalue(lua, -1);
    lua_pushcclosure(lua, function.func, 1);
    lua_setfield(lua, -3, function.name);
  }
  lua_pop(lua, 1);
  lua_pushlightuserdata(lua, nullptr);
  lua_setfield(lua, -2, "null");
  lua_pushliteral(lua, "cjson");
  lua_setfield(lua, -2, "_NAME");
  lua_pushliteral(lua, "2.1.0");
  lua_setfield(lua, -2, "_VERSION");
}

}  // namespace latchkey::script
