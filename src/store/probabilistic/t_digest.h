// A t-digest: estimates quantiles and ranks of numbers, most exactly at both ends. Source: T.
// Dunning and O. Ertl, "Computing Extremely Accurate Quantiles Using t-Digests" (2019),
// arXiv:1902.04023: the digest that merges (algorithm 1), and the interpolation of section 2.9.
//
// Observations are kept as they come until the room for them is full; then they and the centroids
// that there are already are sorted, and neighbours are merged into one centroid while its weight
// is at most q(1 - q) times a constant, q being the fraction of all weight before it and behind it:
// the scale function k2 of the paper. `compression` decides about the constant, and so about how
// many centroids there are.
//
// Room, order of equal means, the order of all floating-point operations and what is replied at the
// ends are those of the reference, so that the same observations have the same centroids and
// replies, also where those look odd: a digest with a single observation has no centroid yet.
// Weights that double from one centroid to the next, as digests merged with themselves have, keep
// neighbours apart by that rule; where it leaves no room, each two neighbours become one.
//
// Questions merge what has not been merged; they change the digest, though not what it is about.
//
// Costs, with n centroids, n <= capacity() (about 6 * compression): add O(log n) amortized, each
// question O(n), and O(n log n) once behind an add. The reference's way of sorting takes quadratic
// time for some orders: it may look at five million centroids and four times n log n, and what is
// not sorted by then is sorted otherwise. The order of equal means, and so which of them are
// merged, is the reference's up to there: always, with fewer than three thousand of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "store/value/module_value.h"

namespace latchkey::store {

class TDigest final : public ModuleValue {
 public:
  static constexpr Type kType = Type::kTDigest;
  static constexpr int64_t kDefaultCompression = 100;
  // 1 GiB of centroids, when all of their room is used.
  static constexpr size_t kMaxCapacity = size_t{1} << 26;
  static constexpr int64_t kMaxCompression = static_cast<int64_t>(kMaxCapacity - 10) / 6;
  // Files have weights as floating-point numbers: so many fit into 63 bits however they are
  // rounded.
  static constexpr int64_t kMostObservations = std::numeric_limits<int64_t>::max() - 2048;
  // Ranks of what cannot be ranked: of numbers below the least, and in an empty digest.
  static constexpr int64_t kBelowAll = -1;
  static constexpr int64_t kNoObservations = -2;

  struct Centroid {
    double mean;
    int64_t weight;
  };

  // `compression`: 1 .. kMaxCompression.
  explicit TDigest(int64_t compression);
  // Centroids and observations that have room, those of a digest with that compression.
  static size_t capacity_of(int64_t compression);

  int64_t compression() const { return compression_; }
  size_t capacity() const { return capacity_; }
  // What TDIGEST.INFO calls the memory usage: of all room, whether it is used or not.
  size_t reported_size() const;
  size_t merged_count() const { return merged_count_; }
  size_t unmerged_count() const { return centroids_.size() - merged_count_; }
  int64_t merged_weight() const { return merged_weight_; }
  int64_t unmerged_weight() const { return unmerged_weight_; }
  // The number of observations.
  int64_t weight() const { return merged_weight_ + unmerged_weight_; }
  // How often centroids have been merged.
  int64_t merges() const { return merges_; }
  // The merged ones, then the others.
  std::span<const Centroid> centroids() const { return centroids_; }

  // --- Changing ---------------------------------------------------------------------------------

  // All are false when there would be too many observations to count; then nothing has been added.
  bool add(std::span<const double> observations);
  bool add(double observation) { return add(std::span(&observation, 1)); }
  // Adds the centroids of other digests, merged, one digest after the other as the reference does,
  // each time merging what has been added before. When that has looked at 2^25 centroids, as it
  // does with thousands of ordinary digests, each of those that are left is added once, with so
  // many times its weights as it is named, and centroids are merged only when their room is full.
  // O(n log n) from there on, n being the centroids of all different digests.
  bool add_all(std::span<const TDigest* const> others);
  bool add_all(const TDigest& other) {
    const TDigest* const others[] = {&other};
    return add_all(others);
  }
  void clear();
  // Merges what has not been merged, from two centroids on.
  void merge() const;

  // --- Questions --------------------------------------------------------------------------------

  // Where questions of one kind have come to among the centroids. With one for all, they are
  // answered in O(n) together, if each has no smaller argument than the one before it; of
  // by_reverse_rank() no greater. Answers are those that there are without, unless observations are
  // so large that means overflow, and have no order.
  struct Scan {
    size_t at = 0;
    int64_t below = 0;  // the weight of all before `at`
    double middle = 0;  // how many observations are below the middle of the one at `at`, from 1 on
  };

  // NaN when there are no observations.
  double min() const;
  double max() const;
  // The number below which is that fraction of the observations. `quantile`: 0 .. 1.
  double quantile(double quantile, Scan* scan = nullptr) const;
  // The fraction of the observations that are below a number, half of those equal to it included.
  double fraction_below(double value, Scan* scan = nullptr) const;
  // How many observations are below a number, half of those equal to it included; or above it.
  int64_t rank(double value, Scan* scan = nullptr) const;
  int64_t reverse_rank(double value, Scan* scan = nullptr) const;
  // The number with a rank, 0 being that of the least (or, reverse, of the greatest); infinite
  // beyond the last. `rank`: at least 0.
  double by_rank(int64_t rank, Scan* scan = nullptr) const;
  double by_reverse_rank(int64_t rank, Scan* scan = nullptr) const;
  // The mean of the observations from one quantile to another.
  double trimmed_mean(double low, double high) const;

  // --- Loading ----------------------------------------------------------------------------------

  // Of a file: the least and the greatest observation as they are stored, which an empty digest has
  // as well.
  double stored_min() const { return min_; }
  double stored_max() const { return max_; }
  struct Loaded {
    double min;
    double max;
    size_t capacity;
    int64_t merges;
  };
  // REQUIRES: the digest is empty, its capacity() <= capacity <= kMaxCapacity, and the weights are
  // positive and their sum fits.
  void load(const Loaded& loaded, std::vector<Centroid> centroids);

  // Value
  size_t free_effort() const override { return 1; }
  size_t element_count() const override { return 1; }
  size_t memory_usage() const override {
    return sizeof *this + centroids_.capacity() * sizeof(Centroid);
  }
  Value* clone() const override { return new TDigest(*this); }
  void for_each_digest_part(const DigestPart& part) const override;

 private:
  // `looks`: how many centroids may be looked at in the reference's way, of which sorting and
  // merging take what they need.
  void add(Centroid centroid, size_t* looks);
  void add_all_of(const TDigest& other, int64_t times, size_t* looks);
  void add_each_once(std::span<const TDigest* const> others);
  void merge(size_t* looks) const;
  void merge_pairs() const;
  std::span<const Centroid> merged() const { return {centroids_.data(), merged_count_}; }
  double quantile_between(double index, Scan& scan) const;

  int64_t compression_;
  size_t capacity_;
  double min_ = std::numeric_limits<double>::max();
  double max_ = std::numeric_limits<double>::lowest();
  mutable std::vector<Centroid> centroids_;
  mutable size_t merged_count_ = 0;
  mutable int64_t merged_weight_ = 0;
  mutable int64_t unmerged_weight_ = 0;
  mutable int64_t merges_ = 0;
};

}  // namespace latchkey::store
