// Operations on a time series, and queries of it, beside a std::map; and bytes of chunks that
// nobody has checked.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "input.h"
#include "store/time_series/range.h"
#include "store/time_series/series.h"

namespace {

using latchkey::fuzz::Input;
using latchkey::fuzz::require;
using latchkey::store::Aggregation;
using latchkey::store::Aggregator;
using latchkey::store::Chunk;
using latchkey::store::DuplicatePolicy;
using latchkey::store::merged_value;
using latchkey::store::RangeQuery;
using latchkey::store::RangeReader;
using latchkey::store::RangeRow;
using latchkey::store::Sample;
using latchkey::store::SampleReader;
using latchkey::store::SeriesEncoding;
using latchkey::store::SeriesSettings;
using latchkey::store::TimeSeries;
using latchkey::store::unclamped_bucket_start;

using Model = std::map<int64_t, double>;
using Rows = std::vector<std::pair<int64_t, double>>;

bool is_same(double left, double right) {
  return std::bit_cast<uint64_t>(left) == std::bit_cast<uint64_t>(right) ||
         (std::isnan(left) && std::isnan(right));
}

bool are_same(const Rows& left, const Rows& right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](const auto& one, const auto& other) {
                      return one.first == other.first && is_same(one.second, other.second);
                    });
}

Rows samples_of(const TimeSeries& series, int64_t from, int64_t to, bool backwards) {
  Rows read;
  SampleReader reader(series, from, to, backwards);
  for (Sample sample; reader.next(&sample);) read.emplace_back(sample.timestamp, sample.value);
  return read;
}

Rows rows_of(const TimeSeries& series, const RangeQuery& query) {
  Rows rows;
  RangeReader reader(series, query);
  for (RangeRow row; reader.next(&row);) {
    require(row.values.size() == std::max<size_t>(1, query.aggregations.size()));
    rows.emplace_back(row.timestamp, row.values[0]);
  }
  return rows;
}

// As a file has it, and back.
void check_file_form(const Chunk& chunk) {
  if (chunk.empty()) return;
  const std::string bytes = chunk.bytes();
  const bool is_plain = chunk.encoding() == SeriesEncoding::kUncompressed;
  const std::optional<Chunk> read =
      is_plain ? Chunk::from_plain(chunk.size_bytes(), chunk.count(), bytes)
               : Chunk::from_compressed(chunk.size_bytes(), chunk.first(), chunk.count(), bytes,
                                        chunk.bit_count());
  require(read.has_value());
  const std::vector<Sample> before = chunk.samples();
  const std::vector<Sample> after = read->samples();
  require(before.size() == chunk.count() && after.size() == before.size());
  for (size_t i = 0; i < before.size(); ++i)
    require(before[i].timestamp == after[i].timestamp && is_same(before[i].value, after[i].value));
}

class Session {
 public:
  explicit Session(Input input) : input_(input) {
    const uint8_t choice = input_.byte();
    if (choice % 4 == 0) settings_.encoding = SeriesEncoding::kUncompressed;
    settings_.chunk_size = SeriesSettings::kMinChunkSize + choice / 4 % 16 * size_t{24} / 8 * 8;
    if (choice >= 192) settings_.retention_ms = 1 + input_.byte() * int64_t{8};
    series_ = std::make_unique<TimeSeries>(settings_);
  }

  void run() {
    while (!input_.empty()) {
      step();
      check_ends();
    }
    for (const auto& chunk : series_->chunks()) check_file_form(*chunk);
    require(are_same(samples_of(*series_, oldest(), INT64_MAX, false), visible(0, INT64_MAX)));
  }

 private:
  void step() {
    switch (input_.byte() % 8) {
      case 0:
      case 1:
      case 2: {
        // A regular series, as most are.
        const int64_t step = 1 + input_.byte();
        for (int left = input_.byte() % 80; left > 0; --left) add({newest() + step, value()});
        break;
      }
      case 3:
        add({time(), value()});
        break;
      case 4:
        erase();
        break;
      case 5:
        series_.reset(series_->clone());
        break;
      default:
        query();
    }
  }

  int64_t newest() const { return model_.empty() ? 1000 : model_.rbegin()->first; }
  int64_t oldest() const { return series_->oldest_visible(); }
  // One that is there or beside it, most of the time.
  int64_t time() {
    const uint8_t choice = input_.byte();
    if (choice >= 250) return static_cast<int64_t>(input_.word() >> 1) / 4;
    if (model_.empty()) return choice;
    auto it = model_.begin();
    const size_t place = (choice * size_t{256} + input_.byte()) % model_.size();
    std::advance(it, static_cast<std::ptrdiff_t>(place));
    return std::max<int64_t>(it->first + choice % 3 - 1, 0);
  }
  double value() {
    const uint8_t choice = input_.byte();
    if (choice < 160) return choice / 4.0;
    if (choice < 200) return before_;
    if (choice < 240) return before_ = before_ + 1.5;
    if (choice < 250) return std::numeric_limits<double>::quiet_NaN();
    const auto any = std::bit_cast<double>(input_.word());
    return std::isinf(any) ? 0 : any;
  }

