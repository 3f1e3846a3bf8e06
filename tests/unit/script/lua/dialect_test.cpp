#include "script/lua/dialect.h"

#include "unit/catch.h"

using latchkey::script::translate_dialect;

namespace {

std::string translated(std::string_view code) {
  const auto result = translate_dialect(code);
  REQUIRE(result);
  return *result;
}

std::string refusal(std::string_view code) {
  const auto result = translate_dialect(code);
  REQUIRE_FALSE(result);
  return result.error();
}

bool untouched(std::string_view code) {
  return translated(code) == code;
}

}  // namespace

TEST_CASE("A call of the server that a return ends with is no tail call") {
  CHECK(translated("return redis.call('get', KEYS[1])") == "return (redis.call('get', KEYS[1]))");
  CHECK(translated("return tonumber'5'") == "return (tonumber'5')");
  CHECK(translated("if x then return error('a') else return 1 end") ==
        "if x then return (error('a')) else return 1 end");
  CHECK(translated("return redis.call('a)', [[b)]], f(')') --)\n)") ==
        "return (redis.call('a)', [[b)]], f(')') --)\n))");
  CHECK(translated("local c = redis.call\nreturn c('x')") ==
        "local c = redis.call\nreturn (c('x'))");
}

TEST_CASE("Calls whose callee the text does not show are left alone") {
  CHECK(untouched("return f(1)"));
  CHECK(untouched("return redis.call('get', 'x') + 1"));
  CHECK(untouched("return redis.call('get', 'x'), 2"));
  CHECK(untouched("return redis.call('get', 'x').ok"));
  CHECK(untouched("return string.find('a', 'a')"));
  CHECK(untouched("return math.modf(1.5)"));
  CHECK(untouched("local redis = {} return redis.call('x')"));
  CHECK(untouched("local tonumber = f return tonumber('x')"));
  CHECK(untouched("local c = redis.call c = f return c('x')"));
  CHECK(untouched("local function f(c) return c('x') end local c = redis.call f(c)"));
  CHECK(untouched("-- return redis.call('x')"));
  CHECK(untouched("return 'return redis.call(1)'"));
}

TEST_CASE("Escapes that Lua 5.1 does not know stand for their letter") {
  CHECK(translated(R"(return "\x41\z\u\n\\x")") == R"(return "x41zu\n\\x")");
}

TEST_CASE("What only LuaJIT takes is refused, with the line") {
  CHECK(refusal("return 1LL") == "1: malformed number near '1LL'");
  CHECK(refusal("\n\nreturn 10i") == "3: malformed number near '10i'");
  CHECK(refusal("goto out ::out::") == "1: '=' expected near 'out'");
  CHECK(refusal("# comment\nreturn 1") == "1: unexpected symbol near '#'");
  CHECK(untouched("local t = {} t.goto = 1 return t.goto"));
}

TEST_CASE("Only functions of variable arguments that name arg declare it") {
  CHECK(translated("local function f(...) return arg end") ==
        "local function f(...) local arg={n=select('#',...),...};  return arg end");
  CHECK(translated("function t.a:b(x, ...)\nprint(arg, ...) end") ==
        "function t.a:b(x, ...) local arg; \nprint(arg, ...) end");
  CHECK(translated("f(function(...) if x then y() end return function() g(arg) end end)") ==
        "f(function(...) local arg={n=select('#',...),...};  if x then y() end "
        "return function() g(arg) end end)");
  CHECK(translated("function f(...) repeat g() until function(...) return arg end end") ==
        "function f(...) repeat g() until function(...) local arg={n=select('#',...),...};  "
        "return arg end end");
  CHECK(translated("function f(...) return arg end return select('#', f())") ==
        "function f(...) local arg={n=select('#',...),...};  return arg end "
        "return select('#', f())");
  CHECK(untouched("return arg, ..."));
  CHECK(untouched("function f(x) return arg end"));
  CHECK(untouched("function f(...) return t.arg, 'arg' --[[arg]] end return arg"));
  CHECK(untouched("local select = f function f(...) return arg end"));
  CHECK(untouched("function f(...) return arg"));
  CHECK(untouched("function arg"));
  CHECK(untouched("end arg end until function f(... arg end"));
}

TEST_CASE("A script is translated in time that grows with its size, whatever it says",
          "[script-host]") {
  constexpr size_t kTimes = 4000;
  const auto looks_at = [](size_t times, const auto& piece) {
    std::string code;
    for (size_t i = 0; i < times; ++i) code += piece(i);
    size_t looks = 0;
    REQUIRE(translate_dialect(code, &looks));
    return looks;
  };
  const auto is_linear = [&](const auto& piece) {
    const size_t few = looks_at(kTimes, piece);
    const size_t many = looks_at(kTimes * 4, piece);
    return few > 0 && many < few * 5;
  };
  using Text = std::string;
  const auto name = [](size_t i) { return "a" + std::to_string(i); };
  CHECK(is_linear([](size_t) { return Text("return type( "); }));
  CHECK(is_linear([](size_t) { return Text("do return type('a') end "); }));
  CHECK(is_linear([&](size_t i) { return "do return " + name(i) + "() end "; }));
  CHECK(is_linear([&](size_t i) { return "return redis." + name(i) + "( "; }));
  CHECK(is_linear([&](size_t i) {
    return "do local " + name(i) + " = redis.call return " + name(i) + "('x') end ";
  }));
  CHECK(is_linear([&](size_t i) { return "local " + name(i) + " = redis.call "; }));
  CHECK(is_linear([](size_t) { return Text("do local c = redis.call return c('x') end "); }));
  CHECK(is_linear([](size_t) { return Text("return tostring(( "); }));
  CHECK(is_linear([](size_t) { return Text("return (type)) "); }));
  CHECK(is_linear([](size_t) { return Text("function(...) arg() "); }));
  CHECK(is_linear([](size_t) { return Text("function a.arg "); }));
}

TEST_CASE("Text that cannot be taken apart is left to the compiler") {
  CHECK(untouched("return redis.call('x"));
  CHECK(untouched("--[[ no end"));
  CHECK(untouched("return [==[ no end ]]"));
  CHECK(untouched("return"));
  CHECK(untouched("return redis"));
  CHECK(untouched("return redis."));
  CHECK(untouched("return redis.call"));
  CHECK(untouched("return redis.call("));
  CHECK(untouched("\\"));
}
