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

// With LATEST, the sample of the bucket that a rule has not ended yet, if it is in the range.
std::optional<Sample> latest_of(const TimeSeries& series, const RangeQuery& query) {
  if (!query.latest || series.index() == nullptr) return std::nullopt;
  const std::optional<Sample> latest = series.index()->latest(series);
  const bool is_new = latest.has_value() && latest->timestamp >= first_of(series, query) &&
                      latest->timestamp <= last_of(query) &&
                      (series.empty() || latest->timestamp > series.last().timestamp);
  return is_new ? latest : std::nullopt;
}

}  // namespace

RangeReader::RangeReader(const TimeSeries& series, const RangeQuery& query)
    : series_(series),
      query_(query),
      from_(first_of(series, query)),
      to_(last_of(query)),
      reader_(series, from_, to_, query.backwards) {
  if (const std::optional<Sample> latest = latest_of(series, query)) {
    latest_ = *latest;
    latest_block_ = {&latest_, 1};
  }
  for (const Aggregation kind : query.aggregations) {
    aggregators_.emplace_back(kind, query.backwards);
    if (kind == Aggregation::kTwa || kind == Aggregation::kLast) needs_neighbours_ = true;
  }
}

uint64_t RangeReader::most_buckets(const TimeSeries& series, const RangeQuery& query) {
  if (query.aggregations.empty()) return 0;
  // Gaps lie between any two samples that are read, numbers or not, and reach to the ends of what
  // has been seen.
  int64_t first = INT64_MAX;
  int64_t last = INT64_MIN;
  const auto reach = [&](int64_t timestamp) {
    first = std::min(first, timestamp);
    last = std::max(last, timestamp);
  };
  if (const auto range = seen_range(series, query)) {
    reach(range->first);
    reach(range->second);
  }
  for (const bool backwards : {false, true}) {
    const auto sample =
        first_passing(series, query, first_of(series, query), last_of(query), backwards);
    if (sample.has_value()) reach(sample->timestamp);
  }
  if (const auto latest = latest_of(series, query)) reach(latest->timestamp);
  if (first > last) return 0;
  return static_cast<uint64_t>(last - first) / static_cast<uint64_t>(query.bucket_ms) + 2;
}

// --- Samples ------------------------------------------------------------------------------------

std::span<Sample> RangeReader::next_raw_block() {
  // The latest sample is newer than all others.
  const bool latest_is_first = query_.backwards && !latest_block_.empty();
  const std::span<Sample> block = latest_is_first ? std::span<Sample>() : reader_.next_block();
  return block.empty() ? std::exchange(latest_block_, {}) : block;
}

bool RangeReader::read_block() {
  while (block_.empty()) {
    block_ = next_raw_block();
    if (block_.empty()) return false;
    if (!query_.timestamps.has_value() && !query_.values.has_value()) return true;
    const auto end = std::remove_if(block_.begin(), block_.end(),
                                    [&](const Sample& sample) { return !passes(query_, sample); });
    block_ = {block_.begin(), end};
  }
  return true;
}

