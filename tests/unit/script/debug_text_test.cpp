#include "script/debug_text.h"

#include <lua.hpp>
#include <memory>

#include "unit/catch.h"

using namespace latchkey::script;

namespace {

// What the debugger shows of the value of an expression.
std::string shown(const char* expression) {
  const std::unique_ptr<lua_State, decltype(&lua_close)> lua(luaL_newstate(), lua_close);
  luaL_openlibs(lua.get());
  REQUIRE(luaL_dostring(lua.get(), ("return " + std::string(expression)).c_str()) == 0);
  std::string text = value_text(lua.get(), -1);
  CHECK(lua_gettop(lua.get()) == 1);
  return text;
}

}  // namespace

TEST_CASE("Values are shown to a debugger's user as Lua would write them") {
  CHECK(shown("nil") == "nil");
  CHECK(shown("1/3") == "0.333333");
  CHECK(shown("true") == "true");
  CHECK(shown("'a\\0b\"'") == "\"a\\x00b\\\"\"");
  CHECK(shown("{}") == "{}");
  CHECK(shown("{1, {2}}") == "{1; {2}}");
  CHECK(shown("{1, x = 'y'}") == "{[1]=1; [\"x\"]=\"y\"}");
  CHECK(shown("print").starts_with("\"function@0x"));
}

TEST_CASE("What stands for null in tables is shown by its kind") {
  const std::unique_ptr<lua_State, decltype(&lua_close)> lua(luaL_newstate(), lua_close);
  lua_pushlightuserdata(lua.get(), nullptr);
  CHECK(value_text(lua.get(), -1).starts_with("\"light-userdata@"));
}

TEST_CASE("Tables in tables are shown to a depth") {
  const std::string text = shown("(function() local t = {} t.t = t return t end)()");
  CHECK(text.find("<max recursion level reached! Nested table?>") != text.npos);
}

TEST_CASE("Replies of both protocols are shown on one line") {
  CHECK(reply_text(":12\r\n") == "12");
  CHECK(reply_text("+OK\r\n") == "\"+OK\"");
  CHECK(reply_text("-ERR no\r\n") == "\"-ERR no\"");
  CHECK(reply_text("$3\r\na\nb\r\n") == "\"a\\nb\"");
  CHECK(reply_text("$-1\r\n") == "NULL");
  CHECK(reply_text("*-1\r\n") == "NULL");
  CHECK(reply_text("*3\r\n:1\r\n*0\r\n$1\r\nx\r\n") == "[1,[],\"x\"]");
  CHECK(reply_text("%1\r\n$1\r\na\r\n,1.5\r\n") == "{\"a\" => (double) 1.5}");
  CHECK(reply_text("~1\r\n#t\r\n") == "~(#true)");
  CHECK(reply_text("|1\r\n+a\r\n:1\r\n_\r\n") == "(null)");
}

TEST_CASE("Big numbers and text with a format are shown to a debugger's user") {
  CHECK(reply_text("(123456789012345678901\r\n") == "(big number) 123456789012345678901");
}
