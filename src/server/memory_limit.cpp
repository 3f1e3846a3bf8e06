#include "server/memory_limit.h"

#include <algorithm>
#include <cmath>

#include "base/assert.h"
#include "server/client/tracking.h"
#include "server/command/keyspace_events.h"
#include "server/command/lock_claims.h"
#include "server/command/propagation.h"
#include "server/server.h"

namespace latchkey::server {

namespace {

// Evictions between two glances at the clock.
constexpr size_t kEvictionsPerGlance = 16;

// So many objects are freed in a fraction of a millisecond.
constexpr size_t kObjectsInAMoment = 5000;
constexpr uint64_t kFreeingGlanceMs = 1;
// Memory that may be taken while it is over the limit and more is being freed.
constexpr size_t kMaxGrowth = size_t{1} << 20;

// How long evicting may hold up a command: the tenacity is 0 to 100, from not at all to until it is
// done.
int64_t budget_us(int tenacity) {
  constexpr int kLinear = 10;
  constexpr int kMax = 100;
  constexpr int64_t kStepUs = 50;
  constexpr double kGrowth = 1.15;
  if (tenacity >= kMax) return INT64_MAX;
  if (tenacity <= kLinear) return kStepUs * tenacity;
  return static_cast<int64_t>(static_cast<double>(kStepUs * kLinear) *
                              std::pow(kGrowth, tenacity - kLinear));
}

struct Rule {
  store::EvictionOrder order;
  bool volatile_only;
};

Rule rule_of(MaxmemoryPolicy policy) {
  using store::EvictionOrder;
  switch (policy) {
    case MaxmemoryPolicy::kVolatileLru:
    case MaxmemoryPolicy::kVolatileLrm:
      return {EvictionOrder::kIdlest, true};
    case MaxmemoryPolicy::kVolatileLfu:
      return {EvictionOrder::kLeastFrequent, true};
    case MaxmemoryPolicy::kVolatileRandom:
      return {EvictionOrder::kRandom, true};
    case MaxmemoryPolicy::kVolatileTtl:
      return {EvictionOrder::kNearestDeadline, true};
    case MaxmemoryPolicy::kAllkeysLru:
    case MaxmemoryPolicy::kAllkeysLrm:
      return {EvictionOrder::kIdlest, false};
    case MaxmemoryPolicy::kAllkeysLfu:
      return {EvictionOrder::kLeastFrequent, false};
    case MaxmemoryPolicy::kAllkeysRandom:
    case MaxmemoryPolicy::kNoeviction:
      break;
  }
  return {EvictionOrder::kRandom, false};
}

}  // namespace

MemoryLimit::MemoryLimit(Server& server) : server_(server) {
  if (server.loop() == nullptr) return;
  timer_ = std::make_unique<net::Timer>(*server.loop(), [this] {
    server_.refresh_clock();
    make_room();
  });
}

size_t MemoryLimit::not_counted() const {
  // What is evicted of slots that are leaving is written to that output, too.
  const SlotGate* const cluster = server_.slot_gate();
  const size_t leaving = cluster != nullptr ? cluster->link_figures().migration_output : 0;
  return server_.figures().replication().pending_memory +
         server_.figures().persistence().aof.buffer_memory + leaving +
         server_.client_eviction().leaving_bytes();
}

bool MemoryLimit::has_room() const {
  return server_.used_memory() <= server_.settings().maxmemory && excess_since_us_ < 0;
}

bool MemoryLimit::is_exceeded() const {
  const size_t limit = server_.settings().maxmemory;
  const size_t used = server_.used_memory();
  if (used <= limit) return false;
  const size_t ignored = not_counted() + server_.tracking().memory_taken_by_evictions();
  return used - std::min(used, ignored) > limit;
}

void MemoryLimit::make_room_soon() {
  if (timer_ != nullptr) {
    timer_->start(0);
  } else {
    make_room();
  }
}

bool MemoryLimit::may_evict() const {
  const ConfigValues& values = server_.settings();
  // While clients are paused the dataset stands still; while it is loaded it is not all there; what
  // a script that is busy has done is not written yet.
  const bool stands_still = (server_.state() & (kStateLoading | kStatePaused | kStateBusy)) != 0;
  const bool left_to_master = server_.is_replica() && values.replica_ignore_maxmemory;
  return values.maxmemory != 0 && !stands_still && !left_to_master;
}

bool MemoryLimit::is_short() const {
  return was_short_ && is_exceeded();
}

bool MemoryLimit::make_room() {
  was_short_ = !try_to_make_room();
  return !was_short_;
}

bool MemoryLimit::try_to_make_room() {
  bool fits = !may_evict() || !is_exceeded();
  if (!fits) {
    const bool is_free = await_freeing();
    fits = !is_exceeded();
    if (!fits && !is_free) {
      note_excess(true);
      return true;
    }
  }
  // What is imported is not to go again before the import is over.
  const bool evicts = server_.settings().maxmemory_policy != MaxmemoryPolicy::kNoeviction &&
                      (server_.state() & kStateImporting) == 0;
  // Before data goes that somebody may want, what nobody can want any more.
  if (!fits && server_.environment().field_names.drop_unused(/*all=*/!evicts))
    fits = !is_exceeded();
  while (!fits && server_.free_script_garbage()) fits = !is_exceeded();
  if (fits) {
    note_excess(false);
    return true;
  }
  return evicts && evict();
}

bool MemoryLimit::evict() {
  const LatencyTimer latency(server_, "eviction-cycle");
  const int64_t started_us = server_.clock().monotonic_us();
  const int64_t longest_us = budget_us(server_.settings().maxmemory_eviction_tenacity);
  const Tracking::EvictionCycle cycle(server_.tracking());
  for (size_t evicted = 1; is_exceeded(); ++evicted) {
    if (!evict_one() && !server_.environment().field_names.drop_unused(/*all=*/true)) {
      // The search has removed the expired keys that it met.
      server_.measure_memory();
      note_excess(is_exceeded());
      return !is_exceeded();
    }
    if (!frees_much() && evicted % kEvictionsPerGlance != 0) continue;
    if (await_freeing()) {
      if (server_.clock().monotonic_us() - started_us < longest_us) continue;
      if (timer_ != nullptr) timer_->start(0);
    }
    note_excess(true);
    return true;
  }
  note_excess(false);
  return true;
}

bool MemoryLimit::frees_much() const {
  return server_.environment().reclaimer.pending_objects() > kObjectsInAMoment;
}

bool MemoryLimit::await_freeing() {
  if (frees_much()) {
    server_.measure_memory();
    least_used_ = std::min(least_used_, server_.used_memory());
    if (server_.used_memory() - least_used_ <= kMaxGrowth) {
      if (timer_ != nullptr) timer_->start(kFreeingGlanceMs);
      return false;
    }
  }
  server_.environment().reclaimer.drain();
  server_.measure_memory();
  least_used_ = SIZE_MAX;
  return true;
}

bool MemoryLimit::evict_one() {
  const ConfigValues& values = server_.settings();
  const Rule rule = rule_of(values.maxmemory_policy);
  const auto victim = evictor_.choose(server_.databases(), rule.order, rule.volatile_only,
                                      static_cast<size_t>(std::max(values.maxmemory_samples, 1)));
  if (victim.keyspace == nullptr) return false;
  evict_key(*victim.keyspace, victim.key);
  return true;
}

void MemoryLimit::evict_key(store::Keyspace& keyspace, std::string_view key) {
  const bool lazily = server_.settings().lazyfree_lazy_eviction;
  store::KeyRef ref = keyspace.find(key, store::Keyspace::kPeek | store::Keyspace::kEvenExpired);
  LK_ASSERT(ref);
  {
    const LatencyTimer latency(server_, "eviction-del");
    {
      const LockClaims::Evicting evicting(server_.lock_claims());
      keyspace.erase(ref, lazily);
    }
    if (!lazily) await_freeing();
  }
  ++server_.stats().evicted_keys;
  server_.propagation().add_removal(keyspace.index(), key, lazily);
  server_.events().happened(keyspace, key, EventClass::kEvicted, "evicted");
}

void MemoryLimit::note_excess(bool exceeded) {
  if (!exceeded) least_used_ = SIZE_MAX;
  const int64_t now_us = server_.clock().monotonic_us();
  if (exceeded) {
    if (excess_since_us_ < 0) excess_since_us_ = now_us;
  } else if (excess_since_us_ >= 0) {
    server_.stats().eviction_exceeded_us += static_cast<uint64_t>(now_us - excess_since_us_);
    excess_since_us_ = -1;
  }
}

int64_t MemoryLimit::current_excess_us() const {
  return excess_since_us_ < 0 ? 0 : server_.clock().monotonic_us() - excess_since_us_;
}

}  // namespace latchkey::server
