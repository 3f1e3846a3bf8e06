#include "store/key_slot.h"

#include "base/digest/crc16.h"
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

}  // namespace latchkey::store
