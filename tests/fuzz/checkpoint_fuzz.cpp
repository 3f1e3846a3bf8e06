// Requests, moves of the clock, evictions and nested checkpoints that the input chooses. After each
// rollback everything must be as it was, and a follower's dataset the same.
#include <cstdint>
#include <cstdio>

#include "input.h"
#include "unit/testing/checkpoint_world.h"

using namespace latchkey;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kLongestInput = 4'096;
  if (size > kLongestInput) return 0;
  fuzz::Input input(data, size);
  tests::CheckpointWorld world([&](size_t bound) {
    const size_t high = bound > 256 ? input.byte() : 0;
    return (high << 8 | input.byte()) % bound;
  });
  while (!input.empty()) world.step();
  world.finish();
  std::fputs(world.difference().c_str(), stderr);
  fuzz::require(world.difference().empty());
  return 0;
}
