#include "store/keyspace.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/text/number.h"
#include "unit/catch.h"

namespace latchkey::store {

namespace {

constexpr int64_t kNow = 1'700'000'000'000;
constexpr size_t kUnlimited = std::numeric_limits<size_t>::max();

// Counts the values alive, and tells which thread freed the last one.
struct Census {
  std::atomic<int> alive{0};
  std::thread::id freed_by;
};

class Crowd : public Value {
 public:
  Crowd(Census& census, size_t members) : census_(census), members_(members) { ++census_.alive; }
  ~Crowd() override {
    census_.freed_by = std::this_thread::get_id();
    --census_.alive;
  }
  std::string_view encoding_name() const override { return "crowd"; }
  size_t free_effort() const override { return members_; }
  size_t element_count() const override { return members_; }
  size_t memory_usage() const override { return members_ * 10; }
  Value* clone() const override { return new Crowd(census_, members_); }
  size_t members() const { return members_; }

 private:
  Census& census_;
  size_t members_;
};

struct Expiries : ExpiryObserver {
  void key_expiring(Keyspace& keyspace, std::string_view key) override {
    keys.push_back(std::to_string(keyspace.index()) + ":" + std::string(key));
  }
  std::vector<std::string> keys;
  void elements_expired(Keyspace&, std::string_view, std::span<const std::string>, bool) override {}
};

struct Database {
  Database() {
    environment.secret = base::HashSecret(1);
    environment.now_ms = kNow;
    environment.expiry_observer = &expiries;
  }

  void set(std::string_view key, std::string_view value,
           int64_t deadline_ms = Keyspace::kNoDeadline) {
    KeyRef ref = keys.find_for_write(key);
    keys.set_string(ref, value, deadline_ms);
    CHECK(ref);
    CHECK(ref.key() == key);
  }
  std::optional<std::string> get(std::string_view key) { return get_from(keys, key); }
  static std::optional<std::string> get_from(Keyspace& from, std::string_view key) {
    KeyRef ref = from.find(key);
    if (!ref) return std::nullopt;
    char scratch[base::kMaxInt64Text];
    return std::string(ref->string(scratch));
  }
  void set_crowd(std::string_view key, size_t members,
                 int64_t deadline_ms = Keyspace::kNoDeadline) {
    KeyRef ref = keys.find_for_write(key);
    keys.set_value(ref, Type::kSet, std::make_unique<Crowd>(census, members), deadline_ms);
  }
  bool erase(std::string_view key, bool lazily = true) {
    KeyRef ref = keys.find_for_write(key);
    if (!ref) return false;
    keys.erase(ref, lazily);
    CHECK_FALSE(ref);
    return true;
  }
  std::string append(std::string_view key, std::string_view tail) {
    KeyRef ref = keys.find_for_write(key);
    const size_t before = ref ? ref->string_size() : 0;
    const std::span<char> bytes = keys.extend_string(ref, before + tail.size());
    std::copy(tail.begin(), tail.end(), bytes.begin() + static_cast<ptrdiff_t>(before));
    return *get(key);
  }

