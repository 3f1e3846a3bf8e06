#include "script/lua/sandbox.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <lua.hpp>
#include <numbers>
#include <string_view>

#include "base/assert.h"
#include "script/lua/interpreter.h"
#include "script/lua/lua_coroutines.h"
#include "script/lua/lua_deprecated.h"
#include "script/lua/lua_format.h"
#include "script/lua/lua_numbers.h"
#include "script/lua/lua_patterns.h"
#include "script/lua/lua_sort.h"
#include "script/lua/lua_text.h"

namespace latchkey::script {

namespace {

constexpr char kReadOnly[] = "Attempt to modify a readonly table";

int raise_read_only(lua_State* lua) {
  return luaL_error(lua, kReadOnly);
}

// Raises the error without a place, as the reference's own functions do.
int raise_read_only_plainly(lua_State* lua) {
  lua_pushstring(lua, kReadOnly);
  return lua_error(lua);
}

int raise_missing_global(lua_State* lua) {
  if (lua_isstring(lua, 2) == 0) {
    return luaL_error(lua, "Second argument to luaProtectedTableError must be a string or number");
  }
  return luaL_error(lua, "Script attempted to access nonexistent global variable '%s'",
                    lua_tostring(lua, 2));
}

}  // namespace

// The functions of the sandbox that bypass metatables, with the interpreter as their first upvalue.
struct Sandbox {
  static Interpreter& self(lua_State* lua) {
    return *static_cast<Interpreter*>(lua_touserdata(lua, lua_upvalueindex(1)));
  }
  static int real_of(lua_State* lua, int index) {
    return self(lua).real_of(lua_topointer(lua, index));
  }
  // Replaces a proxy at `index` by its real table.
  static bool unveil(lua_State* lua, int index) {
    const int real = real_of(lua, index);
    if (real == 0) return false;
    lua_rawgeti(lua, LUA_REGISTRYINDEX, real);
    lua_replace(lua, index);
    return true;
  }

  // Lua 5.1's: the message begins with the place of the call, which LuaJIT's leaves out.
  static int assert_true(lua_State* lua) {
    luaL_checkany(lua, 1);
    if (lua_toboolean(lua, 1) != 0) return lua_gettop(lua);
    return luaL_error(lua, "%s", luaL_optstring(lua, 2, "assertion failed!"));
  }

  static int rawset(lua_State* lua) {
    luaL_checktype(lua, 1, LUA_TTABLE);
    luaL_checkany(lua, 2);
    luaL_checkany(lua, 3);
    if (real_of(lua, 1) != 0) return raise_read_only_plainly(lua);
    if (lua_isnil(lua, 2)) {
      lua_pushliteral(lua, "table index is nil");
      return lua_error(lua);
    }
    lua_settop(lua, 3);
    if (is_finalizer_of_proxy(lua)) {
      lua_settop(lua, 1);
      return 1;
    }
    lua_rawset(lua, 1);
    return 1;
  }

  static int rawget(lua_State* lua) {
    luaL_checktype(lua, 1, LUA_TTABLE);
    luaL_checkany(lua, 2);
    lua_settop(lua, 2);
    unveil(lua, 1);
    lua_rawget(lua, 1);
    return 1;
  }

  static int next(lua_State* lua) {
    luaL_checktype(lua, 1, LUA_TTABLE);
    lua_settop(lua, 2);
    unveil(lua, 1);
    if (lua_next(lua, 1) != 0) return 2;
    lua_pushnil(lua);
    return 1;
  }

  // Upvalues: the interpreter, LuaJIT's own next (which its loops recognize), the next() above.
  static int pairs(lua_State* lua) {
    luaL_checktype(lua, 1, LUA_TTABLE);
    lua_pushvalue(lua, lua_upvalueindex(real_of(lua, 1) == 0 ? 2 : 3));
    lua_pushvalue(lua, 1);
    lua_pushnil(lua);
    return 3;
  }

  static int setmetatable(lua_State* lua) {
    const int type = lua_type(lua, 2);
    luaL_checktype(lua, 1, LUA_TTABLE);
    luaL_argcheck(lua, type == LUA_TNIL || type == LUA_TTABLE, 2, "nil or table expected");
    if (real_of(lua, 1) != 0) return raise_read_only_plainly(lua);
    if (luaL_getmetafield(lua, 1, "__metatable") != 0)
      return luaL_error(lua, "cannot change a protected metatable");
    lua_settop(lua, 2);
    lua_setmetatable(lua, 1);
    return 1;
  }

