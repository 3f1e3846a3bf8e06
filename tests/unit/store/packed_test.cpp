// Small collections in their entries.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "store/keyspace.h"
#include "store/undo_log.h"
#include "store/value/hash.h"
#include "store/value/list.h"
#include "store/value/set.h"
#include "store/value/sorted_set.h"
#include "store/value/view.h"
#include "unit/catch.h"

namespace latchkey::store {

namespace {

constexpr int64_t kNow = 1'700'000'000'000;

struct Database {
  Database() {
    environment.secret = base::HashSecret(1);
    environment.now_ms = kNow;
  }

  // A hash that HSET has made of pairs "name", "value".
  void set(std::string_view key, std::string_view field, std::string_view value) {
    KeyRef ref = keys.find_for_write(key);
    if (!ref) keys.set_value(ref, Type::kHash, std::make_unique<Hash>(environment));
    static_cast<Hash&>(*ref->value()).set(field, value);
  }
  std::string get(std::string_view key, std::string_view field) {
    const KeyRef ref = keys.find(key);
    if (!ref) return "(no key)";
    char scratch[Hash::kScratch];
    const View<Hash> hash(*ref);
    return std::string(hash->get(field, scratch).value_or("(no field)"));
  }
  bool is_packed(std::string_view key) { return keys.find(key)->is_packed(); }
  void pack() { Keyspace::pack_changed(environment); }

