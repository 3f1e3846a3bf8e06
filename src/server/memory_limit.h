// MemoryLimit: keeps the server within maxmemory by giving up keys as maxmemory-policy says.
//
// Room is made before a command runs, for as long as maxmemory-eviction-tenacity allows; what is
// left to do is done between other work. While something large is being freed in the background
// nothing else is given up, and commands run as long as memory goes faster than they take it.
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

  // False when memory is short and there is nothing to give up.
  bool make_room();
  // Whether it was so when room was to be made last, and memory is over its limit still. What the
  // request that runs has taken itself since is no reason to refuse it anything.
  bool is_short() const;
  // The same, but not in the middle of what is going on.
  void make_room_soon();

  // Gives up this key, which must exist.
  void evict_key(store::Keyspace& keyspace, std::string_view key);

  // Whether nothing is to be done before a command: memory is below its limit, and was when it was
  // looked at last. Costs a few loads. REQUIRES: maxmemory is set.
  bool has_room() const;
  // Whether what is counted is more than maxmemory, which is set.
  bool is_exceeded() const;
  // Bytes that eviction does not look at: what waits to leave for replicas and for the append-only
  // file, and what clients that were closed for their memory were being sent. Costs a look at each
  // replica.
  size_t not_counted() const;
  // For how long memory has been over its limit by now, in microseconds.
  int64_t current_excess_us() const;

 private:
  bool may_evict() const;
  bool try_to_make_room();
  bool evict();
  bool evict_one();
  // Waits until used_memory() is without what has been handed to the background. Where that takes
  // longer than a moment, and memory does not grow, it is false at once, and memory is looked at
  // again in a millisecond.
  bool await_freeing();
  bool frees_much() const;
  void note_excess(bool exceeded);

  Server& server_;
  std::unique_ptr<net::Timer> timer_;  // null without a loop
  store::Evictor evictor_;
  bool was_short_ = false;  // by the answer of make_room()
  // Bytes, while memory is over its limit and something large is being freed; otherwise SIZE_MAX.
  size_t least_used_ = SIZE_MAX;
  int64_t excess_since_us_ = -1;  // monotonic; when memory came to be over its limit, or -1
};

}  // namespace latchkey::server
