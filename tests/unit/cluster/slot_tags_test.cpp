#include "cluster/slot_tags.h"

#include "store/key_slot.h"
#include "unit/catch.h"

namespace latchkey::cluster {

TEST_CASE("every slot has a tag that is in it, the first of the shortest", "[cluster]") {
  for (int slot = 0; slot < store::kKeySlots; ++slot)
    REQUIRE(store::key_slot(slot_tag(slot)) == slot);
  CHECK(slot_tag(0) == "06S");
  CHECK(slot_tag(1) == "Qi");
  CHECK(slot_tag(13907) == "0");
  CHECK(slot_tag(5001) == "5q7");
  CHECK(slot_tag(16383) == "6ZJ");
}

}  // namespace latchkey::cluster
