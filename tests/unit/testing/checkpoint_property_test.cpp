// Whatever is done after a checkpoint, a rollback brings everything back.

#include "base/random.h"
#include "unit/catch.h"
#include "unit/testing/checkpoint_world.h"

namespace latchkey::tests {

TEST_CASE("A rollback brings everything back, whatever was done", "[testing][checkpoint]") {
  constexpr uint64_t kSeeds = 300;
  constexpr int kSteps = 250;
  size_t rollbacks = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    base::Random random(seed);
    CheckpointWorld world([&](size_t bound) { return random.below(bound); });
    for (int i = 0; i < kSteps && world.difference().empty(); ++i) world.step();
    world.finish();
    rollbacks += world.rollbacks();
    INFO("seed " << seed << ": " << world.difference());
    REQUIRE(world.difference().empty());
  }
  // About one step in 64 rolls back.
  CHECK(rollbacks > kSeeds);
}

}  // namespace latchkey::tests
