#include "store/value/stream.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "unit/catch.h"

namespace latchkey::store {

namespace {

using Words = std::vector<std::string_view>;

std::string text_of(const Listpack::Element& element) {
  char scratch[Listpack::kScratch];
  return std::string(element.text(scratch));
}

struct Fixture {
  explicit Fixture(size_t node_entries = 3) { limits.stream_node_max_entries = node_entries; }

  void add(uint64_t ms, const Words& fields = {"a", "1"}) {
    stream.append({ms, 0}, fields, limits);
  }
  void add_many(uint64_t first, uint64_t last) {
    for (uint64_t ms = first; ms <= last; ++ms) add(ms);
  }
  std::string ids(StreamRange range = {}, bool reverse = false) const {
    std::string text;
    stream.for_each(range, reverse, [&](const StreamEntry& entry) {
      text += (text.empty() ? "" : " ") + std::to_string(entry.id().ms);
      return true;
    });
    return text;
  }
  std::string fields_of(uint64_t ms) const {
    std::string text;
    stream.for_each({{ms, 0}, {ms, 0}}, false, [&](const StreamEntry& entry) {
      entry.for_each_field([&](const auto& field, const auto& value) {
        text += (text.empty() ? "" : " ") + text_of(field) + "=" + text_of(value);
      });
      return true;
    });
    return text;
  }

