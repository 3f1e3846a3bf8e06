// Scripts that are stopped, wherever they are, and what is left of their interpreter.
#include <lua.hpp>

#include "base/digest/sha1.h"
#include "unit/catch.h"
#include "unit/script/script_fixture.h"

using namespace latchkey;
using namespace latchkey::tests;

namespace {

// Each calls f from a place where something may catch its error or have to put something right.
constexpr std::string_view kPlaces[] = {
    "f()",
    "pcall(f)",
    "return pcall(f)",
    "return pcall(pcall, f)",
    "xpcall(f, function(e) return e end)",
    "xpcall(f, function(e) while true do end end)",
    "xpcall(function() error('x') end, f)",
    "xpcall(function() error('x') end, function() return pcall(f) end)",
    "return xpcall(f, tostring)",
    "string.gsub('a', 'a', f)",
    "string.gsub('a', 'a', setmetatable({}, {__index = f}))",
    "table.sort({3, 2, 1}, f)",
    "table.sort({setmetatable({}, {__lt = f}), setmetatable({}, {__lt = f})})",
    "local m = {__lt = f} table.sort({setmetatable({}, m), setmetatable({}, m)})",
    "load(f)",
    "return load(f)",
    "return pcall(load, f)",
    "load(function() return load(f) end)",
    "coroutine.wrap(f)()",
    "coroutine.resume(coroutine.create(f))",
    "return coroutine.resume(coroutine.create(f))",
    "local c = coroutine.wrap(function() coroutine.yield() f() end) c() c()",
    "for x in coroutine.wrap(f) do end",
    "for x in f do end",
    "tostring(setmetatable({}, {__tostring = f}))",
    "return setmetatable({}, {__index = f}).x",
    "setmetatable({}, {__newindex = f}).x = 1",
    "setmetatable({}, {__call = f})()",
    "return setmetatable({}, {__concat = f}) .. 'x'",
    "local m = {__eq = f} return setmetatable({}, m) == setmetatable({}, m)",
    "local m = {__lt = f} return setmetatable({}, m) < setmetatable({}, m)",
    "local m = {__le = f} return setmetatable({}, m) <= setmetatable({}, m)",
    "return -setmetatable({}, {__unm = f})",
    "return setmetatable({}, {__add = f}) + 1",
    "table.foreach({1}, f)",
    "table.foreachi({1}, f)",
    "string.gsub('a', 'a', function() return table.sort({2, 1}, function() return pcall(f) end) "
    "end)",
    "while true do pcall(load, f) end",
    "while true do pcall(f) end",
    "while true do pcall(string.gsub, 'a', 'a', f) end",
    "while true do coroutine.resume(coroutine.create(f)) end",
    "while true do xpcall(f, f) end",
};

}  // namespace

TEST_CASE("A script is stopped in whatever calls back, and the next one can be stopped too",
          "[script-host]") {
  ScriptServer scripts;
  for (const std::string_view place : kPlaces) {
    CAPTURE(place);
    CHECK(scripts.error_of("local function f() redis.call('stopme') while true do end end " +
                           std::string(place)) == ScriptServer::kStopped);
    CHECK(scripts.works());
  }
}

TEST_CASE("An interpreter in which nothing can be interrupted any more is made anew",
          "[script-host]") {
  ScriptServer scripts;
  scripts.client->run_words({"SCRIPT", "LOAD", "return 'kept'"});
  CHECK(scripts.eval("return 'cached'") == bulk("cached"));
  script::Interpreter* before = scripts.engine->interpreter();
  REQUIRE(before->is_sound());
  // LuaJIT's compiler forgets to leave the hook when its reader raises an error from one.
  lua_State* lua = before->lua();
  const auto raise = [](lua_State* state, lua_Debug*) {
    lua_pushliteral(state, "raised");
    lua_error(state);
  };
  const auto read = [](lua_State* state, void*, size_t*) -> const char* {
    luaL_loadstring(state, "for i = 1, 1000 do end");
    lua_call(state, 0, 0);
    return nullptr;
  };
  lua_sethook(lua, raise, LUA_MASKCOUNT, 1);
  CHECK(lua_load(lua, read, nullptr, "=broken") != 0);
  lua_sethook(lua, nullptr, 0, 0);
  before->clear_stack();
  before->require_probe();
  CHECK_FALSE(before->is_sound());

  CHECK(scripts.eval("return 'cached'") == bulk("cached"));
  CHECK(scripts.works());
  CHECK(scripts.client->run_words({"EVALSHA", base::sha1_hex("return 'kept'"), "0"}) ==
        bulk("kept"));
  CHECK(scripts.engine->interpreter()->is_sound());
}

TEST_CASE("Libraries are loaded again when their interpreter is made anew", "[script-host]") {
  ScriptServer scripts;
  scripts.client->run_words(
      {"FUNCTION", "LOAD",
       "#!lua name=one\nlocal n = 0 redis.register_function('count', function() n = n + 1 return n "
       "end)"});
  CHECK(scripts.client->run("FCALL count 0") == integer(1));
  CHECK(scripts.client->run("FCALL count 0") == integer(2));
  lua_State* lua = scripts.engine->functions().interpreter()->lua();
  // What is wrong with it does not matter here: a hook that nobody takes off.
  lua_sethook(
      lua, [](lua_State* state, lua_Debug*) { luaL_error(state, "raised"); }, LUA_MASKCOUNT, 1);
  scripts.engine->functions().interpreter()->require_probe();
  CHECK(scripts.client->run("FCALL count 0") == integer(1));
  CHECK(scripts.client->run("FCALL count 0") == integer(2));
  CHECK(scripts.server.server.figures().scripts().libraries == 1);
}

TEST_CASE("A script of few instructions that may take long is stopped too", "[script-host]") {
  ScriptServer scripts;
  CHECK(scripts.error_of("redis.call('stopme') for i = 1, 100 do string.upper('x') end") ==
        ScriptServer::kStopped);
}

TEST_CASE("The error of a script that was stopped says where", "[script-host]") {
  ScriptServer scripts;
  const auto place_of = [&](std::string_view script) {
    const std::string reply = scripts.eval(script);
    return reply.substr(std::min(reply.find(", on "), reply.size()));
  };
  CHECK(place_of("redis.call('stopme')\nwhile true do end") == ", on @user_script:2.\r\n");
  CHECK(place_of("local function f()\nwhile true do end end redis.call('stopme')\nf()") ==
        ", on @user_script:2.\r\n");
}
