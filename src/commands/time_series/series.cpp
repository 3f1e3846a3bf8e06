// Time series themselves: TS.CREATE, TS.ALTER and TS.INFO.
#include <memory>
#include <string>
#include <vector>

#include "commands/groups.h"
#include "commands/keys/typed_key.h"
#include "commands/time_series/row_groups.h"
#include "commands/time_series/series_arguments.h"
#include "commands/time_series/series_replies.h"
#include "store/time_series/label_index.h"

namespace latchkey::commands {

using namespace server;
using store::CompactionRule;
using store::KeyRef;
using store::SeriesEncoding;
using store::SeriesSettings;
using store::TimeSeries;

namespace {

void ts_create(CommandContext& ctx) {
  SeriesSettings settings;
  if (!read_settings(ctx, &settings)) return;
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  if (ref) return ctx.reply.error("ERR TSDB: key already exists");
  ctx.db.set_value(ref, TimeSeries::kType, std::make_unique<TimeSeries>(std::move(settings)));
  ctx.changed(ctx.args[1], EventClass::kModule, "ts.create");
  ctx.reply.ok();
}

void ts_alter(CommandContext& ctx) {
  // What is wrong with an option comes before what is wrong with the key.
  SeriesSettings checked;
  if (!read_settings(ctx, &checked)) return;
  const KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  TimeSeries* const series = existing_series(ctx, ref);
  if (series == nullptr) return;
  SeriesSettings settings = series->settings();
  bool names_labels = false;
  if (!read_changed_settings(ctx, &settings, &names_labels)) return;
  series->set_settings(settings);
  if (names_labels) series->set_labels(std::move(settings.labels));
  ctx.changed(ctx.args[1], EventClass::kModule, "ts.alter");
  ctx.reply.ok();
}

// --- TS.INFO ------------------------------------------------------------------------------------

void reply_labels(CommandContext& ctx, const TimeSeries& series) {
  const auto& labels = series.settings().labels;
  ctx.reply.status("labels");
  ctx.reply.is_resp3() ? ctx.reply.map(labels.size()) : ctx.reply.array(labels.size());
  for (const auto& [name, value] : labels) {
    if (!ctx.reply.is_resp3()) ctx.reply.array(2);
    ctx.reply.bulk(name);
    ctx.reply.bulk(value);
  }
}

void reply_links(CommandContext& ctx, const TimeSeries& series) {
  const store::SeriesIndex& index = *series.index();
  const TimeSeries* const source = index.source(series);
  ctx.reply.status("sourceKey");
  source == nullptr ? ctx.reply.null() : ctx.reply.bulk(source->key());
  ctx.reply.status("rules");
  const resp::ReplyBuilder::Later reply = ctx.reply.later();
  size_t count = 0;
  for (const CompactionRule& rule : series.rules()) {
    const TimeSeries* const destination = index.destination(series, rule);
    if (destination == nullptr) continue;
    ++count;
    if (!ctx.reply.is_resp3()) ctx.reply.array(4);
    ctx.reply.bulk(destination->key());
    if (ctx.reply.is_resp3()) ctx.reply.array(3);
    ctx.reply.integer(rule.bucket_ms);
    ctx.reply.status(store::upper_case_name(rule.aggregator.kind()));
    ctx.reply.integer(rule.align);
  }
  ctx.reply.is_resp3() ? ctx.reply.map_later(reply, count) : ctx.reply.array_later(reply, count);
}

void reply_chunks(CommandContext& ctx, const TimeSeries& series) {
  ctx.reply.status("Chunks");
  ctx.reply.array(series.chunks().size());
  for (const auto& chunk : series.chunks()) {
    const auto field = [&](std::string_view name, int64_t value) {
      ctx.reply.status(name);
      ctx.reply.integer(value);
    };
    const bool is_empty = chunk->empty();
    ctx.reply.map(5);
    field("startTimestamp", is_empty ? -1 : chunk->first_timestamp());
    field("endTimestamp", is_empty ? -1 : chunk->last_timestamp());
    field("samples", static_cast<int64_t>(chunk->count()));
    field("size", static_cast<int64_t>(chunk->size_bytes()));
    ctx.reply.status("bytesPerSample");
    // In single precision, as the reference computes it.
    const float bytes = static_cast<float>(chunk->size_bytes());
    ctx.reply.number(is_empty ? 0 : bytes / static_cast<float>(chunk->count()));
  }
}

void ts_info(CommandContext& ctx) {
  if (ctx.args.size() > 3) return ctx.wrong_arity();
  const bool is_debug = ctx.args.size() == 3 && is_word(ctx.args[2], "DEBUG");
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  const TimeSeries* const series = existing_series(ctx, ref);
  if (series == nullptr) return;
  const SeriesSettings& settings = series->settings();
  const auto field = [&](std::string_view name, int64_t value) {
    ctx.reply.status(name);
    ctx.reply.integer(value);
  };
  ctx.reply.map(is_debug ? 16 : 14);
  field("totalSamples", static_cast<int64_t>(series->visible_count()));
  field("memoryUsage", static_cast<int64_t>(series->memory_usage()));
  field("firstTimestamp", series->first_visible().value_or(store::Sample()).timestamp);
  field("lastTimestamp", series->last().timestamp);
  field("retentionTime", settings.retention_ms);
  field("chunkCount", static_cast<int64_t>(series->chunks().size()));
  field("chunkSize", static_cast<int64_t>(settings.chunk_size));
  ctx.reply.status("chunkType");
  ctx.reply.status(settings.encoding == SeriesEncoding::kCompressed ? "compressed"
                                                                    : "uncompressed");
  ctx.reply.status("duplicatePolicy");
  const std::string_view policy = store::duplicate_policy_name(settings.duplicate_policy);
  policy.empty() ? ctx.reply.null() : ctx.reply.status(policy);
  reply_labels(ctx, *series);
  reply_links(ctx, *series);
  field("ignoreMaxTimeDiff", settings.ignore_max_time_diff);
  ctx.reply.status("ignoreMaxValDiff");
  ctx.reply.number(settings.ignore_max_val_diff);
  if (!is_debug) return;
  ctx.reply.status("keySelfName");
  ctx.reply.bulk(ctx.args[1]);
  reply_chunks(ctx, *series);
}

constexpr CommandRow kSeriesRows[] = {
    {"TS.ALTER",
     ts_alter,
     "key [RETENTION retentionPeriod:integer] [CHUNK_SIZE size:integer] [DUPLICATE_POLICY "
     "policy=BLOCK|FIRST|LAST|MIN|MAX|SUM] [IGNORE ignore=ignoreMaxTimediff:integer "
     "ignoreMaxValDiff:double] [labels=LABELS {label-value=label value}...]",
     kWrite | kDenyOom | kModule,
     keys(1).rw().note(""),
     kAclTimeSeries,
     Group::kModule,
     "8.0.0",
     "O(N) where N is the number of labels that the request names.",
     "Changes the settings and labels of a time series.",
     {.module = "timeseries"}},
    {"TS.CREATE",
     ts_create,
     "key [RETENTION retentionPeriod:integer] [ENCODING enc=COMPRESSED|UNCOMPRESSED] [CHUNK_SIZE "
     "size:integer] [DUPLICATE_POLICY policy=BLOCK|FIRST|LAST|MIN|MAX|SUM] [IGNORE "
     "ignore=ignoreMaxTimediff:integer ignoreMaxValDiff:double] [labels=LABELS {label-value=label "
     "value}...]",
     kWrite | kDenyOom | kModule,
     keys(1).rw().insert().note(""),
     kAclTimeSeries,
     Group::kModule,
     "8.0.0",
     "O(1)",
     "Creates a time series.",
     {.module = "timeseries"}},
    {"TS.INFO",
     ts_info,
     "key [DEBUG] [_...]",
     kReadOnly | kModule,
     keys(1).ro(),
     kAclTimeSeries,
     Group::kModule,
     "8.0.0",
     "O(N) where N is the number of chunks.",
     "Returns the settings, labels, rules and figures of a time series.",
     {.tips = "dont_cache", .module = "timeseries"}},
};

}  // namespace

std::span<const CommandRow> time_series_rows() {
  static const std::vector<CommandRow> all = [] {
    std::vector<CommandRow> rows(std::begin(kSeriesRows), std::end(kSeriesRows));
    for (const auto& more : {time_series_query_rows(), time_series_range_rows(),
                             time_series_rule_rows(), time_series_sample_rows()})
      rows.insert(rows.end(), more.begin(), more.end());
    return rows;
  }();
  return all;
}

}  // namespace latchkey::commands
