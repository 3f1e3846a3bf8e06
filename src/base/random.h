// Seeded pseudo-random numbers: the same seed gives the same server behaviour, on which tests and
// replays depend. Algorithm: xoshiro256** by David Blackman and Sebastiano Vigna (public domain),
// seeded through SplitMix64. Not for secrets that an attacker may try to guess; use random_secret()
// for those.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace latchkey::base {

class Random {
 public:
  explicit Random(uint64_t seed);
  uint64_t next();
  // Uniform in [0, bound); bound > 0.
  uint64_t below(uint64_t bound);
  // Uniform in [0, 1).
  double unit();

 private:
  uint64_t state_[4];
};

// Fills `out` with `size` bytes from the operating system's generator (getrandom).
void random_secret(void* out, size_t size);

// `length` lower-case hexadecimal digits from random_secret(), for run ids and replication ids.
std::string random_hex(size_t length);

}  // namespace latchkey::base
