#include "store/time_series/range.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "store/time_series/label_index.h"

namespace latchkey::store {

namespace {

int64_t first_of(const TimeSeries& series, const RangeQuery& query) {
  int64_t from = std::max(query.from, series.oldest_visible());
  if (query.timestamps.has_value() && !query.timestamps->empty())
    from = std::max(from, query.timestamps->front());
  return from;
}

int64_t last_of(const RangeQuery& query) {
  if (!query.timestamps.has_value() || query.timestamps->empty()) return query.to;
  return std::min(query.to, query.timestamps->back());
}

// A sample that is missing is no neighbour.
std::optional<Sample> number_of(const std::optional<Sample>& sample) {
  return sample.has_value() && std::isnan(sample->value) ? std::nullopt : sample;
}

bool passes(const RangeQuery& query, const Sample& sample) {
  if (query.timestamps.has_value() &&
      !std::binary_search(query.timestamps->begin(), query.timestamps->end(), sample.timestamp))
    return false;
  return !query.values.has_value() ||
         (sample.value >= query.values->first && sample.value <= query.values->second);
}

// The first sample of from .. to that passes the filters, or the last one.
std::optional<Sample> first_passing(const TimeSeries& series, const RangeQuery& query, int64_t from,
                                    int64_t to, bool backwards, bool only_numbers = false) {
  SampleReader reader(series, std::max(from, series.oldest_visible()), to, backwards);
  for (Sample sample; reader.next(&sample);) {
    if (passes(query, sample) && !(only_numbers && std::isnan(sample.value))) return sample;
  }
  return std::nullopt;
}

// The range as far as there are numbers; nothing when there are none.
std::optional<std::pair<int64_t, int64_t>> seen_range(const TimeSeries& series,
                                                      const RangeQuery& query) {
  const auto first =
      first_passing(series, query, 0, INT64_MAX, /*backwards=*/false, /*only_numbers=*/true);
  if (!first.has_value()) return std::nullopt;
  const auto last =
      first_passing(series, query, 0, INT64_MAX, /*backwards=*/true, /*only_numbers=*/true);
  const int64_t from = std::max(query.from, first->timestamp);
  const int64_t to = std::min(query.to, last->timestamp);
  if (from > to) return std::nullopt;
  return std::pair(from, to);
}

}  // namespace

RangeReader::RangeReader(const TimeSeries& series, const RangeQuery& query)
    : series_(series),
      query_(query),
      from_(first_of(series, query)),
      to_(last_of(query)),
      reader_(series, from_, to_, query.backwards) {
  if (query.latest && series.index() != nullptr) {
    latest_ = series.index()->latest(series);
    const bool is_new = latest_.has_value() && latest_->timestamp >= from_ &&
                        latest_->timestamp <= to_ &&
                        (series.empty() || latest_->timestamp > series.last().timestamp);
    if (!is_new) latest_.reset();
  }
  for (const Aggregation kind : query.aggregations) {
    aggregators_.emplace_back(kind, query.backwards);
    if (kind == Aggregation::kTwa || kind == Aggregation::kLast) needs_neighbours_ = true;
  }
}

uint64_t RangeReader::most_buckets(const TimeSeries& series, const RangeQuery& query) {
  const auto range = seen_range(series, query);
  if (!range.has_value() || query.aggregations.empty()) return 0;
  return static_cast<uint64_t>(range->second - range->first) /
             static_cast<uint64_t>(query.bucket_ms) +
         2;
}

// --- Samples ------------------------------------------------------------------------------------

bool RangeReader::next_raw(Sample* sample) {
  if (query_.backwards && latest_.has_value()) {
    *sample = *std::exchange(latest_, std::nullopt);
    return true;
  }
  if (reader_.next(sample)) return true;
  if (!latest_.has_value()) return false;
  *sample = *std::exchange(latest_, std::nullopt);
  return true;
}

bool RangeReader::next_sample(Sample* sample) {
  while (next_raw(sample)) {
    if (passes(query_, *sample)) return true;
  }
  return false;
}

bool RangeReader::next(RangeRow* row) {
  if (!aggregators_.empty()) return next_bucket(row);
  Sample sample;
  if (!next_sample(&sample)) return false;
  row->timestamp = sample.timestamp;
  row->values.assign(1, sample.value);
  return true;
}

// --- Buckets ------------------------------------------------------------------------------------

int64_t RangeReader::clipped_start(int64_t bucket) const {
  return std::max({bucket, query_.from, int64_t{0}});
}

int64_t RangeReader::clipped_end(int64_t bucket) const {
  const int64_t end = bucket > INT64_MAX - query_.bucket_ms ? INT64_MAX : bucket + query_.bucket_ms;
  return std::min(end, query_.to);
}

int64_t RangeReader::time_of(int64_t bucket) const {
  const int64_t start = std::max<int64_t>(bucket, 0);
  const int64_t room = INT64_MAX - start;
  switch (query_.bucket_time) {
    case BucketTime::kStart:
      return start;
    case BucketTime::kMiddle:
      return start + std::min(query_.bucket_ms / 2, room);
    case BucketTime::kEnd:
      return start + std::min(query_.bucket_ms, room);
  }
  return start;
}

std::optional<Sample> RangeReader::ahead(std::optional<Sample> coming, bool only_numbers) const {
  if (coming.has_value() && !(only_numbers && std::isnan(coming->value))) return number_of(coming);
  if (!needs_neighbours_) return std::nullopt;
  const bool backwards = query_.backwards;
  int64_t edge = backwards ? query_.from : query_.to;
  if (coming.has_value()) edge = coming->timestamp;
  if (edge == (backwards ? 0 : INT64_MAX)) return std::nullopt;
  return number_of(
      backwards ? first_passing(series_, query_, 0, edge - 1, backwards, only_numbers)
                : first_passing(series_, query_, edge + 1, INT64_MAX, backwards, only_numbers));
}

std::optional<Sample> RangeReader::behind() const {
  if (!needs_neighbours_) return std::nullopt;
  const bool backwards = query_.backwards;
  const int64_t edge = backwards ? query_.to : query_.from;
  if (edge == (backwards ? INT64_MAX : 0)) return std::nullopt;
  return backwards ? first_passing(series_, query_, edge + 1, INT64_MAX, false, true)
                   : first_passing(series_, query_, 0, edge - 1, true, true);
}

std::optional<Sample> RangeReader::before_first_bucket() const {
  const int64_t edge = bucket_of(query_.from);
  if (edge <= 0) return std::nullopt;
  return first_passing(series_, query_, 0, edge - 1, /*backwards=*/true, /*only_numbers=*/true);
}

double RangeReader::missing_value(const Aggregator& aggregator, int64_t bucket,
                                  std::optional<Sample> coming) const {
  std::optional<Sample> older = query_.backwards ? coming : passed_;
  const std::optional<Sample> newer = query_.backwards ? passed_ : coming;
  if (aggregator.kind() == Aggregation::kLast) {
    if (!older.has_value() || older->timestamp < query_.from) older = before_first_bucket();
    return older.has_value() ? older->value : aggregator.empty_result();
  }
  if (aggregator.kind() != Aggregation::kTwa || !older.has_value() || !newer.has_value())
    return aggregator.empty_result();
  return (interpolated(*older, *newer, clipped_start(bucket)) +
          interpolated(*older, *newer, clipped_end(bucket))) /
         2;
}

void RangeReader::begin_bucket(int64_t bucket) {
  bucket_ = bucket;
  const int64_t start = clipped_start(bucket);
  const int64_t end = clipped_end(bucket);
  for (Aggregator& aggregator : aggregators_) {
    query_.backwards ? aggregator.begin(end, start, before_)
                     : aggregator.begin(start, end, before_);
  }
  before_.reset();
}

void RangeReader::add(const Sample& sample) {
  for (Aggregator& aggregator : aggregators_) aggregator.add(sample);
  if (!std::isnan(sample.value)) passed_ = before_ = sample;
}

bool RangeReader::end_bucket(std::optional<Sample> coming, RangeRow* row) {
  const int64_t bucket = *std::exchange(bucket_, std::nullopt);
  const bool has_any = std::any_of(aggregators_.begin(), aggregators_.end(),
                                   [](const Aggregator& each) { return each.has_value(); });
  if (!has_any && !query_.with_empty_buckets) return false;
  row->timestamp = time_of(bucket);
  row->values.clear();
  for (const Aggregator& aggregator : aggregators_) {
    row->values.push_back(
        aggregator.has_value()
            ? aggregator.result(ahead(coming, /*only_numbers=*/false))
            : missing_value(aggregator, bucket, ahead(coming, /*only_numbers=*/true)));
  }
  return true;
}

void RangeReader::begin_gap(Edge from, Edge to, std::optional<Sample> coming) {
  const Edge distance = query_.backwards ? from - to : to - from;
  gap_left_ =
      distance > query_.bucket_ms ? static_cast<uint64_t>(distance / query_.bucket_ms) - 1 : 0;
  gap_at_ = from;
  if (gap_left_ > 0) gap_coming_ = ahead(coming, /*only_numbers=*/true);
}

bool RangeReader::next_of_gap(RangeRow* row) {
  if (gap_left_ == 0) return false;
  --gap_left_;
  gap_at_ += step();
  const auto bucket = static_cast<int64_t>(gap_at_);
  row->timestamp = time_of(bucket);
  row->values.clear();
  for (const Aggregator& aggregator : aggregators_)
    row->values.push_back(missing_value(aggregator, bucket, gap_coming_));
  return true;
}

bool RangeReader::next_bucket(RangeRow* row) {
  if (!std::exchange(has_begun_, true)) {
    passed_ = before_ = behind();
    if (query_.with_empty_buckets) {
      if (const auto range = seen_range(series_, query_); range.has_value()) {
        first_bucket_ = bucket_of(query_.backwards ? range->second : range->first);
        last_bucket_ = bucket_of(query_.backwards ? range->first : range->second);
      }
    }
    Sample sample;
    if (next_sample(&sample)) pending_ = sample;
    if (first_bucket_.has_value()) {
      const Edge end = Edge{*last_bucket_} + step();
      const Edge to = pending_.has_value() ? Edge{bucket_of(pending_->timestamp)} : end;
      begin_gap(Edge{*first_bucket_} - step(), to, pending_);
    }
  }
  while (true) {
    if (next_of_gap(row)) return true;
    if (!pending_.has_value()) return false;
    begin_bucket(bucket_of(pending_->timestamp));
    const int64_t bucket = *bucket_;
    add(*std::exchange(pending_, std::nullopt));
    for (Sample sample; next_sample(&sample);) {
      if (bucket_of(sample.timestamp) != bucket) {
        pending_ = sample;
        break;
      }
      add(sample);
    }
    const bool is_told = end_bucket(pending_, row);
    if (query_.with_empty_buckets) {
      if (pending_.has_value()) {
        begin_gap(bucket, bucket_of(pending_->timestamp), pending_);
      } else if (last_bucket_.has_value()) {
        begin_gap(bucket, Edge{*last_bucket_} + step(), std::nullopt);
      }
    }
    if (is_told) return true;
  }
}

}  // namespace latchkey::store
