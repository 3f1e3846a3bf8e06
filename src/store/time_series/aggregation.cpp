#include "store/time_series/aggregation.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/text/text.h"

namespace latchkey::store {

namespace {

constexpr std::string_view kNames[] = {"",      "min",  "max",      "sum",     "avg",   "count",
                                       "first", "last", "range",    "std.p",   "std.s", "var.p",
                                       "var.s", "twa",  "countnan", "countall"};
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kLargest = std::numeric_limits<double>::max();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool is_number(const Sample& sample) {
  return !std::isnan(sample.value);
}

// Takes the numbers among the samples one after another into a value.
template <typename Step>
double folded(double value, std::span<const Sample> samples, Step step) {
  for (const Sample& sample : samples) {
    if (is_number(sample)) value = step(value, sample.value);
  }
  return value;
}

double least(double value, std::span<const Sample> samples) {
  return folded(value, samples, [](double left, double right) { return std::min(left, right); });
}
double largest(double value, std::span<const Sample> samples) {
  return folded(value, samples, [](double left, double right) { return std::max(left, right); });
}
double sum(double value, std::span<const Sample> samples) {
  return folded(value, samples, [](double left, double right) { return left + right; });
}
double sum_of_squares(double value, std::span<const Sample> samples) {
  return folded(value, samples, [](double left, double right) { return left + right * right; });
}

double distance(int64_t from, int64_t to) {
  return std::abs(static_cast<double>(to) - static_cast<double>(from));
}

}  // namespace

std::string_view aggregation_name(Aggregation aggregation) {
  return kNames[static_cast<size_t>(aggregation)];
}

std::string upper_case_name(Aggregation aggregation) {
  std::string name(aggregation_name(aggregation));
  for (char& letter : name) {
    if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
  }
  return name;
}

std::optional<Aggregation> aggregation_of(std::string_view name) {
  for (size_t i = 1; i < std::size(kNames); ++i) {
    if (base::equal_ignoring_case(name, kNames[i])) return static_cast<Aggregation>(i);
  }
  return std::nullopt;
}

int64_t unclamped_bucket_start(int64_t timestamp, int64_t bucket_ms, int64_t align) {
  const int64_t into = (timestamp - align) % bucket_ms;
  // May be below zero, but not below the least: bucket_ms - into <= the largest.
  return timestamp - (into < 0 ? into + bucket_ms : into);
}

int64_t bucket_start(int64_t timestamp, int64_t bucket_ms, int64_t align) {
  return std::max<int64_t>(unclamped_bucket_start(timestamp, bucket_ms, align), 0);
}

double interpolated(Sample left, Sample right, int64_t timestamp) {
  const double width = static_cast<double>(right.timestamp - left.timestamp);
  const double share = static_cast<double>(timestamp - left.timestamp) / width;
  return left.value + (right.value - left.value) * share;
}

Aggregator::Aggregator(Aggregation kind, bool backwards) : kind_(kind), backwards_(backwards) {
  begin(0, 0, std::nullopt);
}

void Aggregator::begin(int64_t near, int64_t far, std::optional<Sample> before) {
  has_value_ = false;
  state_.first = state_.second = 0;
  state_.count = 0;
  state_.is_mean = false;
  switch (kind_) {
    case Aggregation::kMin:
    case Aggregation::kMax:
    case Aggregation::kRange:
      state_.first = -kLargest;
      state_.second = kLargest;
      break;
    case Aggregation::kLast:
      state_.first = kNaN;
      break;
    case Aggregation::kTwa:
      state_.near = near;
      state_.far = far;
      state_.is_first_bucket = !before.has_value();
      state_.last = before.value_or(Sample());
      state_.began_at = state_.came_to = before.has_value() ? near : 0;
      break;
    default:
      break;
  }
}

void Aggregator::add(std::span<const Sample> samples) {
  const auto count = static_cast<size_t>(std::count_if(samples.begin(), samples.end(), is_number));
  const size_t seen = kind_ == Aggregation::kCountNan   ? samples.size() - count
                      : kind_ == Aggregation::kCountAll ? samples.size()
                                                        : count;
  if (seen == 0) return;
  switch (kind_) {
    case Aggregation::kMin:
      state_.second = least(has_value_ ? state_.second : kInfinity, samples);
      break;
    case Aggregation::kMax:
      state_.first = largest(has_value_ ? state_.first : -kInfinity, samples);
      break;
    case Aggregation::kRange:
      state_.first = largest(has_value_ ? state_.first : -kInfinity, samples);
      state_.second = least(has_value_ ? state_.second : kInfinity, samples);
      break;
    case Aggregation::kSum:
      state_.first = sum(state_.first, samples);
      break;
    case Aggregation::kAvg:
      if (const double total = sum(state_.first, samples);
          !state_.is_mean && std::isfinite(total)) {
        state_.first = total;
        state_.second += static_cast<double>(count);
      } else {
        for (const Sample& sample : samples) {
          if (is_number(sample)) add_to_mean(sample.value);
        }
      }
      break;
    case Aggregation::kCount:
    case Aggregation::kCountNan:
    case Aggregation::kCountAll:
      state_.first += static_cast<double>(seen);
      break;
    case Aggregation::kFirst:
    case Aggregation::kLast:
      if (backwards_ == (kind_ == Aggregation::kFirst)) {
        state_.first = std::find_if(samples.rbegin(), samples.rend(), is_number)->value;
      } else if (!has_value_) {
        state_.first = std::find_if(samples.begin(), samples.end(), is_number)->value;
      }
      break;
    case Aggregation::kStdP:
    case Aggregation::kStdS:
    case Aggregation::kVarP:
    case Aggregation::kVarS:
      state_.first = sum(state_.first, samples);
      state_.second = sum_of_squares(state_.second, samples);
      state_.count += count;
      break;
    case Aggregation::kTwa:
      for (const Sample& sample : samples) {
        if (is_number(sample)) add_weighted(sample);
      }
      break;
  }
  has_value_ = true;
}

void Aggregator::add_to_mean(double value) {
  if (!state_.is_mean && state_.second > 0) state_.first /= state_.second;
  state_.is_mean = true;
  const double count = ++state_.second;
  state_.first += value / count - state_.first / count;
}

void Aggregator::add_weighted(Sample sample) {
  if (state_.count == 0 && state_.is_first_bucket) {
    state_.began_at = sample.timestamp;
  } else {
    Sample from = state_.last;
    if (state_.count == 0) from = {state_.near, interpolated(state_.last, sample, state_.near)};
    state_.first += (from.value + sample.value) / 2 * distance(from.timestamp, sample.timestamp);
  }
  state_.last = sample;
  state_.came_to = sample.timestamp;
  ++state_.count;
}

double Aggregator::weighted_result(std::optional<Sample> after) const {
  double sum = state_.first;
  int64_t end = state_.came_to;
  if (after.has_value() && state_.far != end) {
    const double at_end = interpolated(state_.last, *after, state_.far);
    sum += (state_.last.value + at_end) / 2 * distance(end, state_.far);
    end = state_.far;
  }
  const double width = distance(state_.began_at, end);
  return width == 0 ? state_.last.value : sum / width;
}

double Aggregator::variance(bool of_sample) const {
  const double count = static_cast<double>(state_.count);
  if (state_.count == 1) return 0;
  const double mean = state_.first / count;
  const double squares = state_.second - 2 * state_.first * mean + mean * mean * count;
  return squares / (of_sample ? count - 1 : count);
}

double Aggregator::result(std::optional<Sample> after) const {
  switch (kind_) {
    case Aggregation::kMin:
      return state_.second;
    case Aggregation::kAvg:
      return state_.is_mean ? state_.first : state_.first / state_.second;
    case Aggregation::kRange:
      return state_.first - state_.second;
    case Aggregation::kStdP:
      return std::sqrt(variance(false));
    case Aggregation::kStdS:
      return std::sqrt(variance(true));
    case Aggregation::kVarP:
      return variance(false);
    case Aggregation::kVarS:
      return variance(true);
    case Aggregation::kTwa:
      return weighted_result(after);
    default:
      return state_.first;
  }
}

double Aggregator::empty_result() const {
  switch (kind_) {
    case Aggregation::kSum:
    case Aggregation::kCount:
    case Aggregation::kCountNan:
    case Aggregation::kCountAll:
      return 0;
    default:
      return kNaN;
  }
}

}  // namespace latchkey::store
