#include "store/vector/attribute_filter.h"

#include <string>

#include "unit/catch.h"

namespace latchkey::store {

namespace {

constexpr std::string_view kAttributes =
    R"({"year": 1984, "rating": 8.5, "low": -3, "title": "Dune", "empty": "", "seen": true,)"
    R"( "lost": false, "none": null, "tags": ["war", 1, true, "5"], "nothing": [], "deep": {"a": 1},)"
    R"( "mixed": [1, [2]], "text": "10", "quoted": "say \"hi\"", "letter": "\u00e9\n",)"
    R"( "a-b_c": 7})";

// "true", "false", or "error at N".
std::string outcome(std::string_view expression, std::string_view attributes = kAttributes,
                    FilterSyntax syntax = FilterSyntax::kCurrent) {
  const auto filter = AttributeFilter::parse(expression, syntax);
  if (!filter) return "error at " + std::to_string(filter.error());
  return filter->matches(attributes) ? "true" : "false";
}

}  // namespace

TEST_CASE("Filters compute with the fields of attributes", "[filter]") {
  for (const char* expression : {".year >= 1980 and .year < 1990",
                                 ".rating == 8.5",
                                 ".low < -2",
                                 ".title == \"Dune\"",
                                 ".title == 'Dune'",
                                 ".seen == 1",
                                 "!.lost",
                                 ".a-b_c == 7",
                                 ".text > 9 && .text + 1 == 11",
                                 "\"un\" in .title",
                                 "\"war\" in .tags",
                                 "1 in .tags",
                                 "5 in .tags",
                                 ".year in [1984, 5]",
                                 ".none == null",
                                 "!.none",
                                 ".none != 0",
                                 "1 or .none",
                                 ".nothing",
                                 ".mixed",
                                 "1 in .mixed",
                                 ".quoted == 'say \"hi\"'",
                                 "\"\xc3\xa9\" in .letter"}) {
    INFO(expression);
    CHECK(outcome(expression) == "true");
  }
  for (const char* expression :
       {".year > 1984", ".title == \"dune\"", ".empty", ".lost", "\"uu\" in .title", "2 in .tags",
        "2 in .mixed", ".none", ".none == 0", "1 in .text", "1 in 1"}) {
    INFO(expression);
    CHECK(outcome(expression) == "false");
  }
}

TEST_CASE("Escapes of attributes stand for characters", "[filter]") {
  CHECK(outcome(".a == '\xf0\x9f\x98\x80'", R"({"a": "\ud83d\ude00"})") == "true");
  CHECK(outcome(".a == '\xe2\x82\xac\xc3\xa9!'", R"({"a": "\u20ac\u00e9\u0021"})") == "true");
  CHECK(outcome(".a == '\xf4\x8f\xbf\xbf'", R"({"a": "\udbff\udfff"})") == "true");
  // The first half without the second, and one that stands alone, stay what they are.
  CHECK(outcome(".a == '\xed\xa0\xbdx'", R"({"a": "\ud83dx"})") == "true");
  CHECK(outcome(".a == '\xed\xa0\xbd\xe2\x82\xac'", R"({"a": "\ud83d\u20ac"})") == "true");
  CHECK(outcome(".a == '\xed\xa0\xbd\xee\x80\x80'", R"({"a": "\ud83d\ue000"})") == "true");
  CHECK(outcome(".a == 'u12'", R"({"a": "\u12"})") == "true");
  CHECK(outcome(".a == '\b\f\n\r\t/'", R"({"a": "\b\f\n\r\t\/"})") == "true");
}

TEST_CASE("Escapes of strings in filters are those of attributes", "[filter]") {
  constexpr std::string_view kEscaped =
      R"({"quotes": "it's \"so\"", "path": "C:\\new", "lines": "a\nb\tc", "euro": "\u20ac"})";
  for (const char* expression :
       {R"(.quotes == "it's \"so\"")", R"(.quotes == 'it\'s "so"')", R"('\'s \"' in .quotes)",
        R"(.path == "C:\\new")", R"(.lines == "a\nb\tc")", R"(.euro == "\u20ac")",
        R"(.path in ["x", 'C\:\\new'])", R"("\\" in .path and .lines == '\a\n\u0062\tc')",
        R"("\31" * 1 == 31)"}) {
    INFO(expression);
    CHECK(outcome(expression, kEscaped) == "true");
  }
  CHECK(outcome(R"(.path == "C:\new")", kEscaped) == "false");
  CHECK(outcome(R"(.path == "C:\\new\")", kEscaped) == "error at 0");
}

