#include "script/lua/lua_tokens.h"

#include <string>
#include <vector>

#include "unit/catch.h"

namespace latchkey::script {

namespace {

// The texts of all tokens but the last, which is the end.
std::vector<std::string> texts(std::string_view code) {
  const auto tokens = read_lua_tokens(code);
  if (tokens.empty()) return {"broken"};
  REQUIRE(tokens.back().kind == LuaToken::Kind::kEnd);
  std::vector<std::string> found;
  for (size_t i = 0; i + 1 < tokens.size(); ++i) found.emplace_back(tokens[i].text);
  return found;
}
LuaToken::Kind kind(std::string_view code) {
  return read_lua_tokens(code).front().kind;
}

using Texts = std::vector<std::string>;
using Kind = LuaToken::Kind;

}  // namespace

TEST_CASE("Points are one token, however many there are", "[lua-tokens]") {
  CHECK(texts("a.b") == Texts{"a", ".", "b"});
  CHECK(texts("a..b") == Texts{"a", "..", "b"});
  CHECK(texts("f(...)") == Texts{"f", "(", "...", ")"});
  CHECK(texts("a.b.c") == Texts{"a", ".", "b", ".", "c"});
  CHECK(texts("a...5") == Texts{"a", "...", "5"});
}

TEST_CASE("Comparisons are one token, and other signs one each", "[lua-tokens]") {
  CHECK(texts("a==b~=c<=d>=e") == Texts{"a", "==", "b", "~=", "c", "<=", "d", ">=", "e"});
  CHECK(texts("a=b<c>d") == Texts{"a", "=", "b", "<", "c", ">", "d"});
  CHECK(texts("((#t))") == Texts{"(", "(", "#", "t", ")", ")"});
  CHECK(texts("+=-=") == Texts{"+", "=", "-", "="});
}

TEST_CASE("Numbers reach as far as they can", "[lua-tokens]") {
  CHECK(texts("1 2.5 .5 1e5 1e+5 1E-5 0x1F") ==
        Texts{"1", "2.5", ".5", "1e5", "1e+5", "1E-5", "0x1F"});
  CHECK(texts("1+5") == Texts{"1", "+", "5"});
  CHECK(texts("1-e") == Texts{"1", "-", "e"});
  CHECK(texts("0 9 .9 0.9") == Texts{"0", "9", ".9", "0.9"});
  CHECK(kind(".5") == Kind::kNumber);
  CHECK(kind("9") == Kind::kNumber);
  CHECK(kind(".a") == Kind::kSymbol);
}

TEST_CASE("Strings end at their quote", "[lua-tokens]") {
  CHECK(texts(R"('a"b' "c'd" 'e\'f' "\\")") == Texts{"'a\"b'", "\"c'd\"", R"('e\'f')", R"("\\")"});
  CHECK(texts("'a\\\nb' c") == Texts{"'a\\\nb'", "c"});
  CHECK(texts("'a") == Texts{"broken"});
  CHECK(texts("'a\nb'") == Texts{"broken"});
  CHECK(texts("'a\\") == Texts{"broken"});
  CHECK(kind("'a'") == Kind::kString);
}

TEST_CASE("Long strings and comments end at brackets of their level", "[lua-tokens]") {
  CHECK(texts("[[a]b]] c") == Texts{"[[a]b]]", "c"});
  CHECK(texts("[==[a]]b]=]c]==] d") == Texts{"[==[a]]b]=]c]==]", "d"});
  CHECK(texts("a[1]") == Texts{"a", "[", "1", "]"});
  CHECK(texts("a[b[1]]") == Texts{"a", "[", "b", "[", "1", "]", "]"});
  CHECK(texts("a[b[1]][[c]]d") == Texts{"a", "[", "b", "[", "1", "]", "]", "[[c]]", "d"});
  CHECK(texts("[===[a]==]b]===] c") == Texts{"[===[a]==]b]===]", "c"});
  CHECK(texts("[[]]a") == Texts{"[[]]", "a"});
  CHECK(texts("[=a") == Texts{"[", "=", "a"});
  CHECK(texts("[[a]") == Texts{"broken"});
  CHECK(texts("a --b\nc") == Texts{"a", "c"});
  CHECK(texts("a --[[b\nc]]d") == Texts{"a", "d"});
  CHECK(texts("a --[=[b]]c]=]d") == Texts{"a", "d"});
  CHECK(texts("a --[[b") == Texts{"broken"});
  CHECK(texts("a -b") == Texts{"a", "-", "b"});
  CHECK(kind("[[a]]") == Kind::kLongString);
}

TEST_CASE("Each token knows its line and its place", "[lua-tokens]") {
  const auto tokens = read_lua_tokens("a\n [[b\n]] --[[c\n]] d\n");
  REQUIRE(tokens.size() == 4);
  CHECK(tokens[0].line == 1);
  CHECK(tokens[1].line == 2);
  CHECK(tokens[1].offset == 3);
  CHECK(tokens[2].text == "d");
  CHECK(tokens[2].line == 4);
  CHECK(tokens[3].line == 5);
}

TEST_CASE("Names have letters, digits and whatever is no ASCII", "[lua-tokens]") {
  CHECK(texts("_a1 \xc3\xa4 b") == Texts{"_a1", "\xc3\xa4", "b"});
  CHECK(kind("a") == Kind::kName);
  CHECK(read_lua_tokens("and").front().is("and"));
  CHECK_FALSE(read_lua_tokens("'and'").front().is("'and'"));
}

}  // namespace latchkey::script
