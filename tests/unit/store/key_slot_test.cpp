#include "store/key_slot.h"

#include "base/crc16.h"
#include "store/keyspace.h"
#include "unit/catch.h"

namespace latchkey::store {

TEST_CASE("slots are those of the reference", "[key_slot]") {
  CHECK(base::crc16("123456789") == 0x31C3);
  CHECK(key_slot("") == 0);
  CHECK(key_slot("foo") == 12182);
  CHECK(key_slot("a") == 15495);
  CHECK(key_slot("alice") == 749);
}

TEST_CASE("only a tag that is something counts in place of the key", "[key_slot]") {
  CHECK(key_slot("{a}b") == key_slot("a"));
  CHECK(key_slot("x{a}{b}") == key_slot("a"));
  CHECK(key_slot("{}a") != key_slot("a"));
  CHECK(key_slot("{a") != key_slot("a"));
  CHECK(key_slot("{{a}}") == key_slot("{a"));
}

TEST_CASE("a pattern has a slot when all it matches is in one", "[key_slot]") {
  CHECK(pattern_slot("foo") == 12182);
  CHECK(pattern_slot("{foo}*") == 12182);
  CHECK(pattern_slot("x{foo}*->field") == 12182);
  CHECK_FALSE(pattern_slot("foo*"));
  CHECK_FALSE(pattern_slot("*{foo}"));
  CHECK_FALSE(pattern_slot("{fo*}o"));
  CHECK_FALSE(pattern_slot("{}{foo}*"));
}

TEST_CASE("a keyspace counts the keys of each slot, whatever becomes of them", "[key_slot]") {
  Environment environment;
  Keyspace keyspace(0, environment);
  keyspace.count_slots();
  const int slot = key_slot("a");
  const auto set = [&](std::string_view key, std::string_view value, int64_t deadline_ms) {
    KeyRef ref = keyspace.find_for_write(key);
    keyspace.set_string(ref, value, deadline_ms);
  };
  set("a", "1", Keyspace::kNoDeadline);
  set("{a}2", "text", Keyspace::kNoDeadline);
  set("a", "longer than what fits where an integer was", Keyspace::kNoDeadline);
  set("b", "1", Keyspace::kNoDeadline);
  CHECK(keyspace.slot_counts()->in(slot) == 2);
  set("{a}3", "gone soon", 10);
  CHECK(keyspace.slot_counts()->in(slot) == 3);
  environment.now_ms = 20;
  CHECK_FALSE(keyspace.exists("{a}3"));
  CHECK(keyspace.slot_counts()->in(slot) == 2);
  KeyRef ref = keyspace.find_for_write("a");
  keyspace.erase(ref);
  CHECK(keyspace.slot_counts()->in(slot) == 1);
  keyspace.clear(false);
  CHECK(keyspace.slot_counts()->in(slot) == 0);
  CHECK(keyspace.slot_counts()->in(key_slot("b")) == 0);
}

}  // namespace latchkey::store
