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
  bool next_raw(Sample* sample);
  // The next sample that passes the filters.
  bool next_sample(Sample* sample);

  bool next_bucket(RangeRow* row);
  void begin_bucket(int64_t bucket);
  void add(const Sample& sample);
  // Ends the bucket; false when there is nothing to tell of it. `coming`: the next sample.
  bool end_bucket(std::optional<Sample> coming, RangeRow* row);
  // The start of a bucket, or a step beyond the first or the last there can be.
  using Edge = __int128;
  // Sets up the buckets without samples up to `to`, both ends excluded.
  void begin_gap(Edge from, Edge to, std::optional<Sample> coming);
  bool next_of_gap(RangeRow* row);
  double missing_value(const Aggregator& aggregator, int64_t bucket,
                       std::optional<Sample> coming) const;
  // The sample that is passed next, or would be if the range did not end; nothing when it is
  // missing, or if `only_numbers` the next that is not.
  std::optional<Sample> ahead(std::optional<Sample> coming, bool only_numbers) const;
  // The last number before the bucket in which the range begins. O(chunk).
  std::optional<Sample> before_first_bucket() const;
  // The number that would have been passed before the range.
  std::optional<Sample> behind() const;

  int64_t bucket_of(int64_t timestamp) const {
    return unclamped_bucket_start(timestamp, query_.bucket_ms, query_.align);
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
  std::optional<Sample> latest_;  // until it has been read
  // Buckets.
  std::vector<Aggregator> aggregators_;
  bool needs_neighbours_ = false;
  std::optional<int64_t> bucket_;
  std::optional<Sample> passed_;   // the last sample that is a number
  std::optional<Sample> before_;   // the same, if it is of the bucket before
  std::optional<Sample> pending_;  // read, and of the next bucket
  bool has_begun_ = false;
  // The first and the last bucket with_empty_buckets gives, in the order of reading.
  std::optional<int64_t> first_bucket_;
  std::optional<int64_t> last_bucket_;
  Edge gap_at_ = 0;
  uint64_t gap_left_ = 0;
  std::optional<Sample> gap_coming_;
};

}  // namespace latchkey::store
