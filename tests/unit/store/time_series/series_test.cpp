#include "store/time_series/series.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "store/time_series/compaction_policy.h"
#include "store/time_series/range.h"
#include "unit/catch.h"

namespace latchkey::tests {

namespace {

using store::Aggregation;
using store::DuplicatePolicy;
using store::RangeQuery;
using store::RangeReader;
using store::RangeRow;
using store::Sample;
using store::SampleReader;
using store::SeriesEncoding;
using store::SeriesSettings;
using store::TimeSeries;
using Added = TimeSeries::Added;

SeriesSettings small_chunks(SeriesEncoding encoding) {
  SeriesSettings settings;
  settings.chunk_size = 48;
  settings.encoding = encoding;
  settings.duplicate_policy = DuplicatePolicy::kBlock;
  return settings;
}

std::map<int64_t, double> content(const TimeSeries& series, int64_t from, int64_t to,
                                  bool backwards) {
  std::map<int64_t, double> all;
  SampleReader reader(series, from, to, backwards);
  int64_t before = backwards ? INT64_MAX : -1;
  for (Sample sample; reader.next(&sample);) {
    CHECK((backwards ? sample.timestamp < before : sample.timestamp > before));
    before = sample.timestamp;
    all.emplace(sample.timestamp, sample.value);
  }
  return all;
}

std::string rows(const TimeSeries& series, const RangeQuery& query) {
  RangeReader reader(series, query);
  std::string text;
  for (RangeRow row; reader.next(&row);) {
    text += std::to_string(row.timestamp) + ":";
    text += std::to_string(row.values[0]).substr(0, 5) + " ";
  }
  return text;
}

}  // namespace

TEST_CASE("A series is what a map would be", "[time series]") {
  for (const auto encoding : {SeriesEncoding::kCompressed, SeriesEncoding::kUncompressed}) {
    base::Random random(11);
    TimeSeries series(small_chunks(encoding));
    std::map<int64_t, double> model;
    for (int i = 0; i < 3000; ++i) {
      const auto timestamp = static_cast<int64_t>(random.below(2000));
      const double value = static_cast<double>(random.below(100)) / 4;
      if (random.below(20) == 0) {
        const int64_t to = timestamp + static_cast<int64_t>(random.below(100));
        const auto first = model.lower_bound(timestamp);
        const auto last = model.upper_bound(to);
        const auto count = static_cast<size_t>(std::distance(first, last));
        CHECK(series.erase(timestamp, to) == count);
        model.erase(first, last);
      } else {
        const Added added = series.add({timestamp, value}, DuplicatePolicy::kLast);
        CHECK((added == Added::kAppended || added == Added::kInserted || added == Added::kIgnored));
        model[timestamp] = value;
      }
      CHECK(series.count() == model.size());
      CHECK(series.last().timestamp == (model.empty() ? 0 : model.rbegin()->first));
    }
    CHECK(content(series, 0, INT64_MAX, false) == model);
    CHECK(content(series, 0, INT64_MAX, true) == model);
    const std::map<int64_t, double> part(model.lower_bound(500), model.upper_bound(900));
    CHECK(content(series, 500, 900, false) == part);
    CHECK(content(series, 500, 900, true) == part);
    CHECK(content(series, 900, 500, false).empty());
  }
}

TEST_CASE("Chunks are divided when samples are inserted, and stay small", "[time series]") {
  TimeSeries series(small_chunks(SeriesEncoding::kUncompressed));
  for (int64_t i = 0; i < 1000; ++i) series.add({i * 7 % 1009, 1.0}, DuplicatePolicy::kLast);
  for (const auto& chunk : series.chunks()) CHECK(chunk->count() <= 5);
  CHECK(series.count() == 1000);
}

TEST_CASE("What is beyond the retention is not seen, and goes with its chunk", "[time series]") {
  SeriesSettings settings = small_chunks(SeriesEncoding::kUncompressed);
  settings.retention_ms = 10;
  TimeSeries series(settings);
  for (const int64_t timestamp : {1, 2, 3, 4, 12, 13}) {
    CHECK(series.add({timestamp, 1.0}, DuplicatePolicy::kBlock) == Added::kAppended);
  }
  CHECK(series.visible_count() == 4);
  CHECK(series.count_from(0) == 6);
  CHECK(series.count_from(2) == 5);
  CHECK(series.count_from(13) == 1);
  CHECK(series.count_from(14) == 0);
  CHECK(series.first_visible()->timestamp == 3);
  CHECK(series.add({2, 1.0}, DuplicatePolicy::kLast) == Added::kTooOld);
  CHECK(series.add({100, 1.0}, DuplicatePolicy::kBlock) == Added::kAppended);
  CHECK(series.visible_count() == 1);
  for (const int64_t timestamp : {101, 102, 103, 104}) {
    series.add({timestamp, 1.0}, DuplicatePolicy::kBlock);
  }
  CHECK(series.chunks().front()->first_timestamp() >= 100);
}

TEST_CASE("Each policy decides about a second sample in its way", "[time series]") {
  const auto merged = [](DuplicatePolicy policy, double added) {
    return store::merged_value(policy, 5, added).value_or(-1);
  };
  CHECK(merged(DuplicatePolicy::kBlock, 7) == -1);
  CHECK(merged(DuplicatePolicy::kFirst, 7) == 5);
  CHECK(merged(DuplicatePolicy::kLast, 7) == 7);
  CHECK(merged(DuplicatePolicy::kMin, 7) == 5);
  CHECK(merged(DuplicatePolicy::kMax, 7) == 7);
  CHECK(merged(DuplicatePolicy::kSum, 7) == 12);
  CHECK(merged(DuplicatePolicy::kLast, NAN) == 5);
  CHECK(merged(DuplicatePolicy::kMax, NAN) == -1);
}

TEST_CASE("Buckets are aggregated in both directions", "[time series]") {
  TimeSeries series(small_chunks(SeriesEncoding::kCompressed));
  for (const auto& [timestamp, value] : std::vector<std::pair<int64_t, double>>{
           {1000, 1}, {1010, 2}, {1020, 3}, {1030, 4}, {1042, 5}, {1050, 7}, {1075, 10}})
    series.add({timestamp, value}, DuplicatePolicy::kBlock);
  RangeQuery query;
  query.bucket_ms = 30;
  query.aggregations = {Aggregation::kAvg};
  CHECK(rows(series, query) == "990:1.500 1020:4.000 1050:8.500 ");
  query.backwards = true;
  CHECK(rows(series, query) == "1050:8.500 1020:4.000 990:1.500 ");
  query.aggregations = {Aggregation::kLast};
  CHECK(rows(series, query) == "1050:10.00 1020:5.000 990:2.000 ");
  query.backwards = false;
  query.aggregations = {Aggregation::kCount};
  query.bucket_ms = 20;
  query.with_empty_buckets = true;
  query.from = 1045;
  CHECK(rows(series, query) == "1040:1.000 1060:1.000 ");
  query.align = 5;
  query.bucket_time = store::BucketTime::kEnd;
  CHECK(rows(series, query) == "1065:1.000 1085:1.000 ");
}

TEST_CASE("Buckets at both ends of time do not overflow", "[time series]") {
  TimeSeries series(small_chunks(SeriesEncoding::kCompressed));
  series.add({0, 1}, DuplicatePolicy::kBlock);
  series.add({INT64_MAX, 3}, DuplicatePolicy::kBlock);
  RangeQuery query;
  query.aggregations = {Aggregation::kTwa};
  for (const int64_t bucket_ms : {int64_t{1}, int64_t{1000}, INT64_MAX}) {
    for (const int64_t align : {int64_t{0}, int64_t{7}, INT64_MAX}) {
      query.bucket_ms = bucket_ms;
      query.align = align;
      query.bucket_time = store::BucketTime::kEnd;
      CHECK_FALSE(rows(series, query).empty());
    }
  }
  query.bucket_ms = 1;
  query.with_empty_buckets = true;
  CHECK(RangeReader::most_buckets(series, query) > uint64_t{1} << 62);
}

TEST_CASE("A policy of compactions is read and written", "[time series]") {
  const auto shown = [](std::string_view text) {
    const auto policy = store::parse_compaction_policy(text);
    return policy ? store::compaction_policy_text(*policy) : "(refused)";
  };
  CHECK(shown("") == "");
  CHECK(shown("AVG:90m:36h;sum:60M:48h:24h;Twa:1500m:0m") ==
        "avg:90m:36h;sum:1h:2d:1d;twa:1500m:0d");
  for (const char* text : {"avg", "avg:1s", "avg:1:5s", "avg:0s:1h", "foo:1s:1h", "avg:1s:-1h",
                           "avg:1s:1h:2s:3s", "avg:9223372036854775807d:1h"})
    CHECK(shown(text) == "(refused)");
}

TEST_CASE("A chunk of very many samples is divided before one is inserted", "[time series]") {
  constexpr int64_t kSamples = 300'000;
  constexpr size_t kFew = 1 << 15;
  SeriesSettings settings;
  settings.chunk_size = SeriesSettings::kMaxChunkSize;
  TimeSeries series(settings);
  // A sample like the one before takes two bits.
  for (int64_t i = 0; i < kSamples; ++i) series.add({i * 10, 1}, DuplicatePolicy::kLast);
  REQUIRE(series.chunks().size() == 1);
  const int64_t inserted[] = {1'000'005, 1'000'007, 999'990, 1'000'001, 1'000'005, 2'000'003};
  for (const int64_t time : inserted)
    CHECK(series.add({time, 2}, DuplicatePolicy::kLast) == Added::kInserted);
  CHECK(series.chunks()[series.chunk_of(1'000'005)]->count() < kFew);
  CHECK(series.count() == kSamples + 4);
  const auto all = content(series, 0, INT64_MAX, false);
  CHECK(all.size() == kSamples + 4);
  for (const int64_t time : inserted) CHECK(all.at(time) == 2);
  CHECK(std::count_if(all.begin(), all.end(), [](const auto& each) { return each.second == 2; }) ==
        5);
}

TEST_CASE("A chunk finds the value of a time", "[time series]") {
  for (const auto encoding : {SeriesEncoding::kCompressed, SeriesEncoding::kUncompressed}) {
    store::Chunk chunk(encoding, SeriesSettings::kMaxChunkSize);
    CHECK_FALSE(chunk.value_at(0).has_value());
    for (int64_t i = 1; i <= 200; ++i) {
      chunk.append({i * 10, static_cast<double>(i)});
      CHECK(chunk.value_at(i * 10) == static_cast<double>(i));
    }
    for (int64_t time = 0; time <= 2010; ++time) {
      const bool is_there = time % 10 == 0 && time > 0 && time <= 2000;
      CHECK(chunk.value_at(time).has_value() == is_there);
      if (is_there) CHECK(chunk.value_at(time) == static_cast<double>(time) / 10);
    }
  }
}

TEST_CASE("A sample that is refused or changes nothing leaves chunks as they are",
          "[time series]") {
  TimeSeries series(small_chunks(SeriesEncoding::kUncompressed));
  for (const int64_t time : {10, 20, 30}) series.add({time, 5}, DuplicatePolicy::kBlock);
  // Three samples are the room of a chunk; with four it is divided by the next that is inserted.
  series.add({15, 5}, DuplicatePolicy::kBlock);
  REQUIRE(series.chunks().size() == 1);
  CHECK(series.add({10, 6}, DuplicatePolicy::kBlock) == Added::kRefused);
  CHECK(series.add({10, 5}, DuplicatePolicy::kLast) == Added::kInserted);
  CHECK(series.add({10, 9}, DuplicatePolicy::kMin) == Added::kInserted);
  CHECK(series.add({10, 1}, DuplicatePolicy::kMax) == Added::kInserted);
  CHECK(series.add({10, NAN}, DuplicatePolicy::kSum) == Added::kRefused);
  CHECK(series.chunks().size() == 1);
  CHECK(series.count() == 4);
  CHECK(series.add({30, 7}, DuplicatePolicy::kLast) == Added::kInserted);
  CHECK(series.chunks().size() == 2);
  CHECK(series.last().value == 7);
  const std::map<int64_t, double> expected{{10, 5}, {15, 5}, {20, 5}, {30, 7}};
  CHECK(content(series, 0, INT64_MAX, false) == expected);
}

}  // namespace latchkey::tests
