// What changes of JSON documents do where a path leads to places within one another, or to one
// place again and again.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"
#include "commands/json/json_steps.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"
#include "unit/testing/tested_server.h"

namespace latchkey::tests {

namespace {

using store::json::Node;

struct Document : TestedServer {
  Document() : client(*this) {}
  std::string set(std::string_view document) {
    return client.run_words({"JSON.SET", "k", "$", document});
  }
  std::string run(std::string_view line) { return client.run(line); }
  TestClient client;
};

// `part` so many times, with commas between.
std::string list_of(size_t times, std::string_view part) {
  std::string text(part);
  for (size_t i = 1; i < times; ++i) text.append(",").append(part);
  return text;
}

const std::string kTooManyValues = error("ERR the path leads to too many values");

}  // namespace

TEST_CASE("JSON.MERGE finds places within one another by their keys", "[json]") {
  TestedServer server;
  TestClient client(server);
  const auto merged = [&](std::string_view document, std::string_view path,
                          std::string_view patch) {
    CHECK(client.run_words({"JSON.SET", "k", "$", document}) == kOk);
    CHECK(client.run_words({"JSON.MERGE", "k", path, patch}) == kOk);
    return client.run("JSON.GET k");
  };
  const std::string_view nested = R"({"a":{"x":1,"b":{"x":3},"a":{"x":2}}})";
  // The place of the inner one has become an array.
  CHECK(merged(R"({"x":{"x":1}})", "$..x", "[[1]]") == bulk(R"({"x":[[1]]})"));
  // What is removed from the outer one moves its last member.
  CHECK(merged(nested, "$..a", R"({"x":null})") == bulk(R"({"a":{"a":{},"b":{"x":3}}})"));
  CHECK(merged(nested, "$..a", R"({"x":null,"z":{}})") ==
        bulk(R"({"a":{"a":{"z":{}},"b":{"x":3},"z":{}}})"));
  // The inner one is gone.
  CHECK(merged(nested, "$..a", R"({"a":null})") == bulk(R"({"a":{"x":1,"b":{"x":3}}})"));
  CHECK(merged(nested, "$..a", "5") == bulk(R"({"a":5})"));
  // Elements are found by their indexes.
  CHECK(merged(R"([{"x":1},[{"x":2}]])", "$..*", R"({"x":null})") == bulk("[{},{}]"));
  CHECK(merged(R"({"a":[{"a":1},{"a":2}]})", "$..a", "[1,[2]]") == bulk(R"({"a":[1,[2]]})"));
  CHECK(merged(R"({"a":[{"a":1},{"b":2}]})", "$.a[*]", R"({"c":1,"a":null})") ==
        bulk(R"({"a":[{"c":1},{"b":2,"c":1}]})"));
}

TEST_CASE("JSON.DEL removes many elements of an array", "[json]") {
  Document document;
  const auto left = [&](std::string_view text, std::string_view path, int64_t removed) {
    CHECK(document.set(text) == kOk);
    CHECK(document.client.run_words({"JSON.DEL", "k", path}) == integer(removed));
    return document.run("JSON.GET k");
  };
  CHECK(left("[0,1,2,3,4,5,6]", "$[::2]", 4) == bulk("[1,3,5]"));
  CHECK(left("[0,1,2,3,4,5,6]", "$[5,1,3]", 3) == bulk("[0,2,4,6]"));
  CHECK(left("[[0,1],[2,3],4]", "$..[0]", 2) == bulk("[[3],4]"));
  CHECK(left("[0,1]", "$[*]", 2) == kNull);
  // An element that is named twice takes its neighbour with it.
  CHECK(left("[0,1,2,3]", "$[1,1]", 2) == bulk("[0,3]"));
  CHECK(left("[0,1,2,3]", "$[0,0,1]", 3) == bulk("[3]"));
  CHECK(left("[0,1,2,3]", "$[3,3]", 1) == bulk("[0,1,2]"));
  constexpr size_t kMany = 300'000;
  CHECK(left("[" + list_of(kMany, "0,1") + "]", "$[::2]", kMany) ==
        bulk("[" + list_of(kMany, "1") + "]"));
}

TEST_CASE("A change at one place is made as often as it is named", "[json]") {
  Document document;
  REQUIRE(document.set(R"({"a":[1,2,3,4],"s":"x"})") == kOk);
  CHECK(document.run("JSON.ARRPOP k $['a','a'] 0") == array({bulk("1"), bulk("2")}));
  CHECK(document.run("JSON.ARRINSERT k $['a','a'] 0 7") == array({integer(3), integer(4)}));
  CHECK(document.run("JSON.ARRTRIM k $['a','a'] 1 -1") == array({integer(3), integer(2)}));
  CHECK(document.run("JSON.GET k .a") == bulk("[3,4]"));
  CHECK(document.client.run_words({"JSON.STRAPPEND", "k", "$['s','s']", "\"yz\""}) ==
        array({integer(3), integer(5)}));
}

TEST_CASE("Places are changed from the inside out, those behind others first", "[json]") {
  base::Random random(5);
  const auto random_array = [&](const auto& self, size_t levels) -> std::string {
    std::string text = "[";
    const bool is_object = random.below(2) == 0;
    if (is_object) text = "{";
    const size_t children = random.below(levels == 0 ? 2 : 30);
    for (size_t i = 0; i < children; ++i) {
      if (i > 0) text += ",";
      if (is_object) text += "\"" + std::to_string(random.below(1000) * 100 + i) + "\":";
      text += levels == 0 ? "[]" : self(self, levels - 1);
    }
    return text + (is_object ? "}" : "]");
  };
  const auto parsed = [](std::string_view text) {
    return std::move(store::json::parse(text, 100, 1)->root);
  };
  // Which of two places is changed first.
  const auto comes_before = [](const Node& root, store::json::Trail a, store::json::Trail b) {
    const Node* node = &root;
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      if (a[i] != b[i]) {
        if (node->is_array()) return a[i] > b[i];
        return node->members()[a[i]].key.text() < node->members()[b[i]].key.text();
      }
      node = &node->child(a[i]);
    }
    return a.size() > b.size();
  };
  for (int round = 0; round < 30; ++round) {
    const Node root = parsed(random_array(random_array, 1 + random.below(3)));
    for (const char* text : {"$..*", "$.*.*", "$..[0,2,1,0]", "$[7,3,9][1,0]", "$..[?(@.*)].*"}) {
      const auto path = store::json::parse_path(text);
      REQUIRE(path);
      store::json::Trails trails;
      store::json::WalkBudget budget(root);
      REQUIRE(store::json::walk(*path, root, budget, [&](const Node&, store::json::Trail trail) {
        trails.add(trail);
        return true;
      }));
      std::vector<uint32_t> expected(trails.size());
      std::iota(expected.begin(), expected.end(), uint32_t{0});
      std::ranges::stable_sort(expected, [&](uint32_t one, uint32_t other) {
        return comes_before(root, trails[one], trails[other]);
      });
      CAPTURE(round, text, trails.size());
      CHECK((commands::inside_out(root, trails) == expected));
    }
  }
}

