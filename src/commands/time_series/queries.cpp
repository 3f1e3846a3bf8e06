// Time series by their labels: TS.MGET, TS.MRANGE, TS.MREVRANGE, TS.QUERYINDEX and TS.QUERYLABELS.
//
// TS.MGET, TS.MRANGE and TS.MREVRANGE reply only to a user who may read all series that they find.
// The others tell names alone, and to everybody.
#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/text/split.h"
#include "commands/keys/typed_key.h"
#include "commands/time_series/row_groups.h"
#include "commands/time_series/series_arguments.h"
#include "commands/time_series/series_replies.h"
#include "server/acl/user.h"
#include "server/client/client.h"
#include "server/client/output_limits.h"
#include "store/time_series/label_index.h"

namespace latchkey::commands {

using namespace server;
using store::Aggregation;
using store::Aggregator;
using store::LabelCondition;
using store::RangeReader;
using store::RangeRow;
using store::Sample;
using store::SeriesLabel;
using store::TimeSeries;

namespace {

// --- Conditions ---------------------------------------------------------------------------------

// Takes the text up to the next of `separators` off, which are stepped over before; empty when
// there is none.
std::string_view take_token(std::string_view* text, std::string_view separators) {
  const size_t begin = text->find_first_not_of(separators);
  if (begin == std::string_view::npos) return {};
  text->remove_prefix(begin);
  const std::string_view token = text->substr(0, text->find_first_of(separators));
  text->remove_prefix(token.size());
  return token;
}

// "(a,b)". False when it is not closed, or has an empty one among several.
bool parse_values(std::string_view list, std::vector<std::string>* values) {
  if (!list.ends_with(')') || list.size() < 2) return false;
  list = list.substr(1, list.size() - 2);
  if (list.empty()) return true;
  for (const std::string_view value : base::split_fields(list, ',')) {
    if (value.empty()) return false;
    values->emplace_back(value);
  }
  std::sort(values->begin(), values->end());
  values->erase(std::unique(values->begin(), values->end()), values->end());
  return true;
}

// "label=value", "label!=value", "label=(value,...)", "label=" and so on.
bool parse_condition(std::string_view text, LabelCondition* condition) {
  if (text.find('=') == std::string_view::npos) return false;
  condition->is_excluded = text.find("!=") != std::string_view::npos;
  const std::string_view separators = condition->is_excluded ? "!=" : "=";
  condition->label = take_token(&text, separators);
  if (condition->label.empty()) return false;
  const std::string_view value = take_token(&text, separators);
  condition->names_absence = value.empty();
  if (value.starts_with('(')) return parse_values(value, &condition->values);
  if (!value.empty()) condition->values.emplace_back(value);
  return true;
}

bool read_conditions(CommandContext& ctx, Arguments words,
                     std::vector<LabelCondition>* conditions) {
  for (const std::string_view word : words) {
    LabelCondition condition;
    if (!parse_condition(word, &condition)) return ctx.refuse("ERR TSDB: failed parsing labels");
    conditions->push_back(std::move(condition));
  }
  const bool has_matcher =
      std::any_of(conditions->begin(), conditions->end(),
                  [](const LabelCondition& condition) { return condition.is_matcher(); });
  return has_matcher || ctx.refuse("ERR TSDB: please provide at least one matcher");
}

// Keys may have expired and not been removed yet, or may be in a hidden slot.
bool is_seen(CommandContext& ctx, const TimeSeries& series) {
  return !ctx.db.is_expired(series.entry()) && !ctx.db.is_hidden(series.entry());
}

std::vector<const TimeSeries*> select(CommandContext& ctx,
                                      const std::vector<LabelCondition>& conditions) {
  if (ctx.db.series_index() == nullptr) return {};
  std::vector<const TimeSeries*> selected = ctx.db.series_index()->select(conditions);
  std::erase_if(selected, [&](const TimeSeries* series) { return !is_seen(ctx, *series); });
  return selected;
}

bool may_read(CommandContext& ctx, const std::vector<const TimeSeries*>& selected) {
  if (!ctx.client.has(kClientRestricted)) return true;
  const bool may = std::all_of(selected.begin(), selected.end(), [&](const TimeSeries* series) {
    return ctx.client.user->may_read_key(series->key());
  });
  return may || ctx.refuse(
                    "NOPERM TSDB: current user doesn't have read permission to one or more keys "
                    "that match the specified filter");
}

// --- Labels in replies --------------------------------------------------------------------------

struct WantedLabels {
  bool all = false;
  std::vector<std::string_view> selected;
};

bool ends_selected_labels(std::string_view word) {
  constexpr std::string_view kWords[] = {"FILTER",      "WITHLABELS",   "COUNT",
                                         "AGGREGATION", "FILTER_BY_TS", "FILTER_BY_VALUE",
                                         "GROUPBY",     "EXCLUDEEMPTY"};
  return std::any_of(std::begin(kWords), std::end(kWords),
                     [&](std::string_view known) { return is_word(word, known); });
}

bool read_wanted_labels(CommandContext& ctx, WantedLabels* wanted) {
  constexpr size_t kMostSelected = 50;
  const Arguments words = before_filter(ctx.args);
  wanted->all = find_word(words, "WITHLABELS").has_value();
  const auto at = find_word(words, "SELECTED_LABELS");
  if (!at.has_value()) return true;
  if (wanted->all)
    return ctx.refuse("ERR TSDB: cannot accept WITHLABELS and SELECT_LABELS together");
  for (size_t i = *at + 1; i < ctx.args.size() && !ends_selected_labels(ctx.args[i]); ++i)
    wanted->selected.push_back(ctx.args[i]);
  if (wanted->selected.size() > kMostSelected)
    return ctx.refuse("ERR TSDB: reached max size for SELECT_LABELS");
  return !wanted->selected.empty() ||
         ctx.refuse("ERR TSDB: SELECT_LABELS should have at least 1 parameter");
}

void begin_labels(CommandContext& ctx, size_t count) {
  ctx.reply.is_resp3() ? ctx.reply.map(count) : ctx.reply.array(count);
}

void reply_label(CommandContext& ctx, std::string_view name, const std::string* value) {
  if (!ctx.reply.is_resp3()) ctx.reply.array(2);
  ctx.reply.bulk(name);
  value == nullptr ? ctx.reply.null() : ctx.reply.bulk(*value);
}

void reply_labels(CommandContext& ctx, const std::vector<SeriesLabel>& labels,
                  const WantedLabels& wanted) {
  if (wanted.all) {
    begin_labels(ctx, labels.size());
    for (const auto& [name, value] : labels) reply_label(ctx, name, &value);
    return;
  }
  begin_labels(ctx, wanted.selected.size());
  for (const std::string_view name : wanted.selected) {
    const auto found = std::find_if(labels.begin(), labels.end(),
                                    [&](const SeriesLabel& label) { return label.first == name; });
    reply_label(ctx, name, found == labels.end() ? nullptr : &found->second);
  }
}

// --- TS.MGET ------------------------------------------------------------------------------------

void ts_mget(CommandContext& ctx) {
  const auto filter = find_word(ctx.args, "FILTER");
  if (!filter.has_value() || *filter + 1 >= ctx.args.size()) return ctx.wrong_arity();
  WantedLabels labels;
  std::vector<LabelCondition> conditions;
  if (!read_wanted_labels(ctx, &labels) ||
      !read_conditions(ctx, ctx.args.subspan(*filter + 1), &conditions))
    return;
  const bool latest = find_word(before_filter(ctx.args), "LATEST").has_value();
  const auto selected = select(ctx, conditions);
  if (!may_read(ctx, selected)) return;
  begin_labels(ctx, selected.size());
  for (const TimeSeries* series : selected) {
    if (!ctx.reply.is_resp3()) ctx.reply.array(3);
    ctx.reply.bulk(series->key());
    if (ctx.reply.is_resp3()) ctx.reply.array(2);
    reply_labels(ctx, series->settings().labels, labels);
    reply_sample_or_nothing(ctx, newest_sample(*series, latest));
  }
}

// --- TS.MRANGE ----------------------------------------------------------------------------------

struct MultiRequest {
  RangeRequest range;
  WantedLabels labels;
  std::vector<LabelCondition> conditions;
  bool leaves_out_empty = false;
  std::optional<std::string_view> group_label;
  Aggregation reducer = Aggregation::kSum;
};

bool is_reducer(Aggregation aggregation) {
  return aggregation != Aggregation::kFirst && aggregation != Aggregation::kLast &&
         aggregation != Aggregation::kTwa;
}

// GROUPBY label REDUCE reducer, the last words of the request.
bool read_group(CommandContext& ctx, size_t at, MultiRequest* request) {
  constexpr size_t kWords = 4;
  const bool is_excluding = is_word(ctx.args.back(), "EXCLUDEEMPTY");
  const size_t words = ctx.args.size() - at - (is_excluding ? 1 : 0);
  if (words != kWords || !is_word(ctx.args[at + 2], "REDUCE")) {
    ctx.wrong_arity();
    return false;
  }
  request->group_label = ctx.args[at + 1];
  const auto reducer = store::aggregation_of(ctx.args[at + 3]);
  if (!reducer.has_value() || !is_reducer(*reducer))
    return ctx.refuse("ERR TSDB: Invalid reducer type");
  request->reducer = *reducer;
  if (request->range.query.aggregations.size() > 1)
    return ctx.refuse("ERR TSDB: GROUPBY is not allowed when multiple aggregators are specified");
  if (request->leaves_out_empty || is_excluding)
    return ctx.refuse("ERR TSDB: EXCLUDEEMPTY is not allowed with GROUPBY");
  return true;
}

bool read_multi(CommandContext& ctx, bool backwards, MultiRequest* request) {
  if (!read_range(ctx, 1, backwards, &request->range) || !read_wanted_labels(ctx, &request->labels))
    return false;
  const auto filter = find_word(ctx.args, "FILTER");
  if (!filter.has_value()) return ctx.refuse("ERR TSDB: missing FILTER argument");
  const auto group = find_word(ctx.args, "GROUPBY", *filter);
  const size_t end = group.value_or(ctx.args.size());
  if (end == *filter + 1) return ctx.refuse("ERR TSDB: missing labels for filter argument");
  request->leaves_out_empty = find_word(before_filter(ctx.args), "EXCLUDEEMPTY").has_value();
  const Arguments words = ctx.args.subspan(*filter + 1, end - *filter - 1);
  if (!read_conditions(ctx, words, &request->conditions)) return false;
  return !group.has_value() || read_group(ctx, *group, request);
}

bool has_rows(const TimeSeries& series, const MultiRequest& request) {
  RangeReader reader(series, request.range.query);
  RangeRow row;
  return reader.next(&row);
}

void reply_each(CommandContext& ctx, std::vector<const TimeSeries*> selected,
                const MultiRequest& request) {
  if (request.leaves_out_empty)
    std::erase_if(selected, [&](const TimeSeries* series) { return !has_rows(*series, request); });
  begin_labels(ctx, selected.size());
  for (const TimeSeries* series : selected) {
    if (!ctx.reply.is_resp3()) ctx.reply.array(3);
    ctx.reply.bulk(series->key());
    if (ctx.reply.is_resp3()) ctx.reply.array(3);
    reply_labels(ctx, series->settings().labels, request.labels);
    if (ctx.reply.is_resp3()) {
      const auto& aggregations = request.range.query.aggregations;
      ctx.reply.map(1);
      ctx.reply.bulk("aggregators");
      ctx.reply.array(aggregations.size());
      for (const Aggregation each : aggregations) ctx.reply.bulk(store::aggregation_name(each));
    }
    reply_rows(ctx, *series, request.range.query, request.range.count);
  }
}

// --- GROUPBY ------------------------------------------------------------------------------------

using SeriesGroup = std::vector<const TimeSeries*>;

// A row to come of one of the series that are merged.
struct Coming {
  int64_t timestamp;
  size_t source;
};

// What is made of the values of one time. When all of them are missing, so is their sum, which is 0
// in a bucket without samples.
double reduced(const Aggregator& reducer) {
  if (reducer.has_value()) return reducer.result(std::nullopt);
  return reducer.kind() == Aggregation::kSum ? std::numeric_limits<double>::quiet_NaN()
                                             : reducer.empty_result();
}

// Rows of all series of the group by their time, those of one time made into one.
void reply_reduced(CommandContext& ctx, const SeriesGroup& group, const MultiRequest& request) {
  const bool backwards = request.range.query.backwards;
  // The heap's first is the nearest; of one time, that of the first series.
  const auto is_farther = [backwards](const Coming& left, const Coming& right) {
    if (left.timestamp == right.timestamp) return left.source > right.source;
    return backwards == (left.timestamp < right.timestamp);
  };
  std::vector<std::unique_ptr<RangeReader>> readers;
  std::vector<RangeRow> rows(group.size());
  std::vector<Coming> heap;
  const auto read_row = [&](size_t source) {
    if (!readers[source]->next(&rows[source])) return;
    heap.push_back({rows[source].timestamp, source});
    std::push_heap(heap.begin(), heap.end(), is_farther);
  };
  for (const TimeSeries* series : group) {
    readers.push_back(std::make_unique<RangeReader>(*series, request.range.query));
    read_row(readers.size() - 1);
  }
  const resp::ReplyBuilder::Later reply = ctx.reply.later();
  Aggregator reducer(request.reducer);
  size_t sent = 0;
  for (; sent < request.range.count && !heap.empty() && !reply_is_lost(ctx.client); ++sent) {
    const int64_t timestamp = heap.front().timestamp;
    reducer.begin(0, 0, std::nullopt);
    while (!heap.empty() && heap.front().timestamp == timestamp) {
      std::pop_heap(heap.begin(), heap.end(), is_farther);
      const size_t source = heap.back().source;
      heap.pop_back();
      reducer.add({timestamp, rows[source].values[0]});
      read_row(source);
    }
    reply_sample(ctx, {timestamp, reduced(reducer)});
  }
  ctx.reply.array_later(reply, sent);
}

std::string joined_keys(const SeriesGroup& group) {
  std::string keys;
  for (const TimeSeries* series : group) {
    if (!keys.empty()) keys += ',';
    keys += series->key();
  }
  return keys;
}

void reply_group(CommandContext& ctx, const std::string& value, const SeriesGroup& group,
                 const MultiRequest& request) {
  const std::string label(*request.group_label);
  const std::string_view reducer = store::aggregation_name(request.reducer);
  if (!ctx.reply.is_resp3()) ctx.reply.array(3);
  ctx.reply.bulk(label + '=' + value);
  std::vector<SeriesLabel> labels = {{label, value}};
  if (ctx.reply.is_resp3()) {
    ctx.reply.array(4);
    reply_labels(ctx, labels, request.labels);
    ctx.reply.map(1);
    ctx.reply.bulk("reducers");
    ctx.reply.array(1);
    ctx.reply.bulk(reducer);
    ctx.reply.map(1);
    ctx.reply.bulk("sources");
    ctx.reply.array(group.size());
    for (const TimeSeries* series : group) ctx.reply.bulk(series->key());
  } else {
    labels.emplace_back("__reducer__", reducer);
    labels.emplace_back("__source__", joined_keys(group));
    reply_labels(ctx, labels, request.labels);
  }
  reply_reduced(ctx, group, request);
}

void multi_range(CommandContext& ctx, bool backwards) {
  MultiRequest request;
  if (!read_multi(ctx, backwards, &request)) return;
  const auto selected = select(ctx, request.conditions);
  if (!may_read(ctx, selected)) return;
  if (!is_not_too_wide(ctx, selected, request.range)) return;
  if (!request.group_label.has_value()) return reply_each(ctx, selected, request);
  std::map<std::string, SeriesGroup> groups;
  for (const TimeSeries* series : selected) {
    const std::string* const value = series->label(*request.group_label);
    if (value != nullptr) groups[*value].push_back(series);
  }
  begin_labels(ctx, groups.size());
  for (const auto& [value, group] : groups) reply_group(ctx, value, group, request);
}

void ts_mrange(CommandContext& ctx) {
  multi_range(ctx, false);
}

void ts_mrevrange(CommandContext& ctx) {
  multi_range(ctx, true);
}

// --- TS.QUERYINDEX and TS.QUERYLABELS -----------------------------------------------------------

void ts_queryindex(CommandContext& ctx) {
  std::vector<LabelCondition> conditions;
  if (!read_conditions(ctx, ctx.args.subspan(1), &conditions)) return;
  const auto selected = select(ctx, conditions);
  ctx.reply.set(selected.size());
  for (const TimeSeries* series : selected) ctx.reply.bulk(series->key());
}

void ts_querylabels(CommandContext& ctx) {
  const bool of_label = is_word(ctx.args[1], "VALUES");
  if (!of_label && !is_word(ctx.args[1], "LABELS"))
    return ctx.reply.error("ERR TSDB: unknown subtype, must be one of LABELS|VALUES");
  const size_t next = of_label ? 3 : 2;
  if (ctx.args.size() < next) return ctx.wrong_arity();
  std::vector<LabelCondition> conditions;
  if (ctx.args.size() > next) {
    if (!is_word(ctx.args[next], "FILTER"))
      return ctx.reply.error("ERR TSDB: unknown argument, expected FILTER");
    if (ctx.args.size() == next + 1)
      return ctx.reply.error("ERR TSDB: FILTER given with no filter expressions");
    if (!read_conditions(ctx, ctx.args.subspan(next + 1), &conditions)) return;
  }
  std::set<std::string_view> names;
  const auto collect = [&](const TimeSeries& series) {
    if (!is_seen(ctx, series)) return;
    for (const auto& [name, value] : series.settings().labels) {
      if (!of_label) names.insert(name);
      if (of_label && name == ctx.args[2]) names.insert(value);
    }
  };
  if (conditions.empty()) {
    if (ctx.db.series_index() != nullptr) ctx.db.series_index()->for_each(collect);
  } else {
    for (const TimeSeries* series : select(ctx, conditions)) collect(*series);
  }
  ctx.reply.set(names.size());
  for (const std::string_view name : names) ctx.reply.bulk(name);
}

constexpr CommandRow kQueryRows[] = {
    {"TS.MGET",
     ts_mget,
     "[LATEST] [labels=WITHLABELS|SELECTED_LABELS label...] FILTER filterExpr...",
     kReadOnly | kModule,
     {},
     kAclTimeSeries,
     Group::kModule,
     "8.0.0",
     "O(N) where N is the number of time series that a condition names.",
     "Returns the newest samples of time series with certain labels.",
     {.tips = "dont_cache", .module = "timeseries"}},
    {"TS.MRANGE",
     ts_mrange,
     "fromTimestamp toTimestamp [LATEST] [FILTER_BY_TS ts:integer...] [FILTER_BY_VALUE "
     "bounds=min:double max:double] [labels=WITHLABELS|SELECTED_LABELS label...] [COUNT count] "
     "[aggregation=[ALIGN align] AGGREGATION {buckets=aggregators bucketDuration:integer} "
     "[BUCKETTIMESTAMP bt] [EMPTY]] [FILTER filterExpr...] [GROUPBY group=label REDUCE reducer] "
     "[EXCLUDEEMPTY]@8.10.0 _",
     kReadOnly | kModule,
     {},
     kAclTimeSeries,
     Group::kModule,
     "8.0.0",
     "O(N+K) where N is the number of time series that a condition names and K the number of "
     "samples in the range.",
     "Returns the samples or aggregations of time series with certain labels in a range.",
     {.tips = "dont_cache", .module = "timeseries"}},
    {"TS.MREVRANGE",
     ts_mrevrange,
     "fromTimestamp toTimestamp [LATEST] [FILTER_BY_TS ts:integer...] [FILTER_BY_VALUE "
     "bounds=min:double max:double] [labels=WITHLABELS|SELECTED_LABELS label...] [COUNT count] "
     "[aggregation=[ALIGN align] AGGREGATION {buckets=aggregators bucketDuration:integer} "
     "[BUCKETTIMESTAMP bt] [EMPTY]] [FILTER filterExpr...] [GROUPBY group=label REDUCE reducer] "
     "[EXCLUDEEMPTY]@8.10.0 _",
     kReadOnly | kModule,
     {},
     kAclTimeSeries,
     Group::kModule,
     "8.0.0",
     "O(N+K) where N is the number of time series that a condition names and K the number of "
     "samples in the range.",
     "Returns the samples or aggregations of time series with certain labels in a range, the "
     "newest first.",
     {.tips = "dont_cache", .module = "timeseries"}},
    {"TS.QUERYINDEX",
     ts_queryindex,
     "filterExpr...",
     kReadOnly | kModule,
     {},
     kAclTimeSeries,
     Group::kModule,
     "8.0.0",
     "O(N) where N is the number of time series that a condition names.",
     "Returns the keys of time series with certain labels.",
     {.tips = "dont_cache", .module = "timeseries"}},
    {"TS.QUERYLABELS",
     ts_querylabels,
     "{subtype=LABELS|VALUES label} [FILTER filterExpr...]",
     kReadOnly | kModule,
     {},
     kAclTimeSeries,
     Group::kModule,
     "8.10.0",
     "O(N) where N is the number of time series that a condition names, or of all.",
     "Returns the names of the labels of time series, or the values of one.",
     {.tips = "dont_cache", .module = "timeseries"}},
};

}  // namespace

std::span<const CommandRow> time_series_query_rows() {
  return kQueryRows;
}

}  // namespace latchkey::commands
