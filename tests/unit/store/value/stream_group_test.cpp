#include "store/value/stream_group.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "base/random.h"
#include "store/value/stream.h"
#include "unit/catch.h"

namespace latchkey::store {

namespace {

// What the order of delivery is made from, kept apart from it: of each pending entry, whether it
// has an owner, and when it was delivered or, without one, how many were released before it.
using Delivery = std::tuple<bool, int64_t, StreamId>;

// A stream with one group, changed at random.
class Changes {
 public:
  explicit Changes(uint64_t seed) : random_(seed) {
    for (uint64_t ms = 1; ms <= kIds; ++ms) add_entry();
    stream_->add_group("g", {}, 0);
  }

  StreamGroup& group() { return *stream_->find_group("g"); }
  size_t pending() const { return pending_.size(); }

  void make_one() {
    const StreamId id{1 + random_.below(kIds), 0};
    const std::string name(1, static_cast<char>('a' + random_.below(3)));
    const auto time = static_cast<int64_t>(random_.below(20));
    StreamConsumer* consumer = group().find_consumer(name);
    if (consumer == nullptr) consumer = &group().add_consumer(name, 1);
    PendingEntry* entry = group().pending().find(id);
    switch (random_.below(12)) {
      case 0:
        group().erase_pending(id);
        pending_.erase(id);
        break;
      case 1:
        if (random_.below(8) != 0) break;
        group().erase_consumer(name);
        std::erase_if(pending_, [&](const auto& each) { return each.second.owner == name; });
        break;
      case 2:
        stream_->erase(id);
        break;
      case 3:
        if (random_.below(8) == 0) stream_.reset(static_cast<Stream*>(stream_->clone()));
        break;
      case 4:
      case 5:
        entry != nullptr ? group().release_pending(*entry, 1) : group().add_released(id, 1);
        pending_[id] = {"", ++releases_};
        break;
      default:
        entry != nullptr ? group().assign_pending(*entry, *consumer, time)
                         : static_cast<void>(group().add_pending(id, *consumer, time, 1));
        pending_[id] = {name, time};
    }
  }

  // Adds the entries again that were deleted.
  void bring_back() {
    StreamTrim all;
    stream_->trim(all);
    stream_->set_last_id({});
    for (uint64_t ms = 1; ms <= kIds; ++ms) add_entry();
  }

  std::vector<StreamId> expected(bool with_deleted) const {
    std::vector<Delivery> deliveries;
    for (const auto& [id, record] : pending_) {
      if (!with_deleted && !stream_->contains(id)) continue;
      deliveries.emplace_back(!record.owner.empty(), record.time, id);
    }
    std::sort(deliveries.begin(), deliveries.end());
    std::vector<StreamId> ids;
    ids.reserve(deliveries.size());
    for (const auto& [is_owned, time, id] : deliveries) ids.push_back(id);
    return ids;
  }
  std::vector<StreamId> ordered() {
    std::vector<StreamId> ids;
    group().delivery_order().for_each([&](const PendingEntry* entry) { ids.push_back(entry->id); });
    return ids;
  }
  std::vector<StreamId> walked() {
    std::vector<StreamId> ids;
    stream_->for_each_pending(group(), [&](const PendingEntry& pending, const StreamEntry& entry) {
      CHECK(pending.id == entry.id());
      ids.push_back(pending.id);
      return true;
    });
    return ids;
  }

 private:
  static constexpr uint64_t kIds = 400;
  struct Record {
    std::string owner;
    int64_t time;
  };

  void add_entry() {
    const std::vector<std::string_view> fields = {"a", "1"};
    stream_->append({stream_->last_id().ms + 1, 0}, fields, {});
  }

  base::Random random_;
  std::unique_ptr<Stream> stream_ = std::make_unique<Stream>();
  std::map<StreamId, Record> pending_;
  int64_t releases_ = 0;
};

std::vector<uint64_t> order_of(StreamGroup& group) {
  std::vector<uint64_t> ids;
  group.delivery_order().for_each([&](const PendingEntry* entry) { ids.push_back(entry->id.ms); });
  return ids;
}

using Ids = std::vector<uint64_t>;

}  // namespace

TEST_CASE("The order of delivery is that of a sorted copy, whatever was changed",
          "[stream_group]") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    Changes changes(seed);
    base::Random random(seed);
    for (int round = 0; round < 60; ++round) {
      for (uint64_t left = random.below(60); left > 0; --left) changes.make_one();
      // What was passed over is not in the order, and what was changed since is.
      const std::vector<StreamId> ordered = changes.ordered();
      std::vector<StreamId> all = changes.expected(/*with_deleted=*/true);
      std::erase_if(all, [&](StreamId id) {
        return std::find(ordered.begin(), ordered.end(), id) == ordered.end();
      });
      REQUIRE(ordered == all);
      REQUIRE(ordered.size() <= changes.group().pending().size());
      REQUIRE(changes.group().pending().size() == changes.pending());
      REQUIRE(changes.walked() == changes.expected(/*with_deleted=*/false));
      REQUIRE(changes.ordered() == changes.expected(/*with_deleted=*/false));
    }
    changes.bring_back();
    CHECK(changes.walked() == changes.expected(/*with_deleted=*/true));
  }
}