TEST_CASE("Elements of an array are not moved without limit", "[json]") {
  Document document;
  constexpr size_t kElements = 200'000;
  constexpr size_t kTimes = 1500;
  const std::string large = "[" + list_of(kElements, "0") + "]";
  const std::string again = "$[" + list_of(kTimes, "'a'") + "]";
  const auto set_array = [&] { CHECK(document.set("{\"a\":" + large + "}") == kOk); };
  set_array();
  CHECK(document.client.run_words({"JSON.ARRPOP", "k", again, "0"}) == kTooManyValues);
  set_array();
  CHECK(document.client.run_words({"JSON.ARRTRIM", "k", again, "1", "-1"}) == kTooManyValues);
  set_array();
  CHECK(document.client.run_words({"JSON.ARRINSERT", "k", again, "0", "1"}) == kTooManyValues);
  set_array();
  // Nothing is moved at the end.
  CHECK(document.client.run_words({"JSON.ARRPOP", "k", again}).starts_with("*1500\r\n"));
  CHECK(document.client.run_words({"JSON.ARRTRIM", "k", again, "0", "-1"}).starts_with("*1500"));
  CHECK(document.run("JSON.ARRPOP k $.a 0") == array({bulk("0")}));
  CHECK(document.run("JSON.ARRLEN k .a") == integer(kElements - kTimes - 1));
}

TEST_CASE("What JSON.MSET walks is bounded for all of its values", "[json]") {
  Document document;
  REQUIRE(document.set("[1," + list_of(2000, "0") + "]") == kOk);
  // Changes the first element, and compares each of the others with all.
  const auto set_often = [&](size_t times) {
    std::vector<std::string_view> words = {"JSON.MSET"};
    for (size_t i = 0; i < times; ++i) words.insert(words.end(), {"k", "$[?(@!=$[*]||@==1)]", "1"});
    return document.client.run_words(words);
  };
  CHECK(set_often(1) == kOk);
  CHECK(set_often(20) == kTooManyValues);
}

TEST_CASE("A text is not copied without limit to append to it", "[json]") {
  Document document;
  const std::string again = "$[" + list_of(1500, "'a'") + "]";
  REQUIRE(document.set("{\"a\":\"" + std::string(1 << 20, 'x') + "\"}") == kOk);
  CHECK(document.client.run_words({"JSON.STRAPPEND", "k", again, "\"y\""}) == kTooManyValues);
  CHECK(document.client.run_words({"JSON.STRAPPEND", "k", "$.a", "\"y\""}).starts_with("*1\r\n"));
}

}  // namespace latchkey::tests