  // Upvalues: the interpreter, the proxies for the metatables of strings and of the globals.
  static int getmetatable(lua_State* lua) {
    luaL_checkany(lua, 1);
    if (lua_type(lua, 1) == LUA_TSTRING) {
      lua_pushvalue(lua, lua_upvalueindex(2));
      return 1;
    }
    lua_pushvalue(lua, LUA_GLOBALSINDEX);
    if (lua_rawequal(lua, 1, -1) != 0) {
      lua_pushvalue(lua, lua_upvalueindex(3));
      return 1;
    }
    if (real_of(lua, 1) != 0 || lua_getmetatable(lua, 1) == 0) {
      lua_pushnil(lua);
      return 1;
    }
    luaL_getmetafield(lua, 1, "__metatable");
    return 1;
  }

  // Errors that scripts raise as tables are strings when they are caught.
  static int pcall(lua_State* lua) {
    if (lua_gettop(lua) == 0) {
      lua_pushboolean(lua, 0);
      lua_pushliteral(lua, "bad argument #1 to 'pcall' (value expected)");
      return 2;
    }
    const Interpreter::CallBack call(lua);
    const int status = lua_pcall(lua, lua_gettop(lua) - 1, LUA_MULTRET, 0);
    call.end();
    if (status != 0) self(lua).error_caught(lua);
    if (status != 0 && lua_istable(lua, -1)) {
      push_raw_field(lua, -1, "err");
      if (lua_isstring(lua, -1) != 0) {
        lua_replace(lua, -2);
      } else {
        lua_pop(lua, 1);
      }
    }
    lua_pushboolean(lua, status == 0 ? 1 : 0);
    lua_insert(lua, 1);
    return lua_gettop(lua);
  }

  // Wraps a script's error handler, which must not see the error that stops the script: that comes
  // from a hook, in which nothing can be interrupted.
  static int handle_error(lua_State* lua) {
    if (self(lua).stopped_with() != nullptr || !self(lua).may_call_back()) return 1;
    const Interpreter::CallBack call(lua);
    lua_pushvalue(lua, lua_upvalueindex(2));
    lua_insert(lua, 1);
    lua_call(lua, lua_gettop(lua) - 1, 1);
    call.end();
    return 1;
  }

  // Drops further arguments, which LuaJIT's xpcall would pass to the function.
  static int xpcall(lua_State* lua) {
    luaL_checkany(lua, 2);
    lua_settop(lua, 2);
    const Interpreter::CallBack call(lua);
    lua_pushvalue(lua, lua_upvalueindex(1));
    lua_insert(lua, 2);
    lua_pushcclosure(lua, handle_error, 2);
    lua_insert(lua, 1);
    const int status = lua_pcall(lua, 0, LUA_MULTRET, 1);
    call.end();
    if (status != 0) self(lua).error_caught(lua);
    lua_pushboolean(lua, status == 0 ? 1 : 0);
    lua_replace(lua, 1);
    return lua_gettop(lua);
  }

  static int loadstring(lua_State* lua) {
    size_t size = 0;
    const char* text = luaL_checklstring(lua, 1, &size);
    const char* name = luaL_optstring(lua, 2, text);
    if (size > 0 && *text == LUA_SIGNATURE[0]) {
      // Bytecode could do anything to the process.
      lua_pushnil(lua);
      lua_pushfstring(lua, "[string \"%s\"]:1: unexpected symbol near 'char(27)'", name);
      return 2;
    }
    if (luaL_loadbufferx(lua, text, size, name, "t") == 0) return 1;
    lua_pushnil(lua);
    lua_insert(lua, -2);
    return 2;
  }

  // Stack slots of load(): its arguments, and the last result of its reader, a piece or an error.
  static constexpr int kReader = 1;
  static constexpr int kChunkName = 2;
  static constexpr int kPiece = 3;

  // Calls the script's reader for the next piece of code. Catches its errors: if they come from a
  // hook, the compiler, which calls this, would not leave the hook.
  static const char* read_piece(lua_State* lua, void* has_failed, size_t* size) {
    luaL_checkstack(lua, 2, "too many nested functions");
    lua_pushvalue(lua, kReader);
    bool failed = lua_pcall(lua, 0, 1, 0) != 0;
    if (!failed && lua_isnil(lua, -1)) {
      lua_pop(lua, 1);
      return nullptr;
    }
    if (!failed && lua_isstring(lua, -1) == 0) {
      failed = true;
      lua_pop(lua, 1);
      lua_pushliteral(lua, "reader function must return a string");
    }
    lua_replace(lua, kPiece);
    *static_cast<bool*>(has_failed) = failed;
    return failed ? nullptr : lua_tolstring(lua, kPiece, size);
  }

