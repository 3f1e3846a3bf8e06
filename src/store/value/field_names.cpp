#include "store/value/field_names.h"

#include <algorithm>

#include "base/assert.h"
#include "store/keyspace.h"

namespace latchkey::store {

namespace {

uint64_t hash_of(const base::HashSecret& secret, std::span<const std::string_view> names) {
  // A bijection of the hash before, so that the order counts (Knuth's multiplicative constant).
  uint64_t hash = names.size();
  for (const std::string_view name : names) hash = hash * 0x9E3779B97F4A7C15 + secret.hash(name);
  return hash;
}

}  // namespace

FieldNames::FieldNames(Environment& environment, std::span<const std::string_view> ordered)
    : environment_(environment) {
  LK_ASSERT(!ordered.empty());
  size_t bytes = 0;
  for (const std::string_view name : ordered) bytes += name.size();
  bytes_.reserve(bytes);
  names_.reserve(ordered.size());
  for (const std::string_view name : ordered) {
    const size_t begin = bytes_.size();
    bytes_ += name;
    names_.emplace_back(bytes_.data() + begin, name.size());
  }
}

size_t FieldNames::find(std::string_view name) const {
  const auto found = std::lower_bound(names_.begin(), names_.end(), name, precedes);
  return found != names_.end() && *found == name ? static_cast<size_t>(found - names_.begin())
                                                 : kAbsent;
}

void FieldNames::release() const {
  const size_t before = references_.fetch_sub(1, std::memory_order_acq_rel);
  // From here on this object may be gone.
  if (before == 1) delete this;
  if (before == 2) released_.fetch_add(1, std::memory_order_release);
}

size_t FieldNames::memory_usage() const {
  return sizeof(FieldNames) + bytes_.capacity() + names_.capacity() * sizeof(std::string_view);
}

size_t FieldNames::shared_memory_usage() const {
  const size_t holders = references_.load(std::memory_order_relaxed) - 1;
  return memory_usage() / std::max<size_t>(holders, 1);
}

FieldNameSets::~FieldNameSets() {
  for (const auto& [hash, list] : lists_) list->release();
}

FieldNamesRef FieldNameSets::get(Environment& environment,
                                 std::span<const std::string_view> names) {
  std::vector<std::string_view> ordered(names.begin(), names.end());
  std::sort(ordered.begin(), ordered.end(), FieldNames::precedes);
  const uint64_t hash = hash_of(environment.secret, ordered);
  const auto [first, last] = lists_.equal_range(hash);
  for (auto at = first; at != last; ++at)
    if (std::ranges::equal(at->second->all(), ordered)) return FieldNamesRef(*at->second);
  if (lists_.size() >= drop_at_) look_through();
  return FieldNamesRef(*lists_.emplace(hash, new FieldNames(environment, ordered))->second);
}

size_t FieldNameSets::used() {
  look_through();
  return lists_.size();
}

bool FieldNameSets::drop_unused(bool all) {
  const size_t released = FieldNames::released_.load(std::memory_order_acquire);
  constexpr size_t kShare = 8;
  if (released - looked_at_ < (all ? 1 : 1 + lists_.size() / kShare)) return false;
  looked_at_ = released;
  const size_t before = lists_.size();
  look_through();
  return lists_.size() < before;
}

void FieldNameSets::look_through() {
  // Only this thread takes references to a list that it finds here, so one that is not used stays
  // so.
  std::erase_if(lists_, [](const auto& item) {
    if (item.second->is_used()) return false;
    item.second->release();
    return true;
  });
  constexpr size_t kMin = 64;
  drop_at_ = std::max(kMin, 2 * lists_.size());
}

}  // namespace latchkey::store
