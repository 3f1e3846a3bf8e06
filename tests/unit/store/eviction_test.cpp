#include "store/eviction.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "store/keyspace.h"
#include "store/undo_log.h"
#include "unit/catch.h"

using namespace latchkey::store;

namespace {

struct Databases {
  Databases() {
    // Which keys are sampled hangs on where they lie.
    environment.secret = latchkey::base::HashSecret(1);
    environment.now_ms = 1'700'000'000'000;
    for (int i = 0; i < 2; ++i) list.push_back(std::make_unique<Keyspace>(i, environment));
  }
  void add(int database, const std::string& key, int64_t deadline_ms = Keyspace::kNoDeadline) {
    KeyRef ref = list[static_cast<size_t>(database)]->find_for_write(key);
    list[static_cast<size_t>(database)]->set_string(ref, "value", deadline_ms);
  }
  bool evict(EvictionOrder order, bool volatile_only, size_t samples = 5) {
    auto victim = evictor.choose(list, order, volatile_only, samples);
    if (victim.keyspace == nullptr) return false;
    last = victim.key;
    KeyRef ref = victim.keyspace->find(victim.key, Keyspace::kPeek);
    REQUIRE(ref);
    victim.keyspace->erase(ref, false);
    return true;
  }

  Environment environment;
  std::vector<std::unique_ptr<Keyspace>> list;
  Evictor evictor;
  std::string last;
};

}  // namespace

TEST_CASE("nothing is evicted from empty databases") {
  Databases databases;
  CHECK_FALSE(databases.evict(EvictionOrder::kIdlest, false));
  CHECK_FALSE(databases.evict(EvictionOrder::kRandom, true));
}

TEST_CASE("only keys with a deadline are evicted when the policy says so") {
  for (const auto order : {EvictionOrder::kIdlest, EvictionOrder::kLeastFrequent,
                           EvictionOrder::kNearestDeadline, EvictionOrder::kRandom}) {
    Databases databases;
    for (int i = 0; i < 100; ++i) {
      databases.add(i % 2, "kept" + std::to_string(i));
      databases.add(i % 2, "volatile" + std::to_string(i), databases.environment.now_ms + 1000 + i);
    }
    for (int i = 0; i < 100; ++i) {
      REQUIRE(databases.evict(order, true));
      REQUIRE(databases.last.starts_with("volatile"));
    }
    CHECK_FALSE(databases.evict(order, true));
    CHECK(databases.list[0]->size() + databases.list[1]->size() == 100);
  }
}

TEST_CASE("a visible key with a deadline is found among thousands that are hidden") {
  // "{06S}" is in slot 0, which is hidden; "{Qi}" in slot 1.
  const auto hidden = std::make_shared<HiddenSlots>();
  for (const auto order : {EvictionOrder::kIdlest, EvictionOrder::kLeastFrequent,
                           EvictionOrder::kNearestDeadline, EvictionOrder::kRandom}) {
    Databases databases;
    for (const auto& database : databases.list) database->index_slots(hidden);
    const int64_t deadline_ms = databases.environment.now_ms + 1'000'000;
    for (int i = 0; i < 5000; ++i) databases.add(0, "{06S}" + std::to_string(i), deadline_ms);
    databases.add(0, "{Qi}without deadline");
    hidden->set_importing(0, true);
    hidden->update();
    CHECK_FALSE(databases.evict(order, true));
    for (int i = 0; i < 3; ++i) databases.add(0, "{Qi}" + std::to_string(i), deadline_ms);
    for (int i = 0; i < 3; ++i) {
      REQUIRE(databases.evict(order, true));
      CHECK(databases.last.starts_with("{Qi}"));
    }
    CHECK_FALSE(databases.evict(order, true));
    CHECK(databases.list[0]->size() == 5001);
    hidden->set_importing(0, false);
    hidden->update();
  }
}

TEST_CASE("every key can be evicted, from all databases") {
  for (const auto order :
       {EvictionOrder::kIdlest, EvictionOrder::kLeastFrequent, EvictionOrder::kRandom}) {
    Databases databases;
    for (int i = 0; i < 100; ++i) databases.add(i % 2, "key" + std::to_string(i));
    for (int i = 0; i < 100; ++i) REQUIRE(databases.evict(order, false));
    CHECK_FALSE(databases.evict(order, false));
  }
}

TEST_CASE("idle keys go before keys in use") {
  Databases databases;
  databases.environment.access_clock = 1000;
  for (int i = 0; i < 1000; ++i) databases.add(0, "old" + std::to_string(i));
  databases.environment.access_clock = 2000;
  for (int i = 0; i < 1000; ++i) databases.add(0, "new" + std::to_string(i));
  int wrong = 0;
  for (int i = 0; i < 900; ++i) {
    REQUIRE(databases.evict(EvictionOrder::kIdlest, false));
    if (databases.last.starts_with("new")) ++wrong;
  }
  CHECK(wrong < 20);
}

