// The generator of math.random in scripts: the 48-bit linear congruential one of lrand48(3), so
// that scripts get the reference's sequence after math.randomseed. Where it begins follows from the
// server's seed.
#pragma once

#include <cstdint>

namespace latchkey::script {

class LuaRandom {
 public:
  static constexpr int64_t kMax = INT32_MAX;

  void seed(int32_t seed) {
    state_ = (static_cast<uint64_t>(static_cast<uint32_t>(seed)) << 16) | 0x330E;
  }
  // 0 .. 2^31 - 1.
  int64_t next() {
    state_ = (state_ * 0x5DEECE66D + 0xB) & kMask;
    return static_cast<int64_t>(state_ >> 17);
  }

 private:
  static constexpr uint64_t kMask = (uint64_t{1} << 48) - 1;
  uint64_t state_ = 0x1234ABCD330E;
};

}  // namespace latchkey::script
