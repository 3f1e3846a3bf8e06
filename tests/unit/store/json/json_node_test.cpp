#include "store/json/json_node.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "store/json/json_document.h"
#include "store/json/json_parser.h"
#include "store/json/json_writer.h"
#include "unit/catch.h"

namespace latchkey::tests {

namespace {

using store::json::Kind;
using store::json::Member;
using store::json::Node;

constexpr uint64_t kSeed = 7;

Node read(std::string_view text) {
  auto parsed = store::json::parse(text, Node::kMaxDepth, kSeed);
  REQUIRE(parsed);
  return std::move(parsed->root);
}

std::string digest(Node root) {
  std::string parts;
  store::JsonDocument(std::move(root)).for_each_digest_part([&](std::string_view part) {
    parts += part;
  });
  return parts;
}

}  // namespace

TEST_CASE("A JSON node holds scalars of every size", "[json]") {
  const int64_t edge = int64_t{1} << 47;
  for (const int64_t value : {int64_t{0}, int64_t{1}, int64_t{-1}, edge - 1, edge, -edge, -edge - 1,
                              INT64_MAX, INT64_MIN}) {
    const Node node = Node::integer(value);
    CHECK(node.kind() == Kind::kInteger);
    CHECK(!node.is_huge());
    CHECK(node.as_int64() == value);
    CHECK(node.clone().as_int64() == value);
  }
  const Node huge = Node::unsigned_integer(UINT64_MAX);
  CHECK(huge.is_huge());
  CHECK(huge.as_uint64() == UINT64_MAX);
  CHECK(huge.clone().as_uint64() == UINT64_MAX);
  CHECK(!Node::unsigned_integer(INT64_MAX).is_huge());
  for (const double value : {0.0, -0.0, 1.5, -1e308, 5e-324}) {
    const Node node = Node::number(value);
    CHECK(node.kind() == Kind::kNumber);
    CHECK(node.as_double() == value);
  }
  for (size_t size = 0; size < 12; ++size) {
    const std::string text(size, 'x');
    const Node node = Node::string(text);
    CHECK(node.kind() == Kind::kString);
    CHECK(node.text() == text);
    CHECK(node.clone().text() == text);
    CHECK(node.shared().text() == text);
  }
  CHECK(Node().kind() == Kind::kNull);
  CHECK(Node::boolean(true).truth());
  CHECK(!Node::boolean(false).truth());
  CHECK(Node::boolean(false).kind() == Kind::kBoolean);
}

TEST_CASE("A JSON string grows from the node into an allocation", "[json]") {
  Node node = Node::string("");
  std::string expected;
  for (int i = 0; i < 20; ++i) {
    node.append("ab");
    expected += "ab";
    CHECK(node.text() == expected);
  }
  const Node before = node.shared();
  node.append("c");
  CHECK(before.text() == expected);
  CHECK(node.text() == expected + "c");
}

TEST_CASE("A JSON array does what a vector does", "[json]") {
  base::Random random(1);
  Node array = Node::array();
  std::vector<int64_t> model;
  for (int step = 0; step < 3000; ++step) {
    if (random.below(5) < 3) {
      const size_t at = random.below(model.size() + 1);
      std::vector<Node> added;
      for (uint64_t i = random.below(4); i > 0; --i) {
        const auto value = static_cast<int64_t>(random.next());
        model.insert(model.begin() + static_cast<ptrdiff_t>(at + added.size()), value);
        added.push_back(Node::integer(value));
      }
      array.insert(at, added);
    } else {
      const size_t first = random.below(model.size() + 1);
      const size_t last = first + random.below(std::min<size_t>(model.size() - first, 9) + 1);
      array.erase_elements(first, last);
      model.erase(model.begin() + static_cast<ptrdiff_t>(first),
                  model.begin() + static_cast<ptrdiff_t>(last));
    }
    REQUIRE(array.size() == model.size());
  }
  for (size_t i = 0; i < model.size(); ++i) CHECK(array.elements()[i].as_int64() == model[i]);
}

TEST_CASE("Many elements of a JSON array are erased as if one after the other", "[json]") {
  base::Random random(3);
  for (int round = 0; round < 500; ++round) {
    const size_t size = random.below(40);
    Node array = Node::array();
    std::vector<int64_t> model;
    for (size_t i = 0; i < size; ++i) {
      Node added = Node::unsigned_integer(UINT64_MAX - i);  // has an allocation
      array.insert(i, std::span(&added, 1));
      model.push_back(static_cast<int64_t>(UINT64_MAX - i));
    }
    // Some come twice, and some are no longer there.
    std::vector<uint32_t> positions;
    for (uint64_t i = random.below(50); i > 0; --i)
      positions.push_back(static_cast<uint32_t>(random.below(size + 2)));
    std::ranges::sort(positions);
    size_t erased = 0;
    for (size_t i = positions.size(); i-- > 0;) {
      if (positions[i] >= model.size()) continue;
      model.erase(model.begin() + static_cast<ptrdiff_t>(positions[i]));
      ++erased;
    }
    CHECK(array.erase_each(positions) == erased);
    REQUIRE(array.size() == model.size());
    for (size_t i = 0; i < model.size(); ++i)
      CHECK(static_cast<int64_t>(array.elements()[i].as_uint64()) == model[i]);
  }
}

TEST_CASE("A JSON array of which most is erased gives memory back", "[json]") {
  std::vector<Node> numbers(1000);
  Node array = Node::array(numbers);
  const size_t before = array.memory_usage();
  std::vector<uint32_t> positions(900);
  std::iota(positions.begin(), positions.end(), 50);
  CHECK(array.erase_each(positions) == 900);
  CHECK(array.size() == 100);
  CHECK(array.memory_usage() < before / 4);
}

TEST_CASE("A JSON object finds its members, few or many", "[json]") {
  base::Random random(2);
  Node object = Node::object();
  std::map<std::string, int64_t> model;
  for (int step = 0; step < 6000; ++step) {
    // Now and then it becomes small again, and loses its index.
    const size_t names = step / 1000 % 2 == 0 ? 300 : 10;
    std::string key = (random.below(2) == 0 ? "k" : "a key that is longer ") +
                      std::to_string(random.below(names));
    const size_t at = object.find(key);
    REQUIRE((at != Node::npos) == model.contains(key));
    if (at != Node::npos) CHECK(object.child(at).as_int64() == model[key]);
    if (random.below(names == 300 ? 3 : 2) == 0 && at != Node::npos) {
      object.erase_member(at);
      model.erase(key);
    } else if (names == 10 && object.size() > 10) {
      model.erase(std::string(object.members().front().key.text()));
      object.erase_member(0);
    } else {
      object.put(key, Node::integer(step), kSeed);
      model[key] = step;
    }
    REQUIRE(object.size() == model.size());
  }
  const Node copy = object.clone();
  for (const auto& [key, value] : model) {
    REQUIRE(copy.find(key) != Node::npos);
    CHECK(copy.child(copy.find(key)).as_int64() == value);
  }
  CHECK(copy.equals(object));
}

TEST_CASE("Of equal keys the last value stands where the first one did", "[json]") {
  for (const size_t others : {2, 40}) {
    std::vector<Member> members;
    const auto add = [&](std::string_view key, int64_t value) {
      members.push_back({Node::string(key), Node::integer(value)});
    };
    add("same", 1);
    for (size_t i = 0; i < others; ++i) add("key" + std::to_string(i), 0);
    add("same", 2);
    const Node object = Node::object(members, kSeed);
    CHECK(object.size() == others + 1);
    CHECK(object.find("same") == 0);
    CHECK(object.child(0).as_int64() == 2);
    CHECK(object.find("other") == Node::npos);
  }
}

TEST_CASE("JSON values are equal whatever the order of their members", "[json]") {
  CHECK(read(R"({"a":[1,{"b":null}],"c":"long enough"})")
            .equals(read(R"({"c":"long enough","a":[1,{"b":null}]})")));
  CHECK(!read("1").equals(read("1.0")));
  CHECK(!read("[1,2]").equals(read("[2,1]")));
  CHECK(!read("[1]").equals(read("[1,1]")));
  CHECK(!read(R"({"a":1})").equals(read(R"({"b":1})")));
  CHECK(!read("true").equals(read("false")));
  CHECK(!read("18446744073709551615").equals(read("-1")));
}

TEST_CASE("Comparing JSON values costs what is looked at", "[json]") {
  const auto cost = [](const std::string& a, const std::string& b) {
    size_t nodes = 0;
    read(a).equals(read(b), &nodes);
    return nodes;
  };
  const std::string x = "\"" + std::string(6400, 'x') + "\"";
  CHECK(cost("1", "2") == 1);
  CHECK(cost("[1,2,3]", "[1,2,3]") == 4);
  CHECK(cost("[1,2,3]", "[2,2,3]") == 2);
  CHECK(cost(R"({"a":[1]})", R"({"a":[1]})") == 3);
  CHECK(cost(x, x) == 101);
  CHECK(cost(x, "\"x\"") == 1);
  CHECK(cost("{" + x + ":1}", "{" + x + ":1}") == 102);
}

TEST_CASE("A document has the digest of its value", "[json]") {
  CHECK(digest(read(R"({"a":1,"b":[2]})")) == digest(read(R"({ "b":[2], "a":1 })")));
  CHECK(digest(read(R"({"a":1})")) != digest(read(R"({"a":"1"})")));
  CHECK(digest(read(R"(["a","b"])")) != digest(read(R"(["a,b"])")));
}

TEST_CASE("Equal keys of a document are kept once", "[json]") {
  const size_t once = read(R"([{"a key that is long":1}])").memory_usage();
  std::string text = "[";
  for (int i = 0; i < 100; ++i) text += R"({"a key that is long":1},)";
  text.back() = ']';
  const Node many = read(text);
  CHECK(many.memory_usage() < 100 * once - 1000);
  CHECK(many.clone().equals(many));
}

TEST_CASE("Depth and the effort to free a JSON value are counted", "[json]") {
  CHECK(read("1").node_count() == 1);
  CHECK(read(R"([1,{"a":[]}])").node_count() == 4);
  CHECK(read(R"([1,{"a":["text"]}])").read_cost() == 5);
  const std::string x(6400, 'x');
  CHECK(read("[\"" + x + "\",{\"" + x + "\":1}]").read_cost() == 4 + 100 + 100);
  CHECK(read("1").depth() == 0);
  CHECK(read("[]").depth() == 1);
  CHECK(read(R"({"a":[[1]],"b":2})").depth() == 3);
  CHECK(read("[1,2,3]").allocation_count(100) == 1);
  CHECK(read(R"([[],{},"a long string"])").allocation_count(100) == 4);
  CHECK(read(R"([[],{},"a long string"])").allocation_count(2) == 2);
}

}  // namespace latchkey::tests