  static int load(lua_State* lua) {
    luaL_checktype(lua, kReader, LUA_TFUNCTION);
    const char* name = luaL_optstring(lua, kChunkName, "=(load)");
    lua_settop(lua, kPiece);
    const Interpreter::CallBack call(lua);
    bool failed = false;
    const int status = lua_loadx(lua, read_piece, &failed, name, "t");
    call.end();
    if (failed) {
      self(lua).error_caught(lua);
      lua_settop(lua, kPiece);
    } else if (status == 0) {
      return 1;
    }
    lua_pushnil(lua);
    lua_insert(lua, -2);
    return 2;
  }

  // Upvalue 2: LuaJIT's collectgarbage, which has an extra option.
  static int collectgarbage(lua_State* lua) {
    static constexpr const char* kOptions[] = {"collect", "stop",     "restart",    "count",
                                               "step",    "setpause", "setstepmul", nullptr};
    const std::string_view option = kOptions[luaL_checkoption(lua, 1, kOptions[0], kOptions)];
    if (option != "collect" && option != "count" && option != "step")
      self(lua).collector_was_tuned();
    return lua_tocfunction(lua, lua_upvalueindex(2))(lua);
  }

  static int random(lua_State* lua) {
    const double fraction = static_cast<double>(self(lua).random_.next() % LuaRandom::kMax) /
                            static_cast<double>(LuaRandom::kMax);
    switch (lua_gettop(lua)) {
      case 0:
        lua_pushnumber(lua, fraction);
        return 1;
      case 1: {
        const int high = luaL_checkint(lua, 1);
        luaL_argcheck(lua, high >= 1, 1, "interval is empty");
        lua_pushnumber(lua, std::floor(fraction * high) + 1);
        return 1;
      }
      case 2: {
        const int low = luaL_checkint(lua, 1);
        const int high = luaL_checkint(lua, 2);
        luaL_argcheck(lua, low <= high, 2, "interval is empty");
        lua_pushnumber(lua, std::floor(fraction * (static_cast<double>(high) - low + 1)) + low);
        return 1;
      }
      default:
        return luaL_error(lua, "wrong number of arguments");
    }
  }

  static int randomseed(lua_State* lua) {
    self(lua).random_.seed(as_argument(luaL_checknumber(lua, 1)));
    return 0;
  }

  static int log(lua_State* lua) {
    lua_pushnumber(lua, std::log(luaL_checknumber(lua, 1)));
    return 1;
  }

  // LuaJIT has these two in its own code, whose errors do not say what is wrong.
  static constexpr double kRadiansPerDegree = std::numbers::pi / 180;
  static int deg(lua_State* lua) {
    lua_pushnumber(lua, luaL_checknumber(lua, 1) / kRadiansPerDegree);
    return 1;
  }
  static int rad(lua_State* lua) {
    lua_pushnumber(lua, luaL_checknumber(lua, 1) * kRadiansPerDegree);
    return 1;
  }

  static int setn(lua_State* lua) {
    luaL_checktype(lua, 1, LUA_TTABLE);
    return luaL_error(lua, "'setn' is obsolete");
  }

  // Upvalue 2: bit.tohex, which treats out-of-range digit counts differently.
  static int tohex(lua_State* lua) {
    constexpr int32_t kMaxDigits = 8;
    // Leaves a number's integer in the lower bits, as the functions of `bit` take their arguments.
    constexpr double kAlign = 6755399441055744.0;  // 2^52 + 2^51
    if (lua_isnumber(lua, 2) != 0) {
      const auto bits = std::bit_cast<uint64_t>(lua_tonumber(lua, 2) + kAlign);
      lua_pushinteger(lua, std::clamp(static_cast<int32_t>(bits), -kMaxDigits, kMaxDigits));
      lua_replace(lua, 2);
    }
    return lua_tocfunction(lua, lua_upvalueindex(2))(lua);
  }

  // LuaJIT takes a number that 32 bits do not hold as the smallest of them, Lua 5.1 as the lower
  // half of a 64-bit integer. Replaces such arguments from `first` to `last`.
  static void narrow_arguments(lua_State* lua, int first, int last) {
    for (int i = first; i <= last && i <= lua_gettop(lua); ++i) {
      if (lua_isnumber(lua, i) == 0) continue;
      const double number = lua_tonumber(lua, i);
      if (number > INT32_MIN - 1.0 && number < INT32_MAX + 1.0) [[likely]]
        continue;
      lua_pushinteger(lua, as_argument(number));
      lua_replace(lua, i);
    }
  }

