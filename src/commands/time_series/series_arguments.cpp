#include "commands/time_series/series_arguments.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <unordered_map>

#include "base/text/number.h"
#include "base/text/text.h"
#include "commands/keys/typed_key.h"
#include "server/config/config.h"
#include "server/server.h"

namespace latchkey::commands {

using namespace server;
using store::Aggregation;
using store::DuplicatePolicy;
using store::KeyRef;
using store::RangeQuery;
using store::SeriesEncoding;
using store::SeriesSettings;
using store::TimeSeries;

namespace {

// Values that EMPTY may give in one request, so that it does not ask for memory without limit.
constexpr uint64_t kMostEmptyValues = uint64_t{1} << 22;
// Timestamps that FILTER_BY_TS takes; what follows is passed over.
constexpr size_t kMostTimestamps = 128;
constexpr size_t kChunkSizeStep = 8;

bool is_digit(char byte) {
  return byte >= '0' && byte <= '9';
}

// Steps over digits, and returns how many.
size_t digits(std::string_view text, size_t* at) {
  const size_t begin = *at;
  while (*at < text.size() && is_digit(text[*at])) ++*at;
  return *at - begin;
}

// Whether a text is a number by the grammar of JSON.
bool is_json_number(std::string_view text) {
  size_t at = text.starts_with('-') ? 1 : 0;
  const bool begins_with_zero = at < text.size() && text[at] == '0';
  const size_t whole = digits(text, &at);
  if (whole == 0 || (begins_with_zero && whole > 1)) return false;
  if (at < text.size() && text[at] == '.') {
    ++at;
    if (digits(text, &at) == 0) return false;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    if (digits(text, &at) == 0) return false;
  }
  return at == text.size();
}

// The word behind another one; nothing when there is no such word, and false when nothing follows.
bool value_of_word(Arguments args, std::string_view word, std::optional<std::string_view>* value,
                   size_t from = 1) {
  const auto at = find_word(args, word, from);
  if (!at.has_value()) return true;
  if (*at + 1 >= args.size()) return false;
  *value = args[*at + 1];
  return true;
}

}  // namespace

std::optional<size_t> find_word(Arguments args, std::string_view upper_case_word, size_t from) {
  for (size_t i = from; i < args.size(); ++i) {
    if (is_word(args[i], upper_case_word)) return i;
  }
  return std::nullopt;
}

Arguments before_filter(Arguments args, size_t from) {
  return args.first(find_word(args, "FILTER", from).value_or(args.size()));
}

// --- Samples ------------------------------------------------------------------------------------

bool read_timestamp(CommandContext& ctx, std::string_view text, int64_t* timestamp) {
  if (text == "*") {
    *timestamp = ctx.now_ms();
    return true;
  }
  if (!base::parse_int64(text, timestamp)) return ctx.refuse("ERR TSDB: invalid timestamp");
  if (*timestamp < 0)
    return ctx.refuse("ERR TSDB: invalid timestamp, must be a nonnegative integer");
  return true;
}

bool parse_sample_value(std::string_view text, double* value) {
  const bool has_sign = text.starts_with('-') || text.starts_with('+');
  if (base::equal_ignoring_case(text.substr(has_sign ? 1 : 0), "nan")) {
    *value = std::numeric_limits<double>::quiet_NaN();
    return true;
  }
  return is_json_number(text) && base::parse_rounded_double(text, value) && !std::isinf(*value);
}

bool read_sample_value(CommandContext& ctx, std::string_view text, double* value) {
  return parse_sample_value(text, value) || ctx.refuse("ERR TSDB: invalid value");
}

// --- Settings -----------------------------------------------------------------------------------

SeriesEncoding configured_encoding(const ConfigValues& config) {
  return config.ts_encoding == TsEncoding::kCompressed ? SeriesEncoding::kCompressed
                                                       : SeriesEncoding::kUncompressed;
}

namespace {

SeriesSettings default_settings(const ConfigValues& config) {
  SeriesSettings settings;
  settings.retention_ms = config.ts_retention_policy;
  settings.chunk_size = static_cast<size_t>(config.ts_chunk_size_bytes);
  settings.encoding = configured_encoding(config);
  settings.ignore_max_time_diff = config.ts_ignore_max_time_diff;
  settings.ignore_max_val_diff = config.ts_ignore_max_val_diff;
  return settings;
}

DuplicatePolicy default_policy(const ConfigValues& config) {
  switch (config.ts_duplicate_policy) {
    case TsDuplicatePolicy::kBlock:
      return DuplicatePolicy::kBlock;
    case TsDuplicatePolicy::kFirst:
      return DuplicatePolicy::kFirst;
    case TsDuplicatePolicy::kLast:
      return DuplicatePolicy::kLast;
    case TsDuplicatePolicy::kMin:
      return DuplicatePolicy::kMin;
    case TsDuplicatePolicy::kMax:
      return DuplicatePolicy::kMax;
    case TsDuplicatePolicy::kSum:
      return DuplicatePolicy::kSum;
  }
  return DuplicatePolicy::kBlock;
}

// Pairs up to the end, whatever words are among them.
bool read_labels(CommandContext& ctx, SeriesSettings* settings, bool* names_labels) {
  const auto at = find_word(ctx.args, "LABELS");
  *names_labels = at.has_value();
  if (!at.has_value()) return true;
  settings->labels.clear();
  for (size_t i = *at + 1; i + 1 < ctx.args.size(); i += 2) {
    const std::string_view name = ctx.args[i];
    const std::string_view value = ctx.args[i + 1];
    // Values with these could not be told from lists in queries.
    if (name.empty() || value.empty() || value.find_first_of("(),") != std::string_view::npos)
      return ctx.refuse("ERR TSDB: Couldn't parse LABELS");
    settings->labels.emplace_back(name, value);
  }
  return true;
}

bool read_retention(CommandContext& ctx, SeriesSettings* settings) {
  std::optional<std::string_view> text;
  if (!value_of_word(ctx.args, "RETENTION", &text) ||
      (text.has_value() && !base::parse_int64(*text, &settings->retention_ms)))
    return ctx.refuse("ERR TSDB: Couldn't parse RETENTION");
  // Without a code, as the reference sends it.
  if (settings->retention_ms < 0) return ctx.refuse("TSDB: Couldn't parse RETENTION");
  return true;
}

bool read_chunk_size(CommandContext& ctx, SeriesSettings* settings) {
  std::optional<std::string_view> text;
  auto size = static_cast<int64_t>(settings->chunk_size);
  if (!value_of_word(ctx.args, "CHUNK_SIZE", &text) ||
      (text.has_value() && !base::parse_int64(*text, &size)))
    return ctx.refuse("ERR TSDB: Couldn't parse CHUNK_SIZE");
  if (size < static_cast<int64_t>(SeriesSettings::kMinChunkSize) ||
      size > static_cast<int64_t>(SeriesSettings::kMaxChunkSize) || size % kChunkSizeStep != 0)
    return ctx.refuse(
        "ERR TSDB: CHUNK_SIZE value must be a multiple of 8 in the range [48 .. 1048576]");
  settings->chunk_size = static_cast<size_t>(size);
  return true;
}

bool read_encoding(CommandContext& ctx, SeriesSettings* settings) {
  if (find_word(ctx.args, "UNCOMPRESSED").has_value())
    settings->encoding = SeriesEncoding::kUncompressed;
  const auto at = find_word(ctx.args, "ENCODING");
  if (!at.has_value()) return true;
  if (*at + 1 >= ctx.args.size()) {
    ctx.wrong_arity();
    return false;
  }
  if (is_word(ctx.args[*at + 1], "COMPRESSED")) {
    settings->encoding = SeriesEncoding::kCompressed;
  } else if (is_word(ctx.args[*at + 1], "UNCOMPRESSED")) {
    settings->encoding = SeriesEncoding::kUncompressed;
  } else {
    return ctx.refuse("ERR TSDB: unknown ENCODING parameter");
  }
  return true;
}

bool read_policy(CommandContext& ctx, std::string_view word, DuplicatePolicy* policy) {
  std::optional<std::string_view> text;
  if (!value_of_word(ctx.args, word, &text))
    return ctx.refuse("ERR TSDB: Couldn't parse DUPLICATE_POLICY");
  if (!text.has_value()) return true;
  const auto named = store::duplicate_policy_of(*text);
  if (!named.has_value()) return ctx.refuse("ERR TSDB: Unknown DUPLICATE_POLICY");
  *policy = *named;
  return true;
}

bool read_ignored(CommandContext& ctx, SeriesSettings* settings) {
  const auto at = find_word(ctx.args, "IGNORE");
  if (!at.has_value()) return true;
  int64_t time_diff;
  double val_diff;
  if (*at + 2 >= ctx.args.size() || !base::parse_int64(ctx.args[*at + 1], &time_diff) ||
      !base::parse_double(ctx.args[*at + 2], &val_diff))
    return ctx.refuse("ERR TSDB: Couldn't parse IGNORE");
  if (time_diff < 0 || val_diff < 0)
    return ctx.refuse("ERR TSDB: IGNORE arguments cannot be negative");
  settings->ignore_max_time_diff = time_diff;
  settings->ignore_max_val_diff = val_diff;
  return true;
}

}  // namespace

bool read_changed_settings(CommandContext& ctx, SeriesSettings* settings, bool* names_labels) {
  return read_labels(ctx, settings, names_labels) && read_retention(ctx, settings) &&
         read_chunk_size(ctx, settings) && read_encoding(ctx, settings) &&
         read_policy(ctx, "DUPLICATE_POLICY", &settings->duplicate_policy) &&
         read_ignored(ctx, settings);
}

bool read_settings(CommandContext& ctx, SeriesSettings* settings) {
  const ConfigValues& config = ctx.server.config().values();
  *settings = default_settings(config);
  settings->duplicate_policy = default_policy(config);
  bool names_labels;
  return read_changed_settings(ctx, settings, &names_labels);
}

DuplicatePolicy policy_of(CommandContext& ctx, const TimeSeries& series) {
  const DuplicatePolicy own = series.settings().duplicate_policy;
  return own == DuplicatePolicy::kNone ? default_policy(ctx.server.config().values()) : own;
}

bool read_duplicate_policy(CommandContext& ctx, const TimeSeries& series, DuplicatePolicy* policy) {
  *policy = policy_of(ctx, series);
  return read_policy(ctx, "ON_DUPLICATE", policy);
}

bool is_series_or_none(CommandContext& ctx, const KeyRef& ref) {
  if (!ref || ref->type() == TimeSeries::kType) return true;
  return ctx.refuse("ERR WRONGTYPE Operation against a key holding the wrong kind of value");
}

TimeSeries* existing_series(CommandContext& ctx, const KeyRef& ref) {
  if (!is_series_or_none(ctx, ref)) return nullptr;
  if (ref) return &value_of<TimeSeries>(ref);
  return ctx.refuse("ERR TSDB: the key does not exist", nullptr);
}

// --- Ranges -------------------------------------------------------------------------------------

bool read_range_ends(CommandContext& ctx, std::string_view from, std::string_view to,
                     RangeQuery* query, bool* is_from_open, bool* is_to_open) {
  *is_from_open = from == "-";
  *is_to_open = to == "+";
  if (!*is_from_open && (!base::parse_int64(from, &query->from) || query->from < 0))
    return ctx.refuse("ERR TSDB: wrong fromTimestamp");
  if (!*is_to_open && (!base::parse_int64(to, &query->to) || query->to < 0))
    return ctx.refuse("ERR TSDB: wrong toTimestamp");
  return true;
}

std::optional<std::string_view> parse_aggregations(std::string_view text,
                                                   std::vector<Aggregation>* aggregations) {
  // More than there are kinds.
  constexpr size_t kMost = 32;
  while (true) {
    const size_t end = text.find(',');
    const std::string_view name = text.substr(0, end);
    if (name.empty()) return "ERR TSDB: Empty aggregation type in list";
    const auto aggregation = store::aggregation_of(name);
    if (!aggregation.has_value()) return "ERR TSDB: Unknown aggregation type";
    if (aggregations->size() == kMost) return "ERR TSDB: Too many aggregation types";
    aggregations->push_back(*aggregation);
    if (end == std::string_view::npos) return std::nullopt;
    text.remove_prefix(end + 1);
  }
}

namespace {

// Reads the options of a range from the argument at `first` on.
class RangeOptions {
 public:
  RangeOptions(CommandContext& ctx, size_t first, size_t columns, RangeRequest* request)
      : ctx_(ctx),
        args_(ctx.args),
        words_(before_filter(ctx.args, first)),
        first_(first),
        columns_(columns),
        request_(*request) {}

