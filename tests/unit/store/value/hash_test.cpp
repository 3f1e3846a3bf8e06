#include "store/value/hash.h"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "unit/catch.h"

namespace latchkey::store {

namespace {

constexpr int64_t kNow = 1'700'000'000'000;

struct Fixture {
  // Every field goes into a table, unless `entries` says otherwise.
  explicit Fixture(size_t entries) : hash(make(environment, entries)) {}
  static Environment& make(Environment& environment, size_t entries) {
    environment.now_ms = kNow;
    environment.limits.hash_max_listpack_entries = entries;
    return environment;
  }
  void give(std::string_view field, int64_t deadline_ms) {
    hash.prepare_deadlines();
    hash.set_deadline(field, deadline_ms);
  }
  std::string fields() const {
    std::string text;
    hash.for_each([&](std::string_view field, std::string_view) { text += field; });
    return text;
  }
  std::string value(std::string_view field) const {
    char scratch[Hash::kScratch];
    return std::string(hash.get(field, scratch).value_or("none"));
  }

  Environment environment;
  Hash hash;
};

constexpr size_t kAsTable = 0;
constexpr size_t kAsListpack = 512;

}  // namespace

TEST_CASE("A hash says listpackex once it was prepared for deadlines", "[hash]") {
  Fixture small(kAsListpack);
  small.hash.set("a", "1");
  const size_t before = small.hash.memory_usage();
  CHECK(small.hash.encoding_name() == "listpack");
  small.hash.prepare_deadlines();
  CHECK(small.hash.encoding_name() == "listpackex");
  CHECK(small.hash.memory_usage() > before);
  small.give("a", kNow + 1);
  small.hash.set_deadline("a", Hash::kNoDeadline);
  CHECK(small.hash.encoding_name() == "listpackex");

  Fixture large(kAsTable);
  large.hash.set("a", "1");
  large.give("a", kNow + 1);
  CHECK(large.hash.encoding_name() == "hashtable");
}

TEST_CASE("A field past its deadline is unseen, but counted until it is removed", "[hash]") {
  for (const size_t entries : {kAsListpack, kAsTable}) {
    Fixture fixture(entries);
    Hash& hash = fixture.hash;
    for (const char* const field : {"a", "b", "c"}) hash.set(field, "1");
    fixture.give("b", kNow + 10);
    CHECK_FALSE(hash.has_due());
    CHECK(hash.living() == 3);
    fixture.environment.now_ms += 10;
    CHECK(hash.has_due());
    CHECK(hash.size() == 3);
    CHECK(hash.living() == 2);
    CHECK(fixture.value("b") == "none");
    CHECK_FALSE(hash.contains("b"));
    CHECK(hash.deadline_ms("b") == kNow + 10);
    CHECK(fixture.fields().find('b') == std::string::npos);
    CHECK_FALSE(hash.expire("a"));
    CHECK(hash.expire("b"));
    CHECK_FALSE(hash.expire("b"));
    CHECK(hash.size() == 2);
    CHECK(hash.deadline_ms("b") == std::nullopt);
    CHECK(fixture.environment.figures.expired_elements == 1);
  }
}

TEST_CASE("While writes are paused expired fields are hidden and stay", "[hash]") {
  for (const size_t entries : {kAsListpack, kAsTable}) {
    Fixture fixture(entries);
    fixture.hash.set("a", "1");
    fixture.give("a", kNow + 10);
    fixture.environment.now_ms += 10;
    fixture.environment.expired = Environment::Expired::kHide;
    CHECK(fixture.value("a") == "none");
    CHECK_FALSE(fixture.hash.expire("a"));
    CHECK(fixture.hash.expire_elements(100) == 0);
    fixture.environment.expired = Environment::Expired::kShow;
    CHECK(fixture.value("a") == "1");
    fixture.environment.expired = Environment::Expired::kRemove;
    CHECK(fixture.hash.expire_elements(100) == 1);
    CHECK(fixture.hash.size() == 0);
  }
}

TEST_CASE("Setting a field drops its deadline unless told to keep it", "[hash]") {
  for (const size_t entries : {kAsListpack, kAsTable}) {
    Fixture fixture(entries);
    Hash& hash = fixture.hash;
    hash.set("a", "1");
    fixture.give("a", kNow + 10);
    // Longer than fits where the old one was.
    const std::string longer(40, 'x');
    hash.set("a", longer, Hash::kKeepDeadline);
    CHECK(hash.deadline_ms("a") == kNow + 10);
    CHECK(hash.first_deadline_ms() == kNow + 10);
    CHECK_FALSE(hash.set("a", "2", kNow + 20));
    CHECK(hash.first_deadline_ms() == kNow + 20);
    CHECK_FALSE(hash.set("a", "3"));
    CHECK(hash.deadline_ms("a") == Hash::kNoDeadline);
    CHECK(hash.first_deadline_ms() == Hash::kNoDeadline);
    CHECK(fixture.value("a") == "3");
  }
}

TEST_CASE("A listpack keeps its fields in the order of their deadlines", "[hash]") {
  Fixture fixture(kAsListpack);
  for (const char* const field : {"a", "b", "c", "d"}) fixture.hash.set(field, field);
  fixture.give("c", kNow + 30);
  CHECK(fixture.fields() == "cabd");
  fixture.give("a", kNow + 10);
  CHECK(fixture.fields() == "acbd");
  fixture.give("b", kNow + 10);  // before its equals
  CHECK(fixture.fields() == "bacd");
  fixture.hash.set("b", "new");
  CHECK(fixture.fields() == "acdb");
  fixture.hash.set("d", "new");  // had none and has none
  CHECK(fixture.fields() == "acdb");
  fixture.hash.set("a", "new", Hash::kKeepDeadline);
  CHECK(fixture.fields() == "acdb");
}

TEST_CASE("A deadline of 0 is one of the past, and not the absence of one", "[hash]") {
  for (const size_t entries : {kAsTable, kAsListpack}) {
    Fixture one(entries);
    one.hash.prepare_deadlines();
    one.hash.set("never", "1");
    one.hash.set("set", "1", 0);
    one.hash.set("given", "1");
    one.give("given", 0);
    CHECK(one.hash.deadline_ms("set") == 1);
    CHECK(one.hash.deadline_ms("given") == 1);
    CHECK(one.hash.first_deadline_ms() == 1);
    CHECK(one.fields() == "never");
  }
}

TEST_CASE("A copy and a table made of a listpack keep the deadlines", "[hash]") {
  for (const size_t entries : {size_t{3}, kAsTable}) {
    Fixture fixture(entries);
    for (const char* const field : {"a", "b", "c"}) fixture.hash.set(field, "1");
    fixture.give("b", kNow + 10);
    const std::unique_ptr<Value> copied(fixture.hash.clone());
    fixture.hash.set("d", "1");
    CHECK(fixture.hash.is_table());
    CHECK(fixture.hash.first_deadline_ms() == kNow + 10);
    fixture.hash.erase("b");
    CHECK(fixture.hash.first_deadline_ms() == Hash::kNoDeadline);
    CHECK(copied->first_deadline_ms() == kNow + 10);
    CHECK(copied->element_deadline() != nullptr);
    CHECK(copied->element_deadline() != fixture.hash.element_deadline());
  }
}

TEST_CASE("Due fields are removed the earliest first, as many as asked", "[hash]") {
  for (const size_t entries : {kAsListpack, kAsTable}) {
    Fixture fixture(entries);
    for (int i = 0; i < 100; ++i) {
      const std::string field = std::to_string(i);
      fixture.hash.set(field, "v");
      fixture.give(field, kNow + 1 + (i * 37) % 100);
    }
    fixture.environment.now_ms += 60;
    CHECK(fixture.hash.expire_elements(25) == 25);
    CHECK(fixture.hash.first_deadline_ms() == kNow + 26);
    CHECK(fixture.hash.expire_elements(1000) == 35);
    CHECK(fixture.hash.size() == 40);
    CHECK(fixture.hash.first_deadline_ms() == kNow + 61);
    CHECK(fixture.hash.expire_elements(1000) == 0);
  }
}

TEST_CASE("Fields drawn without repetition are all equally likely", "[hash]") {
  constexpr size_t kFields = 40;
  for (const size_t entries : {kAsListpack, kAsTable}) {
    Fixture fixture(entries);
    base::Random random(1);
    for (size_t i = 0; i < kFields; ++i) fixture.hash.set("f" + std::to_string(i), "v");
    for (const size_t count : {size_t{0}, size_t{3}, size_t{30}, kFields}) {
      constexpr size_t kRounds = 4000;
      std::map<std::string, size_t> drawn;
      for (size_t round = 0; round < kRounds; ++round) {
        std::set<std::string> seen;
        fixture.hash.random_distinct(
            random, count, [&](std::string_view field, std::string_view) { seen.emplace(field); });
        REQUIRE(seen.size() == count);
        for (const std::string& field : seen) ++drawn[field];
      }
      if (count == 0) continue;
      CHECK(drawn.size() == kFields);
      // Five standard deviations and more to either side.
      const double expected = static_cast<double>(kRounds * count) / kFields;
      for (const auto& [field, times] : drawn)
        CHECK(static_cast<double>(times) == Catch::Approx(expected).margin(110));
    }
  }
}

TEST_CASE("A hash without deadlines costs nothing for them", "[hash]") {
  constexpr size_t node = sizeof(ElementDeadline) + sizeof(void*);
  CHECK(sizeof(Hash) <= 32);
  Fixture fixture(kAsTable);
  for (int i = 0; i < 1000; ++i) fixture.hash.set("field:" + std::to_string(1000 + i), "12345678");
  const size_t before = fixture.hash.memory_usage();
  fixture.hash.prepare_deadlines();
  CHECK(fixture.hash.memory_usage() == before + node);
  for (int i = 0; i < 1000; ++i)
    fixture.hash.set_deadline("field:" + std::to_string(1000 + i), kNow + i);
  // 16 bytes an item in the heap, which has grown to a power of two, and 4 in the item, which its
  // allocation has no room for.
  CHECK(fixture.hash.memory_usage() == before + node + 1000 * 8 + 1024 * 16);
}

TEST_CASE("Long fields and values in a table stay whole", "[hash]") {
  Fixture fixture(kAsTable);
  Hash& hash = fixture.hash;
  for (const size_t field_size : {16'383, 16'384, 70'000}) {
    const std::string field(field_size, 'f');
    for (const size_t value_size : {0, 65'535, 65'536, 65'540, 3}) {
      const std::string value(value_size, 'v');
      hash.set(field, value);
      CHECK(fixture.value(field) == value);
      fixture.give(field, kNow + 5);
      CHECK(fixture.value(field) == value);
      CHECK(hash.deadline_ms(field) == kNow + 5);
      CHECK(hash.first_deadline_ms() == kNow + 5);
    }
    CHECK(hash.erase(field));
  }
  CHECK(hash.size() == 0);
}

}  // namespace latchkey::store
