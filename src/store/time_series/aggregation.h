// Aggregations of samples: those of a bucket of time into one value, by queries and by compaction
// rules, and those of one timestamp of several series (REDUCE).
//
// NaN is a measurement that is missing: only kCountNan and kCountAll see it. An aggregator takes
// the samples of one bucket after another in the order of time, or all backwards; each in O(1). The
// state is what RDB keeps of a rule's open bucket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "store/time_series/sample.h"

namespace latchkey::store {

// The numbers are those of RDB.
enum class Aggregation : uint8_t {
  kMin = 1,
  kMax,
  kSum,
  kAvg,
  kCount,
  kFirst,
  kLast,
  kRange,
  kStdP,
  kStdS,
  kVarP,
  kVarS,
  kTwa,
  kCountNan,
  kCountAll,
};
inline constexpr uint64_t kLastAggregation = static_cast<uint64_t>(Aggregation::kCountAll);

// "avg", "std.p" and so on.
std::string_view aggregation_name(Aggregation aggregation);
// "AVG", "STD.P" and so on, as replies and the keys of compactions have it.
std::string upper_case_name(Aggregation aggregation);
// In any case. Nothing when there is no such aggregation.
std::optional<Aggregation> aggregation_of(std::string_view name);

// Where the bucket of a timestamp starts, and where it would if time had no beginning at zero.
// Buckets are [align + n * bucket_ms, + bucket_ms). REQUIRES: all >= 0, bucket_ms > 0.
int64_t unclamped_bucket_start(int64_t timestamp, int64_t bucket_ms, int64_t align);
int64_t bucket_start(int64_t timestamp, int64_t bucket_ms, int64_t align);

// The value between two samples, or beyond them, on a straight line.
double interpolated(Sample left, Sample right, int64_t timestamp);

class Aggregator {
 public:
  explicit Aggregator(Aggregation kind, bool backwards = false);

  Aggregation kind() const { return kind_; }

  // Begins the bucket from `near` to `far`, of which the nearer end is passed first: near is above
  // far when time goes backwards. `before`: the sample passed last, outside of the bucket. Only
  // kTwa asks for any of it.
  void begin(int64_t near, int64_t far, std::optional<Sample> before);
  // Samples of the bucket, behind those that were added before.
  void add(std::span<const Sample> samples);
  void add(Sample sample) { add({&sample, 1}); }
  // Whether a sample was added that the aggregation sees.
  bool has_value() const { return has_value_; }
  // REQUIRES: has_value(). `after`: the sample that will be passed next, outside of the bucket.
  double result(std::optional<Sample> after) const;
  // Of a bucket without a sample that the aggregation sees: 0 for sums and counts, NaN for others.
  // Those of kLast and kTwa depend on the neighbours, which the caller knows.
  double empty_result() const;

  // --- As files have it -------------------------------------------------------------------------

  struct State {
    // Sum and sum of squares; or the largest and the smallest; or the value or count itself in
    // `first`.
    double first = 0;
    double second = 0;
    uint64_t count = 0;
    // Of kAvg, whose number of samples is `second`: `first` is their mean, as the sum was too
    // large.
    bool is_mean = false;
    // Of kTwa, whose weighted sum is `first`: the sample passed last, the ends of the bucket, where
    // the weighing began and how far it has come, and whether nothing was passed before the bucket.
    Sample last = {};
    int64_t near = 0;
    int64_t far = 0;
    int64_t began_at = 0;
    int64_t came_to = 0;
    bool is_first_bucket = true;
  };
  const State& state() const { return state_; }
  void restore(const State& state, bool has_value) {
    state_ = state;
    has_value_ = has_value;
  }

 private:
  void add_to_mean(double value);
  void add_weighted(Sample sample);
  double weighted_result(std::optional<Sample> after) const;
  double variance(bool of_sample) const;

  State state_;
  Aggregation kind_;
  bool backwards_;
  bool has_value_ = false;
};

}  // namespace latchkey::store
