// ts-compaction-policy: the series into which a new series is compacted, such as
// "max:1M:1h;avg:1d:0m:1h". Each rule is an aggregation, the duration of its buckets, how long they
// are kept (0: for ever), and perhaps where buckets are aligned. Durations are whole numbers with
// a unit: m (milliseconds), s, M (minutes), h or d.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/time_series/aggregation.h"

namespace latchkey::store {

struct PolicyRule {
  Aggregation aggregation;
  int64_t bucket_ms;     // above zero
  int64_t retention_ms;  // 0: for ever
  int64_t align;
};

// Nothing when the text is not a policy. An empty one has no rules.
std::optional<std::vector<PolicyRule>> parse_compaction_policy(std::string_view text);
// The text, with the largest unit in which each duration is whole.
std::string compaction_policy_text(const std::vector<PolicyRule>& rules);

}  // namespace latchkey::store
