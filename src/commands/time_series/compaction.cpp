#include "commands/time_series/compaction.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "commands/keys/typed_key.h"
#include "commands/time_series/series_arguments.h"
#include "server/config/config.h"
#include "server/server.h"
#include "store/time_series/compaction_policy.h"
#include "store/time_series/label_index.h"

namespace latchkey::commands {

using namespace server;
using store::Aggregation;
using store::Aggregator;
using store::CompactionRule;
using store::DuplicatePolicy;
using store::KeyRef;
using store::Sample;
using store::SampleReader;
using store::SeriesSettings;
using store::TimeSeries;

namespace {

int64_t bucket_of(const CompactionRule& rule, int64_t timestamp) {
  return store::bucket_start(timestamp, rule.bucket_ms, rule.align);
}

// The last time of the bucket. The first one may be shorter: time begins at zero.
int64_t bucket_end(const CompactionRule& rule, int64_t bucket) {
  const int64_t start = store::unclamped_bucket_start(bucket, rule.bucket_ms, rule.align);
  return start > INT64_MAX - rule.bucket_ms ? INT64_MAX : start + rule.bucket_ms;
}

// Calls fn(TimeSeries& destination) for the rule's destination, if it is there, and tells of the
// change by `event`.
template <typename Fn>
void change_destination(CommandContext& ctx, TimeSeries& source, const CompactionRule& rule,
                        std::string_view event, Fn&& fn) {
  const TimeSeries* const found = source.index()->destination(source, rule);
  if (found == nullptr) return;
  const std::string key(found->key());
  KeyRef ref = ctx.db.find_for_write(key);
  if (!ref) return;  // it has expired
  fn(value_of<TimeSeries>(ref));
  ctx.changed(key, EventClass::kModule, event);
}

// Collects the samples of a bucket that are there.
Aggregator collected(const TimeSeries& source, const CompactionRule& rule, int64_t bucket) {
  Aggregator aggregator(rule.aggregator.kind());
  const int64_t end = bucket_end(rule, bucket);
  const bool is_weighted = aggregator.kind() == Aggregation::kTwa;
  aggregator.begin(bucket, end, is_weighted ? source.nearest_before(bucket) : std::nullopt);
  SampleReader reader(source, std::max(bucket, source.oldest_visible()), end - 1);
  for (Sample sample; reader.next(&sample);) aggregator.add(sample);
  return aggregator;
}

// The value of a bucket that later samples have closed.
std::optional<double> closed_value(const TimeSeries& source, const CompactionRule& rule,
                                   int64_t bucket) {
  const Aggregator aggregator = collected(source, rule, bucket);
  if (!aggregator.has_value()) return std::nullopt;
  const bool is_weighted = aggregator.kind() == Aggregation::kTwa;
  return aggregator.result(is_weighted ? source.nearest_behind(bucket_end(rule, bucket) - 1)
                                       : std::nullopt);
}

// Brings a closed bucket of the destination in line with the samples that there are. One in which
// the aggregation sees none is not there, unless some may be beyond the retention.
void rewrite_bucket(CommandContext& ctx, TimeSeries& source, const CompactionRule& rule,
                    int64_t bucket) {
  const std::optional<double> value = closed_value(source, rule, bucket);
  change_destination(ctx, source, rule, {}, [&](TimeSeries& destination) {
    if (value)
      destination.add({bucket, *value}, DuplicatePolicy::kLast);
    else if (bucket >= source.oldest_visible())
      destination.erase(bucket, bucket);
  });
}

void collect_open_bucket(const TimeSeries& source, CompactionRule& rule) {
  rule.open_bucket =
      source.empty() ? CompactionRule::kNoBucket : bucket_of(rule, source.last().timestamp);
  if (!source.empty()) rule.aggregator = collected(source, rule, rule.open_bucket);
}

// The rules whose destinations are there.
std::vector<CompactionRule>& live_rules(TimeSeries& source) {
  if (!source.rules().empty()) source.index()->forget_lost_links(source);
  return source.rules();
}

// The key of the series that a rule of ts-compaction-policy makes: "source_AVG_60000".
std::string destination_key(std::string_view source_key, const store::PolicyRule& rule) {
  std::string key = std::string(source_key) + '_' + store::upper_case_name(rule.aggregation) + '_' +
                    std::to_string(rule.bucket_ms);
  if (rule.align != 0) key += '_' + std::to_string(rule.align);
  return key;
}

// The source's labels and two more; the rest as the rule and the directives say.
SeriesSettings destination_settings(const SeriesSettings& source, const store::PolicyRule& rule,
                                    const ConfigValues& config) {
  SeriesSettings settings;
  settings.retention_ms = rule.retention_ms;
  settings.chunk_size = static_cast<size_t>(config.ts_chunk_size_bytes);
  settings.encoding = configured_encoding(config);
  settings.labels = source.labels;
  settings.labels.emplace_back("aggregation", store::upper_case_name(rule.aggregation));
  settings.labels.emplace_back("time_bucket", std::to_string(rule.bucket_ms));
  return settings;
}

}  // namespace

void compact_appended(CommandContext& ctx, TimeSeries& source, Sample sample) {
  for (CompactionRule& rule : live_rules(source)) {
    const int64_t bucket = bucket_of(rule, sample.timestamp);
    if (rule.open_bucket == CompactionRule::kNoBucket) {
      rule.open_bucket = bucket;
      rule.aggregator.begin(bucket, bucket_end(rule, bucket), std::nullopt);
    } else if (bucket != rule.open_bucket) {
      std::optional<Sample> before;
      if (rule.aggregator.has_value()) {
        // A missing value says nothing of the time up to it.
        const auto after = std::isnan(sample.value) ? std::nullopt : std::optional(sample);
        const double value = rule.aggregator.result(after);
        change_destination(ctx, source, rule, "ts.add:dest", [&](TimeSeries& destination) {
          destination.add({rule.open_bucket, value}, DuplicatePolicy::kLast);
        });
        if (rule.aggregator.kind() == Aggregation::kTwa) before = rule.aggregator.state().last;
      }
      rule.open_bucket = bucket;
      rule.aggregator.begin(bucket, bucket_end(rule, bucket), before);
    }
    rule.aggregator.add(sample);
  }
}

void compact_inserted(CommandContext& ctx, TimeSeries& source, int64_t timestamp) {
  for (CompactionRule& rule : live_rules(source)) {
    const int64_t bucket = bucket_of(rule, timestamp);
    if (bucket == bucket_of(rule, source.last().timestamp)) {
      collect_open_bucket(source, rule);
    } else {
      rewrite_bucket(ctx, source, rule, bucket);
    }
  }
}

void compact_erased(CommandContext& ctx, TimeSeries& source, int64_t from, int64_t to) {
  for (CompactionRule& rule : live_rules(source)) {
    const int64_t first = bucket_of(rule, from);
    const int64_t last = bucket_of(rule, to);
    const int64_t open =
        source.empty() ? CompactionRule::kNoBucket : bucket_of(rule, source.last().timestamp);
    change_destination(ctx, source, rule, {}, [&](TimeSeries& destination) {
      destination.erase(first, last);
      // A bucket that had been closed is the newest again.
      if (open < rule.open_bucket) destination.erase(std::max<int64_t>(open, 0), INT64_MAX);
    });
    for (const int64_t bucket : {first, last}) {
      if (bucket >= open) continue;
      rewrite_bucket(ctx, source, rule, bucket);
      if (first == last) break;
    }
    // Otherwise it has lost nothing.
    if (last >= open || open != rule.open_bucket) collect_open_bucket(source, rule);
  }
}

void make_policy_destinations(CommandContext& ctx, std::string_view source_key) {
  const ConfigValues& config = ctx.server.config().values();
  if (config.ts_compaction_policy.empty()) return;
  const auto policy = store::parse_compaction_policy(config.ts_compaction_policy);
  for (const store::PolicyRule& rule : *policy) {
    const std::string key = destination_key(source_key, rule);
    KeyRef ref = ctx.db.find_for_write(key);
    if (ref) continue;
    // set_value() may invalidate other KeyRefs, but no series moves.
    auto& source = value_of<TimeSeries>(ctx.db.find_for_write(source_key));
    ctx.db.set_value(
        ref, TimeSeries::kType,
        std::make_unique<TimeSeries>(destination_settings(source.settings(), rule, config)));
    auto& destination = value_of<TimeSeries>(ref);
    destination.source() = {source.number(), {}};
    source.rules().push_back(
        {{destination.number(), {}}, rule.bucket_ms, rule.align, Aggregator(rule.aggregation)});
    ctx.changed(key, EventClass::kModule, {});
  }
}

}  // namespace latchkey::commands
