// Chooses the key to evict when memory runs out.
//
// The choice is among a few sampled keys, by the eviction order: the key that is idle for the
// longest time, used the least often, or nearest to its deadline. Candidates that were not chosen
// are kept in a small pool and compete with those of the next sample, which makes the choice close
// to that of an exact order of all keys, for no memory per key.
//
// Beside a checkpoint only keys are chosen whose removal frees memory: those whose state at the
// checkpoint is kept already, and those made since.
//
// An expired key that was not removed yet may be chosen as any other: it takes memory as well.
//
// A choice costs the sampled keys times a cache miss or two, whatever the number of keys; beside a
// checkpoint more where hardly any key may be chosen (Keyspace::random_unkept_entry).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace latchkey::store {

class Entry;
class Keyspace;

enum class EvictionOrder : uint8_t { kIdlest, kLeastFrequent, kNearestDeadline, kRandom };

class Evictor {
 public:
  struct Victim {
    Keyspace* keyspace = nullptr;  // null: there is no key to evict
    std::string key;
  };

  // `volatile_only`: only keys that have a deadline. `samples`: keys sampled in each database, at
  // least 1.
  Victim choose(std::span<const std::unique_ptr<Keyspace>> databases, EvictionOrder order,
                bool volatile_only, size_t samples);

 private:
  struct Candidate {
    uint64_t score = 0;  // the highest score is evicted first
    Keyspace* keyspace = nullptr;
    std::string key;
  };
  static constexpr size_t kPoolSize = 16;

  Victim choose_random(std::span<const std::unique_ptr<Keyspace>> databases, bool volatile_only);
  void sample(Keyspace& keyspace, EvictionOrder order, bool volatile_only, size_t samples);
  void offer(uint64_t score, Keyspace& keyspace, const Entry& entry);
  Victim take_best();

  // In ascending order of score: the last one is evicted first.
  std::array<Candidate, kPoolSize> pool_;
  size_t pool_count_ = 0;
  EvictionOrder pool_order_ = EvictionOrder::kRandom;
  bool pool_volatile_only_ = false;
  size_t next_database_ = 0;
};

}  // namespace latchkey::store
