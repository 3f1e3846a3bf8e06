#include "script/load_api.h"

#include <lua.hpp>
#include <string_view>

#include "script/functions.h"
#include "script/host_errors.h"
#include "script/library_header.h"
#include "script/lua/interpreter.h"
#include "script/lua/lua_text.h"
#include "script/redis_api.h"
#include "script/shebang.h"
#include "server/server.h"

namespace latchkey::script {

namespace {

// Stack slots for the arguments of register_function.
constexpr int kArguments = 2;
constexpr int kName = 3;
constexpr int kCallback = 4;
constexpr int kDescription = 5;

// Moves the value on top of the stack to `slot`.
void keep_text(lua_State* lua, int slot, const char* error) {
  if (lua_isstring(lua, -1) == 0) raise_error(lua, error);
  lua_tolstring(lua, -1, nullptr);
  lua_replace(lua, slot);
}
void keep_callback(lua_State* lua, const char* error) {
  if (!lua_isfunction(lua, -1)) raise_error(lua, error);
  lua_replace(lua, kCallback);
}

// Pops a list of flags.
uint32_t read_flags(lua_State* lua) {
  if (!lua_istable(lua, -1)) {
    raise_error(
        lua,
        "ERR flags argument to redis.register_function must be a table representing function "
        "flags");
  }
  uint32_t flags = 0;
  for (int i = 1;; ++i) {
    lua_rawgeti(lua, -1, i);
    if (lua_isnil(lua, -1)) break;
    const uint32_t flag = lua_isstring(lua, -1) != 0 ? script_flag(text_at(lua, -1)) : 0;
    if (flag == 0) raise_error(lua, "ERR unknown flag given");
    flags |= flag;
    lua_pop(lua, 1);
  }
  lua_pop(lua, 2);
  return flags;
}

// Both leave name, callback and description, which may be nil, in their slots.

void read_positional(lua_State* lua) {
  lua_pushvalue(lua, 1);
  keep_text(lua, kName, "ERR first argument to redis.register_function must be a string");
  lua_pushvalue(lua, kArguments);
  keep_callback(lua, "ERR second argument to redis.register_function must be a function");
}

uint32_t read_named(lua_State* lua) {
  uint32_t flags = 0;
  for (lua_pushnil(lua); lua_next(lua, 1) != 0;) {
    if (lua_isstring(lua, -2) == 0) {
      raise_error(lua, "ERR named argument key given to redis.register_function is not a string");
    }
    const std::string_view key =
        lua_type(lua, -2) == LUA_TSTRING ? text_at(lua, -2) : std::string_view();
    if (key == "function_name") {
      keep_text(lua, kName,
                "ERR function_name argument given to redis.register_function must be a string");
    } else if (key == "description") {
      keep_text(lua, kDescription,
                "ERR description argument given to redis.register_function must be a string");
    } else if (key == "callback") {
      keep_callback(lua,
                    "ERR callback argument given to redis.register_function must be a function");
    } else if (key == "flags") {
      flags = read_flags(lua);
    } else {
      raise_error(lua, "ERR unknown argument given to redis.register_function");
    }
  }
  if (lua_isnil(lua, kName))
    raise_error(lua, "ERR redis.register_function must get a function name argument");
  if (lua_isnil(lua, kCallback))
    raise_error(lua, "ERR redis.register_function must get a callback argument");
  return flags;
}

}  // namespace

// Called from Lua: errors leave these functions without running destructors, so objects that have
// one are created only after all checks.
struct LoadApi {
  static int register_function(lua_State* lua) {
    auto& self = *static_cast<Functions*>(lua_touserdata(lua, lua_upvalueindex(1)));
    const int count = lua_gettop(lua);
    if (count < 1 || count > kArguments)
      raise_error(lua, "ERR wrong number of arguments to redis.register_function");
    if (count == 1 && !lua_istable(lua, 1)) {
      raise_error(
          lua,
          "ERR calling redis.register_function with a single argument is only applicable to Lua "
          "table (representing named arguments).");
    }
    if (self.loading_ == nullptr) {
      raise_error(lua, "ERR redis.register_function can only be called on FUNCTION LOAD command");
    }
    lua_settop(lua, kDescription);
    uint32_t flags = 0;
    if (count == 1) {
      flags = read_named(lua);
    } else {
      read_positional(lua);
    }
    if (!is_function_name(text_at(lua, kName))) raise_error(lua, kBadFunctionName);
    if (!self.loading_names_.emplace(text_at(lua, kName)).second)
      raise_error(lua, "ERR Function already exists in the library");
    lua_pushvalue(lua, kCallback);
    const int callback = luaL_ref(lua, LUA_REGISTRYINDEX);
    Function& function = self.loading_->functions.emplace_back();
    function.name = text_at(lua, kName);
    if (!lua_isnil(lua, kDescription)) function.description = text_at(lua, kDescription);
    function.flags = flags;
    function.callback = callback;
    return 0;
  }
};

int add_load_globals(Interpreter& interpreter, Functions& functions, ScriptRunner& runner) {
  lua_State* lua = interpreter.lua();
  lua_newtable(lua);
  push_load_library(lua, runner);
  lua_pushlightuserdata(lua, &functions);
  lua_pushcclosure(lua, LoadApi::register_function, 1);
  lua_setfield(lua, -2, "register_function");
  interpreter.seal();
  // Valkey's name for the same.
  if (runner.server().edition().is_valkey()) {
    lua_pushvalue(lua, -1);
    lua_setfield(lua, -3, "server");
  }
  lua_setfield(lua, -2, "redis");
  return interpreter.add_globals();
}

}  // namespace latchkey::script
