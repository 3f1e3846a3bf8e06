#include "store/time_series/sample.h"

#include <algorithm>
#include <cmath>

#include "base/text/text.h"

namespace latchkey::store {

namespace {

constexpr std::string_view kPolicyNames[] = {"", "block", "last", "first", "min", "max", "sum"};

}  // namespace

std::string_view duplicate_policy_name(DuplicatePolicy policy) {
  return kPolicyNames[static_cast<size_t>(policy)];
}

std::optional<DuplicatePolicy> duplicate_policy_of(std::string_view name) {
  for (size_t i = 1; i < std::size(kPolicyNames); ++i) {
    if (base::equal_ignoring_case(name, kPolicyNames[i])) return static_cast<DuplicatePolicy>(i);
  }
  return std::nullopt;
}

std::optional<double> merged_value(DuplicatePolicy policy, double present, double added) {
  if (policy == DuplicatePolicy::kNone || policy == DuplicatePolicy::kBlock) return std::nullopt;
  if (policy == DuplicatePolicy::kLast) return std::isnan(added) ? present : added;
  if (policy == DuplicatePolicy::kFirst) return std::isnan(present) ? added : present;
  if (std::isnan(present) != std::isnan(added)) return std::nullopt;
  if (policy == DuplicatePolicy::kMin) return std::min(present, added);
  if (policy == DuplicatePolicy::kMax) return std::max(present, added);
  return present + added;
}

}  // namespace latchkey::store
