#include "server/acl/denial_log.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <utility>

namespace latchkey::server::acl {

namespace {

constexpr int64_t kLongestGroupMs = 60'000;
// Number of entries that are searched for one like the new refusal.
constexpr size_t kMaxLookedAt = 10;

bool alike(const Denial& left, const Denial& right) {
  return left.reason == right.reason && left.context == right.context &&
         left.object == right.object && left.user == right.user;
}

}  // namespace

void DenialLog::add(Denial denial, int64_t now_ms, size_t most) {
  if (most == 0) return entries_.clear();
  const auto end =
      std::next(entries_.begin(), static_cast<ptrdiff_t>(std::min(kMaxLookedAt, entries_.size())));
  const auto known = std::find_if(entries_.begin(), end, [&](const Entry& entry) {
    return std::abs(now_ms - entry.updated_ms) <= kLongestGroupMs && alike(entry.denial, denial);
  });
  if (known != end) {
    known->denial.client = std::move(denial.client);
    known->updated_ms = now_ms;
    ++known->count;
    entries_.splice(entries_.begin(), entries_, known);
    return;
  }
  entries_.push_front({std::move(denial), next_id_++, 1, now_ms, now_ms});
  while (entries_.size() > most) entries_.pop_back();
}

}  // namespace latchkey::server::acl