TEST_CASE("of keys with deadlines those that end soon go first") {
  Databases databases;
  for (int i = 0; i < 1000; ++i) {
    databases.add(0, "soon" + std::to_string(i), databases.environment.now_ms + 10'000 + i);
    databases.add(0, "late" + std::to_string(i), databases.environment.now_ms + 10'000'000 + i);
  }
  int wrong = 0;
  for (int i = 0; i < 800; ++i) {
    REQUIRE(databases.evict(EvictionOrder::kNearestDeadline, true));
    if (databases.last.starts_with("late")) ++wrong;
  }
  CHECK(wrong < 100);
}

TEST_CASE("a candidate that has gone or lost its deadline meanwhile is not chosen") {
  Databases databases;
  for (int i = 0; i < 10; ++i)
    databases.add(0, "key" + std::to_string(i), databases.environment.now_ms + 1000);
  REQUIRE(databases.evict(EvictionOrder::kIdlest, true));
  for (int i = 0; i < 10; ++i) {
    KeyRef ref = databases.list[0]->find_for_write("key" + std::to_string(i));
    if (ref && i % 2 == 0) databases.list[0]->set_deadline(ref, Keyspace::kNoDeadline);
    if (ref && i % 2 == 1) databases.list[0]->erase(ref, false);
  }
  CHECK_FALSE(databases.evict(EvictionOrder::kIdlest, true));
}

TEST_CASE("beside a checkpoint the one key that may be evicted is found among thousands") {
  for (const auto order : {EvictionOrder::kIdlest, EvictionOrder::kLeastFrequent,
                           EvictionOrder::kNearestDeadline, EvictionOrder::kRandom}) {
    Databases databases;
    const int64_t deadline_ms = databases.environment.now_ms + 1'000'000;
    for (int i = 0; i < 6000; ++i) databases.add(0, "key" + std::to_string(i), deadline_ms);
    Keyspace& keyspace = *databases.list[0];
    UndoLog log(databases.environment, 0, nullptr);
    keyspace.set_undo_log(&log);
    CHECK_FALSE(databases.evict(order, true));
    // Half of the keys have gone since, and the others must be kept.
    for (int i = 0; i < 3000; ++i) {
      KeyRef ref = keyspace.find_to_replace("key" + std::to_string(i));
      keyspace.erase(ref);
    }
    CHECK_FALSE(databases.evict(order, true));
    for (int i = 0; i < 3; ++i) {
      databases.add(0, "made", deadline_ms);
      REQUIRE(databases.evict(order, true));
      CHECK(databases.last == "made");
      CHECK_FALSE(databases.evict(order, true));
    }
    databases.add(0, "without deadline");
    CHECK_FALSE(databases.evict(order, true));
    REQUIRE(databases.evict(order, false));
    CHECK(databases.last == "without deadline");
    // One that had gone is there again.
    databases.add(0, "key7", deadline_ms);
    REQUIRE(databases.evict(order, true));
    CHECK(databases.last == "key7");
    CHECK(keyspace.size() == 3000);
    keyspace.set_undo_log(nullptr);
  }
}

TEST_CASE("beside a checkpoint each key that may be evicted is as likely as another") {
  Databases databases;
  Keyspace& keyspace = *databases.list[0];
  for (int i = 0; i < 100; ++i) databases.add(0, "kept" + std::to_string(i));
  UndoLog log(databases.environment, 0, nullptr);
  keyspace.set_undo_log(&log);
  for (int i = 0; i < 10; ++i) databases.add(0, "made" + std::to_string(i));
  std::map<std::string, int> chosen;
  for (int i = 0; i < 1000; ++i) ++chosen[std::string(keyspace.random_unkept_entry(false)->key())];
  CHECK(chosen.size() == 10);
  for (const auto& [key, count] : chosen) {
    INFO(key);
    CHECK(count > 50);
    CHECK(count < 200);
  }
  keyspace.set_undo_log(nullptr);
}

TEST_CASE("of a key that was made and removed since a checkpoint nothing is kept") {
  Databases databases;
  Keyspace& keyspace = *databases.list[0];
  UndoLog log(databases.environment, 0, nullptr);
  keyspace.set_undo_log(&log);
  const size_t bytes = log.memory_usage();
  databases.add(0, "erased");
  databases.add(0, "expired", databases.environment.now_ms + 10);
  databases.add(0, "detached");
  CHECK(log.keys() == 3);
  KeyRef ref = keyspace.find_to_replace("erased");
  keyspace.erase(ref);
  databases.environment.now_ms += 10;
  CHECK_FALSE(keyspace.exists("expired"));
  ref = keyspace.find_to_replace("detached");
  keyspace.detach(ref);
  CHECK(log.keys() == 0);
  CHECK(log.memory_usage() == bytes);
  keyspace.set_undo_log(nullptr);
}

TEST_CASE("keys that were used before the clock went back count as just used") {
  Databases databases;
  databases.environment.access_clock = 10'000;
  for (int i = 0; i < 100; ++i) databases.add(0, "used last" + std::to_string(i));
  databases.environment.access_clock = 4000;
  for (int i = 0; i < 100; ++i) databases.add(0, "used before" + std::to_string(i));
  databases.environment.access_clock = 5000;
  CHECK(idle_seconds(databases.environment, 10'000) == 0);
  CHECK(idle_seconds(databases.environment, 4000) == 1000);
  for (int i = 0; i < 80; ++i) {
    REQUIRE(databases.evict(EvictionOrder::kIdlest, false, 20));
    CHECK(databases.last.starts_with("used before"));
  }
}
