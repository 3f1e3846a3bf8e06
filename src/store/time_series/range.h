// Queries of a time series over a range of time: which samples, and what is made of those that fall
// into the same bucket.
//
// RangeReader reads row by row, so that COUNT and a client that is gone end the work. Costs:
// O(samples in the range), in memory a chunk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "store/time_series/aggregation.h"
#include "store/time_series/series.h"

namespace latchkey::store {

// Which time of its bucket a row tells.
enum class BucketTime : uint8_t { kStart, kMiddle, kEnd };

struct RangeQuery {
  int64_t from = 0;  // both ends are included
  int64_t to = std::numeric_limits<int64_t>::max();
  bool backwards = false;
  bool latest = false;
  // FILTER_BY_TS: in order and different. FILTER_BY_VALUE: both included.
  std::optional<std::vector<int64_t>> timestamps;
  std::optional<std::pair<double, double>> values;
  // None: rows are samples.
  std::vector<Aggregation> aggregations;
  int64_t bucket_ms = 0;
  int64_t align = 0;
  BucketTime bucket_time = BucketTime::kStart;
  bool with_empty_buckets = false;
};

struct RangeRow {
  int64_t timestamp = 0;
  std::vector<double> values;  // one for each aggregation, or the sample's
};

class RangeReader {
 public:
  // Both must outlive the reader; the series must not change meanwhile.
  RangeReader(const TimeSeries& series, const RangeQuery& query);

  // False behind the last row.
  bool next(RangeRow* row);

  // How many buckets with_empty_buckets may give. O(chunk), or O(samples) with filters.
  static uint64_t most_buckets(const TimeSeries& series, const RangeQuery& query);

 private:
  std::span<Sample> next_raw_block();
  // Whether there is a sample to come that passes the filters: block_ begins with it.
  bool has_sample() { return !block_.empty() || read_block(); }
  bool read_block();

  bool next_bucket(RangeRow* row);
  void begin_buckets();
  // Takes the samples to come that are of the bucket. REQUIRES: has_sample(), which is.
  void fill_bucket(int64_t bucket);
  void note_passed(std::span<const Sample> samples);
  // False when there is nothing to tell of the bucket.
  bool end_bucket(int64_t bucket, RangeRow* row);
  // The start of a bucket, or a step beyond the first or the last there can be.
  using Edge = __int128;
  // Sets up the buckets without samples behind `from`.
  void begin_gap(Edge from);
  bool next_of_gap(RangeRow* row);
  double missing_value(const Aggregator& aggregator, int64_t bucket, std::optional<Sample> coming);
  // The sample that is passed next, or would be if the range did not end; nothing when it is
  // missing, or if `only_numbers` the next that is not.
  std::optional<Sample> ahead(bool only_numbers);
  // The last number before the bucket in which the range begins.
  std::optional<Sample> before_first_bucket();
  // The number that would have been passed before the range.
  std::optional<Sample> behind() const;

  int64_t bucket_of(int64_t timestamp) const {
    return unclamped_bucket_start(timestamp, query_.bucket_ms, query_.align);
  }
  // Whether a sample is of the bucket. A time before it is, without a sign, farther than any.
  bool is_of_bucket(int64_t timestamp, int64_t bucket) const {
    return static_cast<uint64_t>(timestamp) - static_cast<uint64_t>(bucket) <
           static_cast<uint64_t>(query_.bucket_ms);
  }
  int64_t step() const { return query_.backwards ? -query_.bucket_ms : query_.bucket_ms; }
  // The ends of a bucket as far as the query reaches.
  int64_t clipped_start(int64_t bucket) const;
  int64_t clipped_end(int64_t bucket) const;
  int64_t time_of(int64_t bucket) const;

  const TimeSeries& series_;
  const RangeQuery& query_;
  int64_t from_;
  int64_t to_;
  SampleReader reader_;
  Sample latest_;
  std::span<Sample> latest_block_;  // latest_, until it has been read
  std::span<Sample> block_;         // samples that have been read and pass the filters
  // Buckets.
  std::vector<Aggregator> aggregators_;
  bool needs_neighbours_ = false;
  // If needs_neighbours_, the last sample that is a number, and whether no bucket began since.
  std::optional<Sample> passed_;
  bool passed_is_near_ = false;
  // What ahead(only_numbers) and before_first_bucket() have found: every bucket may ask, and the
  // answer may lie many samples away. The first holds until a number is passed.
  std::optional<std::optional<Sample>> next_number_;
  std::optional<std::optional<Sample>> before_first_bucket_;
  bool has_begun_ = false;
  // The last bucket with_empty_buckets gives, in the order of reading.
  std::optional<int64_t> last_bucket_;
  Edge gap_at_ = 0;
  uint64_t gap_left_ = 0;
  std::optional<Sample> gap_coming_;
};

}  // namespace latchkey::store
