#include "store/probabilistic/t_digest.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "base/random.h"
#include "unit/catch.h"

namespace latchkey::tests {

namespace {

using store::TDigest;

TDigest digest_of(const std::vector<double>& observations, int64_t compression = 100) {
  TDigest digest(compression);
  for (const double observation : observations) digest.add(observation);
  return digest;
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

}  // namespace latchkey::tests
