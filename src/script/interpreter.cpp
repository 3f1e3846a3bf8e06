#include "script/interpreter.h"

#include <cstdlib>
#include <lua.hpp>

#include "base/assert.h"
#include "script/dialect.h"
#include "script/lua_json.h"
#include "script/lua_msgpack.h"
#include "script/lua_struct.h"
#include "script/lua_text.h"
#include "script/sandbox.h"

namespace latchkey::script {

namespace {

// What lies at the bottom of the main stack for as long as the world lasts.
constexpr int kGlobals = 1;
constexpr int kErrorHandler = 2;
constexpr int kBottom = 2;

// What LuaJIT raises without a place.
constexpr char kStackOverflow[] = "stack overflow";

void* allocate(void*, void* block, size_t, size_t new_size) {
  if (new_size == 0) {
    std::free(block);
    return nullptr;
  }
  return std::realloc(block, new_size);
}

// The text that stands for an error value that is not a table.
void push_error_text(lua_State* lua, int index) {
  switch (lua_type(lua, index)) {
    case LUA_TSTRING:
    case LUA_TNUMBER:
      lua_pushfstring(lua, "ERR %s", lua_tostring(lua, index));
      break;
    case LUA_TNIL:
      lua_pushliteral(lua, "ERR nil");
      break;
    case LUA_TBOOLEAN:
      lua_pushfstring(lua, "ERR %s", lua_toboolean(lua, index) != 0 ? "true" : "false");
      break;
    default:
      lua_pushfstring(lua, "ERR %s: %p", luaL_typename(lua, index), lua_topointer(lua, index));
  }
}

// Called where an error is raised that nobody catches: makes the table that run() leaves.
int describe_error(lua_State* lua) {
  lua_Debug place;
  bool known = lua_getstack(lua, 1, &place) != 0 && lua_getinfo(lua, "nSl", &place) != 0;
  if (known && *place.what == 'C') {
    known = lua_getstack(lua, 2, &place) != 0 && lua_getinfo(lua, "nSl", &place) != 0;
  }
  lua_createtable(lua, 0, 4);
  if (lua_istable(lua, 1)) {
    // A new table, for the script's own may be one of those that nobody may change.
    for (const char* field : {kErrorText, kErrorCounted}) {
      push_raw_field(lua, 1, field);
      lua_setfield(lua, -2, field);
    }
  } else {
    push_error_text(lua, 1);
    if (known && lua_isstring(lua, 1) != 0 && text_at(lua, 1) == kStackOverflow) {
      lua_pop(lua, 1);
      lua_pushfstring(lua, "ERR %s:%d: %s", place.short_src, place.currentline, kStackOverflow);
    }
    lua_setfield(lua, -2, kErrorText);
  }
  if (known) {
    lua_pushstring(lua, place.source);
    lua_setfield(lua, -2, kErrorSource);
    lua_pushinteger(lua, place.currentline);
    lua_setfield(lua, -2, kErrorLine);
  }
  return 1;
}

}  // namespace

Interpreter::Interpreter(LuaRandom& random, const char* chunk_name)
    : random_(random), chunk_name_(chunk_name), lua_(lua_newstate(allocate, nullptr)) {
  // A LuaJIT for 32-bit addresses insists on its own allocator.
  if (lua_ == nullptr) lua_ = luaL_newstate();
  LK_ASSERT(lua_ != nullptr);
  luaJIT_setmode(lua_, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
  build_sandbox(*this);
  LK_ASSERT(lua_gettop(lua_) == kGlobals);
  lua_pushcfunction(lua_, describe_error);
  push_json_library(lua_);
  add_table("cjson");
  push_msgpack_library(lua_);
  add_table("cmsgpack");
  push_struct_library(lua_);
  add_table("struct");
}

Interpreter::~Interpreter() {
  lua_close(lua_);
}

void Interpreter::add_table(const char* name) {
  protect();
  set_global(name);
}

bool Interpreter::load(std::string_view code) {
  const std::string source = std::string("@") + chunk_name_;
  return luaL_loadbufferx(lua_, code.data(), code.size(), source.c_str(), "t") == 0;
}

int Interpreter::compile(std::string_view code, std::string* error) {
  std::string translated;
  std::string message;
  if (!translate_dialect(code, &translated, &message)) {
    *error = std::string(chunk_name_) + ":" + message;
    return kNoFunction;
  }
  if (load(translated)) return luaL_ref(lua_, LUA_REGISTRYINDEX);
  // The message is to speak of what was written.
  lua_pop(lua_, 1);
  if (load(code)) return luaL_ref(lua_, LUA_REGISTRYINDEX);
  *error = plain_compile_error(text_at(lua_, -1), chunk_name_);
  lua_pop(lua_, 1);
  return kNoFunction;
}

void Interpreter::forget(int function) {
  luaL_unref(lua_, LUA_REGISTRYINDEX, function);
}

void Interpreter::set_global(const char* name) {
  lua_setfield(lua_, kGlobals, name);
}

void Interpreter::seal() {
  refuse_missing();
  protect();
}

int Interpreter::add_globals() {
  refuse_missing();
  return luaL_ref(lua_, LUA_REGISTRYINDEX);
}

void Interpreter::show_globals(int table) {
  lua_pushvalue(lua_, LUA_GLOBALSINDEX);
  lua_getmetatable(lua_, -1);
  if (table == kAllGlobals) {
    lua_pushvalue(lua_, kGlobals);
  } else {
    lua_rawgeti(lua_, LUA_REGISTRYINDEX, table);
  }
  lua_setfield(lua_, -2, "__index");
  lua_pop(lua_, 2);
}

bool Interpreter::run(int function, int arguments) {
  lua_rawgeti(lua_, LUA_REGISTRYINDEX, function);
  lua_insert(lua_, -1 - arguments);
  return lua_pcall(lua_, arguments, 1, kErrorHandler) == 0;
}

ScriptError Interpreter::take_error() {
  ScriptError error{.text = "ERR unknown error", .place = {}};
  if (lua_istable(lua_, -1)) {
    push_raw_field(lua_, -1, kErrorText);
    if (lua_isstring(lua_, -1) != 0) error.text = text_at(lua_, -1);
    push_raw_field(lua_, -2, kErrorCounted);
    error.counted = lua_toboolean(lua_, -1) != 0;
    push_raw_field(lua_, -3, kErrorSource);
    push_raw_field(lua_, -4, kErrorLine);
    if (lua_isstring(lua_, -2) != 0) {
      error.place = std::string(text_at(lua_, -2)) + ":" + std::to_string(lua_tointeger(lua_, -1));
    }
    lua_pop(lua_, 4);
  } else if (lua_isstring(lua_, -1) != 0) {
    error.text = "ERR " + std::string(text_at(lua_, -1));
  }
  lua_pop(lua_, 1);
  return error;
}

void Interpreter::collect_some(int kilobytes) {
  lua_gc(lua_, LUA_GCSTEP, kilobytes);
}

void Interpreter::clear_stack() {
  lua_settop(lua_, kBottom);
}

size_t Interpreter::memory_usage() const {
  return static_cast<size_t>(lua_gc(lua_, LUA_GCCOUNT, 0)) * 1024 +
         static_cast<size_t>(lua_gc(lua_, LUA_GCCOUNTB, 0));
}

}  // namespace latchkey::script
