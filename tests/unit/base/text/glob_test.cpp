#include "base/text/glob.h"

#include <algorithm>
#include <string>

#include "base/random.h"
#include "base/text/text.h"
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

namespace {

// A pattern or a text of `length` bytes from an alphabet.
std::string drawn(Random& random, std::string_view alphabet, uint64_t length) {
  std::string text;
  while (text.size() < length) text += alphabet[random.below(alphabet.size())];
  return text;
}

std::string as_compared(std::string_view text, bool ignore_case) {
  return ignore_case ? lower_case(text) : std::string(text);
}

}  // namespace

TEST_CASE("A prepared pattern matches what the pattern matches", "[glob]") {
  Random random(7);
  size_t matched = 0;
  for (int i = 0; i < 6'000; ++i) {
    const bool is_long = i % 4 == 0;
    const std::string pattern = is_long ? "*" + drawn(random, "aab?", random.below(140)) + "*" +
                                              drawn(random, "aab", random.below(4)) +
                                              drawn(random, "*b", random.below(3))
                                        : drawn(random, "abA*?[]^-\\*", random.below(12));
    std::string text =
        drawn(random, is_long ? "aaab" : "abAB[]*-", random.below(is_long ? 300 : 10));
    // Long texts of chance hardly ever match.
    if (is_long && random.below(2) == 0) {
      text += pattern;
      std::replace(text.begin(), text.end(), '?', 'b');
      std::replace(text.begin(), text.end(), '*', 'a');
    }
    const bool ignore_case = random.below(2) == 0;
    INFO(pattern);
    INFO(text);
    const auto prepared = GlobPattern::compile(pattern, ignore_case);
    REQUIRE(prepared.has_value());
    const bool expected = glob_match(pattern, text, ignore_case);
    REQUIRE(prepared->matches(as_compared(text, ignore_case)) == expected);
    matched += expected;
  }
  CHECK(matched > 600);
}

TEST_CASE("A prepared pattern with more than a thousand stars matches nothing either", "[glob]") {
  const std::string text(3000, 'a');
  for (const int stars : {999, 1000, 1001}) {
    std::string pattern;
    for (int i = 0; i < stars; ++i) pattern += "*a";
    for (const std::string& each : {pattern, pattern + "*", pattern + "***"}) {
      INFO(stars);
      CHECK(GlobPattern::compile(each, false)->matches(text) == glob_match(each, text));
    }
  }
}

TEST_CASE("A prepared pattern takes linear time", "[glob]") {
  // Half a million times half a million steps for who compares at each place.
  const std::string text(1'000'000, 'a');
  CHECK_FALSE(GlobPattern::compile("*" + std::string(500'000, 'a') + "b*", false)->matches(text));
  CHECK(GlobPattern::compile("*" + std::string(500'000, 'a') + "*", true)->matches(text));
  CHECK_FALSE(GlobPattern::compile("*[ab]" + std::string(1000, 'a') + "b*", false)->matches(text));
}

TEST_CASE("A prepared pattern has a limited number of bytes beside wildcards", "[glob]") {
  constexpr size_t kMost = GlobPattern::kMostComplex;
  CHECK(GlobPattern::compile(std::string(kMost, '?'), false)->complex_bytes() == kMost);
  CHECK_FALSE(GlobPattern::compile(std::string(kMost + 1, '?'), false).has_value());
  CHECK_FALSE(GlobPattern::compile("*a?*b?*", false, 3).has_value());
  CHECK(GlobPattern::compile("*a?*bcd*e?*", false, 4)->complex_bytes() == 4);
  CHECK(GlobPattern::compile("*" + std::string(5000, 'a') + "*", false)->complex_bytes() == 0);
  CHECK_FALSE(GlobPattern::compile("[" + std::string(kMost, 'a') + "]", false).has_value());
}

}  // namespace latchkey::base
