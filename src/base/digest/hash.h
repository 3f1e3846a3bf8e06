// Keyed 64-bit hashing of byte strings: XXH3 with a secret of 192 random bytes, so that someone who
// chooses keys cannot choose collisions without knowing the secret. About three nanoseconds for a
// 16-byte key.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/random.h"

namespace latchkey::base {

class HashSecret {
 public:
  // A secret from the operating system's generator.
  HashSecret() { random_secret(bytes_.data(), bytes_.size()); }

  // The same secret for the same seed, for tests.
  explicit HashSecret(uint64_t seed) {
    Random random(seed);
    for (auto& byte : bytes_) byte = static_cast<uint8_t>(random.next());
  }

  uint64_t hash(std::string_view text) const {
    return XXH3_64bits_withSecret(text.data(), text.size(), bytes_.data(), bytes_.size());
  }

 private:
  std::array<uint8_t, XXH3_SECRET_DEFAULT_SIZE> bytes_;
};

// For the standard library's tables, by texts that clients choose. The secret must outlive them.
struct KeyedTextHash {
  using is_transparent = void;
  const HashSecret* secret;
  size_t operator()(std::string_view text) const { return secret->hash(text); }
};

// The same hash without a secret: for digests that clients must be able to compute, never for
// tables.
inline uint64_t digest(std::string_view text) {
  return XXH3_64bits(text.data(), text.size());
}

}  // namespace latchkey::base
