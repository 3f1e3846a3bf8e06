#include "store/slot_index.h"

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"
#include "store/keyspace.h"
#include "unit/catch.h"

namespace latchkey::store {

namespace {

using Entries = std::map<std::string, const Entry*, std::less<>>;

Entries all_in_table(const Keyspace& keyspace) {
  Entries entries;
  keyspace.table().for_each([&](const Entry* entry) { entries.emplace(entry->key(), entry); });
  return entries;
}

// Checks that every entry is in the slot where it belongs.
Entries all_in_index(const Keyspace& keyspace) {
  Entries entries;
  for (int slot = 0; slot < kKeySlots; ++slot) {
    size_t seen = 0;
    keyspace.slot_index()->for_each(slot, [&](const Entry& entry) {
      ++seen;
      CHECK(key_slot(entry.key()) == slot);
      entries.emplace(entry.key(), &entry);
    });
    if (seen != keyspace.slot_index()->in(slot)) FAIL("slot " << slot << " is counted wrong");
  }
  return entries;
}

void set(Keyspace& keyspace, std::string_view key, std::string_view value,
         int64_t deadline_ms = Keyspace::kNoDeadline) {
  KeyRef ref = keyspace.find_to_replace(key);
  keyspace.set_string(ref, value, deadline_ms);
}

}  // namespace

TEST_CASE("a keyspace counts the keys of each slot, whatever becomes of them", "[slot_index]") {
  Environment environment;
  Keyspace keyspace(0, environment);
  keyspace.index_slots();
  const int slot = key_slot("a");
  const auto set = [&](std::string_view key, std::string_view value, int64_t deadline_ms) {
    KeyRef ref = keyspace.find_for_write(key);
    keyspace.set_string(ref, value, deadline_ms);
  };
  set("a", "1", Keyspace::kNoDeadline);
  set("{a}2", "text", Keyspace::kNoDeadline);
  set("a", "longer than what fits where an integer was", Keyspace::kNoDeadline);
  set("b", "1", Keyspace::kNoDeadline);
  CHECK(keyspace.slot_index()->in(slot) == 2);
  set("{a}3", "gone soon", 10);
  CHECK(keyspace.slot_index()->in(slot) == 3);
  environment.now_ms = 20;
  CHECK_FALSE(keyspace.exists("{a}3"));
  CHECK(keyspace.slot_index()->in(slot) == 2);
  KeyRef ref = keyspace.find_for_write("a");
  keyspace.erase(ref);
  CHECK(keyspace.slot_index()->in(slot) == 1);
  keyspace.clear(false);
  CHECK(keyspace.slot_index()->in(slot) == 0);
  CHECK(keyspace.slot_index()->in(key_slot("b")) == 0);
}

TEST_CASE("the index of slots names the entries of the table after any change", "[slot_index]") {
  Environment environment;
  environment.now_ms = 1000;
  Keyspace keyspace(0, environment);
  keyspace.index_slots();
  base::Random random(27);
  // Few slots with several keys each, so that their tables grow and shrink.
  const auto some_key = [&] {
    return "{" + std::to_string(random.below(4)) + "}" + std::to_string(random.below(40));
  };
  for (int round = 0; round < 4000; ++round) {
    const std::string key = some_key();
    KeyRef ref = keyspace.find_to_replace(key, Keyspace::kPeek);
    switch (random.below(7)) {
      case 0:
        keyspace.set_integer(ref, round, Keyspace::kNoDeadline);
        break;
      case 1:
        keyspace.set_text(ref, std::string(random.below(300), 'x'));
        break;
      case 2:
        if (ref) keyspace.set_deadline(ref, environment.now_ms + 50);
        break;
      case 3:
        if (ref) keyspace.set_deadline(ref, Keyspace::kNoDeadline);
        break;
      case 4:
        if (ref) keyspace.erase(ref);
        break;
      case 5:
        if (ref) {
          DetachedEntry moved = keyspace.detach(ref);
          const std::string name = some_key();
          KeyRef to = keyspace.find_to_replace(name, Keyspace::kPeek);
          if (to) keyspace.erase(to);
          keyspace.attach(to, std::move(moved));
        }
        break;
      default:
        environment.now_ms += 5;
        keyspace.expire_due(1000);
    }
    if (round % 100 == 0) REQUIRE(all_in_index(keyspace) == all_in_table(keyspace));
  }
  REQUIRE(keyspace.size() > 0);
  CHECK(all_in_index(keyspace) == all_in_table(keyspace));
}

TEST_CASE("the index of slots goes with the contents of a database", "[slot_index]") {
  Environment environment;
  Keyspace keyspace(0, environment);
  keyspace.index_slots();
  set(keyspace, "a", "1");
  set(keyspace, "b", "2");
  Keyspace other(1, environment);
  other.index_slots();
  set(other, "c", "3");
  keyspace.swap(other);
  CHECK(all_in_index(keyspace) == all_in_table(keyspace));
  CHECK(all_in_index(other) == all_in_table(other));
  CHECK(other.slot_index()->in(key_slot("a")) == 1);

  Reclaimer reclaimer;
  other.release_contents(reclaimer);
  CHECK(other.slot_index()->in(key_slot("a")) == 0);
  set(other, "a", "again");
  CHECK(all_in_index(other) == all_in_table(other));
}

TEST_CASE("a scan of a slot sees its keys and no others", "[slot_index]") {
  Environment environment;
  Keyspace keyspace(0, environment);
  keyspace.index_slots();
  constexpr size_t kKeys = 100;
  for (size_t i = 0; i < kKeys; ++i) {
    set(keyspace, "{a}" + std::to_string(i), "");
    set(keyspace, "{b}" + std::to_string(i), "");
  }
  size_t steps = 0;
  std::vector<std::string> keys;
  uint64_t cursor = 0;
  do {
    cursor = keyspace.slot_index()->scan(key_slot("a"), cursor, [&](const Entry& entry) {
      CHECK(entry.key().starts_with("{a}"));
      keys.emplace_back(entry.key());
    });
    ++steps;
  } while (cursor != 0);
  CHECK(keys.size() == kKeys);
  CHECK(steps > 1);
  CHECK(keyspace.slot_index()->scan(key_slot("c"), 0, [](const Entry&) { FAIL("no key"); }) == 0);
}

}  // namespace latchkey::store