  // Upvalue 2: unpack.
  static int unpack(lua_State* lua) {
    narrow_arguments(lua, 2, 3);
    return lua_tocfunction(lua, lua_upvalueindex(2))(lua);
  }

  // Upvalue 2: table.concat.
  static int concat(lua_State* lua) {
    narrow_arguments(lua, 3, 4);
    return lua_tocfunction(lua, lua_upvalueindex(2))(lua);
  }

  // Upvalue 2: table.insert.
  static int insert(lua_State* lua) {
    constexpr int64_t kQuick = 4096;
    if (real_of(lua, 1) != 0) return raise_read_only_plainly(lua);
    if (lua_gettop(lua) == 3 && lua_istable(lua, 1) && lua_isnumber(lua, 2) != 0) {
      narrow_arguments(lua, 2, 2);
      const auto place = static_cast<int>(lua_tointeger(lua, 2));
      const auto size = static_cast<int>(lua_objlen(lua, 1));
      if (size - int64_t{place} > kQuick) return insert_far(lua, place, size);
    }
    return lua_tocfunction(lua, lua_upvalueindex(2))(lua);
  }

  // Inserts where many elements, or indexes without one, must move.
  static int insert_far(lua_State* lua, int place, int size) {
    constexpr int kPollInterval = 4096;
    for (int i = size + 1; i > place; --i) {
      if (i % kPollInterval == 0) self(lua).poll(lua);
      lua_rawgeti(lua, 1, i - 1);
      lua_rawseti(lua, 1, i);
    }
    lua_settop(lua, 3);
    lua_rawseti(lua, 1, place);
    return 0;
  }

  // Upvalue 2: string.rep, which would accept a separator.
  static int rep(lua_State* lua) {
    if (lua_gettop(lua) > 2) lua_settop(lua, 2);
    return lua_tocfunction(lua, lua_upvalueindex(2))(lua);
  }

  // A position in a text of that size, counted from 1; 0 before it. Negative arguments count from
  // its end.
  static int64_t position(lua_Number argument, int64_t size) {
    const int64_t place = as_int64(argument);
    return place < 0 ? std::max<int64_t>(place + size + 1, 0) : place;
  }

  // Lua 5.1's, because LuaJIT's takes positions that 32 bits do not hold as the smallest of them.
  static int sub(lua_State* lua) {
    luaL_checkstring(lua, 1);
    const std::string_view text = text_at(lua, 1);
    const auto size = static_cast<int64_t>(text.size());
    const int64_t first = std::max<int64_t>(position(luaL_checknumber(lua, 2), size), 1);
    const int64_t last = std::min(position(luaL_optnumber(lua, 3, -1), size), size);
    const int64_t length = std::max<int64_t>(last - first + 1, 0);
    push_text(lua, length == 0
                       ? std::string_view()
                       : text.substr(static_cast<size_t>(first - 1), static_cast<size_t>(length)));
    return 1;
  }

  // For the same reason.
  static int byte(lua_State* lua) {
    luaL_checkstring(lua, 1);
    const std::string_view text = text_at(lua, 1);
    const auto size = static_cast<int64_t>(text.size());
    const int64_t begin = position(luaL_optnumber(lua, 2, 1), size);
    const int64_t end = lua_isnoneornil(lua, 3) ? begin : position(luaL_checknumber(lua, 3), size);
    const int64_t first = std::max<int64_t>(begin, 1);
    const int64_t last = std::min(end, size);
    if (first > last) return 0;
    const auto count = static_cast<int>(std::min<int64_t>(last - first + 1, INT32_MAX));
    luaL_checkstack(lua, count, "string slice too long");
    for (const char c : text.substr(static_cast<size_t>(first - 1), static_cast<size_t>(count)))
      lua_pushinteger(lua, static_cast<unsigned char>(c));
    return count;
  }

  // Upvalue 2: tostring, which drops the sign of NaN and names null differently.
  static int to_string(lua_State* lua) {
    if (lua_type(lua, 1) == LUA_TNUMBER) return lua_number_to_string(lua);
    if (lua_type(lua, 1) == LUA_TLIGHTUSERDATA && lua_touserdata(lua, 1) == nullptr) {
      lua_pushliteral(lua, "userdata: (nil)");
      return 1;
    }
    const Interpreter::CallBack call(lua);
    lua_pushvalue(lua, lua_upvalueindex(2));
    lua_insert(lua, 1);
    lua_call(lua, lua_gettop(lua) - 1, 1);
    call.end();
    return 1;
  }