  Environment environment;
  Keyspace keys{0, environment};
};

}  // namespace

TEST_CASE("a small hash is packed into its entry, and read there", "[store][packed]") {
  Database database;
  database.set("key", "name", "anna");
  database.set("key", "age", "42");
  const size_t with_object = database.keys.find("key")->memory_usage();
  CHECK_FALSE(database.is_packed("key"));
  database.pack();
  REQUIRE(database.is_packed("key"));
  CHECK(database.get("key", "name") == "anna");
  CHECK(database.get("key", "age") == "42");
  CHECK(database.get("key", "size") == "(no field)");
  const KeyRef ref = database.keys.find("key");
  CHECK(ref->encoding_name() == "listpack");
  CHECK(ref->element_count() == 2);
  CHECK(ref->memory_usage() + sizeof(Hash) < with_object);
}

TEST_CASE("a packed hash gets an object when it is changed, and is packed again",
          "[store][packed]") {
  Database database;
  database.set("key", "name", "anna");
  database.pack();
  database.set("key", "name", "berta");
  CHECK_FALSE(database.is_packed("key"));
  CHECK(database.get("key", "name") == "berta");
  database.pack();
  CHECK(database.is_packed("key"));
  CHECK(database.get("key", "name") == "berta");
}

TEST_CASE("what does not fit an entry is not packed", "[store][packed]") {
  Database database;
  database.environment.limits.hash_max_listpack_value = 1000;
  const std::string longest(Entry::kMaxInlineValue - 20, 'v');
  for (const size_t more : {size_t{0}, size_t{1}, size_t{50}}) {
    const std::string key = "key" + std::to_string(more);
    database.set(key, "f", longest + std::string(more, 'v'));
    const size_t bytes = View<Hash>(*database.keys.find(key))->packed().bytes.size();
    database.pack();
    CHECK(database.is_packed(key) == (bytes <= Entry::kMaxInlineValue));
    CHECK(database.get(key, "f") == longest + std::string(more, 'v'));
  }
  CHECK(database.is_packed("key0"));
  CHECK_FALSE(database.is_packed("key50"));
}

TEST_CASE("a hash with deadlines, a table and an empty hash are not packed", "[store][packed]") {
  Database database;
  database.environment.limits.hash_max_listpack_entries = 2;
  database.set("deadlines", "f", "v");
  static_cast<Hash&>(*database.keys.find("deadlines")->value()).prepare_deadlines();
  for (const std::string_view field : {"a", "b", "c"}) database.set("table", field, "v");
  KeyRef ref = database.keys.find_for_write("empty");
  database.keys.set_value(ref, Type::kHash, std::make_unique<Hash>(database.environment));
  CHECK_FALSE(database.is_packed("empty"));
  database.pack();
  CHECK_FALSE(database.is_packed("deadlines"));
  CHECK_FALSE(database.is_packed("table"));
}

TEST_CASE("a value that is whole when it is set is packed at once", "[store][packed]") {
  Database database;
  const ValueLimits& limits = database.environment.limits;
  const auto put = [&](std::string_view key, auto value, int64_t deadline_ms) {
    KeyRef ref = database.keys.find_to_replace(key);
    database.keys.set_value(ref, decltype(value)::element_type::kType, std::move(value),
                            deadline_ms);
    CHECK(ref->is_packed());
  };
  auto list = std::make_unique<List>();
  list->push_back("a", limits);
  list->push_back("b", limits);
  put("list", std::move(list), Keyspace::kNoDeadline);
  auto integers = std::make_unique<Set>(database.environment);
  for (const std::string_view member : {"1", "-70000", "3"}) integers->add(member);
  put("integers", std::move(integers), kNow + 1000);
  auto words = std::make_unique<Set>(database.environment);
  for (const std::string_view member : {"a", "b", "3"}) words->add(member);
  put("words", std::move(words), Keyspace::kNoDeadline);
  auto scores = std::make_unique<SortedSet>(database.environment);
  scores->set("a", 1.5);
  scores->set("b", -1);
  put("scores", std::move(scores), Keyspace::kNoDeadline);

  CHECK(database.keys.find("list")->encoding_name() == "listpack");
  CHECK(database.keys.find("list")->element_count() == 2);
  CHECK(database.keys.find("integers")->encoding_name() == "intset");
  CHECK(database.keys.find("integers")->element_count() == 3);
  CHECK(database.keys.find("integers")->deadline_ms() == kNow + 1000);
  CHECK(database.keys.find("words")->encoding_name() == "listpack");
  CHECK(database.keys.find("words")->element_count() == 3);
  CHECK(database.keys.find("scores")->element_count() == 2);
  const View<Set> set(*database.keys.find("integers"));
  CHECK(set->contains("-70000"));
  CHECK_FALSE(set->contains("2"));
  const View<SortedSet> sorted(*database.keys.find("scores"));
  CHECK(sorted->score("a") == 1.5);
  CHECK(sorted->rank("a") == 1);
  // A copy of a view reads the same entry.
  View<Set> copy;
  CHECK(copy == nullptr);
  copy = set;
  CHECK(copy->contains("3"));
}

TEST_CASE("deadlines and the time of the last access stay when a collection is packed",
          "[store][packed]") {
  Database database;
  database.set("key", "f", "v");
  KeyRef ref = database.keys.find("key");
  database.keys.set_deadline(ref, kNow + 5000);
  database.keys.set_access(ref, 77);
  database.pack();
  REQUIRE(database.keys.find("key", Keyspace::kPeek)->is_packed());
  CHECK(database.keys.find("key", Keyspace::kPeek)->access() == 77);
  CHECK(database.keys.find("key")->deadline_ms() == kNow + 5000);
  CHECK(database.keys.volatile_size() == 1);
  // The deadline of a packed collection is changed and taken away without an object.
  ref = database.keys.find("key");
  database.keys.set_deadline(ref, Keyspace::kNoDeadline);
  CHECK(database.is_packed("key"));
  CHECK(database.keys.volatile_size() == 0);
  ref = database.keys.find("key");
  database.keys.set_deadline(ref, kNow + 10);
  CHECK(database.is_packed("key"));
  database.set("key", "f", "w");
  CHECK(database.keys.find("key")->deadline_ms() == kNow + 10);
  database.pack();
  database.environment.now_ms = kNow + 1'000'000;
  while (!database.keys.expire_due(1000)) {
  }
  CHECK(database.keys.empty());
  CHECK(database.keys.volatile_size() == 0);
}

TEST_CASE("packed collections are renamed, copied and replaced", "[store][packed]") {
  Database database;
  database.set("key", "f", "v");
  database.pack();
  KeyRef from = database.keys.find("key");
  KeyRef copy = database.keys.find_to_replace("copy");
  database.keys.attach(copy, database.keys.copy(from));
  from = database.keys.find("key");
  DetachedEntry moving = database.keys.detach(from);
  KeyRef to = database.keys.find_to_replace("a much longer name of the key than before");
  database.keys.attach(to, std::move(moving));
  CHECK(database.get("copy", "f") == "v");
  CHECK(database.get("a much longer name of the key than before", "f") == "v");
  CHECK(database.get("key", "f") == "(no key)");
  KeyRef ref = database.keys.find_to_replace("copy");
  database.keys.set_string(ref, "text");
  CHECK(database.keys.find("copy")->is_string());
  // One that was given out is packed under its new name.
  database.set("a much longer name of the key than before", "f", "w");
  from = database.keys.find("a much longer name of the key than before");
  moving = database.keys.detach(from);
  to = database.keys.find_to_replace("short");
  database.keys.attach(to, std::move(moving));
  database.pack();
  CHECK(database.is_packed("short"));
  CHECK(database.get("short", "f") == "w");
}

TEST_CASE("values that were given out are packed in the database that they went to",
          "[store][packed]") {
  Database database;
  Keyspace other(1, database.environment);
  database.set("key", "f", "v");
  database.keys.swap(other);
  database.pack();
  CHECK(database.keys.empty());
  REQUIRE(other.find("key"));
  CHECK(other.find("key")->is_packed());
  database.set("gone", "f", "v");
  database.keys.clear(/*lazily=*/false);
  database.pack();
  CHECK(database.keys.empty());
}

TEST_CASE("very many values are packed in several steps", "[store][packed]") {
  Database database;
  constexpr int kHashes = 10'000;
  for (int i = 0; i < kHashes; ++i) database.set(std::to_string(i), "f", "v");
  size_t left = database.environment.changed.size();
  CHECK(left == kHashes);
  int steps = 0;
  while (left > 0) {
    database.pack();
    CHECK(database.environment.changed.size() < left);
    left = database.environment.changed.size();
    ++steps;
  }
  CHECK(steps > 1);
  for (int i = 0; i < kHashes; ++i) REQUIRE(database.is_packed(std::to_string(i)));
}

TEST_CASE("the histogram of sizes counts packed collections", "[store][packed]") {
  Database database;
  const auto count = [&](size_t elements) {
    database.keys.update_sizes();
    return database.keys.sizes()->count(Type::kHash, KeySizes::bin_of(elements));
  };
  for (const std::string_view field : {"a", "b", "c", "d"}) database.set("key", field, "v");
  CHECK(count(4) == 1);
  database.pack();
  CHECK(count(4) == 1);
  for (int i = 0; i < 20; ++i) database.set("key", std::to_string(i), "v");
  CHECK(count(4) == 0);
  CHECK(count(24) == 1);
  database.pack();
  CHECK(count(24) == 1);
  KeyRef ref = database.keys.find_to_replace("key");
  database.keys.erase(ref);
  CHECK(count(24) == 0);
}

TEST_CASE("the entry of a lock stays where it is", "[store][packed]") {
  Database database;
  database.set("lock", "f", "1");
  const Entry* entry = database.keys.mark_lock(database.keys.find("lock"));
  database.pack();
  CHECK_FALSE(database.is_packed("lock"));
  CHECK(&*database.keys.find("lock") == entry);
  // One that is packed gets an object first.
  database.set("second", "f", "1");
  database.pack();
  entry = database.keys.mark_lock(database.keys.find("second"));
  database.set("second", "f", "2");
  database.pack();
  CHECK(&*database.keys.find("second") == entry);
  CHECK(database.get("second", "f") == "2");
}

TEST_CASE("an undo log keeps what a packed collection was", "[store][packed]") {
  Database database;
  database.set("key", "f", "v");
  database.pack();
  auto log = std::make_unique<UndoLog>(database.environment, 0, nullptr);
  database.keys.set_undo_log(log.get());
  database.set("key", "f", "w");
  database.pack();
  CHECK(database.get("key", "f") == "w");
  database.keys.set_undo_log(nullptr);
  log->restore_keys(database.keys, [](std::string_view, bool, const Entry*) {});
  CHECK(database.get("key", "f") == "v");
  CHECK(database.keys.size() == 1);
}

TEST_CASE("many hashes are changed and packed in any order", "[store][packed]") {
  Database database;
  database.environment.random = base::Random(7);
  base::Random& random = database.environment.random;
  std::vector<std::string> expected(300);
  for (int step = 0; step < 20'000; ++step) {
    const size_t at = random.below(expected.size());
    const std::string key = "key" + std::to_string(at);
    switch (random.below(10)) {
      case 0:
        database.pack();
        break;
      case 1: {
        KeyRef ref = database.keys.find_to_replace(key);
        if (ref) database.keys.erase(ref);
        expected[at].clear();
        break;
      }
      default:
        expected[at] = std::string(1 + random.below(60), 'v');
        database.set(key, "f", expected[at]);
    }
    const std::string found = database.get(key, "f");
    REQUIRE(found == (expected[at].empty() ? "(no key)" : expected[at]));
  }
}

}  // namespace latchkey::store