TEST_CASE("Filters before Redis 8.12 take no not of a not, and keep backslashes", "[filter]") {
  const auto before = [](std::string_view expression, std::string_view attributes = kAttributes) {
    return outcome(expression, attributes, FilterSyntax::kBeforeRedis812);
  };
  CHECK(before("!!1") == "error at 0");
  CHECK(before("!(!1)") == "true");
  // The first of the two is applied to what is before it.
  CHECK(before("0 or !!0") == "true");
  CHECK(before("1 or !!1") == "false");
  CHECK(before(R"("\"" in .quoted)") == "false");
  CHECK(before(R"(.a == "\\n")", R"({"a": "\\\\n"})") == "true");
}

TEST_CASE("A missing field makes the whole filter false", "[filter]") {
  CHECK(outcome(".missing == 1 or .year == 1984") == "false");
  CHECK(outcome(".year == 1984 or .missing == 1") == "false");
  CHECK(outcome("!.missing") == "false");
  CHECK(outcome("!.deep") == "false");
  CHECK(outcome("1", "") == "true");
  CHECK(outcome(".missing == 1", "") == "false");
  CHECK(outcome("1", "no JSON") == "true");
  for (const char* attributes :
       {"no JSON", "{\"year\"", "{\"year\":", "{\"year\":}", "{\"year\":[1", "{\"year\":\"a", "[1]",
        "{year:1}", "{\"a\":1 \"year\":2}", "{\"year\":1.2.3}", "{\"year\":tru}"}) {
    INFO(attributes);
    CHECK(outcome("!(.year == 77)", attributes) == "false");
  }
}

TEST_CASE("An array counts when it is well formed and has no object in it", "[filter]") {
  for (const char* array :
       {"[1]", "[[]]", "[1, [2, [3]], 4]", "[\"{\", \"\\\"{\"]", "[ [1] , [ ] ]"}) {
    INFO(array);
    CHECK(outcome(".a", "{\"a\": " + std::string(array) + "}") == "true");
  }
  for (const char* array : {"[{}]", "[1, {\"b\": 1}]", "[[[{}]]]", "[1 2]", "[1, wrong, 2]", "[1,]",
                            "[,1]", "[[1,2]", "[1, [2 3]]", "[[1]2]", "[1.2.3]"}) {
    INFO(array);
    CHECK(outcome(".a", "{\"a\": " + std::string(array) + "}") == "false");
    CHECK(outcome("!(7 in .a)", "{\"a\": " + std::string(array) + "}") == "false");
  }
  // One within another is compared as zero.
  CHECK(outcome("0 in .a and 'x' in .a and !(1 in .a)", R"({"a": [[1]]})") == "true");
}

TEST_CASE("A field counts wherever it is named, and the first one of a name", "[filter]") {
  CHECK(outcome(".year == 1984 and .rating == 8.5 and .year == 1984") == "true");
  CHECK(outcome(".seen and .a-b_c == 7 and .low == -3 and .year == 1984") == "true");
  CHECK(outcome(".a == 1 and .b == 2", R"({"b": 2, "a": 1, "a": 3, "b": 4})") == "true");
  CHECK(outcome(".a == 1", R"({"\u0061": 1, "a": 2})") == "true");
  CHECK(outcome(".a == 1 and .b == 1", R"({"a": 1, "a": 1})") == "false");
  CHECK(outcome(".a == 1", R"({"b": 1, "a": 1, wrong)") == "true");
  CHECK(outcome(".a == 1 and .c == 1", R"({"b": 1, "a": 1, wrong, "c": 1})") == "false");
}

TEST_CASE("An array is the same however often it is asked", "[filter]") {
  CHECK(outcome("\"war\" in .tags and 5 in .tags and !(2 in .tags) and 1 in .tags") == "true");
  CHECK(outcome("1 in .tags and !(1 in .nothing)") == "true");
  CHECK(outcome("null in .a and \"\n\" in .a and 16 in .a", R"({"a": [null, "\n", "0x10"]})") ==
        "true");
  CHECK(outcome("1 in .a and !(2 in .a)", R"({"a": [1 2]})") == "false");
  // What one element has is forgotten at the next.
  const auto filter = AttributeFilter::parse("1 in .a");
  CHECK(filter->matches(R"({"a": [2, 1]})"));
  CHECK_FALSE(filter->matches(R"({"a": [2]})"));
  CHECK_FALSE(filter->matches(R"({"b": [1]})"));
  CHECK(filter->matches(R"({"b": [2], "a": [1]})"));
}

TEST_CASE("A filter is not held up by large attributes", "[filter]") {
  // Each field is behind 60,000 others, and the array is searched 200 times.
  std::string attributes = "{";
  for (int i = 0; i < 60'000; ++i) attributes += "\"k" + std::to_string(i) + "\":1,";
  std::string expression = "1";
  for (int i = 0; i < 200; ++i) {
    attributes += "\"f" + std::to_string(i) + "\":1,";
    expression += " and .f" + std::to_string(i);
  }
  attributes += "\"last\":2}";
  CHECK(outcome(expression, attributes) == "true");
  CHECK(outcome(expression + " and .last == 1", attributes) == "false");
  // Looking at each place of the text takes 10^10 steps.
  const std::string text = "{\"text\":\"" + std::string(200'000, 'a') + "\", \"part\":\"" +
                           std::string(100'000, 'a') + "b\"}";
  CHECK(outcome(".part in .text", text) == "false");
}

TEST_CASE("A filter has a limited number of steps", "[filter]") {
  const auto sum = [](size_t operands) {
    std::string text = "1";
    for (size_t i = 1; i < operands; ++i) text += "+1";
    return text;
  };
  // An operand more than operators.
  constexpr size_t kMax = AttributeFilter::kMaxSteps / 2;
  CHECK(outcome(sum(kMax)) == "true");
  CHECK(outcome(sum(kMax) + "+1+1") == "error at " + std::to_string(2 * kMax));
  CHECK(outcome(std::string(2000, '(') + "1" + std::string(2000, ')')) == "error at 1000");
}

TEST_CASE("Operators bind by their precedence", "[filter]") {
  for (const char* expression : {"1 + 2 * 3 == 7", "2 ** 3 ** 2 == 512", "2 * 3 ** 2 == 18",
                                 "-2 ** 2 == 4",   "5 - 3 - 1 == 1",     "8 / 4 / 2 == 1",
                                 "7 % 4 == 3",     "1 - -1 == 2",        "1-1 == 0",
                                 "!1 == 0",        "1 or 1 and 0",       "(1 or 0) and 1",
                                 "1 and 0 or 1",   "1 < 2 in [1]",       "1 + 1 in [2]",
                                 "2 == 1 < 3",     "2 ** !0 == 2",       "not(0)",
                                 "1in[1]",         "1 / 0 > 5",          "\"5\" * 2 == 10",
                                 "\"abc\" == 0",   "\" 5\" == 5",        "\"0x10\" == 16",
                                 "[1] == [2]",     "\"\" in \"abc\"",    "1 in [\"1\"]",
                                 "[1,2,]",         "1500 in [1.5e3]",    "1 2 +",
                                 "1 or !!0",       "!!2 == 1",           "not !not 0",
                                 "1 and !!3",      "!!!(1 > 2)",         "3 - not not 5 == 2",
                                 "2 ** !!7 == 2",  "!! 1 in [1]"}) {
    INFO(expression);
    CHECK(outcome(expression) == "true");
  }
  for (const char* expression :
       {"(1 or 1) and 0", "3 > 2 > 1", "0 / 0 == 0 / 0", "\"abc\" < \"b\"", "\"1\" in [\"1.0\"]",
        "null", "1 in [1] + 1", "!!0", "2 > 1 and not not 0"}) {
    INFO(expression);
    CHECK(outcome(expression) == "false");
  }
}

TEST_CASE("What is wrong in a filter is told by its place", "[filter]") {
  struct Case {
    const char* expression;
    size_t at;
  };
  for (const auto& [expression, at] : {Case{"", 0},
                                       Case{".a >", 0},
                                       Case{"(", 0},
                                       Case{"1 1", 0},
                                       Case{"1)", 0},
                                       Case{"!!", 0},
                                       Case{".a == \"x", 0},
                                       Case{"@", 0},
                                       Case{"1 AND 1", 5},
                                       Case{"1 = 1", 3},
                                       Case{"foo(1)", 4},
                                       Case{".a # b", 3},
                                       Case{"1.5e-1", 4},
                                       Case{"0x10", 2},
                                       Case{"[1 2]", 3},
                                       Case{"[,1]", 1},
                                       Case{"1 in [.a]", 6},
                                       Case{"[1,2", 0},
                                       Case{"1 - - 1", 0},
                                       Case{".a.b", 0},
                                       Case{"1e5e5 == 1", 5},
                                       Case{". > 3.5", 0},
                                       Case{"1 + . == 1", 4},
                                       Case{"(.)", 1},
                                       Case{"(null)", 0},
                                       Case{"1 == null&&1", 11},
                                       Case{"1 == null && (null)", 0},
                                       Case{"1 in .a)", 0},
                                       Case{"1) @ 2", 3},
                                       Case{") foo(1)", 6}}) {
    INFO(expression);
    CHECK(outcome(expression) == "error at " + std::to_string(at));
  }
}

TEST_CASE("null is a word of its own", "[filter]") {
  for (const char* expression :
       {"(null)", "(null == null)", "null==null", "nullx", "not(null)", "1 == (null)"}) {
    INFO(expression);
    CHECK(outcome(expression).starts_with("error"));
  }
  CHECK(outcome("null == null") == "true");
  CHECK(outcome("( null == null )") == "true");
  CHECK(outcome("not null") == "true");
  CHECK(outcome("!null") == "true");
  CHECK(outcome("! null") == "true");
  CHECK(outcome("null in [1]") == "false");
  CHECK(outcome("null[1]") == "error at 0");
}

TEST_CASE("A dot alone at the end of a filter is the field without a name", "[filter]") {
  CHECK(outcome("1 < .", R"({"": 2})") == "true");
  CHECK(outcome("1 < .") == "false");
  CHECK(outcome("1 < . ", R"({"": 2})") == "error at 4");
}

}  // namespace latchkey::store
