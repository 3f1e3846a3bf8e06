#include "store/vector/attribute_filter.h"

#include <string>

#include "unit/catch.h"

namespace latchkey::store {

namespace {

constexpr std::string_view kAttributes =
    R"({"year": 1984, "rating": 8.5, "low": -3, "title": "Dune", "empty": "", "seen": true,)"
    R"( "lost": false, "none": null, "tags": ["war", 1, true, "5"], "nothing": [], "deep": {"a": 1},)"
    R"( "mixed": [1, [2], {"b": 3}], "text": "10", "quoted": "say \"hi\"", "letter": "\u00e9\n",)"
    R"( "a-b_c": 7})";

// "true", "false", or "error at N".
std::string outcome(std::string_view expression, std::string_view attributes = kAttributes) {
  size_t error_at = 0;
  const auto filter = AttributeFilter::parse(expression, &error_at);
  if (!filter.has_value()) return "error at " + std::to_string(error_at);
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

TEST_CASE("A missing field makes the whole filter false", "[filter]") {
  CHECK(outcome(".missing == 1 or .year == 1984") == "false");
  CHECK(outcome(".year == 1984 or .missing == 1") == "false");
  CHECK(outcome("!.missing") == "false");
  CHECK(outcome("!.deep") == "false");
  CHECK(outcome("1", "") == "false");
  CHECK(outcome("1", "no JSON") == "true");
  for (const char* attributes :
       {"no JSON", "{\"year\"", "{\"year\":", "{\"year\":}", "{\"year\":[1", "{\"year\":\"a", "[1]",
        "{year:1}", "{\"a\":1 \"year\":2}", "{\"year\":1.2.3}", "{\"year\":tru}"}) {
    INFO(attributes);
    CHECK(outcome("!(.year == 77)", attributes) == "false");
  }
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
                                 "1 or !!0"}) {
    INFO(expression);
    CHECK(outcome(expression) == "true");
  }
  for (const char* expression : {"(1 or 1) and 0", "3 > 2 > 1", "0 / 0 == 0 / 0", "\"abc\" < \"b\"",
                                 "\"1\" in [\"1.0\"]", "null", "1 in [1] + 1"}) {
    INFO(expression);
    CHECK(outcome(expression) == "false");
  }
}

TEST_CASE("What is wrong in a filter is told by its place", "[filter]") {
  struct Case {
    const char* expression;
    size_t at;
  };
  for (const auto& [expression, at] :
       {Case{"", 0},          Case{".a >", 0},  Case{"(", 0},         Case{"1 1", 0},
        Case{"1)", 0},        Case{"!!1", 0},   Case{".a == \"x", 0}, Case{"@", 0},
        Case{"1 AND 1", 5},   Case{"1 = 1", 3}, Case{"foo(1)", 4},    Case{".a # b", 3},
        Case{"1.5e-1", 4},    Case{"0x10", 2},  Case{"[1 2]", 3},     Case{"[,1]", 1},
        Case{"1 in [.a]", 6}, Case{"[1,2", 0},  Case{"1 - - 1", 0},   Case{".a.b", 0},
        Case{"1e5e5 == 1", 5}}) {
    INFO(expression);
    CHECK(outcome(expression) == "error at " + std::to_string(at));
  }
}

}  // namespace latchkey::store