  static void build(Interpreter& interpreter);

 private:
  // Sets a function in the table on top, with the interpreter as its upvalue.
  static void set_function(Interpreter& interpreter, const char* name, lua_CFunction function) {
    lua_pushlightuserdata(interpreter.lua_, &interpreter);
    lua_pushcclosure(interpreter.lua_, function, 1);
    lua_setfield(interpreter.lua_, -2, name);
  }
  // The same, with the present function of that name as the second upvalue.
  static void wrap_function(Interpreter& interpreter, const char* name, lua_CFunction function) {
    lua_State* lua = interpreter.lua_;
    lua_pushlightuserdata(lua, &interpreter);
    lua_getfield(lua, -2, name);
    lua_pushcclosure(lua, function, 2);
    lua_setfield(lua, -2, name);
  }
  // The same, for wrappers that call the C function itself; some of LuaJIT's functions have none.
  static void wrap_c_function(Interpreter& interpreter, const char* name, lua_CFunction function) {
    lua_getfield(interpreter.lua_, -1, name);
    const bool callable = lua_tocfunction(interpreter.lua_, -1) != nullptr;
    lua_pop(interpreter.lua_, 1);
    if (callable) wrap_function(interpreter, name, function);
  }
  static void rename(lua_State* lua, const char* from, const char* to) {
    lua_getfield(lua, -1, from);
    lua_setfield(lua, -2, to);
  }
  static void remove(lua_State* lua, const char* name) {
    lua_pushnil(lua);
    lua_setfield(lua, -2, name);
  }
  static void open_libraries(lua_State* lua);
  static void trim_libraries(Interpreter& interpreter);
};

void Sandbox::open_libraries(lua_State* lua) {
  constexpr luaL_Reg kLibraries[] = {{"", luaopen_base},
                                     {LUA_TABLIBNAME, luaopen_table},
                                     {LUA_STRLIBNAME, luaopen_string},
                                     {LUA_MATHLIBNAME, luaopen_math},
                                     {LUA_BITLIBNAME, luaopen_bit},
                                     {LUA_OSLIBNAME, luaopen_os}};
  for (const luaL_Reg& library : kLibraries) {
    lua_pushcfunction(lua, library.func);
    lua_pushstring(lua, library.name);
    lua_call(lua, 1, 0);
  }
}

// REQUIRES: the original globals on top of the stack.
void Sandbox::trim_libraries(Interpreter& interpreter) {
  lua_State* lua = interpreter.lua_;
  lua_getfield(lua, -1, "math");
  set_function(interpreter, "random", random);
  set_function(interpreter, "randomseed", randomseed);
  set_function(interpreter, "log", log);
  set_function(interpreter, "deg", deg);
  set_function(interpreter, "rad", rad);
  rename(lua, "fmod", "mod");
  lua_pop(lua, 1);

  lua_getfield(lua, -1, "table");
  set_function(interpreter, "setn", setn);
  wrap_c_function(interpreter, "insert", insert);
  wrap_c_function(interpreter, "concat", concat);
  wrap_c_function(interpreter, "sort", lua_sort);
  remove(lua, "move");
  lua_pop(lua, 1);

  lua_getfield(lua, -1, "string");
  set_function(interpreter, "find", lua_pattern_find);
  set_function(interpreter, "match", lua_pattern_match);
  set_function(interpreter, "gmatch", lua_pattern_gmatch);
  set_function(interpreter, "gsub", lua_pattern_gsub);
  rename(lua, "gmatch", "gfind");
  set_function(interpreter, "sub", sub);
  set_function(interpreter, "byte", byte);
  wrap_c_function(interpreter, "rep", rep);
  set_function(interpreter, "format", lua_format);
  lua_pop(lua, 1);

  lua_getfield(lua, -1, "bit");
  wrap_c_function(interpreter, "tohex", tohex);
  lua_pop(lua, 1);

  lua_getfield(lua, -1, "coroutine");
  remove(lua, "isyieldable");
  set_function(interpreter, "resume", lua_coroutine_resume);
  set_function(interpreter, "wrap", lua_coroutine_wrap);
  lua_pop(lua, 1);

  // `os` has clock() only.
  lua_getfield(lua, -1, "os");
  lua_newtable(lua);
  lua_getfield(lua, -2, "clock");
  lua_setfield(lua, -2, "clock");
  lua_setfield(lua, -3, "os");
  lua_pop(lua, 1);
}

void Sandbox::build(Interpreter& interpreter) {
  lua_State* lua = interpreter.lua_;
  open_libraries(lua);
  lua_newtable(lua);
  lua_pushvalue(lua, LUA_GLOBALSINDEX);
  trim_libraries(interpreter);
  // Stack: the new real globals, the original ones.
  constexpr const char* kKept[] = {"_VERSION", "collectgarbage", "error",  "gcinfo",
                                   "ipairs",   "rawequal",       "select", "tonumber",
                                   "tostring", "type",           "unpack", "load"};
  for (const char* name : kKept) {
    lua_getfield(lua, -1, name);
    lua_setfield(lua, -3, name);
  }
  constexpr const char* kLibraries[] = {"string", "table", "math", "bit", "os", "coroutine"};
  for (const char* name : kLibraries) {
    lua_getfield(lua, -1, name);
    interpreter.protect();
    lua_setfield(lua, -3, name);
  }
  lua_pushvalue(lua, 1);
  set_function(interpreter, "assert", assert_true);
  set_function(interpreter, "rawset", rawset);
  set_function(interpreter, "rawget", rawget);
  set_function(interpreter, "next", next);
  set_function(interpreter, "setmetatable", setmetatable);
  set_function(interpreter, "pcall", pcall);
  set_function(interpreter, "xpcall", xpcall);
  set_function(interpreter, "loadstring", loadstring);
  set_function(interpreter, "load", load);
  wrap_function(interpreter, "tostring", to_string);
  wrap_c_function(interpreter, "unpack", unpack);
  wrap_c_function(interpreter, "collectgarbage", collectgarbage);
  lua_pushlightuserdata(lua, &interpreter);
  lua_getfield(lua, 2, "next");
  lua_getfield(lua, 1, "next");
  lua_pushcclosure(lua, pairs, 3);
  lua_setfield(lua, 1, "pairs");

  interpreter.refuse_missing();
  lua_getmetatable(lua, -1);
  // Stack: real, original, real, metatable of the real globals.
  lua_pushlightuserdata(lua, &interpreter);
  lua_newtable(lua);
  lua_getfield(lua, 1, "string");
  lua_setfield(lua, -2, "__index");
  interpreter.protect();
  lua_pushvalue(lua, -3);
  interpreter.protect();
  lua_pushcclosure(lua, getmetatable, 3);
  lua_setfield(lua, 1, "getmetatable");

  lua_settop(lua, 1);
  lua_pushvalue(lua, 1);
  interpreter.protect();
  lua_pushvalue(lua, -1);
  lua_setfield(lua, 1, "_G");
  lua_replace(lua, LUA_GLOBALSINDEX);
}

void build_sandbox(Interpreter& interpreter) {
  Sandbox::build(interpreter);
}

std::string plain_compile_error(std::string_view message, std::string_view chunk_name) {
  std::string text(message);
  const auto replace = [&](std::string_view from, std::string_view to) {
    if (const size_t at = text.find(from); at != text.npos) text.replace(at, from.size(), to);
  };
  replace("attempt to load chunk with wrong mode",
          std::string(chunk_name) + ":1: unexpected symbol near 'char(27)'");
  replace("invalid escape sequence", "escape sequence too large");
  return text;
}

void Interpreter::refuse_missing() {
  lua_newtable(lua_);
  lua_pushcfunction(lua_, raise_missing_global);
  lua_setfield(lua_, -2, "__index");
  lua_setmetatable(lua_, -2);
}

void Interpreter::protect() {
  LK_ASSERT(protected_count_ < kMaxProtected);
  lua_newtable(lua_);
  lua_newtable(lua_);
  lua_pushvalue(lua_, -3);
  lua_setfield(lua_, -2, "__index");
  lua_pushcfunction(lua_, raise_read_only);
  lua_setfield(lua_, -2, "__newindex");
  lua_setmetatable(lua_, -2);
  lua_insert(lua_, -2);
  const int real = luaL_ref(lua_, LUA_REGISTRYINDEX);
  protected_[protected_count_++] = {lua_topointer(lua_, -1), real};
}

int Interpreter::real_of(const void* table) const {
  for (size_t i = 0; i < protected_count_; ++i) {
    if (protected_[i].stand_in == table) return protected_[i].real;
  }
  return 0;
}

}  // namespace latchkey::script