  ValueLimits limits;
  Stream stream;
};

StreamTrim to_length(uint64_t length, bool approximate = false, uint64_t limit = 0) {
  return {.by = StreamTrim::By::kMaxLength,
          .max_length = length,
          .min_id = {},
          .approximate = approximate,
          .limit = limit};
}

StreamTrim from_id(uint64_t ms, bool approximate = false) {
  return {.by = StreamTrim::By::kMinId,
          .max_length = 0,
          .min_id = {ms, 0},
          .approximate = approximate,
          .limit = 0};
}

}  // namespace

TEST_CASE("A stream keeps entries in nodes of a few and walks them both ways", "[streams]") {
  Fixture fixture;
  fixture.add_many(1, 8);
  CHECK(fixture.stream.size() == 8);
  CHECK(fixture.stream.nodes() == 3);
  CHECK(fixture.ids() == "1 2 3 4 5 6 7 8");
  CHECK(fixture.ids({}, true) == "8 7 6 5 4 3 2 1");
  CHECK(fixture.ids({{3, 0}, {7, 0}}) == "3 4 5 6 7");
  CHECK(fixture.ids({{3, 1}, {6, 5}}, true) == "6 5 4");
  CHECK(fixture.ids({{9, 0}}) == "");
  CHECK(fixture.ids({{0, 0}, {0, 9}}, true) == "");
}

TEST_CASE("Entries keep their fields whether or not they are those of the node", "[streams]") {
  Fixture fixture(100);
  fixture.add(1, {"name", "anna", "age", "7"});
  fixture.add(2, {"name", "ben", "age", "-12"});
  fixture.add(3, {"name", "cid"});
  fixture.add(4, {"age", "1", "name", ""});
  fixture.add(5, {"name", "dan", "size", "3"});
  CHECK(fixture.stream.nodes() == 1);
  CHECK(fixture.fields_of(1) == "name=anna age=7");
  CHECK(fixture.fields_of(2) == "name=ben age=-12");
  CHECK(fixture.fields_of(3) == "name=cid");
  CHECK(fixture.fields_of(4) == "age=1 name=");
  CHECK(fixture.fields_of(5) == "name=dan size=3");
}

TEST_CASE("A node ends where its bytes would become too many", "[streams]") {
  Fixture fixture(0);
  fixture.limits.stream_node_max_bytes = 200;
  const std::string value(60, 'x');
  for (uint64_t ms = 1; ms <= 6; ++ms) fixture.add(ms, {"a", value});
  CHECK(fixture.stream.nodes() == 3);
  fixture.limits.stream_node_max_bytes = 0;
  for (uint64_t ms = 7; ms <= 60; ++ms) fixture.add(ms, {"a", value});
  CHECK(fixture.stream.nodes() == 3);
}

TEST_CASE("A deleted entry is not seen any more, and a node goes with its last", "[streams]") {
  Fixture fixture;
  fixture.add_many(1, 7);
  CHECK(fixture.stream.erase({2, 0}));
  CHECK_FALSE(fixture.stream.erase({2, 0}));
  CHECK_FALSE(fixture.stream.erase({2, 1}));
  CHECK(fixture.stream.max_deleted_id() == StreamId{2, 0});
  CHECK(fixture.stream.first_id() == StreamId{1, 0});
  CHECK(fixture.stream.erase({1, 0}));
  CHECK(fixture.stream.first_id() == StreamId{3, 0});
  CHECK(fixture.stream.max_deleted_id() == StreamId{2, 0});
  CHECK(fixture.stream.nodes() == 3);
  CHECK(fixture.stream.erase({3, 0}));
  CHECK(fixture.stream.nodes() == 2);
  CHECK(fixture.ids() == "4 5 6 7");
  CHECK(fixture.stream.erase({7, 0}));
  CHECK(fixture.stream.last_entry_id() == StreamId{6, 0});
  CHECK(fixture.stream.last_id() == StreamId{7, 0});
}

TEST_CASE("Deleted entries count towards what a node holds", "[streams]") {
  Fixture fixture;
  fixture.add_many(1, 2);
  fixture.stream.erase({2, 0});
  fixture.add(3);
  fixture.add(4);
  CHECK(fixture.stream.nodes() == 2);
  CHECK(fixture.ids() == "1 3 4");
}

TEST_CASE("A finder finds what a walk finds, whatever the order of the ids", "[streams]") {
  Fixture fixture;
  StreamFinder none(fixture.stream);
  CHECK_FALSE(none.find({1, 0}));
  // Nodes of three; every id that is a multiple of 3 is missing, and some are deleted, among them
  // the first and the last of a node and a whole node.
  for (uint64_t ms = 10; ms <= 60; ++ms) {
    if (ms % 3 != 0) fixture.add(ms, {"a", std::to_string(ms)});
  }
  for (const uint64_t ms : {10, 14, 20, 22, 23, 25, 37, 59}) fixture.stream.erase({ms, 0});
  const auto check = [&](StreamFinder& finder, StreamId id) {
    CAPTURE(id.ms, id.sequence);
    const bool exists = fixture.stream.contains(id);
    std::string walked;
    fixture.stream.for_each({id, id}, false, [&](const StreamEntry& entry) {
      entry.for_each_field([&](const auto&, const auto& value) { walked += text_of(value); });
      return true;
    });
    CHECK(exists == !walked.empty());
    const std::optional<StreamEntry> found = finder.find(id);
    REQUIRE(found.has_value() == exists);
    if (!exists) return;
    CHECK(found->id() == id);
    std::string text;
    found->for_each_field([&](const auto&, const auto& value) { text += text_of(value); });
    CHECK(text == walked);
  };
  // From every id to every other, which has all cases of two steps.
  for (uint64_t first = 5; first <= 65; ++first) {
    for (uint64_t second = 5; second <= 65; ++second) {
      StreamFinder finder(fixture.stream);
      check(finder, {first, 0});
      check(finder, {second, 0});
      check(finder, {second, 1});
      check(finder, {first, 0});
    }
  }
  StreamFinder ascending(fixture.stream);
  for (uint64_t ms = 0; ms <= 70; ++ms) check(ascending, {ms, 0});
  check(ascending, StreamId::max());
  check(ascending, {});
}

TEST_CASE("Trimming removes the oldest entries, exactly or by whole nodes", "[streams]") {
  Fixture fixture;
  fixture.add_many(1, 10);
  CHECK(fixture.stream.trim(to_length(9)) == 1);
  CHECK(fixture.ids() == "2 3 4 5 6 7 8 9 10");
  CHECK(fixture.stream.trim(to_length(5, true)) == 2);
  CHECK(fixture.ids() == "4 5 6 7 8 9 10");
  CHECK(fixture.stream.trim(to_length(0, true, 2)) == 0);
  CHECK(fixture.stream.trim(to_length(0, true, 4)) == 3);
  CHECK(fixture.stream.trim(from_id(9)) == 2);
  CHECK(fixture.ids() == "9 10");
  CHECK(fixture.stream.trim(from_id(9, true)) == 0);
  CHECK(fixture.stream.trim(from_id(10, true)) == 1);
  CHECK(fixture.stream.trim(from_id(11)) == 1);
  CHECK(fixture.stream.nodes() == 0);
  CHECK(fixture.stream.first_id().is_zero());
  CHECK(fixture.stream.last_id() == StreamId{10, 0});
  CHECK(fixture.stream.entries_added() == 10);
}

TEST_CASE("Trimming by whole nodes leaves one whose last entry is deleted and not below the id",
          "[streams]") {
  Fixture fixture;
  fixture.add_many(1, 6);
  fixture.stream.erase({3, 0});
  CHECK(fixture.stream.trim(from_id(3, true)) == 0);
  CHECK(fixture.stream.trim(from_id(4, true)) == 2);
  CHECK(fixture.ids() == "4 5 6");
}

TEST_CASE("New ids follow the clock, and the last id where the clock is behind", "[streams]") {
  Stream stream;
  CHECK(stream.new_id(5) == StreamId{5, 0});
  CHECK(stream.new_id(0) == StreamId{0, 1});
  stream.set_last_id({7, 3});
  CHECK(stream.new_id(5) == StreamId{7, 4});
  CHECK(stream.new_id_of(7) == StreamId{7, 4});
  CHECK(stream.new_id_of(8) == StreamId{8, 0});
  CHECK_FALSE(stream.new_id_of(6));
  stream.set_last_id({7, UINT64_MAX});
  CHECK(stream.new_id(5) == StreamId{8, 0});
  CHECK_FALSE(stream.new_id_of(7));
  stream.set_last_id(StreamId::max());
  CHECK_FALSE(stream.new_id(5));
}

TEST_CASE("A group's lag is told as long as no hole may lie in it", "[streams]") {
  Fixture fixture;
  fixture.add_many(1, 5);
  StreamGroup& group = fixture.stream.add_group("g", {}, StreamGroup::kUnknownReads);
  CHECK(fixture.stream.lag(group) == 5);
  fixture.stream.advance(group, {1, 0});
  CHECK(group.entries_read == 1);
  fixture.stream.advance(group, {2, 0});
  CHECK(group.entries_read == 2);
  CHECK(fixture.stream.lag(group) == 3);
  fixture.stream.erase({4, 0});
  CHECK_FALSE(fixture.stream.lag(group));
  fixture.stream.advance(group, {3, 0});
  CHECK(group.entries_read == StreamGroup::kUnknownReads);
  fixture.stream.advance(group, {5, 0});
  CHECK(group.entries_read == 5);
  CHECK(fixture.stream.lag(group) == 0);
}

TEST_CASE("A group's lag may count what was trimmed before it came to it", "[streams]") {
  Fixture fixture;
  fixture.add_many(1, 5);
  fixture.stream.erase({3, 0});
  StreamGroup& group = fixture.stream.add_group("g", {}, StreamGroup::kUnknownReads);
  StreamGroup& other = fixture.stream.add_group("h", {}, StreamGroup::kUnknownReads);
  fixture.stream.advance(group, {5, 0});
  REQUIRE(group.entries_read == 5);
  fixture.add_many(6, 7);
  fixture.stream.trim({.by = StreamTrim::By::kMinId, .min_id = {7, 0}});
  CHECK(fixture.stream.lag(group) == 1);
  CHECK(fixture.stream.lag(group, /*counts_trimmed=*/true) == 2);
  CHECK(fixture.stream.lag(other, /*counts_trimmed=*/true) == 1);
}

TEST_CASE("A pending entry is one record for its group and its consumer", "[streams]") {
  StreamGroup group({}, 0);
  StreamConsumer& anna = group.add_consumer("anna", 1);
  StreamConsumer& ben = group.add_consumer("ben", 1);
  for (uint64_t ms = 1; ms <= 300; ++ms) group.add_pending({ms, 0}, anna, 5, 1);
  CHECK(anna.pending.size() == 300);
  group.assign_pending(*group.pending().find({150, 0}), ben, 5);
  CHECK(anna.pending.size() == 299);
  CHECK(ben.pending.find({150, 0}) == group.pending().find({150, 0}));
  CHECK(group.erase_pending({150, 0}));
  CHECK_FALSE(group.erase_pending({150, 0}));
  CHECK(ben.pending.empty());
  for (uint64_t ms = 1; ms <= 300; ms += 2) group.erase_pending({ms, 0});
  CHECK(group.pending().size() == 149);
  CHECK(group.erase_consumer("anna") == 149);
  CHECK(group.pending().empty());
  CHECK(group.erase_consumer("anna") == 0);
}

TEST_CASE("A copy of a stream shares nothing with it", "[streams]") {
  Fixture fixture;
  fixture.add_many(1, 5);
  StreamGroup& group = fixture.stream.add_group("g", {2, 0}, 2);
  group.add_pending({1, 0}, group.add_consumer("c", 7), 9, 3);
  const std::unique_ptr<Stream> copy(static_cast<Stream*>(fixture.stream.clone()));
  fixture.stream.erase({1, 0});
  group.erase_pending({1, 0});
  CHECK(copy->size() == 5);
  CHECK(copy->last_id() == StreamId{5, 0});
  const StreamGroup* copied = copy->find_group("g");
  REQUIRE(copied != nullptr);
  CHECK(copied->last_delivered == StreamId{2, 0});
  const PendingEntry* pending = copied->pending().find({1, 0});
  REQUIRE(pending != nullptr);
  CHECK(pending->deliveries == 3);
  CHECK(&pending->consumer() == copied->find_consumer("c"));
  CHECK(copy->memory_usage() > 0);
}

TEST_CASE("Nodes are taken in from their bytes, but not from others", "[streams]") {
  Fixture fixture;
  fixture.add(1, {"a", "1", "b", "x"});
  fixture.add(2, {"c", "1"});
  fixture.add(3, {"a", "5", "b", "y"});
  fixture.add(4);
  fixture.stream.erase({2, 0});
  Stream copy;
  std::vector<std::string> nodes;
  fixture.stream.for_each_node([&](const StreamNode& node) {
    const auto bytes = node.pack().bytes();
    nodes.emplace_back(bytes.data(), bytes.size());
    CHECK(copy.adopt(node.id, bytes));
  });
  CHECK(copy.size() == 3);
  CHECK(copy.first_id() == StreamId{1, 0});
  CHECK_FALSE(copy.adopt({2, 0}, nodes[1]));

  Stream other;
  CHECK_FALSE(other.adopt({1, 0}, std::string_view("")));
  std::string damaged = nodes[0];
  // The number of entries, behind the listpack's header.
  damaged[6] = 3;
  CHECK_FALSE(other.adopt({1, 0}, damaged));
  damaged = nodes[0].substr(0, nodes[0].size() - 1);
  CHECK_FALSE(other.adopt({1, 0}, damaged));
  // Ids would pass the last possible one.
  CHECK_FALSE(other.adopt(StreamId::max(), nodes[0]));
  CHECK(other.size() == 0);
}

TEST_CASE("A node that trimming by id has left without entries is taken in as well", "[streams]") {
  Fixture fixture;
  fixture.add_many(1, 4);
  fixture.stream.erase({3, 0});
  CHECK(fixture.stream.trim(from_id(3)) == 2);
  CHECK(fixture.stream.nodes() == 2);
  Stream copy;
  fixture.stream.for_each_node(
      [&](const StreamNode& node) { CHECK(copy.adopt(node.id, node.pack().bytes())); });
  CHECK(copy.size() == 1);
  CHECK(copy.first_id() == StreamId{4, 0});
}

TEST_CASE("Nodes without entries are not walked again for each node taken in", "[streams]") {
  constexpr uint64_t kNodes = 20'000;
  Stream copy;
  for (uint64_t ms = 1; ms <= kNodes; ++ms) {
    const Words fields = {"a", "1"};
    StreamNode node({ms, 0}, fields);
    node.append({ms, 0}, fields);
    // The last two keep their entries.
    if (ms + 1 < kNodes) node.erase(node.first());
    REQUIRE(copy.adopt(node.id, node.pack().bytes()));
  }
  CHECK(copy.size() == 2);
  CHECK(copy.first_id() == StreamId{kNodes - 1, 0});
  CHECK(copy.erase({kNodes - 1, 0}));
  CHECK(copy.first_id() == StreamId{kNodes, 0});
  CHECK(copy.erase({kNodes, 0}));
  CHECK(copy.first_id() == StreamId{});
}

TEST_CASE("The index of records stays in order when it grows and shrinks anywhere", "[streams]") {
  struct Record {
    StreamId id;
  };
  std::vector<Record> records(2000);
  for (uint64_t i = 0; i < records.size(); ++i) records[i].id = {i, 0};
  StreamIndex<Record> index;
  // In an order that is neither ascending nor descending: 7 has no factor in common with 2000.
  for (size_t i = 0; i < records.size(); ++i) index.insert(&records[i * 7 % records.size()]);
  CHECK(index.size() == 2000);
  uint64_t expected = 0;
  for (auto position = index.first(); position; position.forward(), ++expected)
    REQUIRE((*position)->id == StreamId{expected, 0});
  CHECK(expected == 2000);
  for (size_t i = 0; i < records.size(); ++i) {
    if (i % 10 != 3) index.erase(&records[i]);
  }
  CHECK(index.size() == 200);
  for (auto position = index.last(); position; position.backward())
    REQUIRE((*position)->id.ms % 10 == 3);
  CHECK((*index.not_after({50, 0}))->id == StreamId{43, 0});
  CHECK((*index.not_before({50, 0}))->id == StreamId{53, 0});
  CHECK_FALSE(index.not_after({2, 0}));
  CHECK_FALSE(index.not_before({1994, 0}));
  for (auto position = index.first(); position;) position = index.erase(position);
  CHECK(index.empty());
}

}  // namespace latchkey::store
