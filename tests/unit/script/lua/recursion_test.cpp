// How deep scripts can go: in functions that call back, in metamethods, in what libraries write and
// read.

#include "unit/script/script_fixture.h"

#include <sys/resource.h>

#include <algorithm>

#include "unit/catch.h"

using namespace latchkey;
using namespace latchkey::tests;

namespace {

constexpr std::string_view kOverflow = "-ERR C stack overflow";

}  // namespace

TEST_CASE("Recursion through any function that calls back ends with an error", "[script-host]") {
  ScriptServer scripts;
  for (const std::string_view script :
       {"local function f() string.gsub('a', 'a', f) return 'x' end f()",
        "local m = {} m.__index = function(t, k) return (string.gsub('a', 'a', t)) end return "
        "string.gsub('a', 'a', setmetatable({}, m))",
        "local function f() table.sort({1, 2}, f) return true end f()",
        "local m = {} m.__lt = function(a, b) table.sort({a, b}) end table.sort({setmetatable({}, "
        "m), setmetatable({}, m)})",
        "local function f() return coroutine.wrap(f)() end return f()",
        "local function f() local a, b = coroutine.resume(coroutine.create(f)) error(b, 0) end f()",
        "local function f() local a, b = pcall(f) error(b, 0) end f()",
        "local function f() local a, b = xpcall(f, function(e) return e end) error(b, 0) end f()",
        "local function f() local a, b = load(f) error(b, 0) end f()",
        "local m = {} m.__tostring = function(x) return tostring(x) .. '' end return "
        "tostring(setmetatable({}, m))"}) {
    CAPTURE(script);
    CHECK(scripts.error_of(script).starts_with(kOverflow));
    CHECK(scripts.works());
  }
}

TEST_CASE("Recursion in Lua's own functions and metamethods ends where their stack does",
          "[script-host]") {
  ScriptServer scripts;
  for (
      const std::string_view script :
      {"local function f() return f() + 1 end return f()",
       "local function f() table.foreach({1}, f) end f()",
       "local function f() table.foreachi({1}, f) end f()",
       "local m = {} m.__index = function(t, k) return t[k] .. '' end return setmetatable({}, m).x",
       "local m = {} m.__newindex = function(t, k) t[k] = 1 end setmetatable({}, m).x = 1",
       "local m = {} m.__call = function(t) t() end setmetatable({}, m)()",
       "local m = {} m.__concat = function(a) return (a .. a) .. '' end local t = setmetatable({}, "
       "m) return t .. t",
       "local m = {} m.__eq = function(a, b) return not (a == b) end return setmetatable({}, m) == "
       "setmetatable({}, m)",
       "local m = {} m.__lt = function(a, b) return not (a < b) end return setmetatable({}, m) < "
       "setmetatable({}, m)",
       "local m = {} m.__le = function(a, b) return not (a <= b) end return setmetatable({}, m) <= "
       "setmetatable({}, m)",
       "local m = {} m.__unm = function(a) return -a .. '' end return -setmetatable({}, m)",
       "local m = {} m.__add = function(a) return (a + 1) .. '' end return setmetatable({}, m) + "
       "1"}) {
    CAPTURE(script);
    CHECK(scripts.error_of(script).find("stack overflow") != std::string::npos);
    CHECK(scripts.works());
  }
}

TEST_CASE("Calls back may be nested two hundred deep, as in the reference", "[script-host]") {
  ScriptServer scripts;
  constexpr std::string_view kNest =
      "local function f(n) if n == 0 then return 'x' end return (string.gsub('a', 'a', function() "
      "return f(n - 1) end)) end return f(tonumber(ARGV[1]))";
  CHECK(scripts.client->run_words({"EVAL", kNest, "0", "195"}) == bulk("x"));
  CHECK(scripts.client->run_words({"EVAL", kNest, "0", "201"}).starts_with(kOverflow));
  // What was nested before does not count.
  CHECK(scripts.client->run_words({"EVAL", kNest, "0", "195"}) == bulk("x"));
  CHECK(scripts.eval("for i = 1, 1000 do pcall(error, 'x') pcall(string.gsub, 'a', 'a', error) "
                     "coroutine.resume(coroutine.create(error)) load(error) end return 1") ==
        integer(1));
  CHECK(scripts.eval("local function f() pcall(f) error('x') end pcall(f) return (string.gsub('a', "
                     "'a', function() return 'b' end))") == bulk("b"));
}

TEST_CASE("With little of C's stack left calls back end sooner", "[script-host]") {
  ScriptServer scripts;
  CHECK(scripts.eval("return (string.gsub('a', 'a', function() return 'b' end))") == bulk("b"));
  script::Interpreter& lua = *scripts.engine->interpreter();
  lua.set_stack_limit(static_cast<const char*>(__builtin_frame_address(0)) - (size_t{64} << 10));
  CHECK(scripts.error_of("return (string.gsub('a', 'a', function() return 'b' end))")
            .starts_with(kOverflow));
  CHECK(scripts.error_of("return cjson.encode({{}})").find("excessive nesting") !=
        std::string::npos);
  CHECK(scripts.error_of("return cjson.decode('[[]]')").find("too many nested") !=
        std::string::npos);
  CHECK(scripts.error_of("return cmsgpack.unpack('\\145\\192')").find("C stack overflow") !=
        std::string::npos);
  CHECK(scripts.error_of("return string.find('a', 'a?')").find("pattern too complex") !=
        std::string::npos);
  lua.set_stack_limit(nullptr);
  CHECK(scripts.works());
}

TEST_CASE("A pattern ends where it is nested too deeply, however large C's stack is",
          "[script-host]") {
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_STACK, &before) == 0);
  // The first stack grows up to the limit as it is then, and interpreters use half of it.
  rlimit large = before;
  large.rlim_cur = std::min<rlim_t>(rlim_t{64} << 20, before.rlim_max);
  REQUIRE(setrlimit(RLIMIT_STACK, &large) == 0);
  {
    ScriptServer scripts;
    CHECK(scripts
              .error_of("return string.find(string.rep('a', 300000), string.rep('a?', 300000) .. "
                        "'b')")
              .find("pattern too complex") != std::string::npos);
    CHECK(scripts.eval("return string.find(string.rep('a', 1000), string.rep('a?', 1000))") ==
          integer(1));
    CHECK(scripts.works());
  }
  REQUIRE(setrlimit(RLIMIT_STACK, &before) == 0);
}

TEST_CASE("Libraries go as deep as they are told, and no deeper than the stacks", "[script-host]") {
  ScriptServer scripts;
  for (const std::string_view script :
       {"cjson.encode_max_depth(1e9) local t = {} for i = 1, 300000 do t = {t} end return "
        "#cjson.encode(t)",
        "cjson.decode_max_depth(1e9) return #cjson.decode(string.rep('[', 300000))",
        "cjson.decode_max_depth(1e9) return #cjson.decode(string.rep('{\"a\":', 300000))",
        "return #cmsgpack.unpack(string.rep('\\145', 300000))",
        "return #cmsgpack.unpack(string.rep('\\129\\161a', 300000))",
        "return string.find(string.rep('a', 300000), string.rep('a?', 300000) .. 'b')",
        "return loadstring(string.rep('(', 300000))()",
        "return loadstring('return ' .. string.rep('{', 300000))()",
        "return loadstring(string.rep('do ', 300000))()"}) {
    CAPTURE(script);
    CHECK(scripts.eval(script).starts_with("-ERR"));
    CHECK(scripts.works());
  }
  CHECK(scripts.eval("local t = {} for i = 1, 100 do t = {t} end return #cmsgpack.pack(t)") ==
        integer(17));
}
