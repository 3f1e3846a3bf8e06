#include "base/latency_histogram.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "unit/catch.h"

using latchkey::base::LatencyHistogram;

TEST_CASE("an empty latency histogram knows no value") {
  const LatencyHistogram histogram;
  CHECK(histogram.count() == 0);
  CHECK(histogram.value_at(50) == 0);
}

TEST_CASE("a latency is told with two significant digits, rounded up") {
  LatencyHistogram histogram;
  histogram.record(5'000);
  CHECK(histogram.value_at(50) == 5'023);
  CHECK(histogram.value_at(99.9) == 5'023);
  CHECK(histogram.value_at(0) == 4'992);
}

TEST_CASE("percentiles lie where the latencies lie") {
  LatencyHistogram histogram;
  for (uint64_t ns = 1; ns <= 100; ++ns) histogram.record(ns);
  CHECK(histogram.value_at(0) == 1);
  CHECK(histogram.value_at(50) == 50);
  CHECK(histogram.value_at(99) == 99);
  CHECK(histogram.value_at(100) == 100);
}

TEST_CASE("every latency is within its bucket, and buckets do not overlap") {
  for (uint64_t ns = 1; ns < LatencyHistogram::kLargest; ns += ns / 7 + 1) {
    LatencyHistogram histogram;
    histogram.record(ns);
    const uint64_t low = histogram.value_at(0);
    const uint64_t high = histogram.value_at(100);
    REQUIRE(low <= ns);
    REQUIRE(ns <= high);
    REQUIRE(high - low <= low / 128);
  }
}

TEST_CASE("latencies out of range are recorded as the nearest in range") {
  LatencyHistogram histogram;
  histogram.record(0);
  histogram.record(UINT64_MAX);
  std::vector<std::pair<uint64_t, uint64_t>> buckets;
  histogram.for_each(
      [&](uint64_t highest, uint64_t count) { buckets.emplace_back(highest, count); });
  REQUIRE(buckets.size() == 2);
  CHECK(buckets[0] == std::pair<uint64_t, uint64_t>(1, 1));
  CHECK(buckets[1].first >= LatencyHistogram::kLargest);
}
