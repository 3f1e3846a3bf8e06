// Looks up many keys of one command with their cache misses overlapped.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "server/command/arguments.h"
#include "store/keyspace.h"

namespace latchkey::commands {

// Calls fn(position, hash) for each key at `first`, `first` + `step`, ... of `args`, in order,
// until fn returns false; the hash is for Keyspace::find_hashed. Processes the keys in groups:
// prefetches the buckets of a group, then its entries, then calls fn for the group. fn may change
// the keyspace. Returns whether fn was called for all keys and never returned false.
template <typename Fn>
bool for_each_key_of_batch(store::Keyspace& db, server::Arguments args, size_t first, size_t step,
                           Fn&& fn) {
  constexpr size_t kGroup = 16;
  uint64_t hashes[kGroup];
  while (first < args.size()) {
    const size_t count = std::min(kGroup, (args.size() - first + step - 1) / step);
    for (size_t i = 0; i < count; ++i) hashes[i] = db.prefetch_bucket(args[first + i * step]);
    for (size_t i = 0; i < count; ++i) db.prefetch_entry(hashes[i]);
    for (size_t i = 0; i < count; ++i) db.prefetch_chained_entry(hashes[i]);
    for (size_t i = 0; i < count; ++i) {
      if (!fn(first + i * step, hashes[i])) return false;
    }
    first += count * step;
  }
  return true;
}

}  // namespace latchkey::commands
