#include "store/probabilistic/t_digest.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/random.h"
#include "unit/catch.h"

namespace latchkey::tests {

namespace {

using store::TDigest;
using Centroid = TDigest::Centroid;

TDigest digest_of(const std::vector<double>& observations, int64_t compression = 100) {
  TDigest digest(compression);
  for (const double observation : observations) digest.add(observation);
  return digest;
}

bool is_less(const Centroid& left, const Centroid& right) {
  return left.mean < right.mean;
}

bool are_same(double one, double other) {
  return one == other || (std::isnan(one) && std::isnan(other));
}

int64_t sum_of_weights(const TDigest& digest) {
  int64_t sum = 0;
  for (const Centroid& centroid : digest.centroids()) sum += centroid.weight;
  return sum;
}

// Sorts as the reference does.
void sort_slowly(std::span<Centroid> part) {
  if (part.size() < 2) return;
  const size_t last = part.size() - 1;
  std::swap(part[last / 2], part[last]);
  size_t below = 0;
  for (size_t i = 0; i < last; ++i) {
    if (part[i].mean < part[last].mean) std::swap(part[below++], part[i]);
  }
  std::swap(part[below], part[last]);
  sort_slowly(part.first(below));
  sort_slowly(part.subspan(below + 1));
}

}  // namespace

TEST_CASE("A digest of few observations is exact", "[t-digest]") {
  const TDigest digest = digest_of({5, 1, 2, 2, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5});
  CHECK(digest.min() == 1);
  CHECK(digest.max() == 5);
  CHECK(digest.quantile(0) == 1);
  CHECK(digest.quantile(0.5) == 4);
  CHECK(digest.quantile(1) == 5);
  CHECK(digest.fraction_below(0) == 0);
  CHECK(digest.fraction_below(1) == 0.5 / 15);
  CHECK(digest.fraction_below(3) == 4.5 / 15);
  CHECK(digest.fraction_below(6) == 1);
  CHECK(digest.rank(0) == TDigest::kBelowAll);
  CHECK(digest.rank(3) == 4);
  CHECK(digest.rank(6) == 15);
  CHECK(digest.reverse_rank(0) == 15);
  CHECK(digest.reverse_rank(3) == 10);
  CHECK(digest.reverse_rank(6) == TDigest::kBelowAll);
  CHECK(digest.by_rank(0) == 1);
  CHECK(digest.by_rank(14) == 5);
  CHECK(digest.by_rank(15) == std::numeric_limits<double>::infinity());
  CHECK(digest.by_reverse_rank(0) == 5);
  CHECK(digest.by_reverse_rank(14) == 1);
  CHECK(digest.by_reverse_rank(15) == -std::numeric_limits<double>::infinity());
  CHECK(digest.trimmed_mean(0, 1) == 55.0 / 15);
}

TEST_CASE("An empty digest knows nothing", "[t-digest]") {
  const TDigest digest(100);
  CHECK(std::isnan(digest.min()));
  CHECK(std::isnan(digest.max()));
  CHECK(std::isnan(digest.quantile(0.5)));
  CHECK(std::isnan(digest.fraction_below(0)));
  CHECK(std::isnan(digest.by_rank(0)));
  CHECK(std::isnan(digest.by_reverse_rank(0)));
  CHECK(std::isnan(digest.trimmed_mean(0, 1)));
  CHECK(digest.rank(0) == TDigest::kNoObservations);
  CHECK(digest.reverse_rank(0) == TDigest::kNoObservations);
}

TEST_CASE("A single observation waits for others", "[t-digest]") {
  TDigest digest = digest_of({7});
  CHECK(std::isnan(digest.quantile(0.5)));
  CHECK(digest.rank(7) == std::numeric_limits<int64_t>::min());
  CHECK(digest.by_rank(0) == 7);
  CHECK(digest.merges() == 0);
  digest.add(9);
  CHECK(digest.quantile(0.1) == 7);
  CHECK(digest.quantile(0.9) == 9);
}

TEST_CASE("Quantiles of many observations are near, at the ends most of all", "[t-digest]") {
  base::Random random(GENERATE(1, 2));
  std::vector<double> observations;
  for (int i = 0; i < 50'000; ++i) observations.push_back(random.unit());
  const TDigest digest = digest_of(observations, 100);
  CHECK(digest.centroids().size() < digest.capacity());
  std::sort(observations.begin(), observations.end());
  const auto exact = [&](double q) {
    return observations[static_cast<size_t>(q * static_cast<double>(observations.size()))];
  };
  for (const double q : {0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999}) {
    const double tolerance = 0.06 * q * (1 - q) + 0.0002;
    CHECK(std::abs(digest.quantile(q) - exact(q)) < tolerance);
    CHECK(std::abs(digest.fraction_below(exact(q)) - q) < tolerance);
  }
  CHECK(digest.weight() == 50'000);
}

TEST_CASE("Equal observations do not take quadratic time, and are found", "[t-digest]") {
  TDigest digest(10'000);
  // Two values only, in a room of 60,010: the sort has to give up its way of sorting.
  for (int i = 0; i < 60'009; ++i) digest.add(i % 2);
  CHECK(digest.quantile(0.25) == 0);
  CHECK(digest.quantile(0.75) == 1);
  CHECK(digest.merges() == 1);
  const auto centroids = digest.centroids();
  CHECK(std::is_sorted(centroids.begin(), centroids.end(),
                       [](const auto& left, const auto& right) { return left.mean < right.mean; }));
  int64_t weight = 0;
  for (const TDigest::Centroid& centroid : centroids) weight += centroid.weight;
  CHECK(weight == 60'009);
}

TEST_CASE("A digest takes over what another one has", "[t-digest]") {
  base::Random random(1);
  TDigest low(50);
  TDigest high(200);
  for (int i = 0; i < 3000; ++i) {
    low.add(random.unit());
    high.add(1 + random.unit());
  }
  TDigest both(100);
  CHECK(both.add_all(low));
  CHECK(both.add_all(high));
  CHECK(both.weight() == 6000);
  CHECK(both.min() == low.min());
  CHECK(both.max() == high.max());
  CHECK(std::abs(both.quantile(0.5) - 1) < 0.03);
  CHECK(std::abs(both.quantile(0.25) - 0.5) < 0.03);
}

TEST_CASE("No digest has more observations than can be counted", "[t-digest]") {
  TDigest huge(10);
  const TDigest::Loaded state{1, 2, huge.capacity(), 1};
  huge.load(state, {{1, int64_t{1} << 61}, {2, int64_t{1} << 61}});
  TDigest twice(10);
  CHECK(twice.add_all(huge));
  CHECK_FALSE(twice.add_all(huge));
  CHECK(twice.weight() == int64_t{1} << 62);
  TDigest full(10);
  full.load(state, {{1, TDigest::kMostObservations - 1}});
  // All of several observations or none.
  CHECK_FALSE(full.add(std::vector<double>{7, 8}));
  CHECK(full.max() == 2);
  CHECK(full.add(3));
  CHECK_FALSE(full.add(3));
}

TEST_CASE("Huge observations do no harm", "[t-digest]") {
  TDigest digest(1);
  for (int i = 0; i < 200; ++i) digest.add(i % 2 == 0 ? 1.7e308 : -1.7e308);
  digest.quantile(0.5);
  digest.rank(0);
  digest.trimmed_mean(0.1, 0.9);
  CHECK(digest.min() == -1.7e308);
  CHECK(digest.weight() == 200);
}

TEST_CASE("A digest that is cleared keeps its compression", "[t-digest]") {
  TDigest digest = digest_of({1, 2, 3}, 30);
  digest.quantile(0.5);
  digest.clear();
  CHECK(digest.compression() == 30);
  CHECK(digest.weight() == 0);
  CHECK(digest.merges() == 0);
  CHECK(std::isnan(digest.min()));
  digest.add(4);
  digest.add(4);
  CHECK(digest.min() == 4);
  CHECK(digest.quantile(0.5) == 4);
}

TEST_CASE("A copy of a digest takes observations by itself", "[t-digest]") {
  TDigest digest = digest_of({1, 2, 3});
  const std::unique_ptr<TDigest> copy(static_cast<TDigest*>(digest.clone()));
  copy->add(100);
  CHECK(copy->max() == 100);
  CHECK(digest.max() == 3);
  // Memory is taken as observations come, not in advance.
  CHECK(TDigest(TDigest::kMaxCompression).memory_usage() < 1000);
}

TEST_CASE("No digest has more centroids than there is room for", "[t-digest]") {
  for (const int64_t compression : {1, 2, 3, 5, 10}) {
    CAPTURE(compression);
    TDigest digest(compression);
    // Weights that double from one number to the next keep centroids apart.
    for (int i = 0; i < 60; ++i) {
      REQUIRE(digest.add(i));
      TDigest same(digest);
      REQUIRE(digest.add_all(same));
      digest.merge();
      CHECK(digest.centroids().size() < digest.capacity());
    }
    CHECK(digest.weight() == (int64_t{1} << 61) - 2);
    CHECK(digest.min() == 0);
    CHECK(digest.max() == 59);
    CHECK(digest.quantile(1) == 59);
  }
}

TEST_CASE("Equal means are in the order that the reference makes", "[t-digest]") {
  base::Random random(3);
  for (const uint64_t values : {1, 2, 5, 100}) {
    CAPTURE(values);
    std::vector<Centroid> centroids;
    for (int64_t i = 0; i < 1000; ++i)
      centroids.push_back({static_cast<double>(random.below(values)), i + 1000});
    // Of a compression that merges none of them.
    TDigest digest(1'000'000);
    digest.load({0, 100, digest.capacity(), 1}, centroids);
    REQUIRE(digest.add(7));
    digest.merge();
    centroids.push_back({7, 1});
    sort_slowly(centroids);
    REQUIRE(digest.centroids().size() == centroids.size());
    for (size_t i = 0; i < centroids.size(); ++i) {
      CHECK(digest.centroids()[i].mean == centroids[i].mean);
      CHECK(digest.centroids()[i].weight == centroids[i].weight);
    }
  }
}

TEST_CASE("A digest that is named thousands of times is merged", "[t-digest]") {
  TDigest digest(1'000'000);
  // In one order or in another, each of which took quadratic time once it was merged with itself.
  const bool are_equal = GENERATE(true, false);
  constexpr int64_t kObservations = 56'000;
  for (int64_t i = 0; i < kObservations; ++i)
    REQUIRE(digest.add(are_equal ? 5 : static_cast<double>(i * 7919 % kObservations)));
  constexpr int64_t kTimes = 9000;
  const std::vector<const TDigest*> others(kTimes, &digest);
  TDigest all(1'000'000);
  REQUIRE(all.add_all(others));
  CHECK(all.weight() == kObservations * kTimes);
  all.merge();
  CHECK(sum_of_weights(all) == kObservations * kTimes);
  CHECK(std::is_sorted(all.centroids().begin(), all.centroids().end(), is_less));
  for (const double q : {0.01, 0.25, 0.5, 0.75, 0.99}) {
    const double exact = are_equal ? 5 : q * kObservations;
    CHECK(std::abs(all.quantile(q) - exact) < 0.001 * kObservations);
  }
  // Not merged again for each name.
  CHECK(all.merges() < 100);
}

TEST_CASE("Digests that are merged in one request are as if one by one", "[t-digest]") {
  base::Random random(9);
  std::vector<TDigest> digests;
  for (int i = 0; i < 50; ++i) {
    digests.emplace_back(100);
    for (int k = 0; k < 1000; ++k) digests.back().add(static_cast<double>(random.below(500)));
  }
  std::vector<const TDigest*> others;
  TDigest expected(100);
  for (size_t i = 0; i < 300; ++i) {
    others.push_back(&digests[i % 7 == 0 ? 3 : i % digests.size()]);
    REQUIRE(expected.add_all(*others.back()));
  }
  TDigest merged(100);
  REQUIRE(merged.add_all(others));
  expected.merge();
  merged.merge();
  CHECK(merged.merges() == expected.merges());
  REQUIRE(merged.centroids().size() == expected.centroids().size());
  for (size_t i = 0; i < merged.centroids().size(); ++i) {
    CHECK(merged.centroids()[i].mean == expected.centroids()[i].mean);
    CHECK(merged.centroids()[i].weight == expected.centroids()[i].weight);
  }
}

TEST_CASE("No digest of a request is added when all are too many", "[t-digest]") {
  TDigest huge(10);
  huge.load({1, 2, huge.capacity(), 1}, {{1, int64_t{1} << 61}, {2, int64_t{1} << 61}});
  const TDigest* const others[] = {&huge, &huge};
  TDigest digest = digest_of({7, 8});
  CHECK_FALSE(digest.add_all(others));
  CHECK(digest.weight() == 2);
  CHECK(digest.max() == 8);
}

TEST_CASE("Questions that share a scan are answered as each alone", "[t-digest]") {
  base::Random random(4);
  TDigest digest(GENERATE(10, 100, 2000));
  for (int i = 0; i < 5000; ++i) digest.add(static_cast<double>(random.below(3000)) / 4);
  TDigest::Scan of_quantiles;
  TDigest::Scan of_fractions;
  TDigest::Scan of_ranks;
  TDigest::Scan of_reverse_ranks;
  for (int i = -10; i < 3100; ++i) {
    const double value = i / 4.0 + (i % 3 == 0 ? 0.1 : 0);
    CHECK(are_same(digest.fraction_below(value, &of_fractions), digest.fraction_below(value)));
    CHECK(digest.rank(value, &of_ranks) == digest.rank(value));
    CHECK(digest.reverse_rank(value, &of_reverse_ranks) == digest.reverse_rank(value));
    const double quantile = std::clamp(i / 3000.0, 0.0, 1.0);
    CHECK(are_same(digest.quantile(quantile, &of_quantiles), digest.quantile(quantile)));
  }
  TDigest::Scan by_ranks;
  TDigest::Scan by_reverse_ranks;
  for (int64_t rank = 0; rank < 5010; rank += 3) {
    CHECK(are_same(digest.by_rank(rank, &by_ranks), digest.by_rank(rank)));
    const int64_t reverse = 5010 - rank;
    CHECK(are_same(digest.by_reverse_rank(reverse, &by_reverse_ranks),
                   digest.by_reverse_rank(reverse)));
  }
}

}  // namespace latchkey::tests
