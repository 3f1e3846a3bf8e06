// A hash of 128 bits without a key, the same in every process and version: for names that are made
// from contents, never for tables.
#pragma once

#include <cstdint>
#include <string_view>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace latchkey::base {

struct Hash128 {
  uint64_t low;
  uint64_t high;
};

inline Hash128 hash128(std::string_view text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return {hash.low64, hash.high64};
}

}  // namespace latchkey::base
