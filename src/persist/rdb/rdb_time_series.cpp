#include "persist/rdb/rdb_time_series.h"

#include <bit>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "persist/rdb/module_parts.h"
#include "store/time_series/label_index.h"

namespace latchkey::persist {

namespace {

using store::Aggregation;
using store::Aggregator;
using store::Chunk;
using store::CompactionRule;
using store::DuplicatePolicy;
using store::Sample;
using store::SeriesEncoding;
using store::SeriesLink;
using store::SeriesSettings;
using store::TimeSeries;

constexpr unsigned kOldestVersion = 8;
// From this version on a rule tells whether its open bucket has a value.
constexpr unsigned kVersionOfValues = 9;
constexpr unsigned kNewestVersion = 9;
constexpr uint64_t kCompressedFlag = static_cast<uint64_t>(SeriesEncoding::kCompressed);
constexpr size_t kWordSize = 8;
constexpr size_t kMostZeros = 64;

uint64_t unsigned_of(int64_t number) {
  return static_cast<uint64_t>(number);
}

// --- Writing ------------------------------------------------------------------------------------

void write_state(ModuleWriter& writer, const Aggregator& aggregator) {
  const Aggregator::State& state = aggregator.state();
  writer.real(state.first);
  switch (aggregator.kind()) {
    case Aggregation::kMin:
    case Aggregation::kMax:
    case Aggregation::kRange:
      return writer.real(state.second);
    case Aggregation::kAvg:
      writer.real(state.second);
      return writer.unsigned_number(state.is_mean ? 1 : 0);
    case Aggregation::kFirst:
      return writer.unsigned_number(aggregator.has_value() ? 0 : 1);
    case Aggregation::kStdP:
    case Aggregation::kStdS:
    case Aggregation::kVarP:
    case Aggregation::kVarS:
      writer.real(state.second);
      return writer.unsigned_number(state.count);
    case Aggregation::kTwa:
      writer.unsigned_number(unsigned_of(state.last.timestamp));
      writer.real(state.last.value);
      writer.unsigned_number(unsigned_of(state.near));
      writer.unsigned_number(unsigned_of(state.far));
      writer.unsigned_number(unsigned_of(state.began_at));
      writer.unsigned_number(unsigned_of(state.came_to));
      writer.unsigned_number(state.is_first_bucket ? 1 : 0);
      writer.unsigned_number(state.count);
      return writer.unsigned_number(0);
    default:
      return;
  }
}

void write_rules(ModuleWriter& writer, const TimeSeries& series) {
  std::vector<std::pair<const CompactionRule*, const TimeSeries*>> live;
  for (const CompactionRule& rule : series.rules()) {
    const TimeSeries* const destination =
        series.index() == nullptr ? nullptr : series.index()->destination(series, rule);
    if (destination != nullptr) live.emplace_back(&rule, destination);
  }
  writer.unsigned_number(live.size());
  for (const auto& [rule, destination] : live) {
    writer.text(destination->key());
    writer.unsigned_number(unsigned_of(rule->bucket_ms));
    writer.unsigned_number(unsigned_of(rule->align));
    writer.unsigned_number(static_cast<uint64_t>(rule->aggregator.kind()));
    writer.unsigned_number(unsigned_of(rule->open_bucket));
    writer.unsigned_number(rule->aggregator.has_value() ? 1 : 0);
    write_state(writer, rule->aggregator);
  }
}

void write_chunk(ModuleWriter& writer, const Chunk& chunk) {
  const Sample first = chunk.empty() ? Sample() : chunk.first();
  const Sample last = chunk.empty() ? Sample() : chunk.last();
  if (chunk.encoding() == SeriesEncoding::kUncompressed) {
    writer.unsigned_number(unsigned_of(first.timestamp));
    writer.unsigned_number(chunk.count());
    writer.unsigned_number(chunk.size_bytes());
    return writer.text(chunk.bytes());
  }
  writer.unsigned_number(chunk.size_bytes());
  writer.unsigned_number(chunk.count());
  writer.unsigned_number(chunk.bit_count());
  writer.unsigned_number(std::bit_cast<uint64_t>(first.value));
  writer.unsigned_number(unsigned_of(first.timestamp));
  writer.unsigned_number(unsigned_of(last.timestamp));
  writer.unsigned_number(unsigned_of(chunk.tail().delta));
  writer.unsigned_number(std::bit_cast<uint64_t>(last.value));
  writer.unsigned_number(chunk.tail().leading);
  writer.unsigned_number(chunk.tail().trailing);
  writer.text(chunk.bytes());
}

}  // namespace

void write_time_series(RdbWriter& rdb, const store::Value& value) {
  const auto& series = static_cast<const TimeSeries&>(value);
  const SeriesSettings& settings = series.settings();
  const bool is_in_database = series.index() != nullptr;
  ModuleWriter writer(rdb);
  writer.text(is_in_database ? series.key() : std::string_view());
  writer.unsigned_number(unsigned_of(settings.retention_ms));
  writer.unsigned_number(settings.chunk_size);
  writer.unsigned_number(static_cast<uint64_t>(settings.encoding));
  writer.unsigned_number(unsigned_of(series.last().timestamp));
  writer.real(series.last().value);
  writer.unsigned_number(series.count());
  writer.unsigned_number(static_cast<uint64_t>(settings.duplicate_policy));
  const bool with_links = is_in_database && !rdb.leaves_out_links();
  const TimeSeries* const source = with_links ? series.index()->source(series) : nullptr;
  writer.unsigned_number(source == nullptr ? 0 : 1);
  if (source != nullptr) writer.text(source->key());
  writer.unsigned_number(unsigned_of(settings.ignore_max_time_diff));
  writer.real(settings.ignore_max_val_diff);
  writer.unsigned_number(settings.labels.size());
  for (const auto& [name, label] : settings.labels) {
    writer.text(name);
    writer.text(label);
  }
  if (with_links) {
    write_rules(writer, series);
  } else {
    writer.unsigned_number(0);
  }
  writer.unsigned_number(series.chunks().size());
  for (const auto& chunk : series.chunks()) write_chunk(writer, *chunk);
}

// --- Reading ------------------------------------------------------------------------------------

namespace {

class TimeSeriesReader {
 public:
  TimeSeriesReader(RdbReader& reader, unsigned version)
      : parts_(reader, "A time series"), version_(version) {}

