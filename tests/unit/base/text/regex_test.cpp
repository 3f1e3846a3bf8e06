#include "base/text/regex.h"

#include <algorithm>
#include <string>

#include "base/random.h"
#include "unit/catch.h"

namespace latchkey::tests {

using Outcome = base::Regex::Outcome;

namespace {

bool matches(std::string_view pattern, std::string_view text, bool ignore_case = false) {
  base::Regex regex;
  INFO(pattern);
  REQUIRE(regex.compile(pattern, ignore_case));
  base::RegexBudget budget;
  const Outcome outcome = regex.search(text, budget);
  REQUIRE(outcome != Outcome::kTooSlow);
  return outcome == Outcome::kFound;
}

// The last outcome when the pattern is searched for in parts of the text, until one is not
// kNotFound.
Outcome search_parts(std::string_view pattern, std::string_view text, size_t part_bytes) {
  base::Regex regex;
  INFO(pattern);
  REQUIRE(regex.compile(pattern, false));
  base::RegexBudget budget;
  Outcome outcome = Outcome::kNotFound;
  for (; !text.empty() && outcome == Outcome::kNotFound;
       text.remove_prefix(std::min(part_bytes, text.size())))
    outcome = regex.search(text.substr(0, part_bytes), budget);
  return outcome;
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
    INFO(pattern);
    const base::Result<> compiled = regex.compile(pattern, false);
    REQUIRE_FALSE(compiled);
    CHECK(!compiled.error().empty());
  }
}

TEST_CASE("Regular expressions that are too large are refused at once", "[regex]") {
  base::Regex regex;
  CHECK(!regex.compile("((((a{1000}){1000}){1000}){1000}){1000}", false).error().empty());
  CHECK(!regex.compile("(\\w{100}){100}", false));
  CHECK(regex.compile(std::string(base::Regex::kLongest, 'a'), false));
  CHECK(regex.compile(std::string(base::Regex::kLongest + 1, 'a'), false).error() == "too long");
}

TEST_CASE("Regular expressions that backtracking takes ages for are quick", "[regex]") {
  const std::string text(2000, 'a');
  CHECK(!matches("^(a+)+$", text + "b"));
  CHECK(!matches("^(a|a|aa)*b$", text));
  CHECK(!matches("(a?){50}a{50}$b", text));
}

TEST_CASE("A search ends when the states of its pattern fill the memory too often", "[regex]") {
  base::Random random(1);
  std::string text;
  for (int i = 0; i < 1'000'000; ++i) text += random.below(2) == 0 ? 'a' : 'b';
  for (const size_t part_bytes : {text.size(), size_t{200}}) {
    // Two states for each of the last n bytes.
    CHECK(search_parts("(a|b)*a(a|b){250}c", text, part_bytes) == Outcome::kTooSlow);
    CHECK(search_parts("(a|b)*a(a|b){40}c", text, part_bytes) == Outcome::kTooSlow);
    CHECK(search_parts("(a|b)*a(a|b){8}c", text, part_bytes) == Outcome::kNotFound);
    CHECK(search_parts("[ab]+c", text, part_bytes) == Outcome::kNotFound);
    CHECK(search_parts("a(a|b){40}b$", text, part_bytes) != Outcome::kTooSlow);
  }
  // No state of a program of this size has room beside another.
  CHECK(search_parts("(.*a){900}b", text, text.size()) == Outcome::kTooSlow);
}

TEST_CASE("What a search may cost grows with the text", "[regex]") {
  base::RegexBudget budget;
  const auto resets_left = [&] {
    size_t count = 0;
    while (budget.take_reset()) ++count;
    return count;
  };
  CHECK(resets_left() == base::RegexBudget::kFirstResets);
  budget.add_text(base::RegexBudget::kBytesForReset * 3);
  // The one that was refused counts.
  CHECK(resets_left() == 2);
}

}  // namespace latchkey::tests
