#include "store/eviction.h"

#include <algorithm>
#include <utility>

#include "store/keyspace.h"

namespace latchkey::store {

namespace {

bool hides_keys(const Keyspace& keyspace) {
  return keyspace.hidden_slots() != nullptr && keyspace.hidden_slots()->any();
}

bool has_candidates(const Keyspace& keyspace, bool volatile_only) {
  if (hides_keys(keyspace) && keyspace.visible_size() == 0) return false;
  return volatile_only ? keyspace.volatile_size() != 0 : !keyspace.empty();
}

// Calls fn(const Entry&) for some of the visible keys that have a deadline: of `samples`, or, where
// all of these are hidden, of as many as it takes to find a visible one.
template <typename Fn>
void sample_visible(Keyspace& keyspace, size_t samples, Fn&& fn) {
  constexpr size_t kGrowth = 8;
  const size_t all = keyspace.volatile_size();
  bool found = false;
  for (size_t count = samples; !found; count *= kGrowth) {
    keyspace.sample_volatile(std::min(count, all), [&](const Entry& entry) {
      if (keyspace.is_hidden(entry)) return;
      found = true;
      fn(entry);
    });
    if (count >= all) return;
  }
}

uint64_t score_of(const Environment& environment, const Entry& entry, EvictionOrder order) {
  constexpr uint64_t kHighestFrequency = 255;
  switch (order) {
    case EvictionOrder::kIdlest:
      return idle_seconds(environment, entry.access());
    case EvictionOrder::kLeastFrequent:
      return kHighestFrequency - lfu_counter(environment, entry.access());
    case EvictionOrder::kNearestDeadline:
      return UINT64_MAX - static_cast<uint64_t>(entry.deadline_ms());
    case EvictionOrder::kRandom:
      break;
  }
  return 0;
}

}  // namespace

Evictor::Victim Evictor::choose(std::span<const std::unique_ptr<Keyspace>> databases,
                                EvictionOrder order, bool volatile_only, size_t samples) {
  if (order == EvictionOrder::kRandom) return choose_random(databases, volatile_only);
  if (order != pool_order_ || volatile_only != pool_volatile_only_) {
    pool_count_ = 0;
    pool_order_ = order;
    pool_volatile_only_ = volatile_only;
  }
  // Candidates in the pool may have been removed or changed; as long as there are keys, a new
  // sample adds one that was not. Where a checkpoint wants to keep keys, or slots are hidden, there
  // may be none.
  constexpr int kAttempts = 16;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    bool any = false;
    bool all_hide = true;
    for (const auto& keyspace : databases) {
      if (!has_candidates(*keyspace, volatile_only)) continue;
      any = true;
      all_hide &= hides_keys(*keyspace) && !keyspace->has_keys_to_keep();
      sample(*keyspace, order, volatile_only, samples);
    }
    if (!any) return {};
    // All keys of the right kind are hidden, which another look costs as much to find.
    if (pool_count_ == 0 && all_hide) return {};
    if (Victim victim = take_best(); victim.keyspace != nullptr) return victim;
  }
  return {};
}

Evictor::Victim Evictor::choose_random(std::span<const std::unique_ptr<Keyspace>> databases,
                                       bool volatile_only) {
  for (size_t i = 0; i < databases.size(); ++i) {
    Keyspace& keyspace = *databases[next_database_++ % databases.size()];
    if (!has_candidates(keyspace, volatile_only)) continue;
    Victim victim;
    if (keyspace.has_keys_to_keep()) {
      if (const Entry* entry = keyspace.random_unkept_entry(volatile_only); entry != nullptr)
        victim = {&keyspace, std::string(entry->key())};
    } else if (volatile_only) {
      sample_visible(keyspace, 1, [&](const Entry& entry) {
        victim = {&keyspace, std::string(entry.key())};
      });
    } else if (const Entry* entry = keyspace.random_entry(); entry != nullptr) {
      victim = {&keyspace, std::string(entry->key())};
    }
    if (victim.keyspace != nullptr) return victim;
  }
  return {};
}

void Evictor::sample(Keyspace& keyspace, EvictionOrder order, bool volatile_only, size_t samples) {
  const Environment& environment = keyspace.environment();
  if (keyspace.has_keys_to_keep()) {
    for (size_t i = 0; i < samples; ++i) {
      const Entry* entry = keyspace.random_unkept_entry(volatile_only);
      if (entry == nullptr) return;
      offer(score_of(environment, *entry, order), keyspace, *entry);
    }
    return;
  }
  if (volatile_only) {
    sample_visible(keyspace, samples, [&](const Entry& entry) {
      offer(score_of(environment, entry, order), keyspace, entry);
    });
    return;
  }
  for (size_t i = 0; i < samples; ++i) {
    const Entry* entry = keyspace.random_entry();
    if (entry == nullptr) return;
    offer(score_of(environment, *entry, order), keyspace, *entry);
  }
}

void Evictor::offer(uint64_t score, Keyspace& keyspace, const Entry& entry) {
  if (keyspace.is_hidden(entry)) return;
  const auto begin = pool_.begin();
  const auto end = begin + static_cast<ptrdiff_t>(pool_count_);
  for (auto known = begin; known != end; ++known) {
    if (known->keyspace == &keyspace && known->key == entry.key()) return;
  }
  Candidate candidate{score, &keyspace, std::string(entry.key())};
  const auto place =
      std::upper_bound(begin, end, score,
                       [](uint64_t value, const Candidate& other) { return value < other.score; });
  if (pool_count_ < kPoolSize) {
    std::move_backward(place, end, end + 1);
    *place = std::move(candidate);
    ++pool_count_;
  } else if (place != begin) {
    // Drop the worst candidate.
    std::move(begin + 1, place, begin);
    *(place - 1) = std::move(candidate);
  }
}

Evictor::Victim Evictor::take_best() {
  while (pool_count_ > 0) {
    Candidate& best = pool_[--pool_count_];
    Keyspace& keyspace = *best.keyspace;
    Victim victim{&keyspace, std::move(best.key)};
    const KeyRef ref = keyspace.find(victim.key, Keyspace::kPeek | Keyspace::kEvenExpired);
    if (ref && (!pool_volatile_only_ || ref->has_deadline()) && !keyspace.must_keep(ref) &&
        !keyspace.is_hidden(*ref))
      return victim;
  }
  return {};
}

}  // namespace latchkey::store