  void add(Sample sample) {
    const auto policy = static_cast<DuplicatePolicy>(1 + input_.byte() % 6);
    const auto present = model_.find(sample.timestamp);
    const bool is_old = !model_.empty() && sample.timestamp < oldest();
    const TimeSeries::Added added = series_->add(sample, policy);
    require((added == TimeSeries::Added::kTooOld) == is_old);
    if (is_old) return;
    if (present == model_.end()) {
      // A newest sample like the one before may be ignored, but not at its distance of zero here.
      require(added == TimeSeries::Added::kAppended || added == TimeSeries::Added::kInserted);
      model_[sample.timestamp] = sample.value;
      return;
    }
    if (added == TimeSeries::Added::kIgnored) {
      require(policy == DuplicatePolicy::kLast && sample.value == present->second);
      return;
    }
    const std::optional<double> merged = merged_value(policy, present->second, sample.value);
    require((added == TimeSeries::Added::kInserted) == merged.has_value());
    if (merged.has_value()) present->second = *merged;
  }

  void erase() {
    int64_t from = time();
    int64_t to = from + input_.byte() * int64_t{4};
    size_t gone = 0;
    // What the retention hides may be in its chunk or not.
    const int64_t hidden_before = oldest();
    for (auto it = model_.lower_bound(from); it != model_.end() && it->first <= to;) {
      gone += it->first >= hidden_before ? 1 : 0;
      it = model_.erase(it);
    }
    const size_t erased = series_->erase(from, to);
    require(settings_.retention_ms != 0 || erased == gone);
    // With the newest gone, older ones are seen again, if they are still there.
    if (settings_.retention_ms != 0) take_over();
  }

  // What the retention leaves is the series' own affair.
  void take_over() {
    model_.clear();
    for (const auto& chunk : series_->chunks()) {
      for (const Sample& sample : chunk->samples()) model_[sample.timestamp] = sample.value;
    }
  }

  Rows visible(int64_t from, int64_t to) const {
    Rows rows;
    from = std::max(from, oldest());
    for (auto it = model_.lower_bound(from); it != model_.end() && it->first <= to; ++it)
      rows.emplace_back(*it);
    return rows;
  }

  void query() {
    RangeQuery query;
    query.from = time();
    query.to = input_.byte() < 64 ? INT64_MAX : time();
    query.backwards = input_.byte() % 2 == 1;
    if (const uint8_t choice = input_.byte(); choice < 64) query.values.emplace(choice / 8.0, 30.0);
    Rows rows;
    if (query.from <= query.to) rows = visible(query.from, query.to);
    require(are_same(samples_of(*series_, std::max(query.from, oldest()), query.to, false), rows));
    if (query.backwards) std::reverse(rows.begin(), rows.end());
    if (query.values.has_value()) {
      std::erase_if(rows, [&](const auto& row) {
        return !(row.second >= query.values->first && row.second <= query.values->second);
      });
    }
    if (input_.byte() % 4 != 0) aggregate(query, &rows);
    require(are_same(rows_of(*series_, query), rows));
  }

  // Each bucket by an aggregator that is given one sample after another.
  void aggregate(RangeQuery& query, Rows* rows) {
    constexpr std::array kKinds = {
        Aggregation::kMin,   Aggregation::kMax,   Aggregation::kSum,      Aggregation::kAvg,
        Aggregation::kCount, Aggregation::kFirst, Aggregation::kLast,     Aggregation::kRange,
        Aggregation::kStdP,  Aggregation::kVarS,  Aggregation::kCountNan, Aggregation::kCountAll};
    query.aggregations = {kKinds[input_.byte() % kKinds.size()]};
    query.bucket_ms = 1 + input_.byte() * int64_t{3};
    query.align = input_.byte();
    Aggregator aggregator(query.aggregations[0], query.backwards);
    Rows buckets;
    for (size_t i = 0; i < rows->size();) {
      const auto bucket_of = [&](size_t row) {
        return unclamped_bucket_start((*rows)[row].first, query.bucket_ms, query.align);
      };
      const int64_t bucket = bucket_of(i);
      aggregator.begin(0, 0, std::nullopt);
      for (; i < rows->size() && bucket_of(i) == bucket; ++i)
        aggregator.add({(*rows)[i].first, (*rows)[i].second});
      if (aggregator.has_value())
        buckets.emplace_back(std::max<int64_t>(bucket, 0), aggregator.result(std::nullopt));
    }
    *rows = std::move(buckets);
  }

  void check_ends() {
    if (settings_.retention_ms == 0) require(series_->count() == model_.size());
    require(series_->empty() == model_.empty());
    if (model_.empty()) return;
    require(series_->last().timestamp == model_.rbegin()->first);
    require(is_same(series_->last().value, model_.rbegin()->second));
    require(series_->visible_count() == visible(0, INT64_MAX).size());
  }

  Input input_;
  SeriesSettings settings_;
  std::unique_ptr<TimeSeries> series_;
  Model model_;
  double before_ = 0;
};

// A chunk as a damaged file may have it: refused, or as many samples as it says, in order.
void read_unchecked(Input input) {
  const Sample first{static_cast<int64_t>(input.byte()), 1.0};
  const bool is_plain = input.byte() % 2 == 0;
  const uint64_t count = input.byte();
  const std::string bytes(input.rest());
  const std::optional<Chunk> chunk =
      is_plain ? Chunk::from_plain(bytes.size(), count, bytes)
               : Chunk::from_compressed(bytes.size(), first, count, bytes, bytes.size() * 8);
  if (!chunk.has_value()) return;
  const std::vector<Sample> samples = chunk->samples();
  require(samples.size() == count);
  for (size_t i = 1; i < samples.size(); ++i)
    require(samples[i - 1].timestamp < samples[i].timestamp);
  check_file_form(*chunk);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  if (input.byte() % 4 == 0) {
    read_unchecked(input);
  } else {
    Session(input).run();
  }
  return 0;
}
