#include "store/time_series/chunk.h"

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"
#include "unit/catch.h"

namespace latchkey::tests {

namespace {

using store::Chunk;
using store::Sample;
using store::SeriesEncoding;

bool equal(const std::vector<Sample>& left, const std::vector<Sample>& right) {
  if (left.size() != right.size()) return false;
  for (size_t i = 0; i < left.size(); ++i) {
    if (left[i].timestamp != right[i].timestamp ||
        std::bit_cast<uint64_t>(left[i].value) != std::bit_cast<uint64_t>(right[i].value))
      return false;
  }
  return true;
}

// Steps and values of all sizes, and values that differ in any bits.
std::vector<Sample> samples(uint64_t seed, size_t count) {
  base::Random random(seed);
  std::vector<Sample> all;
  int64_t timestamp = static_cast<int64_t>(random.below(1000));
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i) {
    all.push_back({timestamp, std::bit_cast<double>(value)});
    const auto shift = static_cast<unsigned>(random.below(40));
    timestamp += static_cast<int64_t>(1 + random.below(uint64_t{1} << shift));
    if (random.below(3) != 0) value ^= random.next() >> random.below(64) << random.below(64);
  }
  return all;
}

}  // namespace

TEST_CASE("A chunk gives back the samples that were appended to it", "[time series]") {
  for (const auto encoding : {SeriesEncoding::kCompressed, SeriesEncoding::kUncompressed}) {
    for (uint64_t seed = 0; seed < 50; ++seed) {
      Chunk chunk(encoding, size_t{1} << 16);
      const std::vector<Sample> all = samples(seed, 200);
      for (const Sample& sample : all) REQUIRE(chunk.append(sample));
      CHECK(equal(chunk.samples(), all));
      CHECK(chunk.first_timestamp() == all.front().timestamp);
      CHECK(chunk.last_timestamp() == all.back().timestamp);
    }
  }
}

TEST_CASE("A sample like those before takes two bits", "[time series]") {
  Chunk chunk(SeriesEncoding::kCompressed, 48);
  chunk.append({1000, 1.5});
  chunk.append({1010, 1.5});
  const size_t bits = chunk.bit_count();
  chunk.append({1020, 1.5});
  CHECK(chunk.bit_count() == bits + 2);
}

TEST_CASE("The widest steps and values are kept", "[time series]") {
  constexpr int64_t kLast = std::numeric_limits<int64_t>::max();
  const std::vector<Sample> all = {{0, -0.0},
                                   {1, std::numeric_limits<double>::max()},
                                   {kLast - 1, std::numeric_limits<double>::denorm_min()},
                                   {kLast, std::numeric_limits<double>::quiet_NaN()}};
  Chunk chunk(SeriesEncoding::kCompressed, 128);
  for (const Sample& sample : all) REQUIRE(chunk.append(sample));
  CHECK(equal(chunk.samples(), all));
}

TEST_CASE("A full chunk refuses samples and is unchanged", "[time series]") {
  for (const auto encoding : {SeriesEncoding::kCompressed, SeriesEncoding::kUncompressed}) {
    Chunk chunk(encoding, 48);
    const std::vector<Sample> all = samples(7, 100);
    size_t kept = 0;
    while (chunk.append(all[kept])) ++kept;
    REQUIRE(kept >= 3);
    CHECK(chunk.count() == kept);
    CHECK_FALSE(chunk.append(all[kept]));
    CHECK(equal(chunk.samples(), {all.begin(), all.begin() + static_cast<ptrdiff_t>(kept)}));
    CHECK(chunk.bytes().size() == 48);
  }
}

TEST_CASE("Assigned samples get the room that they need", "[time series]") {
  for (const auto encoding : {SeriesEncoding::kCompressed, SeriesEncoding::kUncompressed}) {
    Chunk chunk(encoding, 48);
    const std::vector<Sample> all = samples(3, 100);
    chunk.assign(all);
    CHECK(equal(chunk.samples(), all));
    CHECK(chunk.size_bytes() > 48);
    chunk.assign({});
    CHECK(chunk.empty());
    CHECK(chunk.samples().empty());
  }
}

TEST_CASE("A stored chunk is read as it was", "[time series]") {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Chunk chunk(SeriesEncoding::kCompressed, 4096);
    for (const Sample& sample : samples(seed, 100)) chunk.append(sample);
    const auto read = Chunk::from_compressed(chunk.size_bytes(), chunk.first(), chunk.count(),
                                             chunk.bytes(), chunk.bit_count());
    REQUIRE(read.has_value());
    CHECK(equal(read->samples(), chunk.samples()));
    CHECK(read->bytes() == chunk.bytes());
    Chunk plain(SeriesEncoding::kUncompressed, 4096);
    for (const Sample& sample : samples(seed, 100)) plain.append(sample);
    const auto read_plain = Chunk::from_plain(plain.size_bytes(), plain.count(), plain.bytes());
    REQUIRE(read_plain.has_value());
    CHECK(equal(read_plain->samples(), plain.samples()));
  }
}

TEST_CASE("Whatever bytes a stored chunk has, its samples are in order or it is refused",
          "[time series]") {
  base::Random random(5);
  size_t accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes(8 + 8 * random.below(6), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random.next());
    const auto chunk =
        Chunk::from_compressed(bytes.size(), {static_cast<int64_t>(random.below(100)), 1.0},
                               1 + random.below(8), bytes, random.below(bytes.size() * 8 + 20));
    if (!chunk.has_value()) continue;
    ++accepted;
    int64_t before = -1;
    for (const Sample& sample : chunk->samples()) {
      CHECK(sample.timestamp > before);
      before = sample.timestamp;
    }
  }
  CHECK(accepted > 0);
}

TEST_CASE("A stored chunk does not promise more samples than it has bits for", "[time series]") {
  const std::string bytes(48, '\0');
  CHECK_FALSE(Chunk::from_compressed(48, {1, 1}, UINT64_MAX, bytes, 48 * 8).has_value());
  CHECK_FALSE(Chunk::from_compressed(48, {1, 1}, 2, bytes, 48 * 8 + 1).has_value());
  CHECK_FALSE(Chunk::from_compressed(48, {-1, 1}, 1, bytes, 0).has_value());
  CHECK_FALSE(Chunk::from_plain(48, 4, bytes).has_value());
  CHECK_FALSE(Chunk::from_plain(48, UINT64_MAX, bytes).has_value());
  // The same time twice.
  CHECK_FALSE(Chunk::from_plain(48, 2, bytes).has_value());
}

}  // namespace latchkey::tests