bool RangeReader::next(RangeRow* row) {
  if (!aggregators_.empty()) return next_bucket(row);
  if (!has_sample()) return false;
  row->timestamp = block_.front().timestamp;
  row->values.assign(1, block_.front().value);
  block_ = block_.subspan(1);
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

std::optional<Sample> RangeReader::ahead(bool only_numbers) {
  if (!needs_neighbours_) return std::nullopt;
  const bool backwards = query_.backwards;
  int64_t edge = backwards ? query_.from : query_.to;
  if (has_sample()) {
    const Sample& coming = block_.front();
    if (!std::isnan(coming.value)) return coming;
    if (!only_numbers) return std::nullopt;
    edge = coming.timestamp;
  }
  if (edge == (backwards ? 0 : INT64_MAX)) return std::nullopt;
  if (only_numbers && next_number_.has_value()) return *next_number_;
  const std::optional<Sample> next = number_of(
      backwards ? first_passing(series_, query_, 0, edge - 1, backwards, only_numbers)
                : first_passing(series_, query_, edge + 1, INT64_MAX, backwards, only_numbers));
  if (only_numbers) next_number_.emplace(next);
  return next;
}

std::optional<Sample> RangeReader::behind() const {
  if (!needs_neighbours_) return std::nullopt;
  const bool backwards = query_.backwards;
  const int64_t edge = backwards ? query_.to : query_.from;
  if (edge == (backwards ? INT64_MAX : 0)) return std::nullopt;
  return backwards ? first_passing(series_, query_, edge + 1, INT64_MAX, false, true)
                   : first_passing(series_, query_, 0, edge - 1, true, true);
}

std::optional<Sample> RangeReader::before_first_bucket() {
  if (!before_first_bucket_.has_value()) {
    const int64_t edge = bucket_of(query_.from);
    before_first_bucket_.emplace(edge <= 0
                                     ? std::nullopt
                                     : first_passing(series_, query_, 0, edge - 1,
                                                     /*backwards=*/true, /*only_numbers=*/true));
  }
  return *before_first_bucket_;
}

double RangeReader::missing_value(const Aggregator& aggregator, int64_t bucket,
                                  std::optional<Sample> coming) {
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

void RangeReader::fill_bucket(int64_t bucket) {
  const int64_t start = clipped_start(bucket);
  const int64_t end = clipped_end(bucket);
  const std::optional<Sample> before =
      std::exchange(passed_is_near_, false) ? passed_ : std::nullopt;
  for (Aggregator& aggregator : aggregators_) {
    query_.backwards ? aggregator.begin(end, start, before) : aggregator.begin(start, end, before);
  }
  do {
    const auto behind = std::find_if(block_.begin(), block_.end(), [&](const Sample& sample) {
      return !is_of_bucket(sample.timestamp, bucket);
    });
    const std::span<const Sample> samples(block_.begin(), behind);
    block_ = {behind, block_.end()};
    for (Aggregator& aggregator : aggregators_) aggregator.add(samples);
    if (needs_neighbours_) note_passed(samples);
  } while (block_.empty() && read_block());
}

void RangeReader::note_passed(std::span<const Sample> samples) {
  const auto number = std::find_if(samples.rbegin(), samples.rend(),
                                   [](const Sample& sample) { return !std::isnan(sample.value); });
  if (number == samples.rend()) return;
  passed_ = *number;
  passed_is_near_ = true;
  next_number_.reset();
}

bool RangeReader::end_bucket(int64_t bucket, RangeRow* row) {
  const bool has_any = std::any_of(aggregators_.begin(), aggregators_.end(),
                                   [](const Aggregator& each) { return each.has_value(); });
  if (!has_any && !query_.with_empty_buckets) return false;
  row->timestamp = time_of(bucket);
  row->values.clear();
  for (const Aggregator& aggregator : aggregators_) {
    row->values.push_back(aggregator.has_value()
                              ? aggregator.result(ahead(/*only_numbers=*/false))
                              : missing_value(aggregator, bucket, ahead(/*only_numbers=*/true)));
  }
  return true;
}

void RangeReader::begin_gap(Edge from) {
  if (!has_sample() && !last_bucket_.has_value()) return;
  const Edge to =
      has_sample() ? Edge{bucket_of(block_.front().timestamp)} : Edge{*last_bucket_} + step();
  const Edge distance = query_.backwards ? from - to : to - from;
  gap_left_ =
      distance > query_.bucket_ms ? static_cast<uint64_t>(distance / query_.bucket_ms) - 1 : 0;
  gap_at_ = from;
  if (gap_left_ > 0) gap_coming_ = ahead(/*only_numbers=*/true);
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

void RangeReader::begin_buckets() {
  has_begun_ = true;
  passed_ = behind();
  passed_is_near_ = passed_.has_value();
  if (!query_.with_empty_buckets) return;
  const auto range = seen_range(series_, query_);
  if (!range.has_value()) return;
  last_bucket_ = bucket_of(query_.backwards ? range->first : range->second);
  begin_gap(Edge{bucket_of(query_.backwards ? range->second : range->first)} - step());
}

bool RangeReader::next_bucket(RangeRow* row) {
  if (!has_begun_) begin_buckets();
  while (true) {
    if (next_of_gap(row)) return true;
    if (!has_sample()) return false;
    const int64_t bucket = bucket_of(block_.front().timestamp);
    fill_bucket(bucket);
    const bool is_told = end_bucket(bucket, row);
    if (query_.with_empty_buckets) begin_gap(bucket);
    if (is_told) return true;
  }
}

}  // namespace latchkey::store
