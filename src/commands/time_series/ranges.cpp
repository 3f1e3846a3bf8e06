// Ranges of named time series: TS.RANGE, TS.REVRANGE, TS.NRANGE and TS.NREVRANGE.
#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/text/number.h"
#include "commands/keys/typed_key.h"
#include "commands/time_series/row_groups.h"
#include "commands/time_series/series_arguments.h"
#include "commands/time_series/series_replies.h"
#include "server/client/output_limits.h"

namespace latchkey::commands {

using namespace server;
using store::KeyRef;
using store::RangeQuery;
using store::RangeReader;
using store::RangeRow;
using store::TimeSeries;

namespace {

void range(CommandContext& ctx, bool backwards) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  const TimeSeries* const series = existing_series(ctx, ref);
  if (series == nullptr) return;
  RangeRequest request;
  if (!read_range(ctx, 2, backwards, &request) || !is_not_too_wide(ctx, {&series, 1}, request))
    return;
  reply_rows(ctx, *series, request.query, request.count);
}

void ts_range(CommandContext& ctx) {
  range(ctx, false);
}

void ts_revrange(CommandContext& ctx) {
  range(ctx, true);
}

// --- TS.NRANGE ----------------------------------------------------------------------------------

// One series of several that are read side by side.
struct Source {
  RangeQuery query;
  std::unique_ptr<RangeReader> reader;
  RangeRow row;
  bool has_row = false;