  bool read(LoadedValue* loaded);

 private:
  bool fail(std::string_view problem) { return parts_.fail(problem); }
  // A number that is not negative when it is signed.
  bool number(int64_t* value) {
    uint64_t read;
    if (!parts_.unsigned_number(&read)) return false;
    *value = static_cast<int64_t>(read);
    return *value >= 0 || fail("has a negative number");
  }
  bool flag(bool* value) {
    uint64_t read;
    if (!parts_.unsigned_number(&read)) return false;
    *value = read != 0;
    return true;
  }
  bool name(std::string* value) {
    std::string_view text;
    if (!parts_.text(&text)) return false;
    *value = text;
    return true;
  }

  bool read_settings(SeriesSettings* settings);
  bool read_source(SeriesLink* source);
  bool read_ignored_and_labels(SeriesSettings* settings);
  bool read_rule(std::vector<CompactionRule>* rules);
  bool read_state(Aggregation kind, Aggregator::State* state);
  bool read_weighted_state(Aggregator::State* state);
  bool read_compressed_chunk(TimeSeries* series);
  bool read_plain_chunk(TimeSeries* series);

  ModuleReader parts_;
  unsigned version_;
};

bool TimeSeriesReader::read_settings(SeriesSettings* settings) {
  std::string key;
  int64_t chunk_size;
  uint64_t encoding;
  int64_t unused;
  double unused_value;
  uint64_t policy;
  if (!name(&key) || !number(&settings->retention_ms) || !number(&chunk_size) ||
      !parts_.unsigned_number(&encoding) || !number(&unused) || !parts_.real(&unused_value) ||
      !number(&unused) || !parts_.unsigned_number(&policy))
    return false;
  if (chunk_size < static_cast<int64_t>(SeriesSettings::kMinChunkSize) ||
      chunk_size > static_cast<int64_t>(SeriesSettings::kMaxChunkSize) ||
      chunk_size % static_cast<int64_t>(kWordSize) != 0)
    return fail("has a wrong chunk size");
  if (policy > static_cast<uint64_t>(DuplicatePolicy::kSum)) return fail("has a wrong policy");
  settings->chunk_size = static_cast<size_t>(chunk_size);
  settings->encoding = (encoding & kCompressedFlag) != 0 ? SeriesEncoding::kCompressed
                                                         : SeriesEncoding::kUncompressed;
  settings->duplicate_policy = static_cast<DuplicatePolicy>(policy);
  return true;
}

bool TimeSeriesReader::read_source(SeriesLink* source) {
  bool has_source;
  return flag(&has_source) && (!has_source || name(&source->name));
}

bool TimeSeriesReader::read_ignored_and_labels(SeriesSettings* settings) {
  uint64_t labels;
  if (!number(&settings->ignore_max_time_diff) || !parts_.real(&settings->ignore_max_val_diff) ||
      !parts_.unsigned_number(&labels))
    return false;
  for (uint64_t i = 0; i < labels; ++i) {
    store::SeriesLabel label;
    if (!name(&label.first) || !name(&label.second)) return false;
    settings->labels.push_back(std::move(label));
  }
  return true;
}

bool TimeSeriesReader::read_weighted_state(Aggregator::State* state) {
  bool is_backwards;
  return number(&state->last.timestamp) && parts_.real(&state->last.value) &&
         number(&state->near) && number(&state->far) && number(&state->began_at) &&
         number(&state->came_to) && flag(&state->is_first_bucket) &&
         parts_.unsigned_number(&state->count) && flag(&is_backwards);
}

bool TimeSeriesReader::read_state(Aggregation kind, Aggregator::State* state) {
  uint64_t unused;
  if (!parts_.real(&state->first)) return false;
  switch (kind) {
    case Aggregation::kMin:
    case Aggregation::kMax:
    case Aggregation::kRange:
      return parts_.real(&state->second);
    case Aggregation::kAvg:
      return parts_.real(&state->second) && flag(&state->is_mean);
    case Aggregation::kFirst:
      return parts_.unsigned_number(&unused);
    case Aggregation::kStdP:
    case Aggregation::kStdS:
    case Aggregation::kVarP:
    case Aggregation::kVarS:
      return parts_.real(&state->second) && parts_.unsigned_number(&state->count);
    case Aggregation::kTwa:
      return read_weighted_state(state);
    default:
      return true;
  }
}

bool TimeSeriesReader::read_rule(std::vector<CompactionRule>* rules) {
  SeriesLink destination;
  int64_t bucket_ms;
  int64_t align;
  uint64_t kind;
  uint64_t open_bucket;
  if (!name(&destination.name) || !number(&bucket_ms) || !number(&align) ||
      !parts_.unsigned_number(&kind) || !parts_.unsigned_number(&open_bucket))
    return false;
  if (bucket_ms == 0 || kind == 0 || kind > store::kLastAggregation)
    return fail("has a wrong rule");
  CompactionRule rule{std::move(destination), bucket_ms, align,
                      Aggregator(static_cast<Aggregation>(kind))};
  rule.open_bucket = static_cast<int64_t>(open_bucket);
  if (rule.open_bucket < CompactionRule::kNoBucket) return fail("has a wrong bucket");
  bool has_value = rule.open_bucket != CompactionRule::kNoBucket;
  if (version_ >= kVersionOfValues && !flag(&has_value)) return false;
  Aggregator::State state = rule.aggregator.state();
  if (!read_state(rule.aggregator.kind(), &state)) return false;
  rule.aggregator.restore(state, has_value);
  rules->push_back(std::move(rule));
  return true;
}

bool TimeSeriesReader::read_compressed_chunk(TimeSeries* series) {
  uint64_t size;
  uint64_t count;
  uint64_t bits;
  uint64_t first_value;
  Sample first;
  uint64_t unused;
  uint64_t leading;
  uint64_t trailing;
  std::string_view data;
  if (!parts_.unsigned_number(&size) || !parts_.unsigned_number(&count) ||
      !parts_.unsigned_number(&bits) || !parts_.unsigned_number(&first_value) ||
      !number(&first.timestamp) || !parts_.unsigned_number(&unused) ||
      !parts_.unsigned_number(&unused) || !parts_.unsigned_number(&unused) ||
      !parts_.unsigned_number(&leading) || !parts_.unsigned_number(&trailing) ||
      !parts_.text(&data))
    return false;
  first.value = std::bit_cast<double>(first_value);
  if (size != data.size() || size % kWordSize != 0 || leading > kMostZeros || trailing > kMostZeros)
    return fail("has a chunk of the wrong size");
  auto chunk = Chunk::from_compressed(size, first, count, data, bits);
  return (chunk.has_value() && series->add_stored_chunk(std::move(*chunk))) ||
         fail("has a chunk that is damaged");
}

bool TimeSeriesReader::read_plain_chunk(TimeSeries* series) {
  uint64_t unused;
  uint64_t count;
  uint64_t size;
  std::string_view data;
  if (!parts_.unsigned_number(&unused) || !parts_.unsigned_number(&count) ||
      !parts_.unsigned_number(&size) || !parts_.text(&data))
    return false;
  if (size != data.size() || size % kWordSize != 0) return fail("has a chunk of the wrong size");
  auto chunk = Chunk::from_plain(size, count, data);
  return (chunk.has_value() && series->add_stored_chunk(std::move(*chunk))) ||
         fail("has a chunk that is damaged");
}

bool TimeSeriesReader::read(LoadedValue* loaded) {
  if (version_ < kOldestVersion || version_ > kNewestVersion)
    return fail("has a version that is not known");
  SeriesSettings settings;
  SeriesLink source;
  if (!read_settings(&settings) || !read_source(&source) || !read_ignored_and_labels(&settings))
    return false;
  auto series = std::make_unique<TimeSeries>(std::move(settings));
  series->source() = std::move(source);
  uint64_t rules;
  if (!parts_.unsigned_number(&rules)) return false;
  for (uint64_t i = 0; i < rules; ++i) {
    if (!read_rule(&series->rules())) return false;
  }
  uint64_t chunks;
  if (!parts_.unsigned_number(&chunks)) return false;
  const bool is_compressed = series->settings().encoding == SeriesEncoding::kCompressed;
  for (uint64_t i = 0; i < chunks; ++i) {
    if (!(is_compressed ? read_compressed_chunk(series.get()) : read_plain_chunk(series.get())))
      return false;
  }
  loaded->type = store::Type::kTimeSeries;
  loaded->value = std::move(series);
  return true;
}

}  // namespace

ReadResult read_time_series(RdbReader& reader, store::Environment&, unsigned version,
                            LoadedValue* loaded) {
  return TimeSeriesReader(reader, version).read(loaded) ? ReadResult::kDone : ReadResult::kFailed;
}

}  // namespace latchkey::persist
