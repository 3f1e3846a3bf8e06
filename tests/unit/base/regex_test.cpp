#include "base/regex.h"

#include <string>

#include "unit/catch.h"

namespace latchkey::tests {

namespace {

bool matches(std::string_view pattern, std::string_view text, bool ignore_case = false) {
  base::Regex regex;
  std::string error;
  INFO(pattern);
  REQUIRE(regex.compile(pattern, ignore_case, &error));
  return regex.search(text);
}

}  // namespace

TEST_CASE("A regular expression is found anywhere in the text", "[regex]") {
  CHECK(matches("b", "abc"));
  CHECK(!matches("d", "abc"));
  CHECK(matches("", "abc"));
  CHECK(matches("", ""));
  CHECK(!matches("a", ""));
  CHECK(matches("^ab", "abc"));
  CHECK(!matches("^b", "abc"));
  CHECK(matches("bc$", "abc"));
  CHECK(!matches("ab$", "abc"));
  CHECK(matches("^$", ""));
  CHECK(!matches("^$", "a"));
  CHECK(matches("a.c", std::string_view("a\0c", 3)));
}

TEST_CASE("Repetitions of a regular expression count", "[regex]") {
  CHECK(matches("^ab*c$", "ac"));
  CHECK(matches("^ab*c$", "abbbc"));
  CHECK(!matches("^ab+c$", "ac"));
  CHECK(matches("^ab?c$", "abc"));
  CHECK(!matches("^ab?c$", "abbc"));
  CHECK(matches("^a{3}$", "aaa"));
  CHECK(!matches("^a{3}$", "aaaa"));
  CHECK(matches("^a{2,}$", "aaaaa"));
  CHECK(!matches("^a{2,}$", "a"));
  CHECK(matches("^a{1,3}$", "aa"));
  CHECK(!matches("^a{1,3}$", "aaaa"));
  CHECK(matches("^a{0}$", ""));
  CHECK(matches("^(a*)*$", "aaa"));
  CHECK(matches("^(ab|c)+?d$", "abcabd"));
  CHECK(!matches("^(ab|c)+d$", "abacd"));
}

TEST_CASE("Alternatives and groups of a regular expression nest", "[regex]") {
  CHECK(matches("^(cpu|net)$", "net"));
  CHECK(!matches("^(cpu|net)$", "nets"));
  CHECK(matches("^cpu|net$", "a net"));
  CHECK(matches("^(?:a(b|c(d|e)))$", "ace"));
  CHECK(matches("a||b", "x"));
}

TEST_CASE("Sets of a regular expression name bytes, ranges and classes", "[regex]") {
  CHECK(matches("^[a-c]+$", "abcba"));
  CHECK(!matches("[a-c]", "xyz"));
  CHECK(matches("^[^a-c]+$", "xyz"));
  CHECK(!matches("^[^a-c]+$", "xbz"));
  CHECK(matches("^[]a]+$", "]a"));
  CHECK(matches("^[a-]+$", "-a"));
  CHECK(matches("^[[:digit:][:upper:]]+$", "A7Z"));
  CHECK(matches(R"(^[\d.]+$)", "3.14"));
  CHECK(matches(R"(^[\]\\]+$)", R"(]\)"));
  CHECK(matches(R"(^\w+\s\W\S\D$)", "a_1 !xx"));
  CHECK(matches(R"(\x41\t\.)", "A\t."));
  CHECK(matches(R"(\bcat\b)", "a cat."));
  CHECK(!matches(R"(\bcat\b)", "concat"));
  CHECK(matches(R"(\Bcat)", "concat"));
}

TEST_CASE("A regular expression may ignore case", "[regex]") {
  CHECK(matches("error", "ERROR", true));
  CHECK(!matches("error", "ERROR"));
  CHECK(matches("^[a-c]+$", "ABC", true));
  CHECK(!matches("^[^a-c]+$", "B", true));
  CHECK(matches("^[^A]$", "b", true));
}

TEST_CASE("A malformed regular expression is refused", "[regex]") {
  for (const char* pattern :
       {"(", ")", "(a", "a)", "[", "[a", "[b-a]", "*a", "+", "a|?", "a{3,2}", "a{1001}", "\\",
        "\\xg0", "(a)\\1", "[[:none:]]", "[[:alpha", "(?<n>a)"}) {
    base::Regex regex;
    std::string error;
    INFO(pattern);
    CHECK(!regex.compile(pattern, false, &error));
    CHECK(!error.empty());
  }
}

TEST_CASE("Regular expressions that are too large are refused at once", "[regex]") {
  base::Regex regex;
  std::string error;
  CHECK(!regex.compile("((((a{1000}){1000}){1000}){1000}){1000}", false, &error));
  CHECK(!error.empty());
  CHECK(!regex.compile("(\\w{100}){100}", false, &error));
  CHECK(regex.compile(std::string(base::Regex::kLongest, 'a'), false, &error));
  CHECK(!regex.compile(std::string(base::Regex::kLongest + 1, 'a'), false, &error));
  CHECK(error == "too long");
}

TEST_CASE("Regular expressions that backtracking takes ages for are quick", "[regex]") {
  const std::string text(2000, 'a');
  CHECK(!matches("^(a+)+$", text + "b"));
  CHECK(!matches("^(a|a|aa)*b$", text));
  CHECK(!matches("(a?){50}a{50}$b", text));
}

}  // namespace latchkey::tests
