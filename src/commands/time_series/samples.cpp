// Samples of time series: TS.ADD, TS.MADD, TS.INCRBY, TS.DECRBY, TS.DEL, TS.GET and TS.READ.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/text/number.h"
#include "commands/keys/typed_key.h"
#include "commands/time_series/compaction.h"
#include "commands/time_series/row_groups.h"
#include "commands/time_series/series_arguments.h"
#include "commands/time_series/series_replies.h"
#include "server/client/blocking.h"
#include "server/client/client.h"
#include "server/server.h"
#include "store/time_series/label_index.h"

namespace latchkey::commands {

using namespace server;
using store::CompactionRule;
using store::DuplicatePolicy;
using store::KeyRef;
using store::RangeQuery;
using store::Sample;
using store::SeriesSettings;
using store::TimeSeries;
using Added = TimeSeries::Added;

namespace {

constexpr std::string_view kRefused =
    "ERR TSDB: Error at upsert, update is not supported when DUPLICATE_POLICY is set to BLOCK "
    "mode, or either current or new value is NaN and DUPLICATE_POLICY is MAX/MIN/SUM";
constexpr std::string_view kNoSeries = "ERR TSDB: the key is not a TSDB key";

// Adds the sample and compacts; nothing else. Returns what happened.
Added add_sample(CommandContext& ctx, TimeSeries& series, Sample sample, DuplicatePolicy policy) {
  const Added added = series.add(sample, policy);
  if (added == Added::kAppended) compact_appended(ctx, series, sample);
  if (added == Added::kInserted) compact_inserted(ctx, series, sample.timestamp);
  return added;
}

// The reply to a sample that was added or not.
void reply_added(CommandContext& ctx, const TimeSeries& series, Sample sample, Added added) {
  switch (added) {
    case Added::kAppended:
    case Added::kInserted:
      return ctx.reply.integer(sample.timestamp);
    case Added::kIgnored:
      return ctx.reply.integer(series.last().timestamp);
    case Added::kTooOld:
      return ctx.reply.error("ERR TSDB: Timestamp is older than retention");
    case Added::kRefused:
      return ctx.reply.error(kRefused);
  }
}

bool is_stored(Added added) {
  return added == Added::kAppended || added == Added::kInserted;
}

// Sends the event of an addition. One that is ignored has it as well, but is no change.
void tell_added(CommandContext& ctx, std::string_view event, Added added) {
  if (is_stored(added)) return ctx.changed(ctx.args[1], EventClass::kModule, event);
  if (added != Added::kIgnored) return;
  ctx.propagate_nothing();
  ctx.events.happened(ctx.db, ctx.args[1], EventClass::kModule, event);
}

// Makes the series of the request's key, which is not there, with those that compact it. `ref` is
// found anew. False with an error sent.
bool make_series(CommandContext& ctx, KeyRef& ref) {
  SeriesSettings settings;
  if (!read_settings(ctx, &settings)) return false;
  ctx.db.set_value(ref, TimeSeries::kType, std::make_unique<TimeSeries>(std::move(settings)));
  make_policy_destinations(ctx, ctx.args[1]);
  ref = ctx.db.find_for_write(ctx.args[1]);
  return true;
}

// --- TS.ADD and TS.MADD -------------------------------------------------------------------------

void ts_add(CommandContext& ctx) {
  Sample sample;
  if (!read_sample_value(ctx, ctx.args[3], &sample.value) ||
      !read_timestamp(ctx, ctx.args[2], &sample.timestamp))
    return;
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  if (ref && ref->type() != TimeSeries::kType) return ctx.reply.error(kNoSeries);
  const bool is_new = !ref;
  if (is_new && !make_series(ctx, ref)) return;
  auto& series = value_of<TimeSeries>(ref);
  DuplicatePolicy policy = DuplicatePolicy::kBlock;
  if (!is_new && !read_duplicate_policy(ctx, series, &policy)) return;
  const Added added = add_sample(ctx, series, sample, policy);
  if (ctx.args[2] == "*" && is_stored(added))
    ctx.propagate({"TS.ADD", ctx.args[1], sample.timestamp}, ctx.args.subspan(3));
  tell_added(ctx, "ts.add", added);
  reply_added(ctx, series, sample, added);
}

struct BatchItem {
  std::string_view key;
  std::string_view value;
  Sample sample;
};

// Adds one sample of a batch and replies to it. Whether it was stored.
bool add_of_batch(CommandContext& ctx, std::string_view timestamp, BatchItem* item) {
  if (!read_sample_value(ctx, item->value, &item->sample.value) ||
      !read_timestamp(ctx, timestamp, &item->sample.timestamp))
    return false;
  const KeyRef ref = ctx.db.find_for_write(item->key);
  if (!ref || ref->type() != TimeSeries::kType) return ctx.refuse(kNoSeries);
  auto& series = value_of<TimeSeries>(ref);
  const Added added = add_sample(ctx, series, item->sample, policy_of(ctx, series));
  reply_added(ctx, series, item->sample, added);
  return is_stored(added);
}

void ts_madd(CommandContext& ctx) {
  constexpr size_t kWords = 3;
  if ((ctx.args.size() - 1) % kWords != 0) return ctx.wrong_arity();
  const size_t count = (ctx.args.size() - 1) / kWords;
  std::vector<BatchItem> stored;
  ctx.reply.array(count);
  for (size_t i = 0; i < count; ++i) {
    const Arguments words = ctx.args.subspan(1 + i * kWords, kWords);
    BatchItem item{words[0], words[2], {}};
    if (add_of_batch(ctx, words[1], &item)) stored.push_back(item);
  }
  if (stored.empty()) return ctx.propagate_nothing();
  std::vector<std::string> timestamps;
  timestamps.reserve(stored.size());
  std::vector<std::string_view> words;
  for (const BatchItem& item : stored) {
    timestamps.push_back(std::to_string(item.sample.timestamp));
    words.insert(words.end(), {item.key, timestamps.back(), item.value});
  }
  ctx.propagate({"TS.MADD"}, words);
  for (const BatchItem& item : stored) ctx.changed(item.key, EventClass::kModule, "ts.add");
}

// --- TS.INCRBY and TS.DECRBY --------------------------------------------------------------------

bool read_change(CommandContext& ctx, double* change) {
  return base::parse_double(ctx.args[2], change) ||
         ctx.refuse("ERR TSDB: invalid increase/decrease value");
}

// TIMESTAMP's, or the time of the request.
bool read_change_time(CommandContext& ctx, int64_t* timestamp, bool* is_given) {
  const auto at = find_word(ctx.args, "TIMESTAMP");
  *is_given = at.has_value() && *at + 1 < ctx.args.size() && ctx.args[*at + 1] != "*";
  if (!at.has_value()) {
    *timestamp = ctx.now_ms();
    return true;
  }
  if (*at + 1 >= ctx.args.size()) return ctx.refuse("ERR TSDB: invalid timestamp");
  return read_timestamp(ctx, ctx.args[*at + 1], timestamp);
}

// The request with the time that it was given, or that it did not name.
void propagate_change(CommandContext& ctx, std::string_view name, int64_t timestamp) {
  std::vector<std::string_view> words(ctx.args.begin() + 2, ctx.args.end());
  const std::string time = std::to_string(timestamp);
  if (const auto at = find_word(ctx.args, "TIMESTAMP")) {
    words[*at + 1 - 2] = time;
  } else {
    // Labels are whatever stands behind LABELS.
    words.insert(words.begin() + 1, {"TIMESTAMP", time});
  }
  ctx.propagate({name, ctx.args[1]}, words);
}

void change_by(CommandContext& ctx, double sign, std::string_view name, std::string_view event) {
  double change;
  Sample sample;
  bool is_given;
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  if (!is_series_or_none(ctx, ref)) return;
  if (!read_change(ctx, &change) || !read_change_time(ctx, &sample.timestamp, &is_given)) return;
  if (!ref && !make_series(ctx, ref)) return;
  auto& series = value_of<TimeSeries>(ref);
  if (!series.empty() && sample.timestamp < series.last().timestamp)
    return ctx.reply.error(
        "TSDB: timestamp must be equal to or higher than the maximum existing timestamp");
  const double present = series.empty() ? 0 : series.last().value;
  if (std::isnan(present)) return ctx.reply.error("ERR TSDB: cannot increment/decrement NaN value");
  sample.value = present + sign * change;
  const Added added = add_sample(ctx, series, sample, DuplicatePolicy::kLast);
  if (!is_given && is_stored(added)) propagate_change(ctx, name, sample.timestamp);
  tell_added(ctx, event, added);
  reply_added(ctx, series, sample, added);
}

void ts_incrby(CommandContext& ctx) {
  change_by(ctx, 1, "TS.INCRBY", "ts.incrby");
}

void ts_decrby(CommandContext& ctx) {
  change_by(ctx, -1, "TS.DECRBY", "ts.decrby");
}

// --- TS.DEL -------------------------------------------------------------------------------------

// Whether what is gone would be needed to compact again what is left of a bucket.
bool reaches_behind_retention(const TimeSeries& series, int64_t from) {
  const int64_t oldest = series.oldest_visible();
  if (series.settings().retention_ms == 0 || series.empty()) return false;
  return std::any_of(series.rules().begin(), series.rules().end(), [&](const CompactionRule& rule) {
    return store::bucket_start(from, rule.bucket_ms, rule.align) < oldest;
  });
}

void ts_del(CommandContext& ctx) {
  RangeQuery range;
  bool is_from_open;
  bool is_to_open;
  if (!read_range_ends(ctx, ctx.args[2], ctx.args[3], &range, &is_from_open, &is_to_open)) return;
  const KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  TimeSeries* const series = existing_series(ctx, ref);
  if (series == nullptr) return;
  if (!series->rules().empty()) series->index()->forget_lost_links(*series);
  if (reaches_behind_retention(*series, range.from))
    return ctx.reply.error(
        "ERR TSDB: When a series has compactions, deleting samples or compaction buckets beyond "
        "the series retention period is not possible");
  const size_t erased = series->erase(range.from, range.to);
  if (erased != 0) compact_erased(ctx, *series, range.from, range.to);
  ctx.changed(ctx.args[1], EventClass::kModule, "ts.del");
  ctx.reply.integer(static_cast<int64_t>(erased));
}

// --- TS.GET and TS.READ -------------------------------------------------------------------------

void ts_get(CommandContext& ctx) {
  if (ctx.args.size() > 3) return ctx.wrong_arity();
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  const TimeSeries* const series = existing_series(ctx, ref);
  if (series == nullptr) return;
  const bool latest = ctx.args.size() == 3 && is_word(ctx.args[2], "LATEST");
  if (ctx.args.size() == 3 && !latest) return ctx.reply.error("ERR TSDB: wrong 3rd argument");
  reply_sample_or_nothing(ctx, newest_sample(*series, latest));
}

struct ReadRequest {
  std::string_view from;
  bool waits = false;
  int64_t wait_ms = 0;
  int64_t least = 1;
  int64_t most = INT64_MAX;
};

// False with an error sent.
bool read_request(CommandContext& ctx, ReadRequest* request) {
  request->from = ctx.args[2];
  int64_t timestamp;
  const std::string_view from = request->from;
  if (from != "-" && from != "+" && from != "$" &&
      (!base::parse_int64(from, &timestamp) || timestamp < 0))
    return ctx.refuse("TSDB: invalid timestamp");
  for (ArgReader args(ctx.args, 3); args.more();) {
    std::string_view text;
    if (args.left() >= 3 && args.word("BLOCK", &text)) {
      const std::string_view least = args.next();
      // The reference says the same of a second number that is none.
      if (!base::parse_int64(text, &request->wait_ms) || request->wait_ms < 0 ||
          !base::parse_int64(least, &request->least))
        return ctx.refuse("TSDB: BLOCK milliseconds must be a non-negative integer");
      if (request->least <= 0)
        return ctx.refuse("TSDB: BLOCK min_count must be a positive integer");
      request->waits = true;
    } else if (args.word("MAX_COUNT", &text)) {
      if (!base::parse_int64(text, &request->most) || request->most <= 0)
        return ctx.refuse("TSDB: MAX_COUNT must be a positive integer");
    } else {
      ctx.wrong_arity();
      return false;
    }
  }
  if (request->waits && request->least > request->most)
    return ctx.refuse("TSDB: BLOCK min_count must be <= MAX_COUNT");
  if (request->waits && ctx.client.has(kClientDenyBlocking))
    return ctx.refuse(
        "TSDB: blocking TS.READ (with BLOCK) is not allowed inside MULTI, EVAL, or a "
        "deny-blocking context");
  return true;
}

// From where on the samples are asked for: "+" is the newest one's time, "$" the one behind it.
int64_t read_from(const TimeSeries* series, std::string_view text) {
  const int64_t newest = series == nullptr || series->empty() ? 0 : series->last().timestamp;
  int64_t from = 0;
  if (text == "+") return newest;
  if (text == "$") return newest == INT64_MAX ? newest : newest + 1;
  if (text != "-") base::parse_int64(text, &from);
  return from;
}

// Whether there are so many samples. O(chunks), for each addition to the series asks while a client
// waits.
bool has_enough(const TimeSeries& series, int64_t from, int64_t least) {
  return series.count_from(std::max(from, series.oldest_visible())) >= static_cast<size_t>(least);
}

// When a request that waits is to be served with what there is: one that is run again has begun
// before. 0: never.
int64_t end_of_wait_ms(CommandContext& ctx, const ReadRequest& request) {
  if (request.wait_ms == 0) return 0;
  const int64_t kept_ms = ctx.server.blocking().kept_deadline_ms();
  if (kept_ms > 0) return kept_ms - 1;
  return request.wait_ms >= INT64_MAX - ctx.now_ms() ? 0 : ctx.now_ms() + request.wait_ms;
}

void wait_for_samples(CommandContext& ctx, const ReadRequest& request, int64_t from) {
  // "$" and "+" are of now.
  std::vector<std::string_view> words(ctx.args.begin(), ctx.args.end());
  const std::string time = std::to_string(from);
  words[2] = time;
  CommandContext resolved = ctx.with_args(words);
  const int64_t end_ms = end_of_wait_ms(ctx, request);
  // It is run again just before its deadline, for a null would be the reply then.
  ctx.server.blocking().wait(resolved, {.keys = Arguments(words).subspan(1, 1),
                                        .type = TimeSeries::kType,
                                        .deadline_ms = end_ms == 0 ? 0 : end_ms + 1,
                                        .again_ms = end_ms});
}

void ts_read(CommandContext& ctx) {
  ReadRequest request;
  if (!read_request(ctx, &request)) return;
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  if (ref && ref->type() != TimeSeries::kType)
    return ctx.reply.error("WRONGTYPE Operation against a key holding the wrong kind of value");
  const TimeSeries* const series = ref ? &value_of<TimeSeries>(ref) : nullptr;
  RangeQuery query;
  query.from = read_from(series, request.from);
  const int64_t end_ms = end_of_wait_ms(ctx, request);
  const bool may_wait = request.waits && (end_ms == 0 || ctx.now_ms() < end_ms);
  if (may_wait && (series == nullptr || !has_enough(*series, query.from, request.least)))
    return wait_for_samples(ctx, request, query.from);
  if (series == nullptr) return ctx.reply.empty_array();
  reply_rows(ctx, *series, query, static_cast<size_t>(request.most));
}

constexpr CommandRow kSampleRows[] = {
    {"TS.ADD",
     ts_add,
     "key timestamp value:double [RETENTION retentionPeriod:integer] [ENCODING "
     "enc=COMPRESSED|UNCOMPRESSED] [CHUNK_SIZE size:integer] [DUPLICATE_POLICY "
     "policy=BLOCK|FIRST|LAST|MIN|MAX|SUM] [ON_DUPLICATE policy_ovr=BLOCK|FIRST|LAST|MIN|MAX|SUM] "
     "[IGNORE ignore=ignoreMaxTimediff:integer ignoreMaxValDiff:double] [labels=LABELS "
     "{label-value=label value}...]",
     kWrite | kDenyOom | kModule,
     keys(1).rw().insert().note(""),
     kAclTimeSeries,
     Group::kModule,
     "8.0.0",
     "O(M) where M is the number of compaction rules, plus the samples of a chunk and of a "
     "bucket for each rule when the sample is not the newest.",
     "Adds a sample to a time series. Creates the key if it doesn't exist.",
     {.module = "timeseries"}},
    {"TS.DECRBY",
     ts_decrby,
     "key subtrahend:double [TIMESTAMP timestamp] [RETENTION retentionPeriod:integer] [ENCODING "
     "enc=COMPRESSED|UNCOMPRESSED] [CHUNK_SIZE size:integer] [DUPLICATE_POLICY "
     "policy=BLOCK|FIRST|LAST|MIN|MAX|SUM] [IGNORE ignore=ignoreMaxTimediff:integer "
     "ignoreMaxValDiff:double] [labels=LABELS {label-value=label value}...]",
     kWrite | kDenyOom | kModule,
     keys(1).rw(),
     kAclTimeSeries,
     Group::kModule,
     "8.0.0",
     "O(M) where M is the number of compaction rules.",
     "Adds a sample whose value is less than the newest one's by a number, or changes the "
     "newest.",
     {.module = "timeseries"}},
    {"TS.DEL",
     ts_del,
     "key fromTimestamp:integer toTimestamp:integer",
     kWrite | kModule,
     keys(1).rw(),
     kAclTimeSeries,
     Group::kModule,
     "8.0.0",
     "O(N) where N is the number of samples in the chunks of the range.",
     "Removes the samples of a range of time.",
     {.module = "timeseries"}},
    {"TS.GET",
     ts_get,
     "key [LATEST] [_...]",
     kReadOnly | kModule,
     keys(1).ro(),
     kAclTimeSeries,
     Group::kModule,
     "8.0.0",
     "O(1)",
     "Returns the newest sample of a time series.",
     {.module = "timeseries"}},
    {"TS.INCRBY",
     ts_incrby,
     "key addend:double [TIMESTAMP timestamp] [RETENTION retentionPeriod:integer] [ENCODING "
     "enc=COMPRESSED|UNCOMPRESSED] [CHUNK_SIZE size:integer] [DUPLICATE_POLICY "
     "policy=BLOCK|FIRST|LAST|MIN|MAX|SUM] [IGNORE ignore=ignoreMaxTimediff:integer "
     "ignoreMaxValDiff:double] [labels=LABELS {label-value=label value}...]",
     kWrite | kDenyOom | kModule,
     keys(1).rw(),
     kAclTimeSeries,
     Group::kModule,
     "8.0.0",
     "O(M) where M is the number of compaction rules.",
     "Adds a sample whose value is more than the newest one's by a number, or changes the "
     "newest.",
     {.module = "timeseries"}},
    {"TS.MADD",
     ts_madd,
     "{ktv=key timestamp value:double}...",
     kWrite | kDenyOom | kModule,
     keys(1, -1, 3).rw().insert(),
     kAclTimeSeries,
     Group::kModule,
     "8.0.0",
     "O(N*M) where N is the number of samples and M the number of compaction rules.",
     "Adds samples to several time series.",
     {.module = "timeseries"}},
    {"TS.READ",
     ts_read,
     "key timestamp [BLOCK wait=milliseconds:integer min_count:integer] [MAX_COUNT "
     "max_count:integer]",
     kReadOnly | kModule,
     keys(1).ro(),
     kAclTimeSeries,
     Group::kModule,
     "8.10.0",
     "O(log(N)+K) where N is the number of chunks and K the number of samples returned.",
     "Returns the samples from a time on, and can wait until there are enough.",
     {.tips = "dont_cache", .module = "timeseries"}},
};

}  // namespace

std::span<const CommandRow> time_series_sample_rows() {
  return kSampleRows;
}

}  // namespace latchkey::commands
