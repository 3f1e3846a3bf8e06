#include "base/text/glob.h"

#include <algorithm>
#include <string>

#include "base/random.h"
#include "glob_model.h"
#include "unit/catch.h"

namespace latchkey::base {

using namespace std::string_view_literals;

namespace {

bool glob_match(std::string_view pattern, std::string_view text, bool ignore_case = false) {
  return GlobPattern(pattern, ignore_case).matches(text);
}

std::string repeated(std::string_view piece, int times) {
  std::string pattern;
  for (int i = 0; i < times; ++i) pattern += piece;
  return pattern;
}

}  // namespace

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

TEST_CASE("Nested stars cost no more than the text is long", "[glob]") {
  CHECK_FALSE(glob_match(repeated("*a", 1000) + "b", std::string(1'000'000, 'a')));
}

TEST_CASE("A pattern with more than a thousand stars before its end matches nothing", "[glob]") {
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

// Makes a text that has a good chance to match the pattern: texts of chance hardly ever do.
std::string text_for(std::string pattern) {
  std::replace(pattern.begin(), pattern.end(), '?', 'b');
  std::replace(pattern.begin(), pattern.end(), '*', 'a');
  return pattern;
}

}  // namespace

TEST_CASE("A pattern matches what it matches when everything is tried", "[glob]") {
  Random random(7);
  size_t matched = 0;
  for (int i = 0; i < 20'000; ++i) {
    const bool is_long = i % 8 == 0;
    const std::string pattern = is_long ? "*" + drawn(random, "aab?", random.below(140)) + "*" +
                                              drawn(random, "aab", random.below(4)) +
                                              drawn(random, "*b", random.below(3))
                                        : drawn(random, "abA*?[]^-\\*\xff", random.below(12));
    std::string text =
        drawn(random, is_long ? "aaab" : "abAB[]*-\xff\x01", random.below(is_long ? 300 : 10));
    if (random.below(2) == 0) text += text_for(pattern);
    const bool ignore_case = random.below(2) == 0;
    INFO(pattern);
    INFO(text);
    const bool expected = glob_model::matches(pattern, text, ignore_case);
    REQUIRE(glob_match(pattern, text, ignore_case) == expected);
    matched += expected;
  }
  CHECK(matched > 2000);
}

TEST_CASE("Every range of bytes holds what lies between its ends as signed numbers", "[glob]") {
  for (int first = 0; first < 256; first += 5) {
    for (int last = 0; last < 256; last += 3) {
      const std::string pattern = {'[', static_cast<char>(first), '-', static_cast<char>(last),
                                   ']'};
      for (const bool ignore_case : {false, true}) {
        const GlobPattern prepared(pattern, ignore_case);
        for (int byte = 0; byte < 256; byte += 7) {
          const std::string text(1, static_cast<char>(byte));
          if (prepared.matches(text) != glob_model::matches(pattern, text, ignore_case))
            FAIL(first << "-" << last << " and " << byte);
        }
      }
    }
  }
  SUCCEED();
}

TEST_CASE("No pattern makes a text slow", "[glob]") {
  // Half a million times half a million steps for who compares at each place.
  const std::string text(1'000'000, 'a');
  CHECK_FALSE(glob_match("*" + std::string(500'000, 'a') + "b*", text));
  CHECK(glob_match("*" + std::string(500'000, 'a') + "*", text, true));
  CHECK_FALSE(glob_match("*[ab]" + std::string(1000, 'a') + "b*", text));
  SECTION("a class is read once, however long it is, and at however many places it is tried") {
    CHECK_FALSE(glob_match("*[" + std::string(1'000'000, 'b') + "]*", text));
    CHECK_FALSE(glob_match("*[" + repeated("a-\xff", 300'000) + "]b*", text));
  }
}

TEST_CASE("A literal is found wherever it is, in short texts and in long ones", "[glob]") {
  const std::string literal = "aab";
  for (const size_t size : {3, 4, 16, 63, 64, 65, 66, 200}) {
    const std::string without(size, 'a');
    CHECK_FALSE(glob_match("*" + literal + "*", without));
    for (size_t at = 0; at + literal.size() <= size; ++at) {
      std::string text = without;
      text.replace(at, literal.size(), literal);
      REQUIRE(glob_match("*" + literal + "*", text));
      REQUIRE(glob_match("*" + literal + "*a", text) == (at + literal.size() < size));
    }
  }
}

TEST_CASE("What is searched with wildcards has a limited length", "[glob]") {
  constexpr size_t kMax = GlobPattern::kMaxSearchedBytes;
  const std::string text(3000, 'a');
  CHECK(glob_match("*" + std::string(kMax, '?') + "*", text));
  CHECK_FALSE(glob_match("*" + std::string(kMax + 1, '?') + "*", text));
  CHECK_FALSE(glob_match(
      "*" + std::string(kMax / 2, '?') + "*" + std::string(kMax / 2 + 1, '?') + "*", text));
  SECTION("but not at the beginning and at the end, which are compared once") {
    CHECK(glob_match(std::string(1500, '?') + "*" + std::string(1500, '?'), text));
    CHECK(glob_match(std::string(3000, '?'), text));
  }
  SECTION("and not without wildcards") {
    CHECK(glob_match("*" + std::string(2000, 'a') + "*?*", text));
  }
  SECTION("classes are limited in number") {
    const int most = GlobPattern::kMaxClasses;
    CHECK(glob_match(repeated("[a]", most), std::string(most, 'a')));
    CHECK_FALSE(glob_match(repeated("[a]", most + 1), std::string(most + 1, 'a')));
  }
}

TEST_CASE("A pattern tells how many of its bytes are in parts with wildcards", "[glob]") {
  CHECK(GlobPattern(std::string(1000, '?')).complex_bytes() == 1000);
  CHECK(GlobPattern("*a?*bcd*e?*").complex_bytes() == 4);
  CHECK(GlobPattern("*" + std::string(5000, 'a') + "*").complex_bytes() == 0);
  CHECK(GlobPattern("x[" + std::string(1000, 'a') + "]").complex_bytes() == 1003);
}

}  // namespace latchkey::base
