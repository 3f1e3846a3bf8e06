// The seed's choices: everything in a simulation that could be otherwise is asked here, so that one
// seed gives one run.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/random.h"

namespace latchkey::simulation {

class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}

  // Uniform in [0, bound); 0 when `bound` is 0.
  size_t below(size_t bound) { return bound == 0 ? 0 : static_cast<size_t>(random_.below(bound)); }
  // Uniform in [low, high].
  size_t between(size_t low, size_t high) { return low + below(high - low + 1); }
  bool percent(unsigned chance) { return below(100) < chance; }
  template <typename List>
  auto& pick(List& list) {
    return list[below(list.size())];
  }

 private:
  base::Random random_;
};

}  // namespace latchkey::simulation
