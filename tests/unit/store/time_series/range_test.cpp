// Queries of time series whose chunks are decoded in several blocks.
#include "store/time_series/range.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "unit/catch.h"

namespace latchkey::tests {

namespace {

using store::Aggregation;
using store::Aggregator;
using store::DuplicatePolicy;
using store::RangeQuery;
using store::RangeReader;
using store::RangeRow;
using store::Sample;
using store::SampleReader;
using store::SeriesEncoding;
using store::SeriesSettings;
using store::TimeSeries;

// Several blocks in each chunk, and several chunks; every 13th sample is missing.
constexpr int64_t kCount = 1500;

std::vector<Sample> samples() {
  std::vector<Sample> all;
  for (int64_t i = 0; i < kCount; ++i) {
    const double value = i % 13 == 5 ? std::numeric_limits<double>::quiet_NaN()
                                     : static_cast<double>(i * 37 % 101) / 4;
    all.push_back({100 + i * 10 + i % 3, value});
  }
  return all;
}

TimeSeries series_of(const std::vector<Sample>& samples, SeriesEncoding encoding) {
  SeriesSettings settings;
  settings.encoding = encoding;
  settings.chunk_size = encoding == SeriesEncoding::kCompressed ? 2048 : 8192;
  TimeSeries series(settings);
  for (const Sample& sample : samples) series.add(sample, DuplicatePolicy::kBlock);
  return series;
}

using Rows = std::vector<std::pair<int64_t, double>>;

bool is_same(double left, double right) {
  return left == right || (std::isnan(left) && std::isnan(right));
}

bool are_same(const Rows& left, const Rows& right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](const auto& one, const auto& other) {
                      return one.first == other.first && is_same(one.second, other.second);
                    });
}

Rows rows_of(const TimeSeries& series, const RangeQuery& query) {
  Rows rows;
  RangeReader reader(series, query);
  for (RangeRow row; reader.next(&row);) rows.emplace_back(row.timestamp, row.values.at(0));
  return rows;
}

// The same from the samples themselves, one at a time.
Rows expected_rows(std::vector<Sample> all, const RangeQuery& query) {
  if (query.backwards) std::reverse(all.begin(), all.end());
  std::erase_if(all, [&](const Sample& sample) {
    return sample.timestamp < query.from || sample.timestamp > query.to ||
           (query.values.has_value() &&
            !(sample.value >= query.values->first && sample.value <= query.values->second));
  });
  Rows rows;
  if (query.aggregations.empty()) {
    for (const Sample& sample : all) rows.emplace_back(sample.timestamp, sample.value);
    return rows;
  }
  Aggregator aggregator(query.aggregations[0], query.backwards);
  for (size_t i = 0; i < all.size();) {
    const int64_t bucket = all[i].timestamp / query.bucket_ms;
    aggregator.begin(0, 0, std::nullopt);
    for (; i < all.size() && all[i].timestamp / query.bucket_ms == bucket; ++i)
      aggregator.add(all[i]);
    if (aggregator.has_value())
      rows.emplace_back(bucket * query.bucket_ms, aggregator.result(std::nullopt));
  }
  return rows;
}

}  // namespace

TEST_CASE("Samples are read one by one as in blocks, from and to any of them", "[time series]") {
  const std::vector<Sample> all = samples();
  for (const SeriesEncoding encoding :
       {SeriesEncoding::kCompressed, SeriesEncoding::kUncompressed}) {
    const TimeSeries series = series_of(all, encoding);
    REQUIRE(series.chunks().size() > 2);
    for (const int64_t first : {0, 1, 63, 64, 65, 127, 128, 255, 256, 257, 600, 1498, 1499}) {
      for (const int64_t count : {1, 2, 63, 64, 65, 128, 256, 257, 1000}) {
        RangeQuery query;
        query.from = all[static_cast<size_t>(first)].timestamp;
        query.to = all[static_cast<size_t>(std::min(first + count, kCount) - 1)].timestamp;
        for (const bool backwards : {false, true}) {
          query.backwards = backwards;
          const Rows expected = expected_rows(all, query);
          CHECK(are_same(rows_of(series, query), expected));
          SampleReader in_blocks(series, query.from, query.to, backwards);
          Rows blocks;
          for (auto block = in_blocks.next_block(); !block.empty();
               block = in_blocks.next_block()) {
            for (const Sample& each : block) blocks.emplace_back(each.timestamp, each.value);
          }
          CHECK(are_same(blocks, expected));
          SampleReader reader(series, query.from, query.to, backwards);
          Rows read;
          Sample sample;
          while (reader.next(&sample)) read.emplace_back(sample.timestamp, sample.value);
          CHECK(are_same(read, expected));
          CHECK_FALSE(reader.next(&sample));
        }
      }
    }
  }
}

