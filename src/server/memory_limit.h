// MemoryLimit: keeps the server within maxmemory by evicting keys according to maxmemory-policy.
//
// Keys are evicted before a command runs, for as long as maxmemory-eviction-tenacity allows; the
// rest is done between other work. While something large is being freed in the background no
// further keys are evicted, and commands run as long as memory is freed faster than they allocate
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "net/loop.h"
#include "store/eviction.h"

namespace latchkey::server {

class Server;

class MemoryLimit {
 public:
  explicit MemoryLimit(Server& server);

  // Evicts keys until memory is within its limit. False when it is not and no key can be evicted.
  bool make_room();
  // Whether the last make_room() returned false, and memory is still over its limit. Memory that
  // the running request itself has allocated since is no reason to refuse it anything.
  bool is_short() const;
  // As make_room(), after the request that is being run.
  void make_room_soon();

  // Evicts this key, which must exist.
  void evict_key(store::Keyspace& keyspace, std::string_view key);

  // Whether make_room() has nothing to do: memory is below its limit, and was at the last check.
  // Costs a few loads. REQUIRES: maxmemory is set.
  bool has_room() const;
  // Whether memory, less not_counted(), is more than maxmemory, which is set.
  bool is_exceeded() const;
  // Bytes that do not count for eviction: pending output to replicas and to the append-only file,
  // and to clients that were closed for their memory. O(replicas).
  size_t not_counted() const;
  // For how long memory has been over its limit by now, in microseconds.
  int64_t current_excess_us() const;

 private:
  bool may_evict() const;
  bool try_to_make_room();
  bool evict();
  bool evict_one();
  // Waits until the background thread has freed what was queued. When that takes longer than a
  // moment, and memory does not grow, it returns false, and eviction goes on in a millisecond.
  bool await_freeing();
  bool frees_much() const;
  void note_excess(bool exceeded);

  Server& server_;
  std::unique_ptr<net::Timer> timer_;  // null without a loop
  store::Evictor evictor_;
  bool was_short_ = false;  // the last make_room() returned false
  // Bytes, while memory is over its limit and something large is being freed; otherwise SIZE_MAX.
  size_t least_used_ = SIZE_MAX;
  int64_t excess_since_us_ = -1;  // monotonic; when memory came to be over its limit, or -1
};

}  // namespace latchkey::server
