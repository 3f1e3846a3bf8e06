#include "store/encoding/quicklist.h"

#include <algorithm>
#include <deque>
#include <string>
#include <utility>

#include "base/random.h"
#include "store/value/list.h"
#include "unit/catch.h"

namespace latchkey::store {

namespace {

std::string text_at(const Quicklist& list, int64_t index) {
  char scratch[Listpack::kScratch];
  return std::string(list.get(list.at(index)).text(scratch));
}

bool equals(const Quicklist& list, const std::deque<std::string>& model) {
  char scratch[Listpack::kScratch];
  auto expected = model.begin();
  for (auto cursor = list.first(); cursor; cursor = list.next(cursor)) {
    if (expected == model.end() || list.get(cursor).text(scratch) != *expected++) return false;
  }
  return expected == model.end() && list.size() == model.size();
}

// Whether the first element with that text, from an index on, is the one of the model.
bool finds(const Quicklist& list, const std::deque<std::string>& model, const std::string& text,
           int64_t from) {
  const auto found = list.find(Listpack::Matcher(text), list.at(from));
  const auto expected = std::find(model.begin() + from, model.end(), text);
  if (!found || expected == model.end()) return !found == (expected == model.end());
  const auto at = list.at(expected - model.begin());
  return found.node == at.node && found.position == at.position;
}

// Elements that compress well, some so large that they have nodes of their own.
std::string some_element(base::Random& random) {
  const uint64_t kind = random.below(50);
  if (kind == 0) return std::string(9000, static_cast<char>('a' + random.below(26)));
  if (kind < 10) return std::to_string(random.next());
  return std::string(40, static_cast<char>('a' + random.below(26)));
}

constexpr int kFill = 4;

// Fills a list with 400 elements, four a node.
void fill(Quicklist& list) {
  for (int i = 0; i < 400; ++i) list.push_back(std::string(40, 'x') + std::to_string(i));
}

}  // namespace

TEST_CASE("A fill of none is one of one element") {
  CHECK_FALSE(exceeds_fill(0, 8192, 1));
  CHECK(exceeds_fill(0, 1, 2));
  CHECK(exceeds_fill(0, 8193, 1));
  CHECK_FALSE(exceeds_part_of_fill(0, 2, 8192, 0));
  CHECK(exceeds_part_of_fill(0, 2, 1, 1));
  // A negative one is of bytes.
  CHECK_FALSE(exceeds_part_of_fill(-1, 2, 2048, 2000));
  CHECK(exceeds_part_of_fill(-1, 2, 2049, 1));
}

TEST_CASE("A list that was loaded may be a listpack of any size if elements are counted") {
  constexpr int kLimit = 5;
  constexpr size_t kLarge = 100'000;
  // While it grows there is a limit for the bytes, too.
  CHECK(exceeds_fill(kLimit, kLarge, 1));
  CHECK_FALSE(exceeds_part_of_fill(kLimit, 1, kLarge, kLimit));
  CHECK(exceeds_part_of_fill(kLimit, 1, 10, kLimit + 1));
  CHECK(exceeds_part_of_fill(-1, 1, kLarge, 1));

  ValueLimits limits;
  limits.list_max_listpack_size = kLimit;
  List list;
  Listpack elements;
  elements.append(std::string(kLarge, 'x'));
  list.adopt(std::move(elements), limits);
  CHECK(list.encoding_name() == "listpack");
}

TEST_CASE("Nodes far from the ends are compressed when a quicklist settles", "[quicklist]") {
  for (const size_t depth : {1, 3, 49}) {
    Quicklist list(kFill, depth);
    fill(list);
    const size_t open_bytes = list.memory_usage();
    list.recompress();
    CHECK(list.nodes() == 100);
    CHECK(list.compressed_nodes() == 100 - 2 * depth);
    CHECK(list.memory_usage() < open_bytes);
  }
}

TEST_CASE("A quicklist without depth, or no longer than its ends, is not compressed",
          "[quicklist]") {
  for (const size_t depth : {0, 50, 51, 1000}) {
    Quicklist list(kFill, depth);
    fill(list);
    list.recompress();
    CHECK(list.compressed_nodes() == 0);
  }
}

TEST_CASE("Reading opens nodes until the quicklist settles again", "[quicklist]") {
  Quicklist list(kFill, 1);
  fill(list);
  list.recompress();
  CHECK(text_at(list, 200) == std::string(40, 'x') + "200");
  CHECK(list.compressed_nodes() == 97);
  list.recompress();
  CHECK(list.compressed_nodes() == 98);
}

TEST_CASE("A walk compresses the nodes that it leaves", "[quicklist]") {
  Quicklist list(kFill, 1);
  fill(list);
  list.recompress();
  int index = 0;
  for (auto cursor = list.first(); cursor; cursor = list.next(cursor), ++index)
    REQUIRE(list.compressed_nodes() >= 97);
  CHECK(index == 400);
  for (auto cursor = list.last(); cursor; cursor = list.previous(cursor), --index)
    REQUIRE(list.compressed_nodes() >= 97);
  CHECK(index == 0);
  CHECK(list.compressed_nodes() == 98);
}

TEST_CASE("A search compresses the nodes that it leaves", "[quicklist]") {
  Quicklist list(kFill, 1);
  fill(list);
  list.recompress();
  const std::string sought = std::string(40, 'x') + "200";
  const auto found = list.find(Listpack::Matcher(sought), list.first());
  REQUIRE(found);
  CHECK(list.get(found).equals(sought));
  CHECK(list.compressed_nodes() == 97);
  CHECK_FALSE(list.find(Listpack::Matcher("none"), found));
  CHECK(list.compressed_nodes() == 98);
  CHECK_FALSE(list.find(Listpack::Matcher(sought), {}));
}

TEST_CASE("A node that gets to an end is opened, one that leaves it compressed", "[quicklist]") {
  Quicklist list(kFill, 1);
  fill(list);
  list.recompress();
  list.erase_range(0, 4);
  list.recompress();
  CHECK(list.nodes() == 99);
  CHECK(list.compressed_nodes() == 97);
  CHECK_FALSE(list.first_node()->is_compressed());
  for (int i = 0; i < 5; ++i) list.push_front(std::string(40, 'y'));
  list.recompress();
  CHECK(list.nodes() == 101);
  CHECK(list.compressed_nodes() == 99);
}

TEST_CASE("A node holds what the fill says, of elements or of bytes", "[quicklist]") {
  Quicklist by_elements(3);
  for (int i = 0; i < 9; ++i) by_elements.push_back("element");
  CHECK(by_elements.nodes() == 3);
  Quicklist by_bytes(-1);
  for (int i = 0; i < 9; ++i) by_bytes.push_back(std::string(1300, 'x'));
  CHECK(by_bytes.nodes() == 3);
  Quicklist copy(by_elements);
  for (int i = 0; i < 3; ++i) copy.push_front("element");
  CHECK(copy.nodes() == 4);
}

TEST_CASE("Replacing an element leaves the nodes as they are, unless it needs one of its own",
          "[quicklist]") {
  Quicklist list(-1);
  for (int i = 0; i < 9; ++i) list.push_back(std::string(1300, 'x'));
  list.replace(list.at(4), std::string(4000, 'y'));
  CHECK(list.nodes() == 3);
  list.replace(list.at(4), std::string(4097, 'z'));
  CHECK(list.nodes() == 5);
  CHECK(list.first_node()->next->next->is_plain);
  CHECK(text_at(list, 4) == std::string(4097, 'z'));
}

TEST_CASE("A copy of a compressed quicklist holds the same and is compressed too", "[quicklist]") {
  Quicklist list(kFill, 2);
  fill(list);
  list.recompress();
  const Quicklist copy(list);
  CHECK(copy.compressed_nodes() == 96);
  CHECK(text_at(copy, 123) == std::string(40, 'x') + "123");
  copy.recompress();
  CHECK(copy.compressed_nodes() == 96);
}

TEST_CASE("A quicklist keeps what a std::deque keeps, compressed at any depth", "[quicklist]") {
  for (const size_t depth : {0, 1, 2, 5}) {
    base::Random random(11 + depth);
    Quicklist list(kFill, depth);
    std::deque<std::string> model;
    for (int round = 0; round < 6000; ++round) {
      const std::string element = some_element(random);
      const uint64_t step = random.below(10);
      const auto index = model.empty() ? 0 : static_cast<int64_t>(random.below(model.size()));
      if (step < 2) {
        list.push_back(element);
        model.push_back(element);
      } else if (step < 4 || model.empty()) {
        list.push_front(element);
        model.push_front(element);
      } else if (step == 4) {
        list.insert_before(list.at(index), element);
        model.insert(model.begin() + index, element);
      } else if (step == 5) {
        list.insert_after(list.at(index), element);
        model.insert(model.begin() + index + 1, element);
      } else if (step == 6) {
        list.replace(list.at(index), element);
        model[static_cast<size_t>(index)] = element;
      } else if (step == 7) {
        list.erase(list.at(index));
        model.erase(model.begin() + index);
      } else if (step == 8 && round % 20 == 0) {
        const size_t count = random.below(model.size() - static_cast<size_t>(index)) + 1;
        list.erase_range(static_cast<size_t>(index), count);
        model.erase(model.begin() + index, model.begin() + index + static_cast<int64_t>(count));
      } else {
        REQUIRE(text_at(list, index) == model[static_cast<size_t>(index)]);
        REQUIRE(finds(list, model, model[random.below(model.size())], index));
        REQUIRE(finds(list, model, element, index));
      }
      if (random.below(3) == 0) list.recompress();
      if (round % 50 == 0) REQUIRE(equals(list, model));
    }
    list.recompress();
    CHECK((list.compressed_nodes() > 0) == (depth > 0 && list.nodes() > 2 * depth));
    CHECK(equals(list, model));
  }
}

TEST_CASE("An element goes to the part of a split node that has room for it", "[quicklist]") {
  constexpr int kBytes = -1;  // 4096
  const std::string large(3000, 'a');
  const std::string middle(900, 'b');
  const std::string small(100, 'c');
  const std::string added(1000, 'd');
  SECTION("the second one") {
    Quicklist list(kBytes);
    for (const std::string& text : {large, middle, small}) list.push_back(text);
    list.insert_before(list.at(2), added);
    CHECK(equals(list, {large, middle, added, small}));
    list.push_back(small);
    list.push_front(small);
    CHECK(equals(list, {small, large, middle, added, small, small}));
  }
  SECTION("the first one") {
    Quicklist list(kBytes);
    for (const std::string& text : {small, middle, large}) list.push_back(text);
    list.insert_before(list.at(2), added);
    CHECK(equals(list, {small, middle, added, large}));
  }
  SECTION("neither") {
    Quicklist list(kBytes);
    const std::string half(2000, 'e');
    for (const std::string& text : {half, half}) list.push_back(text);
    list.insert_before(list.at(1), large);
    CHECK(equals(list, {half, large, half}));
    list.insert_after(list.at(2), small);
    CHECK(equals(list, {half, large, half, small}));
  }
}

}  // namespace latchkey::store
