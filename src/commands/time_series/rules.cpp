// Compaction rules of time series: TS.CREATERULE and TS.DELETERULE.
#include <algorithm>
#include <string>

#include "base/text/number.h"
#include "commands/keys/typed_key.h"
#include "commands/time_series/row_groups.h"
#include "commands/time_series/series_arguments.h"
#include "store/time_series/label_index.h"

namespace latchkey::commands {

using namespace server;
using store::Aggregator;
using store::CompactionRule;
using store::KeyRef;
using store::TimeSeries;

namespace {

// Reads "AGGREGATION aggregator bucketDuration [alignTimestamp]".
bool read_rule(CommandContext& ctx, CompactionRule* rule) {
  if (ctx.args.size() > 7 || !is_word(ctx.args[3], "AGGREGATION") || ctx.args.size() < 6) {
    ctx.wrong_arity();
    return false;
  }
  if (!base::parse_int64(ctx.args[5], &rule->bucket_ms))
    return ctx.refuse("ERR TSDB: Couldn't parse AGGREGATION");
  std::vector<store::Aggregation> aggregations;
  if (const auto error = parse_aggregations(ctx.args[4], &aggregations)) return ctx.refuse(*error);
  if (rule->bucket_ms <= 0) return ctx.refuse("ERR TSDB: bucketDuration must be greater than zero");
  if (aggregations.size() != 1)
    return ctx.refuse("ERR TSDB: CREATERULE requires exactly one aggregation type");
  rule->aggregator = Aggregator(aggregations[0]);
  if (ctx.args.size() == 7 && (!base::parse_int64(ctx.args[6], &rule->align) || rule->align < 0))
    return ctx.refuse("ERR TSDB: Couldn't parse alignTimestamp");
  return true;
}

// The series of both keys, without links that have lost their other end.
bool find_both(CommandContext& ctx, TimeSeries** source, TimeSeries** destination) {
  const KeyRef from = ctx.db.find_for_write(ctx.args[1]);
  *source = existing_series(ctx, from);
  if (*source == nullptr) return false;
  const KeyRef to = ctx.db.find_for_write(ctx.args[2]);
  *destination = existing_series(ctx, to);
  if (*destination == nullptr) return false;
  for (TimeSeries* const series : {*source, *destination})
    series->index()->forget_lost_links(*series);
  return true;
}

void ts_createrule(CommandContext& ctx) {
  CompactionRule rule{{}, 0, 0, Aggregator(store::Aggregation::kAvg)};
  if (!read_rule(ctx, &rule)) return;
  if (ctx.args[1] == ctx.args[2])
    return ctx.reply.error("ERR TSDB: the source key and destination key should be different");
  TimeSeries* source;
  TimeSeries* destination;
  if (!find_both(ctx, &source, &destination)) return;
  // Nothing is compacted twice.
  if (!source->source().is_none())
    return ctx.reply.error("ERR TSDB: the source key already has a source rule");
  if (!destination->source().is_none())
    return ctx.reply.error("ERR TSDB: the destination key already has a src rule");
  if (!destination->rules().empty())
    return ctx.reply.error("ERR TSDB: the destination key already has a dst rule");
  rule.destination.number = destination->number();
  source->rules().push_back(std::move(rule));
  destination->source() = {source->number(), {}};
  ctx.changed(ctx.args[1], EventClass::kModule, "ts.createrule:src");
  ctx.changed(ctx.args[2], EventClass::kModule, "ts.createrule:dest");
  ctx.reply.ok();
}

void ts_deleterule(CommandContext& ctx) {
  const KeyRef from = ctx.db.find_for_write(ctx.args[1]);
  TimeSeries* const source = existing_series(ctx, from);
  if (source == nullptr) return;
  const KeyRef to = ctx.db.find_for_write(ctx.args[2]);
  const bool is_series = to && to->type() == TimeSeries::kType;
  const size_t erased =
      !is_series ? 0 : std::erase_if(source->rules(), [&](const CompactionRule& rule) {
        return source->index()->destination(*source, rule) == &value_of<TimeSeries>(to);
      });
  if (erased == 0) return ctx.reply.error("ERR TSDB: compaction rule does not exist");
  value_of<TimeSeries>(to).source() = {};
  ctx.changed(ctx.args[1], EventClass::kModule, "ts.deleterule:src");
  ctx.changed(ctx.args[2], EventClass::kModule, "ts.deleterule:dest");
  ctx.reply.ok();
}

constexpr CommandRow kRuleRows[] = {
    {"TS.CREATERULE",
     ts_createrule,
     "sourceKey destKey AGGREGATION aggregator bucketDuration:integer "
     "[alignTimestamp:integer] [_...]",
     kWrite | kModule | kFast,
     keys(1).ro().note("Source time series key") + keys(2).rw().note("Destination time series key"),
     kAclTimeSeries,
     Group::kModule,
     "8.0.0",
     "O(1)",
     "Creates a rule that compacts a time series into another one.",
     {.module = "timeseries"}},
    {"TS.DELETERULE",
     ts_deleterule,
     "sourceKey destKey",
     kWrite | kModule,
     keys(1).ro() + keys(2).rw(),
     kAclTimeSeries,
     Group::kModule,
     "8.0.0",
     "O(1)",
     "Deletes a compaction rule.",
     {.module = "timeseries"}},
};

}  // namespace

std::span<const CommandRow> time_series_rule_rows() {
  return kRuleRows;
}

}  // namespace latchkey::commands
