// MurmurHash64A and MurmurHash2, by Austin Appleby (public domain). Formats that other programs
// read have them in their bytes: HyperLogLog's registers, and Bloom and cuckoo filters. They are no
// protection against keys that collide on purpose.
//
// The words of a text are read as the machine has them, which is little-endian. Cost: linear in the
// size of the text.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace latchkey::base {

inline uint64_t murmur_hash_64a(std::string_view text, uint64_t seed) {
  constexpr uint64_t kFactor = 0xc6a4a7935bd1e995;
  constexpr unsigned kShift = 47;
  uint64_t hash = seed ^ (text.size() * kFactor);
  for (; text.size() >= sizeof(uint64_t); text.remove_prefix(sizeof(uint64_t))) {
    uint64_t word;
    std::memcpy(&word, text.data(), sizeof word);
    word *= kFactor;
    word ^= word >> kShift;
    hash = (hash ^ (word * kFactor)) * kFactor;
  }
  if (!text.empty()) {
    uint64_t word = 0;
    std::memcpy(&word, text.data(), text.size());
    hash = (hash ^ word) * kFactor;
  }
  hash = (hash ^ (hash >> kShift)) * kFactor;
  return hash ^ (hash >> kShift);
}

// Takes the size modulo 2^32.
inline uint32_t murmur_hash_2(std::string_view text, uint32_t seed) {
  constexpr uint32_t kFactor = 0x5bd1e995;
  constexpr unsigned kShift = 24;
  uint32_t hash = seed ^ static_cast<uint32_t>(text.size());
  for (; text.size() >= sizeof(uint32_t); text.remove_prefix(sizeof(uint32_t))) {
    uint32_t word;
    std::memcpy(&word, text.data(), sizeof word);
    word *= kFactor;
    word ^= word >> kShift;
    hash = (hash * kFactor) ^ (word * kFactor);
  }
  if (!text.empty()) {
    uint32_t word = 0;
    std::memcpy(&word, text.data(), text.size());
    hash = (hash ^ word) * kFactor;
  }
  hash = (hash ^ (hash >> 13)) * kFactor;
  return hash ^ (hash >> 15);
}

}  // namespace latchkey::base
