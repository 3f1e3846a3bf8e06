#include "base/glob.h"

#include <string>

#include "unit/catch.h"

namespace latchkey::base {

using namespace std::string_view_literals;

TEST_CASE("A pattern without wildcards matches itself alone", "[glob]") {
  CHECK(glob_match("lock.foo", "lock.foo"));
  CHECK_FALSE(glob_match("lock.foo", "lock.fo"));
  CHECK_FALSE(glob_match("lock.foo", "lock.fooo"));
  CHECK_FALSE(glob_match("", "a"));
  CHECK(glob_match("", ""));
}

TEST_CASE("A star takes any run, a question mark one byte", "[glob]") {
  CHECK(glob_match("a*", "a"));
  CHECK(glob_match("a*c*e", "abcde"));
  CHECK(glob_match("*.foo", "lock.foo.foo"));
  CHECK(glob_match("a***", "a"));
  CHECK(glob_match("h?llo", "hello"));
  CHECK_FALSE(glob_match("h?llo", "hllo"));
  CHECK(glob_match("a*\0?"sv, "ab\0c"sv));
}

TEST_CASE("An empty text matches the empty pattern alone", "[glob]") {
  CHECK_FALSE(glob_match("*", ""));
  CHECK_FALSE(glob_match("**", ""));
}

TEST_CASE("A class lists bytes and ranges, in either direction", "[glob]") {
  CHECK(glob_match("h[ae]llo", "hallo"));
  CHECK_FALSE(glob_match("h[ae]llo", "hillo"));
  CHECK(glob_match("[a-c]", "b"));
  CHECK(glob_match("[c-a]", "b"));
  CHECK(glob_match("[^a-c]", "d"));
  CHECK_FALSE(glob_match("[^a-c]", "b"));
  CHECK(glob_match("[\\]x]", "]"));
}

TEST_CASE("Odd classes behave as in the reference", "[glob]") {
  SECTION("an empty class matches nothing, its negation everything") {
    CHECK_FALSE(glob_match("[]", "a"));
    CHECK(glob_match("[^]", "a"));
  }
  SECTION("the end of the pattern closes a class") {
    CHECK(glob_match("x[ab", "xb"));
    CHECK_FALSE(glob_match("x[ab", "xc"));
    CHECK_FALSE(glob_match("x[", "xa"));
    CHECK(glob_match("x[^", "xa"));
  }
  SECTION("a bracket may end a range") {
    CHECK(glob_match("[a-]", "^"));
  }
  SECTION("bytes above 127 come before the others in a range") {
    CHECK(glob_match("[\xff-a]", "\x01"));
    CHECK_FALSE(glob_match("[\xff-a]", "b"));
  }
}

TEST_CASE("A backslash makes the next byte literal, and stands for itself at the end", "[glob]") {
  CHECK(glob_match("a\\*", "a*"));
  CHECK_FALSE(glob_match("a\\*", "ab"));
  CHECK(glob_match("a\\", "a\\"));
}

TEST_CASE("Case is ignored on request, in ranges as well", "[glob]") {
  CHECK(glob_match("MaxMem*", "maxmemory", true));
  CHECK_FALSE(glob_match("MaxMem*", "maxmemory"));
  CHECK(glob_match("[A-C]x", "bX", true));
}

TEST_CASE("Nested stars cost no more than pattern times text", "[glob]") {
  std::string pattern;
  for (int i = 0; i < 1000; ++i) pattern += "*a";
  pattern += "b";
  CHECK_FALSE(glob_match(pattern, std::string(20'000, 'a')));
}

TEST_CASE("A pattern with more than a thousand stars before its end matches nothing", "[glob]") {
  const auto repeated = [](std::string_view piece, int times) {
    std::string pattern;
    for (int i = 0; i < times; ++i) pattern += piece;
    return pattern;
  };
  const std::string text(3000, 'a');
  CHECK(glob_match(repeated("*a", 1000), text));
  CHECK_FALSE(glob_match(repeated("*a", 1001), text));
  SECTION("a star at the end does not count") {
    CHECK(glob_match(repeated("a*", 1001), text));
    CHECK_FALSE(glob_match(repeated("a*", 1002), text));
  }
  SECTION("neighbours count once") {
    CHECK(glob_match(repeated("**a", 1000), text));
    CHECK_FALSE(glob_match(repeated("**a", 1001), text));
  }
}

}  // namespace latchkey::base