TEST_CASE("Buckets have the same values in whatever blocks their samples are read",
          "[time series]") {
  const std::vector<Sample> all = samples();
  const TimeSeries series = series_of(all, SeriesEncoding::kCompressed);
  for (uint64_t kind = 1; kind <= store::kLastAggregation; ++kind) {
    // That of kTwa depends on the samples beyond a bucket: the conversations hold it.
    if (static_cast<Aggregation>(kind) == Aggregation::kTwa) continue;
    for (const int64_t width : {1, 7, 10, 630, 640, 650, 2560, 100'000}) {
      for (const bool backwards : {false, true}) {
        for (const bool filtered : {false, true}) {
          RangeQuery query;
          query.from = 200;
          query.to = 14'000;
          query.backwards = backwards;
          query.aggregations = {static_cast<Aggregation>(kind)};
          query.bucket_ms = width;
          if (filtered) query.values = std::pair(3.0, 9.0);
          INFO("aggregation " << kind << ", width " << width << (backwards ? ", backwards" : ""));
          CHECK(are_same(rows_of(series, query), expected_rows(all, query)));
        }
      }
    }
  }
}

TEST_CASE("Many samples at once are aggregated as one by one", "[time series]") {
  std::vector<Sample> all = samples();
  const std::vector<std::vector<Sample>> parts = {
      {}, {all[5]}, {all.begin(), all.begin() + 1}, {all.begin() + 1, all.begin() + 40}, {all[44]}};
  for (uint64_t kind = 1; kind <= store::kLastAggregation; ++kind) {
    for (const bool backwards : {false, true}) {
      Aggregator together(static_cast<Aggregation>(kind), backwards);
      Aggregator single = together;
      for (const std::vector<Sample>& part : parts) {
        together.add(part);
        for (const Sample& sample : part) single.add(sample);
        REQUIRE(together.has_value() == single.has_value());
        if (single.has_value())
          CHECK(is_same(together.result(std::nullopt), single.result(std::nullopt)));
      }
    }
  }
}

TEST_CASE("Missing samples are stepped over once, not once for each bucket", "[time series]") {
  constexpr int64_t kMissing = 200'000;
  TimeSeries series{SeriesSettings()};
  series.add({0, 1.0}, DuplicatePolicy::kBlock);
  for (int64_t i = 1; i <= kMissing; ++i)
    series.add({i, std::numeric_limits<double>::quiet_NaN()}, DuplicatePolicy::kBlock);
  series.add({kMissing + 1, 3.0}, DuplicatePolicy::kBlock);
  RangeQuery query;
  query.aggregations = {Aggregation::kTwa};
  query.bucket_ms = 1;
  query.with_empty_buckets = true;
  for (const bool backwards : {false, true}) {
    query.backwards = backwards;
    const Rows rows = rows_of(series, query);
    REQUIRE(rows.size() == static_cast<size_t>(kMissing) + 2);
    const bool are_between = std::all_of(rows.begin(), rows.end(), [](const auto& row) {
      return row.second >= 1.0 && row.second <= 3.0;
    });
    CHECK(are_between);
  }
}

TEST_CASE("The number before a range is looked for once, not once for each bucket",
          "[time series]") {
  constexpr int64_t kOld = 4000;
  constexpr int64_t kBuckets = 400'000;
  TimeSeries series{SeriesSettings()};
  for (int64_t i = 0; i < kOld; ++i) series.add({i, 7.0}, DuplicatePolicy::kBlock);
  series.add({kOld + kBuckets, 8.0}, DuplicatePolicy::kBlock);
  RangeQuery query;
  query.from = kOld;
  query.aggregations = {Aggregation::kLast};
  query.bucket_ms = 1;
  query.with_empty_buckets = true;
  const Rows rows = rows_of(series, query);
  REQUIRE(rows.size() == static_cast<size_t>(kBuckets) + 1);
  CHECK(rows.back().second == 8.0);
  const bool are_old =
      std::all_of(rows.begin(), rows.end() - 1, [](const auto& row) { return row.second == 7.0; });
  CHECK(are_old);
}

}  // namespace latchkey::tests
