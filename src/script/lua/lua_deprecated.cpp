#include "script/lua/lua_deprecated.h"

#include <lua.hpp>

#include "script/lua/interpreter.h"
#include "script/lua/lua_text.h"

namespace latchkey::script {

namespace {

// Where the registry has the metatable of the metatables that newproxy makes.
constexpr char kGuard[] = "guard of proxies";
constexpr char kFinalizer[] = "__gc";

bool has_guard(lua_State* lua, int metatable) {
  if (lua_getmetatable(lua, metatable) == 0) return false;
  lua_getfield(lua, LUA_REGISTRYINDEX, kGuard);
  const bool guarded = lua_rawequal(lua, -1, -2) != 0;
  lua_pop(lua, 2);
  return guarded;
}

int set_guarded_field(lua_State* lua) {
  lua_settop(lua, 3);
  if (is_finalizer_of_proxy(lua)) return 0;
  lua_rawset(lua, 1);
  return 0;
}

// Pushes the function that the first argument means: itself, or that at a level of the stack.
// False, with nothing pushed, when it is level 0.
bool push_function(lua_State* lua, bool has_default) {
  if (lua_isfunction(lua, 1)) {
    lua_pushvalue(lua, 1);
    return true;
  }
  const int level = has_default ? luaL_optint(lua, 1, 1) : luaL_checkint(lua, 1);
  luaL_argcheck(lua, level >= 0, 1, "level must be non-negative");
  if (level == 0) return false;
  lua_Debug frame;
  if (lua_getstack(lua, level, &frame) == 0) luaL_argerror(lua, 1, "invalid level");
  lua_getinfo(lua, "f", &frame);
  if (lua_isnil(lua, -1))
    luaL_error(lua, "no function environment for tail call at level %d", level);
  return true;
}

int get_environment(lua_State* lua) {
  if (push_function(lua, true) && lua_iscfunction(lua, -1) == 0) {
    lua_getfenv(lua, -1);
  } else {
    lua_pushvalue(lua, LUA_GLOBALSINDEX);
  }
  return 1;
}

int set_environment(lua_State* lua) {
  luaL_checktype(lua, 2, LUA_TTABLE);
  if (!push_function(lua, false) || lua_iscfunction(lua, -1) != 0)
    return luaL_error(lua, "'setfenv' cannot change environment of given object");
  lua_pushvalue(lua, 2);
  lua_setfenv(lua, -2);
  return 1;
}

// True for a metatable of its own, false or nothing for none, another proxy for that one's.
int new_proxy(lua_State* lua) {
  lua_settop(lua, 1);
  lua_newuserdata(lua, 0);
  if (lua_toboolean(lua, 1) == 0) return 1;
  if (lua_isboolean(lua, 1)) {
    lua_newtable(lua);
    lua_getfield(lua, LUA_REGISTRYINDEX, kGuard);
    lua_setmetatable(lua, -2);
  } else if (lua_type(lua, 1) != LUA_TUSERDATA || lua_getmetatable(lua, 1) == 0 ||
             !has_guard(lua, -1)) {
    return luaL_argerror(lua, 1, "boolean or proxy expected");
  }
  lua_setmetatable(lua, 2);
  return 1;
}

}  // namespace

bool is_finalizer_of_proxy(lua_State* lua) {
  return lua_type(lua, 2) == LUA_TSTRING && text_at(lua, 2) == kFinalizer && has_guard(lua, 1);
}

void add_deprecated_functions(Interpreter& interpreter) {
  lua_State* lua = interpreter.lua();
  lua_newtable(lua);
  lua_pushcfunction(lua, set_guarded_field);
  lua_setfield(lua, -2, "__newindex");
  // The sandbox's setmetatable leaves tables alone whose metatable has this field.
  lua_pushboolean(lua, 0);
  lua_setfield(lua, -2, "__metatable");
  lua_setfield(lua, LUA_REGISTRYINDEX, kGuard);
  constexpr luaL_Reg kFunctions[] = {
      {"getfenv", get_environment}, {"setfenv", set_environment}, {"newproxy", new_proxy}};
  for (const luaL_Reg& function : kFunctions) {
    lua_pushcfunction(lua, function.func);
    interpreter.set_global(function.name);
  }
}

}  // namespace latchkey::script
