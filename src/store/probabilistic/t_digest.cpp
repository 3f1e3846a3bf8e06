#include "store/probabilistic/t_digest.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <unordered_map>
#include <utility>

#include "base/assert.h"

namespace latchkey::store {

namespace {

using Centroid = TDigest::Centroid;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Looks at centroids of all merging of one add_all().
constexpr size_t kLooksOfAddAll = size_t{1} << 25;
// What a sort is limited to by its size alone.
constexpr size_t kUnlimited = std::numeric_limits<size_t>::max();

bool is_less(const Centroid& left, const Centroid& right) {
  return left.mean < right.mean;
}

// The least integer when the number has none: what a conversion gives on x86.
int64_t to_integer(double number) {
  constexpr double kEnd = 0x1p63;
  if (number >= -kEnd && number < kEnd) return static_cast<int64_t>(number);
  return std::numeric_limits<int64_t>::min();
}

// The mean of two numbers with weights, which is between them whatever rounding does.
double weighted_mean(double one, double one_weight, double other, double other_weight) {
  if (one > other) return weighted_mean(other, other_weight, one, one_weight);
  const double mean = (one * one_weight + other * other_weight) / (one_weight + other_weight);
  return std::max(one, std::min(mean, other));
}

// Adds the second centroid to the first.
void join(Centroid& centroid, const Centroid& next) {
  centroid.weight += next.weight;
  centroid.mean += (next.mean - centroid.mean) * static_cast<double>(next.weight) /
                   static_cast<double>(centroid.weight);
}

// --- Sorting -------------------------------------------------------------------------------------

// What sort_in_parts() makes of a part whose means are all equal, where each of its steps moves the
// middle element to the front.
void order_equal_means(std::span<Centroid> part) {
  for (; part.size() > 2; part = part.subspan(1)) {
    const size_t last = part.size() - 1;
    std::swap(part[last / 2], part[last]);
    std::swap(part[0], part[last]);
  }
}

// Sorts by means. Of equal means it makes the order that the reference makes, which decides which
// of them are merged: quicksort after Lomuto with the middle element as pivot. Some orders take
// quadratic time in it; so `looks` is how many elements may be looked at, and what is not sorted by
// then is sorted otherwise.
void sort_in_parts(std::span<Centroid> part, size_t* looks) {
  while (part.size() > 2) {
    if (*looks < part.size()) {
      *looks = 0;
      return std::stable_sort(part.begin(), part.end(), is_less);
    }
    *looks -= part.size();
    const size_t last = part.size() - 1;
    const double pivot = part[last / 2].mean;
    if (std::ranges::all_of(part, [&](const Centroid& one) { return one.mean == pivot; }))
      return order_equal_means(part);
    std::swap(part[last / 2], part[last]);
    size_t below = 0;
    for (size_t i = 0; i < last; ++i) {
      if (part[i].mean < pivot) std::swap(part[below++], part[i]);
    }
    std::swap(part[below], part[last]);
    std::span<Centroid> left = part.first(below);
    std::span<Centroid> right = part.subspan(below + 1);
    // The smaller part first, so that calls nest as deep as the logarithm of the size.
    if (left.size() > right.size()) std::swap(left, right);
    sort_in_parts(left, looks);
    part = right;
  }
  if (part.size() == 2 && part[0].mean > part[1].mean) std::swap(part[0], part[1]);
}

// Takes from `looks` what it needs.
void sort_centroids(std::span<Centroid> centroids, size_t* looks) {
  // Enough for any order of three thousand elements.
  constexpr size_t kLooksOfAnySort = size_t{5} << 20;
  constexpr size_t kLooksPerElementAndBit = 4;
  const auto bits = static_cast<size_t>(std::bit_width(centroids.size()));
  const size_t most = kLooksOfAnySort + kLooksPerElementAndBit * centroids.size() * bits;
  size_t left = std::min(most, *looks);
  *looks -= left;
  sort_in_parts(centroids, &left);
  *looks += left;
}

}  // namespace

TDigest::TDigest(int64_t compression)
    : compression_(compression), capacity_(capacity_of(compression)) {
  LK_ASSERT(compression > 0 && compression <= kMaxCompression);
}

size_t TDigest::capacity_of(int64_t compression) {
  return 6 * static_cast<size_t>(compression) + 10;
}

size_t TDigest::reported_size() const {
  constexpr size_t kHead = 80;
  return kHead + capacity_ * sizeof(Centroid);
}

// --- Changing ------------------------------------------------------------------------------------

bool TDigest::add(std::span<const double> observations) {
  if (weight() > kMostObservations - static_cast<int64_t>(observations.size())) return false;
  for (const double observation : observations) {
    // Each merging is paid for by the observations that have made it necessary.
    size_t looks = kUnlimited;
    add(Centroid{observation, 1}, &looks);
  }
  return true;
}

void TDigest::add(Centroid centroid, size_t* looks) {
  if (centroids_.size() + 1 >= capacity_) merge(looks);
  min_ = std::min(min_, centroid.mean);
  max_ = std::max(max_, centroid.mean);
  centroids_.push_back(centroid);
  unmerged_weight_ += centroid.weight;
}

bool TDigest::add_all(std::span<const TDigest* const> others) {
  int64_t sum = weight();
  for (const TDigest* other : others) {
    LK_ASSERT(other != this);
    // Takes nothing from `looks`: whether it was done before must not count, because a replica may
    // not have been asked the same.
    other->merge();
    if (__builtin_add_overflow(sum, other->weight(), &sum) || sum > kMostObservations) return false;
  }
  size_t looks = kLooksOfAddAll;
  for (; !others.empty() && looks > 0; others = others.subspan(1)) {
    merge(&looks);
    add_all_of(*others.front(), 1, &looks);
  }
  add_each_once(others);
  return true;
}

// Adds the centroids of `other`, merged, so many times.
void TDigest::add_all_of(const TDigest& other, int64_t times, size_t* looks) {
  for (const Centroid& centroid : other.centroids_)
    add(Centroid{centroid.mean, centroid.weight * times}, looks);
}

// Adds digests, those that are named several times with so many times their weights.
void TDigest::add_each_once(std::span<const TDigest* const> others) {
  std::unordered_map<const TDigest*, int64_t> times;
  for (const TDigest* other : others) ++times[other];
  size_t looks = 0;
  for (const TDigest* other : others) {
    const int64_t count = std::exchange(times[other], 0);
    if (count != 0) add_all_of(*other, count, &looks);
  }
}

void TDigest::clear() {
  min_ = std::numeric_limits<double>::max();
  max_ = std::numeric_limits<double>::lowest();
  centroids_ = {};
  merged_count_ = 0;
  merged_weight_ = unmerged_weight_ = merges_ = 0;
}

void TDigest::merge() const {
  size_t looks = kUnlimited;
  merge(&looks);
}

void TDigest::merge(size_t* looks) const {
  if (unmerged_count() == 0 || centroids_.size() < 2) return;
  sort_centroids(centroids_, looks);
  // What follows takes the time of so many looks at each.
  constexpr size_t kLooksOfMerging = 8;
  *looks -= std::min(*looks, kLooksOfMerging * centroids_.size());
  const auto total = static_cast<double>(weight());
  const double normalizer =
      static_cast<double>(compression_) / (2 * std::numbers::pi * total * std::log(total));
  int64_t before = 0;
  size_t last = 0;
  for (size_t i = 1; i < centroids_.size(); ++i) {
    const Centroid next = centroids_[i];
    Centroid& centroid = centroids_[last];
    const auto proposed = static_cast<double>(centroid.weight + next.weight);
    const double size = proposed * normalizer;
    const double from = static_cast<double>(before) / total;
    const double to = (static_cast<double>(before) + proposed) / total;
    if (size <= from * (1 - from) && size <= to * (1 - to)) {
      join(centroid, next);
    } else {
      before += centroid.weight;
      centroids_[++last] = next;
    }
  }
  centroids_.resize(last + 1);
  if (centroids_.size() >= capacity_) merge_pairs();
  merged_count_ = centroids_.size();
  merged_weight_ += std::exchange(unmerged_weight_, 0);
  ++merges_;
}

void TDigest::merge_pairs() const {
  const size_t pairs = centroids_.size() / 2;
  for (size_t i = 0; i < pairs; ++i) {
    centroids_[i] = centroids_[2 * i];
    join(centroids_[i], centroids_[2 * i + 1]);
  }
  if (centroids_.size() % 2 != 0) centroids_[pairs] = centroids_.back();
  centroids_.resize(centroids_.size() - pairs);
}

// --- Questions -----------------------------------------------------------------------------------

double TDigest::min() const {
  return weight() == 0 ? kNan : min_;
}

double TDigest::max() const {
  return weight() == 0 ? kNan : max_;
}

// REQUIRES: `index`, of how many observations are below, lies between the middles of the first and
// the last centroid.
double TDigest::quantile_between(double index, Scan& scan) const {
  const std::span<const Centroid> all = merged();
  double& middle = scan.middle;
  if (scan.at == 0) middle = static_cast<double>(all[0].weight) / 2;
  for (size_t& i = scan.at; i + 1 < all.size(); ++i) {
    const Centroid& left = all[i];
    const Centroid& right = all[i + 1];
    const double distance = static_cast<double>(left.weight + right.weight) / 2;
    if (middle + distance > index) {
      // A single observation lies at its mean, and not around it.
      constexpr double kHalf = 0.5;
      if (left.weight == 1 && index - middle < kHalf) return left.mean;
      if (right.weight == 1 && middle + distance - index <= kHalf) return right.mean;
      const double to_left = index - middle - (left.weight == 1 ? kHalf : 0);
      const double to_right = middle + distance - index - (right.weight == 1 ? kHalf : 0);
      return weighted_mean(left.mean, to_right, right.mean, to_left);
    }
    middle += distance;
  }
  // Not reached: the last middle is above `index`.
  return max_;
}

double TDigest::quantile(double quantile, Scan* scan) const {
  merge();
  const std::span<const Centroid> all = merged();
  if (all.empty()) return kNan;
  if (all.size() == 1) return all[0].mean;
  const auto total = static_cast<double>(weight());
  const double index = quantile * total;
  const double first_half = static_cast<double>(all.front().weight) / 2;
  if (all.front().weight > 1 && index < first_half)
    return min_ + (index - 1) / (first_half - 1) * (all.front().mean - min_);
  if (index > total - 1) return max_;
  const double last_half = static_cast<double>(all.back().weight) / 2;
  if (all.back().weight > 1 && total - index <= last_half)
    return max_ - (total - index - 1) / (last_half - 1) * (max_ - all.back().mean);
  Scan from_first;
  return quantile_between(index, scan != nullptr ? *scan : from_first);
}

double TDigest::fraction_below(double value, Scan* scan) const {
  merge();
  const std::span<const Centroid> all = merged();
  if (all.empty()) return kNan;
  if (value < min_) return 0;
  if (value > max_) return 1;
  constexpr double kHalf = 0.5;
  if (all.size() == 1) return kHalf;
  const auto total = static_cast<double>(weight());
  const Centroid& first = all.front();
  const Centroid& last = all.back();
  if (value < first.mean) {
    if (value == min_) return kHalf / total;
    const double half = static_cast<double>(first.weight) / 2;
    return (1 + (value - min_) / (first.mean - min_) * (half - 1)) / total;
  }
  if (value > last.mean) {
    if (value == max_) return 1 - kHalf / total;
    const double half = static_cast<double>(last.weight) / 2;
    return 1 - (1 + (max_ - value) / (max_ - last.mean) * (half - 1)) / total;
  }
  Scan from_first;
  auto& [at, below, middle] = scan != nullptr ? *scan : from_first;
  for (; at + 1 < all.size(); ++at) {
    const Centroid& left = all[at];
    const Centroid& right = all[at + 1];
    if (left.mean == value) {
      int64_t equal = 0;
      for (size_t i = at; i < all.size() && all[i].mean == value; ++i) equal += all[i].weight;
      return (static_cast<double>(below) + static_cast<double>(equal) / 2) / total;
    }
    if (left.mean <= value && value < right.mean) {
      if (left.weight == 1 && right.weight == 1) return static_cast<double>(below + 1) / total;
      const double left_part = left.weight == 1 ? kHalf : 0;
      const double right_part = right.weight == 1 ? kHalf : 0;
      const double distance = static_cast<double>(left.weight + right.weight) / 2;
      const double from =
          static_cast<double>(below) + static_cast<double>(left.weight) / 2 + left_part;
      return (from + (distance - left_part - right_part) * (value - left.mean) /
                         (right.mean - left.mean)) /
             total;
    }
    below += left.weight;
  }
  return value == last.mean ? 1 - kHalf / total : kNan;
}

int64_t TDigest::rank(double value, Scan* scan) const {
  if (weight() == 0) return kNoObservations;
  if (value < min_) return kBelowAll;
  if (value > max_) return weight();
  return to_integer(std::ceil(fraction_below(value, scan) * static_cast<double>(weight()) - 0.5));
}

int64_t TDigest::reverse_rank(double value, Scan* scan) const {
  if (weight() == 0) return kNoObservations;
  if (value < min_) return weight();
  if (value > max_) return kBelowAll;
  const auto total = static_cast<double>(weight());
  return to_integer(total - std::round(fraction_below(value, scan) * total));
}

double TDigest::by_rank(int64_t rank, Scan* scan) const {
  if (weight() == 0) return kNan;
  if (rank == 0) return min_;
  if (rank >= weight()) return kInfinity;
  return quantile(static_cast<double>(rank) / static_cast<double>(weight()), scan);
}

double TDigest::by_reverse_rank(int64_t rank, Scan* scan) const {
  if (weight() == 0) return kNan;
  if (rank == 0) return max_;
  if (rank >= weight()) return -kInfinity;
  merge();
  const int64_t below = weight() - rank - 1;
  if (below == 0 && merged_count_ > 1) return min_;
  return quantile(static_cast<double>(below) / static_cast<double>(weight()), scan);
}

double TDigest::trimmed_mean(double low, double high) const {
  merge();
  const std::span<const Centroid> all = merged();
  if (all.empty()) return kNan;
  if (all.size() == 1) return all[0].mean;
  const auto total = static_cast<double>(weight());
  const double from = std::floor(total * low);
  const double to = std::ceil(total * high);
  double before = 0;
  double sum = 0;
  double count = 0;
  for (const Centroid& centroid : all) {
    if (before >= to) break;
    const auto whole = static_cast<double>(centroid.weight);
    double part = whole;
    if (before < from) part -= std::min(from - before, part);
    if (before + part > to) part -= std::min(before + part - to, part);
    before += whole;
    sum += centroid.mean * part;
    count += part;
  }
  return sum / count;
}

// --- Value ---------------------------------------------------------------------------------------

void TDigest::load(const Loaded& loaded, std::vector<Centroid> centroids) {
  LK_ASSERT(centroids_.empty() && loaded.capacity >= capacity_ && loaded.capacity <= kMaxCapacity);
  min_ = loaded.min;
  max_ = loaded.max;
  capacity_ = loaded.capacity;
  merges_ = loaded.merges;
  centroids_ = std::move(centroids);
  int64_t sum = 0;
  for (const Centroid& centroid : centroids_) sum += centroid.weight;
  // A single observation waits for others, as it did before it was saved.
  const bool is_single = centroids_.size() == 1 && sum == 1;
  merged_count_ = is_single ? 0 : centroids_.size();
  (is_single ? unmerged_weight_ : merged_weight_) = sum;
}

void TDigest::for_each_digest_part(const DigestPart& part) const {
  // Not the centroids: where they are depends on when somebody asked.
  const double ends[] = {static_cast<double>(compression_), min_, max_,
                         static_cast<double>(weight())};
  part({reinterpret_cast<const char*>(ends), sizeof ends});
}

}  // namespace latchkey::store