  bool read(bool is_from_open, bool is_to_open) {
    request_.query.latest = find_word(words_, "LATEST", first_).has_value();
    return read_count() && read_timestamps() && read_values() && read_aggregations() &&
           read_align(is_from_open, is_to_open);
  }

 private:
  bool read_count();
  bool read_timestamps();
  bool read_values();
  bool read_aggregations();
  bool read_bucket_options(size_t at);
  bool read_align(bool is_from_open, bool is_to_open);

  CommandContext& ctx_;
  Arguments args_;
  Arguments words_;  // among which options are looked for
  size_t first_;
  size_t columns_;
  RangeRequest& request_;
};

bool RangeOptions::read_count() {
  auto at = find_word(words_, "COUNT", first_);
  // "AGGREGATION count" is not the option.
  if (at.has_value() && *at > first_ && is_word(args_[*at - 1], "AGGREGATION"))
    at = find_word(words_, "COUNT", *at + 1);
  if (!at.has_value()) return true;
  if (*at + 1 >= args_.size()) return ctx_.refuse("ERR TSDB: COUNT argument is missing");
  int64_t count;
  if (!base::parse_int64(args_[*at + 1], &count))
    return ctx_.refuse("ERR TSDB: Couldn't parse COUNT");
  if (count <= 0) return ctx_.refuse("ERR TSDB: Invalid COUNT value");
  request_.count = static_cast<size_t>(count);
  return true;
}

bool RangeOptions::read_timestamps() {
  const auto at = find_word(words_, "FILTER_BY_TS", first_);
  if (!at.has_value()) return true;
  std::vector<int64_t> timestamps;
  for (size_t i = *at + 1; i < args_.size() && timestamps.size() < kMostTimestamps; ++i) {
    int64_t timestamp;
    if (!base::parse_int64(args_[i], &timestamp) || timestamp < 0) break;
    timestamps.push_back(timestamp);
  }
  if (timestamps.empty())
    return ctx_.refuse("ERR TSDB: FILTER_BY_TS one or more arguments are missing");
  std::sort(timestamps.begin(), timestamps.end());
  timestamps.erase(std::unique(timestamps.begin(), timestamps.end()), timestamps.end());
  request_.query.timestamps = std::move(timestamps);
  return true;
}

bool RangeOptions::read_values() {
  const auto at = find_word(words_, "FILTER_BY_VALUE", first_);
  if (!at.has_value()) return true;
  if (*at + 2 >= args_.size())
    return ctx_.refuse("ERR TSDB: FILTER_BY_VALUE one or more arguments are missing");
  std::pair<double, double> values;
  if (!base::parse_double(args_[*at + 1], &values.first))
    return ctx_.refuse("ERR TSDB: Couldn't parse MIN");
  if (!base::parse_double(args_[*at + 2], &values.second))
    return ctx_.refuse("ERR TSDB: Couldn't parse MAX");
  request_.query.values = values;
  return true;
}

bool RangeOptions::read_aggregations() {
  RangeQuery& query = request_.query;
  const auto at = find_word(words_, "AGGREGATION", first_);
  if (!at.has_value()) return true;
  // The names end where the duration of a bucket stands.
  size_t end = *at + 1;
  while (end < args_.size() && !base::parse_int64(args_[end], &query.bucket_ms)) ++end;
  const bool may_end_anywhere = columns_ > 1;
  if (end == args_.size() || (!may_end_anywhere && end != *at + 2))
    return ctx_.refuse("ERR TSDB: Couldn't parse AGGREGATION");
  if (end - *at - 1 != columns_)
    return ctx_.refuse("ERR TSDB: the number of AGGREGATION arguments must be equal to numkeys");
  for (size_t i = *at + 1; i < end; ++i) {
    if (const auto error = parse_aggregations(args_[i], &request_.columns.emplace_back()))
      return ctx_.refuse(*error);
  }
  query.aggregations = request_.columns[0];
  if (query.bucket_ms <= 0)
    return ctx_.refuse("ERR TSDB: bucketDuration must be greater than zero");
  return read_bucket_options(end + 1);
}

bool RangeOptions::read_bucket_options(size_t at) {
  RangeQuery& query = request_.query;
  const auto empty = find_word(words_, "EMPTY", first_);
  if (empty.has_value() && *empty != at && *empty != at + 2)
    return ctx_.refuse("ERR TSDB: EMPTY flag should be the 3rd or 5th flag after AGGREGATION flag");
  query.with_empty_buckets = empty.has_value();
  const auto time = find_word(words_, "BUCKETTIMESTAMP", first_);
  if (!time.has_value()) return true;
  if (*time != at && *time != at + 1)
    return ctx_.refuse(
        "ERR TSDB: BUCKETTIMESTAMP flag should be the 3rd or 4th flag after AGGREGATION "
        "flag");
  if (*time + 1 >= args_.size()) {
    ctx_.wrong_arity();
    return false;
  }
  const std::string_view word = args_[*time + 1];
  if (is_word(word, "START") || word == "-") {
    query.bucket_time = store::BucketTime::kStart;
  } else if (is_word(word, "END") || word == "+") {
    query.bucket_time = store::BucketTime::kEnd;
  } else if (is_word(word, "MID") || word == "~") {
    query.bucket_time = store::BucketTime::kMiddle;
  } else {
    return ctx_.refuse("ERR TSDB: unknown BUCKETTIMESTAMP parameter");
  }
  return true;
}

bool RangeOptions::read_align(bool is_from_open, bool is_to_open) {
  RangeQuery& query = request_.query;
  const auto at = find_word(words_, "ALIGN", first_);
  if (!at.has_value()) return true;
  if (*at + 1 >= args_.size()) {
    ctx_.wrong_arity();
    return false;
  }
  const std::string_view word = args_[*at + 1];
  const bool at_start = is_word(word, "START") || word == "-";
  const bool at_end = is_word(word, "END") || word == "+";
  if (!at_start && !at_end && (!base::parse_int64(word, &query.align) || query.align < 0))
    return ctx_.refuse("ERR TSDB: unknown ALIGN parameter");
  if (query.aggregations.empty())
    return ctx_.refuse("ERR TSDB: ALIGN parameter can only be used with AGGREGATION");
  if (at_start && is_from_open)
    return ctx_.refuse("ERR TSDB: start alignment can only be used with explicit start timestamp");
  if (at_end && is_to_open)
    return ctx_.refuse("ERR TSDB: end alignment can only be used with explicit end timestamp");
  if (at_start) query.align = query.from;
  if (at_end) query.align = query.to;
  return true;
}

}  // namespace

bool read_range(CommandContext& ctx, size_t ends, bool backwards, RangeRequest* request,
                size_t columns) {
  bool is_from_open;
  bool is_to_open;
  request->query.backwards = backwards;
  if (!read_range_ends(ctx, ctx.args[ends], ctx.args[ends + 1], &request->query, &is_from_open,
                       &is_to_open))
    return false;
  return RangeOptions(ctx, ends + 2, columns, request).read(is_from_open, is_to_open);
}

bool is_not_too_wide(CommandContext& ctx, std::span<const TimeSeries* const> series,
                     const RangeRequest& request) {
  if (!request.query.with_empty_buckets) return true;
  uint64_t values = 0;
  // A series may be named again and again.
  std::unordered_map<const TimeSeries*, uint64_t> most_buckets;
  for (size_t i = 0; i < series.size(); ++i) {
    const auto [known, is_new] = most_buckets.try_emplace(series[i]);
    if (is_new) known->second = store::RangeReader::most_buckets(*series[i], request.query);
    const uint64_t buckets = std::min<uint64_t>(request.count, known->second);
    const auto& aggregations =
        i < request.columns.size() ? request.columns[i] : request.query.aggregations;
    values += std::min(buckets, kMostEmptyValues + 1) * aggregations.size();
    if (values > kMostEmptyValues)
      return ctx.refuse("ERR TSDB: EMPTY would report too many buckets");
  }
  return true;
}

}  // namespace latchkey::commands
