#include "store/json/json_path.h"

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "store/json/json_parser.h"
#include "store/json/json_path_walk.h"
#include "store/json/json_writer.h"
#include "unit/catch.h"

namespace latchkey::tests {

namespace {

using store::json::Node;
using store::json::Trail;
using store::json::Trails;
using store::json::WalkBudget;

Node read(std::string_view text) {
  auto parsed = store::json::parse(text, Node::kMaxDepth, 1);
  REQUIRE(parsed);
  return std::move(parsed->root);
}

// What the path leads to, separated by spaces; or the error.
std::string found(std::string_view document, std::string_view text,
                  size_t most = WalkBudget::kMostVisits) {
  const Node root = read(document);
  const auto path = store::json::parse_path(text);
  if (!path) return path.error();
  std::string values;
  WalkBudget budget(root, most);
  const bool is_done = walk(*path, root, budget, [&](const Node& node, Trail) {
    values += (values.empty() ? "" : " ") + store::json::written(node);
    return true;
  });
  return is_done ? values : "(too much)";
}

// `part` so many times, with `separator` between.
std::string repeated(size_t times, std::string_view part, std::string_view separator = {}) {
  std::string text(part);
  for (size_t i = 1; i < times; ++i) text.append(separator).append(part);
  return text;
}

std::string expected_at(size_t position, std::string_view what) {
  const std::string place = std::to_string(position);
  return "Error occurred at position " + place + ", Error at position " + place +
         ": expected one of the following: " + std::string(what);
}

}  // namespace

TEST_CASE("Steps of a path lead to members and elements", "[json]") {
  const std::string_view document = R"({"a":[0,1,2,3],"b":{"a":"x","c d":null}})";
  CHECK(found(document, "$.a[1]") == "1");
  CHECK(found(document, "$.a[-1]") == "3");
  CHECK(found(document, "$.a[0,2,9]") == "0 2");
  CHECK(found(document, "$.a[1:3]") == "1 2");
  CHECK(found(document, "$.a[::2]") == "0 2");
  CHECK(found(document, "$.a[-9:-1:9223372036854775807]") == "0");
  CHECK(found(document, "$.b.*") == "\"x\" null");
  CHECK(found(document, R"($.b['c d',"a"])") == "null \"x\"");
  CHECK(found(document, "$..a") == "[0,1,2,3] \"x\"");
  CHECK(found(document, ".b.a") == "\"x\"");
  CHECK(found(document, "b.a") == "\"x\"");
  CHECK(found(document, "$.zz.a") == "");
  CHECK(found(document, "$.a.b") == "");
}

TEST_CASE("Conditions choose elements", "[json]") {
  const std::string_view document = R"([{"n":1,"s":"one"},{"n":2,"l":[5,6]},{"n":2.0}])";
  CHECK(found(document, "$[?(@.n==2)].n") == "2 2.0");
  CHECK(found(document, "$[?(@.n!=2)].n") == "1");
  CHECK(found(document, "$[?(@.s)].n") == "1");
  CHECK(found(document, "$[?(@.l[*]==6)].n") == "2");
  CHECK(found(document, "$[?(@.l[*]!=6)].n") == "1 2.0");
  CHECK(found(document, "$[?(@.n<$[1].n)].n") == "1");
  CHECK(found(document, "$[?(@.n==1||@.n==2&&@.l)].n") == "1 2");
  CHECK(found(document, "$[?((@.n==1||@.n==2)&&@.l)].n") == "2");
  CHECK(found(document, "$[?(@.s=~\"^o.e$\")].n") == "1");
  CHECK(found(document, "$[?(@.s=~\"(\")].n") == "");
  CHECK(found(document, "$[?@.s<'p'].n") == "1");
}

TEST_CASE("Errors say where a path ends to be one, and what is expected there", "[json]") {
  CHECK(found("1", "$.a b") == expected_at(4, "EOI, '..'"));
  CHECK(found("1", "$..") == expected_at(3, "<string>, '*'"));
  CHECK(found("1", "a.") == expected_at(4, "<string>, '*'"));
  CHECK(found("1", "$[?(@.a==)]") ==
        expected_at(9, "decimal, from_current, from_root, boolean_true, boolean_false, null"));
  CHECK(found("1", "$.a[0:2:0]") == expected_at(8, "pos_number"));
}

TEST_CASE("Conditions within conditions are limited", "[json]") {
  const auto nested = [](size_t levels) {
    return "$[?" + std::string(levels, '(') + "@==1" + std::string(levels, ')') + "]";
  };
  CHECK(store::json::parse_path(nested(200)));
  CHECK(!store::json::parse_path(nested(100'000)));
  std::string filters = "$";
  for (int i = 0; i < 100'000; ++i) filters += "[?(@";
  CHECK(!store::json::parse_path(filters));
}

TEST_CASE("A chain of conditions is one condition, however long", "[json]") {
  constexpr size_t kTerms = 100'000;
  for (const std::string_view sign : {"||", "&&"}) {
    const auto path = store::json::parse_path("$[?(" + repeated(kTerms, "@==1", sign) + ")]");
    REQUIRE(path);
    CHECK(path->steps.front().condition->operands.size() == kTerms);
  }
  CHECK(found("[1,2]", "$[?(" + repeated(kTerms, "@==1", "||") + "||@==2)]") == "1 2");
  CHECK(found("[1,2]", "$[?(" + repeated(kTerms, "@==1", "&&") + "&&@==1)]") == "1");
  CHECK(found("[1,2]", "$[?" + repeated(kTerms, "@==1&&@==2", "||") + "||@==2]") == "2");
  // Parentheses change nothing where the operators are the same.
  CHECK(found("[1,2,3]", "$[?((@==1||@==2)||(@==3||@==4)||@==5)]") == "1 2 3");
  CHECK(found("[1,2,3]", "$[?((@>1&&@<3)&&@==2||@==3)]") == "2 3");
  CHECK(found("[1,2,3]", "$[?((@==1||@==2)&&@==2)]") == "2");
}

TEST_CASE("Steps and unions of any length lead no deeper than the document", "[json]") {
  constexpr size_t kMany = 100'000;
  CHECK(found(R"({"a":{"a":1}})", "$" + repeated(kMany, "..a")) == "");
  CHECK(found("[[1]]", "$" + repeated(kMany, "[0]")) == "");
  CHECK(found("[[1]]", "$" + repeated(kMany, "[?(@)]")) == "");
  CHECK(found(R"({"b":1})", "$[" + repeated(kMany, "'a'", ",") + ",'b']") == "1");
}

TEST_CASE("Conditions that walk deep within one another are too much", "[json]") {
  constexpr size_t kLevels = 1000;
  const std::string down = "$" + repeated(kLevels - 1, "[0]");
  // At the bottom of the document a filter begins at its root again.
  const auto filters = [&](size_t count) {
    std::string path = down + "[?(@==1)]";
    for (size_t i = 1; i < count; ++i) path = down + "[?(" + path + ")]";
    return path;
  };
  Node root = Node::integer(1);
  for (size_t i = 0; i < kLevels; ++i) root = Node::array(std::span(&root, 1));
  const auto leads_anywhere = [&](const std::string& text, bool* is_found) {
    const auto path = store::json::parse_path(text);
    REQUIRE(path);
    WalkBudget budget(root);
    *is_found = false;
    return walk(*path, root, budget, [&](const Node&, Trail) { return *is_found = true; });
  };
  bool is_found;
  CHECK(leads_anywhere(filters(2), &is_found));
  CHECK(is_found);
  CHECK(!leads_anywhere(filters(120), &is_found));
  CHECK(!is_found);
}

TEST_CASE("What conditions compare counts by its size", "[json]") {
  constexpr size_t kMost = 10'000;
  const std::string zeros = "[" + repeated(300, "0", ",") + "]";
  CHECK(found(zeros, "$[?($==$)]", kMost) == "(too much)");
  CHECK(found(zeros, "$[?(@==$)]", kMost) == "");
  CHECK(found("[[1,2],[1]]", "$[?(@==$[0])]", kMost) == "[1,2]");
  const std::string long_text = "\"" + std::string(100'000, 'x') + "\"";
  const std::string texts = "{\"s\":" + long_text + ",\"t\":" + long_text + ",\"a\":" + zeros +
                            ",\"l\":[" + long_text + "],\"m\":[" + long_text + "],\"one\":[1]}";
  for (const char* condition : {"$.s==$.t", "$.s<$.t", "$.l==$.m", "$.s=~\"y\""}) {
    CHECK(found(texts, "$.a[?(" + std::string(condition) + ")]", kMost) == "(too much)");
    CHECK(found(texts, "$.one[?(" + std::string(condition) + ")]", kMost) != "(too much)");
  }
  CHECK(found(texts, "$.a[?($.s=='x')]", kMost) == "");
  // A document is never too large to have each of its texts compared once.
  CHECK(found("[" + repeated(20, long_text, ",") + "]", "$[?(@<" + long_text + ")]", 100) == "");
}

TEST_CASE("Regular expressions that are compiled count by their size", "[json]") {
  const auto any_of = [](size_t count, std::string_view pattern) {
    const std::string condition = "@=~'" + std::string(pattern) + "'";
    return "$[?(" + repeated(count, condition, "||") + "||@==1)]";
  };
  const std::string large = "(.*a){900}b";
  const std::string malformed = repeated(50, "[a-z]*") + "(";
  CHECK(found("[1]", any_of(10, large)) == "1");
  CHECK(found("[1]", any_of(1000, "^a.*b$")) == "1");
  CHECK(found("[1]", any_of(1000, large)) == "(too much)");
  CHECK(found("[1]", any_of(1000, malformed)) == "(too much)");
  // Each once, however many elements there are.
  CHECK(found("[" + repeated(2000, "0", ",") + "]", any_of(10, large)) == "");
  // Those that are not needed are not compiled.
  CHECK(found("[1]", "$[?(@==1||" + any_of(1000, large).substr(4)) == "1");
  // Patterns of the document.
  const std::string patterns = "{\"p\":[" + repeated(1000, "\"" + large + "\"", ",") + "],";
  CHECK(found(patterns + "\"t\":[\"x\"]}", "$.t[?(@=~$.p[*])]") == "(too much)");
  CHECK(found(patterns + "\"t\":[\"x\"]}", "$.t[?(@=~$.p[0])]") == "");
}

TEST_CASE("What leads nowhere is counted as well", "[json]") {
  constexpr size_t kMost = 10'000;
  const std::string lists = "[" + repeated(200, "[]", ",") + "]";
  const std::string objects = "[" + repeated(200, "{}", ",") + "]";
  CHECK(found(objects, "$[*]['a','b']", kMost) == "");
  CHECK(found(objects, "$[*][" + repeated(100, "'a'", ",") + "]", kMost) == "(too much)");
  CHECK(found(lists, "$[*][" + repeated(100, "9", ",") + "]", kMost) == "(too much)");
  CHECK(found(lists, "$[?(" + repeated(100, "1", "&&") + ")]", kMost) == "(too much)");
  CHECK(found(lists, "$[?(" + repeated(100, "1=~'x'", "||") + ")]", kMost) == "(too much)");
  const std::string long_name = "'" + std::string(100'000, 'x') + "'";
  CHECK(found(objects, "$[*][" + long_name + "]", kMost) == "(too much)");
}

TEST_CASE("A walk that goes on and on ends", "[json]") {
  constexpr size_t kMost = 10'000;
  const std::string deep = std::string(100, '[') + std::string(100, ']');
  CHECK(found(deep, "$..*..*..*..*..*..*..*", kMost) == "(too much)");
  CHECK(found(deep, "$..*[0]", kMost) != "(too much)");
  std::string wide = "[";
  for (int i = 0; i < 1000; ++i) wide += "1,";
  wide += "2]";
  CHECK(found(wide, "$[?(@==$[1000])]", kMost) == "2");
  CHECK(found(wide, "$[?(@==$[*])]", kMost) == "(too much)");
}

TEST_CASE("Trails lead back to what was found", "[json]") {
  Node root = read(R"({"a":[{"b":1},{"b":2}]})");
  const auto path = store::json::parse_path("$.a[*].b");
  REQUIRE(path);
  Trails trails;
  WalkBudget budget(root);
  walk(*path, root, budget, [&](const Node&, Trail trail) {
    trails.add(trail);
    return true;
  });
  REQUIRE(trails.size() == 2);
  CHECK(node_at(root, trails[0])->as_int64() == 1);
  CHECK(node_at(root, trails[1])->as_int64() == 2);
  root.child(0).erase_elements(1, 2);
  CHECK(node_at(root, trails[1]) == nullptr);
}

TEST_CASE("A path with one name or position a step is a single place", "[json]") {
  const auto is_single = [](std::string_view text) {
    return store::json::parse_path(text)->is_single();
  };
  CHECK(is_single("$"));
  CHECK(is_single("$.a[0]['b']"));
  for (const char* text : {"$..a", "$.*", "$[0,1]", "$['a','b']", "$[0:1]", "$[?(@)]"})
    CHECK(!is_single(text));
  CHECK(store::json::is_legacy_path(".a"));
  CHECK(store::json::is_legacy_path("$a"));
  CHECK(!store::json::is_legacy_path("$"));
  CHECK(!store::json::is_legacy_path("$[0]"));
}

}  // namespace latchkey::tests
