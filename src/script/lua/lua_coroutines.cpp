#include "script/lua/lua_coroutines.h"

#include <lua.hpp>

#include "script/lua/interpreter.h"

namespace latchkey::script {

namespace {

// The reason why a coroutine cannot be resumed, or null.
const char* why_not(lua_State* lua, lua_State* coroutine) {
  if (coroutine == lua) return "cannot resume running coroutine";
  lua_Debug place;
  const int status = lua_status(coroutine);
  if (status == LUA_YIELD) return nullptr;
  if (status == 0 && lua_getstack(coroutine, 0, &place) != 0)
    return "cannot resume normal coroutine";
  return status != 0 || lua_gettop(coroutine) == 0 ? "cannot resume dead coroutine" : nullptr;
}

int fail(lua_State* lua, const char* error) {
  lua_pushstring(lua, error);
  return -1;
}

// Resumes a coroutine with the arguments on top of the stack, and replaces them by its results.
// Returns their number, or -1 with the error on top.
int resume(lua_State* lua, lua_State* coroutine, int arguments) {
  const Interpreter::CallBack call(lua);
  Interpreter& interpreter = Interpreter::of(lua);
  if (const char* error = why_not(lua, coroutine); error != nullptr) {
    call.end();
    return fail(lua, error);
  }
  {
    // A memory error would be raised in the coroutine, where nothing can catch it yet.
    const LuaMemory::Exemption no_limit(interpreter.memory());
    if (lua_checkstack(coroutine, arguments) == 0) {
      call.end();
      return fail(lua, "too many arguments to resume");
    }
  }
  lua_xmove(lua, coroutine, arguments);
  const int status = lua_resume(coroutine, arguments);
  call.end();
  if (status != 0 && status != LUA_YIELD) {
    interpreter.error_caught(lua);
    lua_xmove(coroutine, lua, 1);
    return -1;
  }
  const int results = lua_gettop(coroutine);
  if (lua_checkstack(lua, results + 1) == 0) luaL_error(lua, "too many results to resume");
  lua_xmove(coroutine, lua, results);
  return results;
}

// Upvalue 1: the coroutine.
int call_coroutine(lua_State* lua) {
  const int results = resume(lua, lua_tothread(lua, lua_upvalueindex(1)), lua_gettop(lua));
  if (results >= 0) return results;
  if (lua_isstring(lua, -1) != 0) {
    luaL_where(lua, 1);
    lua_insert(lua, -2);
    lua_concat(lua, 2);
  }
  return lua_error(lua);
}

}  // namespace

int lua_coroutine_resume(lua_State* lua) {
  lua_State* coroutine = lua_tothread(lua, 1);
  luaL_argcheck(lua, coroutine != nullptr, 1, "coroutine expected");
  const int results = resume(lua, coroutine, lua_gettop(lua) - 1);
  lua_pushboolean(lua, results >= 0 ? 1 : 0);
  lua_insert(lua, results >= 0 ? -1 - results : -2);
  return results >= 0 ? results + 1 : 2;
}

int lua_coroutine_wrap(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TFUNCTION);
  lua_State* coroutine = lua_newthread(lua);
  lua_pushvalue(lua, 1);
  lua_xmove(lua, coroutine, 1);
  lua_pushcclosure(lua, call_coroutine, 1);
  return 1;
}

}  // namespace latchkey::script