TEST_CASE("Released entries come first, in the order of their release", "[stream_group]") {
  StreamGroup group({}, 0);
  StreamConsumer& anna = group.add_consumer("anna", 1);
  for (const uint64_t ms : {1, 2, 3, 4}) group.add_pending({ms, 0}, anna, 0, 1);
  CHECK(order_of(group) == Ids{1, 2, 3, 4});
  group.release_pending(*group.pending().find({3, 0}), 1);
  group.release_pending(*group.pending().find({2, 0}), 1);
  group.add_released({9, 0}, 0);
  CHECK(order_of(group) == Ids{3, 2, 9, 1, 4});
  group.release_pending(*group.pending().find({3, 0}), 1);
  CHECK(order_of(group) == Ids{2, 9, 3, 1, 4});
  CHECK(group.pending().find({3, 0})->delivered_ms() == 0);
  group.assign_pending(*group.pending().find({9, 0}), anna, 0);
  CHECK(order_of(group) == Ids{2, 3, 1, 4, 9});
  CHECK(StreamGroup(group).released_in_order().front()->id == StreamId{2, 0});
}

TEST_CASE("Deleted entries are passed over once, and stay pending", "[stream_group]") {
  constexpr uint64_t kEntries = 1000;
  Stream stream;
  const std::vector<std::string_view> fields = {"a", "1"};
  for (uint64_t ms = 1; ms <= kEntries; ++ms) stream.append({ms, 0}, fields, {});
  StreamGroup& group = stream.add_group("g", {}, 0);
  StreamConsumer& anna = group.add_consumer("anna", 1);
  for (uint64_t ms = 1; ms <= kEntries; ++ms) group.add_pending({ms, 0}, anna, 7, 1);
  stream.trim({.by = StreamTrim::By::kMinId, .max_length = 0, .min_id = {kEntries, 0}});

  CHECK(group.delivery_order().size() == kEntries);
  std::vector<StreamId> found;
  const auto first = [&](const PendingEntry& entry, const StreamEntry&) {
    found.push_back(entry.id);
    return false;
  };
  stream.for_each_pending(group, first);
  CHECK(found == std::vector<StreamId>{{kEntries, 0}});
  CHECK(group.delivery_order().size() == 1);
  CHECK(group.pending().size() == kEntries);

  // They are acknowledged and released as any.
  CHECK(group.erase_pending({1, 0}));
  group.release_pending(*group.pending().find({2, 0}), 1);
  CHECK(group.delivery_order().size() == 2);
  stream.for_each_pending(group, first);
  CHECK(found.back() == StreamId{kEntries, 0});
  CHECK(group.delivery_order().size() == 1);
}

TEST_CASE("Entries that are added again after a lower last id have their turn", "[stream_group]") {
  Stream stream;
  const std::vector<std::string_view> fields = {"a", "1"};
  for (uint64_t ms = 1; ms <= 3; ++ms) stream.append({ms, 0}, fields, {});
  StreamGroup& group = stream.add_group("g", {}, 0);
  StreamConsumer& anna = group.add_consumer("anna", 1);
  for (uint64_t ms = 1; ms <= 3; ++ms) group.add_pending({ms, 0}, anna, 7, 1);
  stream.trim({});
  size_t walked = 0;
  const auto count = [&](const PendingEntry&, const StreamEntry&) { return ++walked != 0; };
  stream.for_each_pending(group, count);
  CHECK(walked == 0);
  stream.set_last_id({1, 0});
  stream.append({3, 0}, fields, {});
  stream.for_each_pending(group, count);
  CHECK(walked == 1);
}

TEST_CASE("A group has an order of delivery for as long as somebody asks", "[stream_group]") {
  constexpr uint64_t kEntries = 300;
  StreamGroup group({}, 0);
  StreamGroup never_asked({}, 0);
  for (StreamGroup* each : {&group, &never_asked}) {
    StreamConsumer& anna = each->add_consumer("anna", 1);
    for (uint64_t ms = 1; ms <= kEntries; ++ms) each->add_pending({ms, 0}, anna, 5, 1);
  }
  const size_t without = never_asked.memory_usage();
  CHECK(group.memory_usage() == without);
  CHECK(group.delivery_order().size() == kEntries);
  CHECK(group.memory_usage() > without);
  CHECK(StreamGroup(group).memory_usage() == StreamGroup(never_asked).memory_usage());

  const auto change_all = [&](int64_t time) {
    StreamConsumer& anna = *group.find_consumer("anna");
    for (uint64_t ms = 1; ms <= kEntries; ++ms)
      group.assign_pending(*group.pending().find({ms, 0}), anna, time);
  };
  for (int64_t time = 0; time < 50; ++time) {
    change_all(time);
    CHECK(group.memory_usage() > without);
    CHECK(group.delivery_order().size() == kEntries);
  }
  for (int64_t time = 0; time < 50; ++time) change_all(time);
  CHECK(group.memory_usage() == without);

  // Without a pending entry there is nothing to keep.
  CHECK(group.delivery_order().size() == kEntries);
  for (StreamGroup* each : {&group, &never_asked}) CHECK(each->erase_consumer("anna") == kEntries);
  CHECK(group.memory_usage() == never_asked.memory_usage());
  CHECK(group.delivery_order().empty());
}

}  // namespace latchkey::store