  Census census;
  Environment environment;
  Expiries expiries;
  Keyspace keys{0, environment};
  Keyspace other{1, environment};
};

const std::string kLongKey(70'000, 'k');
const std::string kLongValue(1'000, 'v');

}  // namespace

TEST_CASE("Strings of every form come back as they were set", "[keyspace]") {
  Database database;
  const std::string values[] = {"",
                                "a",
                                "0",
                                "-1",
                                "007",
                                "9223372036854775807",
                                "-9223372036854775808",
                                "9223372036854775808",
                                std::string(255, 'x'),
                                std::string(256, 'x'),
                                std::string(100'000, 'y'),
                                std::string("\0\r\n\xff", 4)};
  const std::string names[] = {"k",
                               "",
                               std::string(65'535, 'a'),
                               std::string(65'536, 'b'),
                               kLongKey,
                               std::string("bin\0ary", 7)};
  for (const std::string& key : names) {
    for (const std::string& before : values) {
      for (const std::string& after : values) {
        database.set(key, before);
        REQUIRE(database.get(key) == before);
        database.set(key, after, kNow + 1'000);
        REQUIRE(database.get(key) == after);
        REQUIRE(database.keys.find(key)->deadline_ms() == kNow + 1'000);
        REQUIRE(database.keys.find(key)->key() == key);
        database.set(key, before, Keyspace::kKeepDeadline);
        REQUIRE(database.get(key) == before);
        REQUIRE(database.keys.volatile_size() == 1);
        database.set(key, after);
        REQUIRE(database.get(key) == after);
        REQUIRE(database.keys.volatile_size() == 0);
      }
    }
    CHECK(database.keys.size() == 1);
    CHECK(database.erase(key));
    CHECK(database.keys.empty());
  }
}

TEST_CASE("A view without bytes is an empty string", "[keyspace]") {
  Database database;
  database.set(std::string_view(), std::string_view());
  CHECK(database.get("") == "");
  database.set(std::string_view(), std::string_view());
  CHECK(database.append("", std::string_view()).empty());
}

TEST_CASE("The encoding is named as the reference names it", "[keyspace]") {
  Database database;
  const auto encoding = [&](std::string_view key) {
    return database.keys.find(key)->encoding_name();
  };
  database.set("a", "12345");
  CHECK(encoding("a") == "int");
  CHECK(database.keys.find("a")->integer() == 12'345);
  database.set("a", "-0");
  CHECK(encoding("a") == "embstr");
  database.set("a", std::string(44, 'x'));
  CHECK(encoding("a") == "embstr");
  database.set("a", std::string(45, 'x'));
  CHECK(encoding("a") == "raw");
  database.set("a", kLongValue);
  CHECK(encoding("a") == "raw");
  database.set("b", "short");
  database.append("b", "");
  CHECK(encoding("b") == "raw");
  database.set("b", "fresh");
  CHECK(encoding("b") == "embstr");
  database.set("c", "12");
  CHECK(database.append("c", "3") == "123");
  CHECK(encoding("c") == "raw");
  database.set_crowd("d", 1);
  CHECK(encoding("d") == "crowd");
  CHECK(database.keys.find("d")->type() == Type::kSet);
  CHECK(type_name(database.keys.find("a")->type()) == "string");
  CHECK(type_name(database.keys.find("d")->type()) == "set");
}

TEST_CASE("Setting an integer keeps the deadline unless told otherwise", "[keyspace]") {
  Database database;
  database.set("n", "1", kNow + 5'000);
  KeyRef ref = database.keys.find_for_write("n");
  database.keys.set_integer(ref, 2);
  CHECK(ref->deadline_ms() == kNow + 5'000);
  database.keys.set_integer(ref, std::numeric_limits<int64_t>::min(), Keyspace::kNoDeadline);
  CHECK_FALSE(ref->has_deadline());
  CHECK(database.get("n") == "-9223372036854775808");
  database.set("n", "text", kNow + 7'000);
  ref = database.keys.find_for_write("n");
  database.keys.set_integer(ref, 3);
  CHECK(ref->deadline_ms() == kNow + 7'000);
  CHECK(ref->string_size() == 1);
}

TEST_CASE("A value may be set from a part of the old one", "[keyspace]") {
  Database database;
  for (const size_t size : {10, 100, 250, 1'000}) {
    for (const size_t kept : {3, 9, 200, 700}) {
      if (kept >= size) continue;
      std::string value;
      for (size_t i = 0; i < size; ++i) value += static_cast<char>('a' + i % 26);
      database.set("k", value);
      KeyRef ref = database.keys.find_for_write("k");
      database.keys.set_string(ref, ref->text().substr(size - kept));
      CHECK(database.get("k") == value.substr(size - kept));
    }
  }
}

TEST_CASE("Deadlines are set, moved and cleared on every form", "[keyspace]") {
  Database database;
  database.set("inline", "text");
  database.set("integer", "12");
  database.set("blob", kLongValue);
  database.set(kLongKey, "long");
  database.set_crowd("crowd", 3);
  for (const std::string_view key :
       {std::string_view("inline"), std::string_view("integer"), std::string_view("blob"),
        std::string_view(kLongKey), std::string_view("crowd")}) {
    KeyRef ref = database.keys.find_for_write(key);
    database.keys.set_deadline(ref, Keyspace::kNoDeadline);
    CHECK(ref->deadline_ms() == -1);
    for (const int64_t deadline_ms :
         {kNow + 10, kNow + 100'000, kNow + 10, std::numeric_limits<int64_t>::max()}) {
      database.keys.set_deadline(ref, deadline_ms);
      CHECK(ref->deadline_ms() == deadline_ms);
      CHECK(database.keys.volatile_size() == 1);
    }
    database.keys.set_deadline(ref, Keyspace::kNoDeadline);
    CHECK_FALSE(ref->has_deadline());
    CHECK(database.keys.volatile_size() == 0);
    CHECK(ref.key() == key);
    CHECK(database.keys.find(key)->key() == key);
  }
  CHECK(database.get("inline") == "text");
  CHECK(database.get("integer") == "12");
  CHECK(database.get("blob") == kLongValue);
  CHECK(database.get(kLongKey) == "long");
  CHECK(static_cast<Crowd*>(database.keys.find("crowd")->value())->members() == 3);
}

TEST_CASE("A key past its deadline is gone for whoever looks", "[keyspace]") {
  Database database;
  database.set("k", "v", kNow + 1'000);
  database.environment.now_ms = kNow + 999;
  CHECK(database.get("k") == "v");
  database.environment.now_ms = kNow + 1'000;
  CHECK(database.keys.size() == 1);
  CHECK(database.get("k") == std::nullopt);
  CHECK(database.keys.empty());
  CHECK(database.keys.volatile_size() == 0);
  CHECK(database.expiries.keys == std::vector<std::string>{"0:k"});
  CHECK(database.environment.figures.expired_keys == 1);
  CHECK(database.environment.figures.hits == 1);
  CHECK(database.environment.figures.misses == 1);
}

TEST_CASE("Keys nobody looks for go within two ticks of their deadline", "[keyspace]") {
  Database database;
  for (int i = 0; i < 1'000; ++i) database.set("k" + std::to_string(i), "v", kNow + i * 10);
  for (int elapsed_ms = 0; elapsed_ms < 10'100; elapsed_ms += 50) {
    database.environment.now_ms = kNow + elapsed_ms;
    REQUIRE(database.keys.expire_due(kUnlimited));
    const int due = std::clamp((elapsed_ms - 32) / 10, 0, 1'000);
    REQUIRE(database.environment.figures.expired_keys >= static_cast<uint64_t>(due));
    REQUIRE(database.environment.figures.expired_keys <=
            static_cast<uint64_t>(elapsed_ms / 10 + 1));
  }
  CHECK(database.keys.empty());
  CHECK(database.expiries.keys.size() == 1'000);
}

TEST_CASE("A budget bounds the work of active expiry", "[keyspace]") {
  Database database;
  for (int i = 0; i < 500; ++i) database.set("k" + std::to_string(i), "v", kNow + 10);
  database.environment.now_ms = kNow + 1'000;
  CHECK_FALSE(database.keys.expire_due(100));
  CHECK(database.keys.size() >= 400);
  while (!database.keys.expire_due(100)) continue;
  CHECK(database.keys.empty());
}

TEST_CASE("Where expired keys are hidden, they are invisible but stay", "[keyspace]") {
  Database database;
  database.set("k", "v", kNow + 10);
  database.environment.now_ms = kNow + 20;
  database.environment.expired = Environment::Expired::kHide;
  CHECK(database.get("k") == std::nullopt);
  CHECK_FALSE(database.keys.exists("k"));
  // For want of any other.
  CHECK(database.keys.random_entry() != nullptr);
  database.keys.for_each([](const Entry&) { FAIL("expired"); });
  CHECK(database.keys.expire_due(kUnlimited));
  CHECK(database.keys.size() == 1);
  CHECK(database.expiries.keys.empty());
  SECTION("a new value takes the place of a hidden one") {
    database.set("k", "new");
    CHECK(database.keys.size() == 1);
    CHECK(database.keys.volatile_size() == 0);
    CHECK(database.get("k") == "new");
    CHECK(database.expiries.keys.size() == 1);
  }
  SECTION("and go once that is over") {
    database.environment.expired = Environment::Expired::kRemove;
    CHECK(database.get("k") == std::nullopt);
    CHECK(database.keys.empty());
  }
}

TEST_CASE("Where expired keys are shown, they are as good as any", "[keyspace]") {
  Database database;
  database.environment.expired = Environment::Expired::kShow;
  database.set("k", "v", 1);
  CHECK(database.get("k") == "v");
  CHECK(database.keys.random_entry() != nullptr);
  CHECK(database.keys.expire_due(kUnlimited));
  CHECK(database.keys.size() == 1);
  database.environment.expired = Environment::Expired::kRemove;
  CHECK(database.keys.expire_due(kUnlimited));
  CHECK(database.keys.empty());
}

TEST_CASE("Extending keeps what is there and adds zeros", "[keyspace]") {
  Database database;
  const std::string starts[] = {"", "12", "text", std::string(250, 'i'), kLongValue};
  for (const std::string& start : starts) {
    for (const size_t added : {0, 1, 5, 20, 300, 70'000}) {
      database.set("k", start, kNow + 1'000);
      KeyRef ref = database.keys.find_for_write("k");
      const std::span<char> bytes = database.keys.extend_string(ref, start.size() + added);
      CHECK(std::string(bytes.begin(), bytes.end()) == start + std::string(added, '\0'));
      std::fill(bytes.begin(), bytes.end(), 'z');
      CHECK(database.get("k") == std::string(start.size() + added, 'z'));
      CHECK(ref->deadline_ms() == kNow + 1'000);
      CHECK(ref->encoding_name() == "raw");
    }
  }
  CHECK(database.append("new", "abc") == "abc");
}

// A replica shows its master's keys until the master deletes them.
TEST_CASE("A deadline at the very beginning of time is a deadline like any other", "[keyspace]") {
  Database database;
  database.environment.expired = Environment::Expired::kShow;
  const auto deadline_of = [&](std::string_view key) {
    const KeyRef ref = database.keys.find(key, Keyspace::kPeek);
    REQUIRE(ref);
    return ref->has_deadline() ? std::optional(ref->deadline_ms()) : std::nullopt;
  };
  for (const std::string& start : {std::string("text"), std::string("12"), kLongValue}) {
    for (const size_t added : {0, 1, 300}) {
      database.set("k", start, 0);
      CHECK(deadline_of("k") == 0);
      KeyRef ref = database.keys.find_for_write("k");
      database.keys.extend_string(ref, start.size() + added);
      CHECK(deadline_of("k") == 0);
    }
    database.set("k", start);
    CHECK(deadline_of("k") == std::nullopt);
    KeyRef ref = database.keys.find_for_write("k");
    database.keys.set_deadline(ref, 0);
    CHECK(deadline_of("k") == 0);
    database.keys.set_deadline(ref, Keyspace::kNoDeadline);
    CHECK(deadline_of("k") == std::nullopt);
  }
  KeyRef ref = database.keys.find_for_write("n");
  database.keys.set_integer(ref, 1, 0);
  CHECK(deadline_of("n") == 0);
  database.keys.set_integer(ref, 2, Keyspace::kKeepDeadline);
  CHECK(deadline_of("n") == 0);
  database.set_crowd("crowd", 3, 0);
  CHECK(deadline_of("crowd") == 0);
  database.environment.expired = Environment::Expired::kRemove;
  for (const std::string_view key : {"n", "crowd"}) CHECK_FALSE(database.keys.find(key));
}

TEST_CASE("A string grows by a byte at a time as by any other way", "[keyspace]") {
  Database database;
  std::string expected;
  for (int i = 0; i < 2'000; ++i) {
    const std::string tail(1, static_cast<char>('a' + i % 26));
    expected += tail;
    REQUIRE(database.append("k", tail) == expected);
  }
}

TEST_CASE("A string has room to grow when it has grown, not when it is made", "[keyspace]") {
  constexpr size_t kSize = 100'000;
  Database database;
  KeyRef ref = database.keys.find_for_write("k");
  const std::span<char> bytes = database.keys.extend_string(ref, kSize);
  CHECK(std::string(bytes.begin(), bytes.end()) == std::string(kSize, '\0'));
  CHECK(database.keys.find("k")->blob()->capacity() == kSize);
  database.append("k", "x");
  CHECK(database.keys.find("k")->blob()->capacity() == 2 * (kSize + 1));
}

TEST_CASE("A value that someone else still reads is not changed in place", "[keyspace]") {
  Database database;
  database.set("k", kLongValue);
  const base::BlobRef reader(database.keys.find("k")->blob());
  CHECK(database.append("k", "tail") == kLongValue + "tail");
  CHECK(reader.view() == kLongValue);
  const base::BlobRef second(database.keys.find("k")->blob());
  database.set("k", std::string(5'000, 'n'));
  CHECK(second.view() == kLongValue + "tail");
  database.erase("k");
  CHECK(second.view() == kLongValue + "tail");
}

TEST_CASE("Moving an entry to another key or database keeps value and deadline", "[keyspace]") {
  Database database;
  const std::string values[] = {"text", "12", kLongValue};
  for (const std::string& value : values) {
    for (const std::string_view target :
         {std::string_view("source"), std::string_view("t"), std::string_view(kLongKey)}) {
      for (const int64_t deadline_ms : {Keyspace::kNoDeadline, kNow + 1'000}) {
        database.set("source", value, deadline_ms);
        KeyRef source = database.keys.find_for_write("source");
        DetachedEntry moving = database.keys.detach(source);
        CHECK_FALSE(source);
        CHECK(database.keys.empty());
        CHECK(database.keys.volatile_size() == 0);
        CHECK(moving.deadline_ms() == deadline_ms);
        KeyRef there = database.other.find_for_write(target);
        database.other.attach(there, std::move(moving));
        CHECK(there->key() == target);
        CHECK(there->deadline_ms() == deadline_ms);
        CHECK(database.other.volatile_size() == (deadline_ms >= 0 ? 1 : 0));
        CHECK(Database::get_from(database.other, target) == value);
        database.other.erase(there);
      }
    }
  }
}

TEST_CASE("A copy is independent of its original", "[keyspace]") {
  Database database;
  database.set("blob", kLongValue, kNow + 1'000);
  database.set("inline", "text");
  database.set_crowd("crowd", 5);
  for (const std::string_view key : {"blob", "inline", "crowd"}) {
    KeyRef from = database.keys.find(key);
    KeyRef to = database.other.find_for_write(key);
    database.other.attach(to, database.keys.copy(from));
    CHECK(to->deadline_ms() == from->deadline_ms());
  }
  CHECK(database.census.alive == 2);
  database.append("blob", "!");
  database.append("inline", "!");
  database.erase("crowd");
  CHECK(Database::get_from(database.other, "blob") == kLongValue);
  CHECK(Database::get_from(database.other, "inline") == "text");
  CHECK(database.census.alive == 1);
}

TEST_CASE("A detached entry that goes nowhere is freed", "[keyspace]") {
  Database database;
  database.set_crowd("crowd", 5, kNow + 1'000);
  {
    KeyRef ref = database.keys.find_for_write("crowd");
    DetachedEntry detached = database.keys.detach(ref);
    CHECK(database.census.alive == 1);
    detached = DetachedEntry();
  }
  CHECK(database.census.alive == 0);
}

TEST_CASE("Swapped databases exchange keys and deadlines, not numbers", "[keyspace]") {
  Database database;
  database.set("k", "v", kNow + 10);
  database.keys.swap(database.other);
  CHECK(database.keys.empty());
  CHECK(database.keys.volatile_size() == 0);
  CHECK(database.other.volatile_size() == 1);
  CHECK(database.other.index() == 1);
  database.environment.now_ms = kNow + 100;
  CHECK(database.other.expire_due(kUnlimited));
  CHECK(database.expiries.keys == std::vector<std::string>{"1:k"});
}

TEST_CASE("Large values are freed on another thread, small ones here", "[keyspace]") {
  Database database;
  const auto here = std::this_thread::get_id();
  database.set_crowd("small", 10);
  database.erase("small");
  CHECK(database.census.alive == 0);
  CHECK(database.census.freed_by == here);
  const auto freed_elsewhere = [&] {
    database.environment.reclaimer.drain();
    CHECK(database.census.alive == 0);
    CHECK(database.census.freed_by != here);
  };
  database.set_crowd("large", 1'000);
  SECTION("when erased") {
    database.erase("large");
    freed_elsewhere();
  }
  SECTION("when overwritten") {
    database.set("large", "text");
    freed_elsewhere();
  }
  SECTION("when expired") {
    KeyRef ref = database.keys.find_for_write("large");
    database.keys.set_deadline(ref, kNow);
    database.environment.now_ms = kNow + 32;
    CHECK(database.keys.expire_due(kUnlimited));
    CHECK(database.keys.empty());
    freed_elsewhere();
  }
  SECTION("when its database of few keys is cleared") {
    database.keys.clear(true);
    CHECK(database.keys.empty());
    freed_elsewhere();
  }
  SECTION("but here when that was asked for") {
    database.erase("large", false);
    CHECK(database.census.alive == 0);
    CHECK(database.census.freed_by == here);
  }
  SECTION("or there when the server would stop for it, which the figures do not tell") {
    database.set_crowd("huge", 10'000);
    database.erase("large", false);
    database.environment.reclaimer.reset_freed();
    database.erase("huge", false);
    freed_elsewhere();
    CHECK(database.environment.reclaimer.freed_objects() == 0);
  }
}

TEST_CASE("Clearing forgets all keys at once and frees them here or elsewhere", "[keyspace]") {
  for (const bool lazily : {false, true}) {
    Database database;
    for (int i = 0; i < 1'000; ++i) {
      database.set("k" + std::to_string(i), i % 2 == 0 ? "short" : kLongValue,
                   i % 3 == 0 ? kNow + i : Keyspace::kNoDeadline);
    }
    database.set_crowd("crowd", 10, kNow + 5);
    database.keys.clear(lazily);
    CHECK(database.keys.empty());
    CHECK(database.keys.volatile_size() == 0);
    database.set("k1", "again", kNow + 10);
    CHECK(database.get("k1") == "again");
    database.environment.reclaimer.drain();
    CHECK(database.census.alive == 0);
    CHECK(database.environment.reclaimer.freed_objects() == (lazily ? 1'001 : 0));
    database.environment.now_ms = kNow + 10'000;
    CHECK(database.keys.expire_due(kUnlimited));
    CHECK(database.environment.figures.expired_keys == 1);
  }
}

TEST_CASE("Under LRU, what is used takes the clock, unless asked not to", "[keyspace]") {
  Database database;
  database.environment.access_clock = 100;
  database.set("k", "v");
  CHECK(database.keys.find("k", Keyspace::kPeek)->access() == 100);
  database.environment.access_clock = Entry::kMaxAccess;
  CHECK(database.keys.find("k", Keyspace::kNoTouch)->access() == 100);
  database.environment.freeze_access = true;
  CHECK(database.keys.find("k")->access() == 100);
  database.environment.freeze_access = false;
  CHECK(database.keys.find("k")->access() == Entry::kMaxAccess);
  CHECK(database.get("k") == "v");
  KeyRef ref = database.keys.find("k");
  database.keys.set_access(ref, 7);
  CHECK(ref->access() == 7);
  database.keys.set_deadline(ref, kNow + 1'000);
  CHECK(ref->access() == 7);
  CHECK(ref->text() == "v");
}

TEST_CASE("Under LFU, an entry is counted as it is used and forgets with time", "[keyspace]") {
  Database database;
  database.environment.use_lfu = true;
  const auto frequency = [&](std::string_view key) {
    return lfu_counter(database.environment, database.keys.find(key, Keyspace::kPeek)->access());
  };
  database.set("k", "v");
  CHECK(frequency("k") == 5);
  for (int i = 0; i < 1'000; ++i) database.keys.find("k");
  const uint8_t used = frequency("k");
  CHECK(used > 8);
  CHECK(used < 40);
  SECTION("a new value of any form keeps the count") {
    for (const std::string& value :
         {std::string("w"), std::string("12"), std::string("13"), kLongValue, kLongValue + "2"}) {
      database.set("k", value);
      CHECK(frequency("k") >= used);
    }
  }
  SECTION("another key starts anew") {
    KeyRef ref = database.keys.find_for_write("k");
    DetachedEntry moving = database.keys.detach(ref);
    KeyRef to = database.keys.find_for_write("j");
    database.keys.attach(to, std::move(moving));
    CHECK(frequency("j") == 5);
  }
  SECTION("a minute costs one") {
    database.environment.now_ms += 3 * 60'000;
    CHECK(frequency("k") == used - 3);
    database.environment.now_ms += 300 * 60'000;
    CHECK(frequency("k") == 0);
  }
  SECTION("the counter ends at 255") {
    database.environment.lfu_log_factor = 0;
    for (int i = 0; i < 300; ++i) database.keys.find("k");
    CHECK(frequency("k") == 255);
  }
}

TEST_CASE("A random entry is one of those that live", "[keyspace]") {
  Database database;
  CHECK(database.keys.random_entry() == nullptr);
  for (int i = 0; i < 1'000; ++i) database.set("dead" + std::to_string(i), "v", kNow + 1);
  database.set("alive", "v");
  database.environment.now_ms = kNow + 2;
  const Entry* chosen = database.keys.random_entry();
  REQUIRE(chosen != nullptr);
  CHECK(chosen->key() == "alive");
}

TEST_CASE("Scanning and walking see every key", "[keyspace]") {
  Database database;
  for (int i = 0; i < 500; ++i) database.set("k" + std::to_string(i), "v");
  size_t walked = 0;
  database.keys.for_each([&](const Entry&) { ++walked; });
  CHECK(walked == 500);
  size_t scanned = 0;
  uint64_t cursor = 0;
  do {
    cursor = database.keys.scan(cursor, [&](const Entry&) { ++scanned; });
  } while (cursor != 0);
  CHECK(scanned == 500);
}

TEST_CASE("The mean time to live is that of the keys that have one", "[keyspace]") {
  Database database;
  CHECK(database.keys.mean_ttl_ms() == 0);
  database.set("a", "v", kNow + 1'000);
  database.set("b", "v", kNow + 3'000);
  database.set("c", "v");
  CHECK(database.keys.mean_ttl_ms() == 2'000);
  CHECK(database.keys.volatile_size() == 2);
}

TEST_CASE("A short key with a short value takes one small allocation", "[keyspace]") {
  Database database;
  database.set("key:000000000001", std::string(32, 'v'));
  CHECK(database.keys.find("key:000000000001")->memory_usage() == 56);
  database.set("key:000000000001", std::string(32, 'v'), kNow + 1'000);
  CHECK(database.keys.find("key:000000000001")->memory_usage() == 80);
}

TEST_CASE("The keyspace is a map with deadlines, whatever is done to it", "[keyspace]") {
  struct Model {
    std::string value;
    int64_t deadline_ms = -1;
  };
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    Database database;
    base::Random random(seed);
    std::map<std::string, Model> model;
    const auto any_value = [&] {
      if (random.below(3) == 0)
        return std::to_string(static_cast<int64_t>(random.next()) >> random.below(64));
      return std::string(random.below(uint64_t{1} << random.below(11)),
                         static_cast<char>('a' + random.below(26)));
    };
    for (int step = 0; step < 8'000; ++step) {
      const std::string key =
          random.below(200) == 0 ? kLongKey : "k" + std::to_string(random.below(300));
      const auto found = model.find(key);
      switch (random.below(9)) {
        case 0:
        case 1: {
          const std::string value = any_value();
          const int64_t deadlines[] = {
              Keyspace::kNoDeadline, Keyspace::kKeepDeadline,
              database.environment.now_ms + static_cast<int64_t>(1 + random.below(100'000))};
          const int64_t deadline_ms = deadlines[random.below(3)];
          database.set(key, value, deadline_ms);
          Model& entry = model[key];
          entry.value = value;
          if (deadline_ms != Keyspace::kKeepDeadline) entry.deadline_ms = deadline_ms;
          break;
        }
        case 2: {
          REQUIRE(database.erase(key) == (found != model.end()));
          model.erase(key);
          break;
        }
        case 3: {
          if (found == model.end()) break;
          KeyRef ref = database.keys.find_for_write(key);
          const int64_t deadline_ms =
              random.below(3) == 0
                  ? -1
                  : database.environment.now_ms + static_cast<int64_t>(1 + random.below(100'000));
          database.keys.set_deadline(ref, deadline_ms);
          found->second.deadline_ms = deadline_ms;
          break;
        }
        case 4: {
          const std::string tail = any_value();
          model[key].value += tail;
          REQUIRE(database.append(key, tail) == model[key].value);
          break;
        }
        case 5: {
          if (found == model.end()) break;
          const std::string target = "k" + std::to_string(random.below(300));
          if (target == key) break;
          database.erase(target);
          KeyRef from = database.keys.find_for_write(key);
          DetachedEntry moving = database.keys.detach(from);
          KeyRef to = database.keys.find_for_write(target);
          database.keys.attach(to, std::move(moving));
          model[target] = found->second;
          model.erase(key);
          break;
        }
        case 6: {
          database.environment.now_ms += static_cast<int64_t>(random.below(500));
          const int64_t now_ms = database.environment.now_ms;
          std::erase_if(model, [&](const auto& entry) {
            return entry.second.deadline_ms >= 0 && entry.second.deadline_ms <= now_ms;
          });
          if (random.below(2) == 0) database.keys.expire_due(random.below(50));
          break;
        }
        default: {
          REQUIRE(database.get(key) ==
                  (found == model.end() ? std::nullopt : std::optional(found->second.value)));
          if (found != model.end())
            REQUIRE(database.keys.find(key)->deadline_ms() == found->second.deadline_ms);
        }
      }
    }
    for (const auto& [key, entry] : model) REQUIRE(database.get(key) == entry.value);
    size_t living = 0;
    database.keys.for_each([&](const Entry&) { ++living; });
    CHECK(living == model.size());
  }
}

TEST_CASE("Hidden keys are not among those that are due first", "[keyspace]") {
  // "{06S}" is in slot 0, which is hidden; "{Qi}" in slot 1.
  const auto hidden = std::make_shared<HiddenSlots>();
  Database database;
  database.keys.index_slots(hidden);
  database.set("{06S}hidden", "v", kNow + 100);
  database.set("{Qi}seen", "v", kNow + 5000);
  hidden->set_importing(0, true);
  hidden->update();
  std::vector<Keyspace::Due> due;
  CHECK_FALSE(database.keys.first_due(kNow + 1000, &due));
  CHECK(database.keys.first_due(kNow + 10'000, &due));
  REQUIRE(due.size() == 1);
  CHECK(due[0].key == "{Qi}seen");
  hidden->set_importing(0, false);
  hidden->update();
  due.clear();
  CHECK(database.keys.first_due(kNow + 20'000, &due));
  CHECK(due.size() == 1);
}

}  // namespace latchkey::store