  // Values in a row.
  size_t width() const { return std::max<size_t>(query.aggregations.size(), 1); }
  void step() { has_row = reader->next(&row); }
};

struct Columns {
  std::vector<Source> sources;
  // Of each column the number of its source: what is named again is read once, for a reader may
  // take some megabytes.
  std::vector<size_t> source_of;
};

Columns make_columns(const std::vector<const TimeSeries*>& all, const RangeRequest& request) {
  const auto aggregations_of = [&](size_t column) -> const std::vector<store::Aggregation>& {
    return request.columns.empty() ? request.query.aggregations : request.columns[column];
  };
  Columns columns;
  std::map<std::pair<const TimeSeries*, std::vector<store::Aggregation>>, size_t> known;
  std::vector<const TimeSeries*> read;
  for (size_t i = 0; i < all.size(); ++i) {
    const auto [place, is_new] =
        known.try_emplace({all[i], aggregations_of(i)}, columns.sources.size());
    columns.source_of.push_back(place->second);
    if (!is_new) continue;
    read.push_back(all[i]);
    columns.sources.emplace_back().query = request.query;
    columns.sources.back().query.aggregations = aggregations_of(i);
  }
  // They have references to their queries, which are in place by now.
  for (size_t i = 0; i < read.size(); ++i) {
    Source& source = columns.sources[i];
    source.reader = std::make_unique<RangeReader>(*read[i], source.query);
    source.step();
  }
  return columns;
}

// Rows of one time each, with a value of each column, NaN where it has none.
void reply_columns(CommandContext& ctx, Columns columns, bool backwards, size_t most) {
  size_t width = 0;
  for (const size_t source : columns.source_of) width += columns.sources[source].width();
  const resp::ReplyBuilder::Later reply = ctx.reply.later();
  size_t sent = 0;
  for (; sent < most && !reply_is_lost(ctx.client); ++sent) {
    const Source* next = nullptr;
    for (const Source& source : columns.sources) {
      if (!source.has_row) continue;
      const bool is_nearer =
          next == nullptr || (backwards ? source.row.timestamp > next->row.timestamp
                                        : source.row.timestamp < next->row.timestamp);
      if (is_nearer) next = &source;
    }
    if (next == nullptr) break;
    const int64_t timestamp = next->row.timestamp;
    const auto has_value = [&](const Source& source) {
      return source.has_row && source.row.timestamp == timestamp;
    };
    ctx.reply.array(2);
    ctx.reply.integer(timestamp);
    ctx.reply.array(width);
    for (const size_t number : columns.source_of) {
      const Source& source = columns.sources[number];
      for (size_t i = 0; i < source.width(); ++i)
        reply_sample_value(ctx, has_value(source) ? source.row.values[i]
                                                  : std::numeric_limits<double>::quiet_NaN());
    }
    for (Source& source : columns.sources) {
      if (has_value(source)) source.step();
    }
  }
  ctx.reply.array_later(reply, sent);
}

void nrange(CommandContext& ctx, bool backwards) {
  constexpr size_t kFirstKey = 2;
  int64_t count;
  if (!base::parse_int64(ctx.args[1], &count) || count <= 0)
    return ctx.reply.error("ERR TSDB: numkeys must be a positive integer");
  if (static_cast<uint64_t>(count) > ctx.args.size() - kFirstKey - 2) return ctx.wrong_arity();
  const auto keys = static_cast<size_t>(count);
  RangeRequest request;
  if (!read_range(ctx, kFirstKey + keys, backwards, &request, keys)) return;
  // None of them goes while another is looked up: none is expired.
  std::vector<const TimeSeries*> all;
  for (size_t i = 0; i < keys; ++i) {
    const KeyRef ref = ctx.db.find(ctx.args[kFirstKey + i]);
    const TimeSeries* const series = existing_series(ctx, ref);
    if (series == nullptr) return;
    all.push_back(series);
  }
  if (!is_not_too_wide(ctx, all, request)) return;
  reply_columns(ctx, make_columns(all, request), backwards, request.count);
}

void ts_nrange(CommandContext& ctx) {
  nrange(ctx, false);
}

void ts_nrevrange(CommandContext& ctx) {
  nrange(ctx, true);
}

constexpr CommandRow kRangeRows[] = {
    {"TS.NRANGE",
     ts_nrange,
     "numkeys key... fromTimestamp toTimestamp [LATEST] [FILTER_BY_TS ts:integer...] "
     "[FILTER_BY_VALUE bounds=min:double max:double] [COUNT count] [aggregation=[ALIGN align] "
     "AGGREGATION {buckets=aggregators bucketDuration:integer} [BUCKETTIMESTAMP bt] [EMPTY]]",
     kReadOnly | kModule,
     counted_keys(1).ro().access(),
     kAclTimeSeries,
     Group::kModule,
     "8.10.0",
     "O(N*K) where N is the number of keys and K the number of samples in the range.",
     "Returns the samples or aggregations of several time series in a range, a row for each "
     "time.",
     {.module = "timeseries"}},
    {"TS.NREVRANGE",
     ts_nrevrange,
     "numkeys key... fromTimestamp toTimestamp [LATEST] [FILTER_BY_TS ts:integer...] "
     "[FILTER_BY_VALUE bounds=min:double max:double] [COUNT count] [aggregation=[ALIGN align] "
     "AGGREGATION {buckets=aggregators bucketDuration:integer} [BUCKETTIMESTAMP bt] [EMPTY]]",
     kReadOnly | kModule,
     counted_keys(1).ro().access(),
     kAclTimeSeries,
     Group::kModule,
     "8.10.0",
     "O(N*K) where N is the number of keys and K the number of samples in the range.",
     "Returns the samples or aggregations of several time series in a range, the newest "
     "first, a row for each time.",
     {.module = "timeseries"}},
    {"TS.RANGE",
     ts_range,
     "key fromTimestamp toTimestamp [LATEST] [FILTER_BY_TS ts:integer...] [FILTER_BY_VALUE "
     "bounds=min:double max:double] [COUNT count] [aggregation=[ALIGN align] AGGREGATION "
     "{buckets=aggregators bucketDuration:integer} [BUCKETTIMESTAMP bt] [EMPTY]]",
     kReadOnly | kModule,
     keys(1).ro(),
     kAclTimeSeries,
     Group::kModule,
     "8.0.0",
     "O(log(N)+K) where N is the number of chunks and K the number of samples in the range.",
     "Returns the samples or aggregations of a time series in a range.",
     {.module = "timeseries"}},
    {"TS.REVRANGE",
     ts_revrange,
     "key fromTimestamp toTimestamp [LATEST] [FILTER_BY_TS ts:integer...] [FILTER_BY_VALUE "
     "bounds=min:double max:double] [COUNT count] [aggregation=[ALIGN align] AGGREGATION "
     "{buckets=aggregators bucketDuration:integer} [BUCKETTIMESTAMP bt] [EMPTY]]",
     kReadOnly | kModule,
     keys(1).ro(),
     kAclTimeSeries,
     Group::kModule,
     "8.0.0",
     "O(log(N)+K) where N is the number of chunks and K the number of samples in the range.",
     "Returns the samples or aggregations of a time series in a range, the newest first.",
     {.module = "timeseries"}},
};

}  // namespace

std::span<const CommandRow> time_series_range_rows() {
  return kRangeRows;
}

}  // namespace latchkey::commands
