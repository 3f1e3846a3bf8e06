// Which key to give up when memory runs out.
//
// Of a few keys looked at by chance the one is chosen that is the best to lose: idle for the
// longest time, used the least often, or nearest to its deadline. Candidates that were not chosen
// are remembered in a small pool and compete with those of the next time, which brings the choice
// close to the one an exact order of all keys would give, for no memory per key.
//
// A choice costs the sampled keys times a cache miss or two, whatever the number of keys.
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
    Keyspace* keyspace = nullptr;  // null: there is no key to give up
    std::string key;
  };

  // `volatile_only`: only keys that have a deadline. `samples`: keys looked at in each database, at
  // least 1.
  Victim choose(std::span<const std::unique_ptr<Keyspace>> databases, EvictionOrder order,
                bool volatile_only, size_t samples);

 private:
  struct Candidate {
    uint64_t score = 0;  // the higher, the better to lose
    Keyspace* keyspace = nullptr;
    std::string key;
  };
  static constexpr size_t kPoolSize = 16;

  Victim choose_random(std::span<const std::unique_ptr<Keyspace>> databases, bool volatile_only);
  void sample(Keyspace& keyspace, EvictionOrder order, bool volatile_only, size_t samples);
  void offer(uint64_t score, Keyspace& keyspace, const Entry& entry);
  Victim take_best();

  // Worst first.
  std::array<Candidate, kPoolSize> pool_;
  size_t pool_count_ = 0;
  EvictionOrder pool_order_ = EvictionOrder::kRandom;
  bool pool_volatile_only_ = false;
  size_t next_database_ = 0;
};

}  // namespace latchkey::store
