#include "base/random.h"

#include <sys/random.h>

#include <bit>
#include <cerrno>

#include "base/assert.h"
#include "base/text/hex.h"

namespace latchkey::base {

namespace {

// SplitMix64 by Sebastiano Vigna (public domain).
uint64_t split_mix(uint64_t* state) {
  *state += 0x9E3779B97F4A7C15;
  uint64_t mixed = *state;
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB;
  return mixed ^ (mixed >> 31);
}

}  // namespace

Random::Random(uint64_t seed) {
  for (uint64_t& word : state_) word = split_mix(&seed);
}

uint64_t Random::next() {
  const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

// Daniel Lemire, "Fast Random Integer Generation in an Interval" (2019): returns the high half of a
// product, and draws again for the few low halves that would bias the result.
uint64_t Random::below(uint64_t bound) {
  LK_ASSERT(bound > 0);
  __extension__ using Wide = unsigned __int128;
  Wide product = static_cast<Wide>(next()) * bound;
  if (static_cast<uint64_t>(product) < bound) {
    const uint64_t unfair = (0 - bound) % bound;
    while (static_cast<uint64_t>(product) < unfair) product = static_cast<Wide>(next()) * bound;
  }
  return static_cast<uint64_t>(product >> 64);
}

double Random::unit() {
  return static_cast<double>(next() >> 11) * 0x1.0p-53;
}

void random_secret(void* out, size_t size) {
  char* cursor = static_cast<char*>(out);
  while (size > 0) {
    const ssize_t got = getrandom(cursor, size, 0);
    if (got < 0) {
      LK_ASSERT(errno == EINTR);
      continue;
    }
    cursor += got;
    size -= static_cast<size_t>(got);
  }
}

std::string random_hex(size_t length) {
  std::string text(length, '\0');
  random_secret(text.data(), length);
  for (char& digit : text) digit = kHexDigits[static_cast<unsigned char>(digit) & 15];
  return text;
}

}  // namespace latchkey::base
