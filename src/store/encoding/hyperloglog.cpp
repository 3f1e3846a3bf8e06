#include "store/encoding/hyperloglog.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/assert.h"
#include "base/byte_kernels.h"
#include "base/digest/murmur.h"

namespace latchkey::store {

static_assert(std::endian::native == std::endian::little, "counts and registers are little-endian");

namespace {

constexpr std::string_view kMagic = "HYLL";
constexpr size_t kEncodingAt = 4;
constexpr size_t kCountAt = 8;
constexpr char kDense = 0;
constexpr char kSparse = 1;
constexpr uint64_t kOutOfDate = uint64_t{1} << 63;

constexpr unsigned kIndexBits = 14;
constexpr unsigned kRankBits = 64 - kIndexBits;
constexpr uint8_t kHighestRank = kRankBits + 1;
static_assert(size_t{1} << kIndexBits == HyperLogLog::kRegisters);

// --- Hashing ------------------------------------------------------------------------------------

uint64_t hash_of(std::string_view element) {
  // The seed of the stored format.
  constexpr uint64_t kSeed = 0xadc83b19;
  return base::murmur_hash_64a(element, kSeed);
}

struct Place {
  size_t index;
  uint8_t rank;
};

Place place_of(std::string_view element) {
  const uint64_t hash = hash_of(element);
  const uint64_t rest = hash >> kIndexBits | uint64_t{1} << kRankBits;
  return {hash & (HyperLogLog::kRegisters - 1), static_cast<uint8_t>(std::countr_zero(rest) + 1)};
}

// --- Dense registers ----------------------------------------------------------------------------

// A register begins at an even bit of a byte, and crosses into the next byte if it begins at bit 4
// or 6.
struct Bits {
  size_t byte;
  unsigned shift;
  explicit Bits(size_t index) : byte(index * 6 / 8), shift(index * 6 % 8) {}
  bool crosses() const { return shift > 2; }
};

uint8_t get_register(const char* registers, size_t index) {
  const Bits at(index);
  unsigned value = static_cast<uint8_t>(registers[at.byte]);
  if (at.crosses())
    value |= static_cast<unsigned>(static_cast<uint8_t>(registers[at.byte + 1])) << 8;
  return value >> at.shift & 63;
}

void set_register(char* registers, size_t index, uint8_t rank) {
  const Bits at(index);
  const auto put = [&](size_t byte, unsigned mask, unsigned bits) {
    registers[byte] = static_cast<char>((static_cast<uint8_t>(registers[byte]) & ~mask) | bits);
  };
  put(at.byte, 63U << at.shift & 255, static_cast<unsigned>(rank) << at.shift & 255);
  if (at.crosses()) put(at.byte + 1, 63U >> (8 - at.shift), rank >> (8 - at.shift));
}

// --- Sparse registers ---------------------------------------------------------------------------

struct Run {
  uint8_t rank = 0;  // of all registers of the run
  size_t length = 0;
  size_t size = 0;  // bytes
};

constexpr uint8_t kRanked = 0x80;
constexpr uint8_t kLong = 0x40;
constexpr size_t kLongestShortRun = 64;
constexpr size_t kLongestRankedRun = 4;
constexpr uint8_t kHighestSparseRank = 32;

bool is_ranked(char byte) {
  return (static_cast<uint8_t>(byte) & kRanked) != 0;
}

// Reads the run at `at`; false when it is cut off.
bool read_run(std::string_view bytes, size_t at, Run* run) {
  const auto first = static_cast<uint8_t>(bytes[at]);
  if ((first & kRanked) != 0) {
    *run = {static_cast<uint8_t>((first >> 2 & 31) + 1), (first & size_t{3}) + 1, 1};
  } else if ((first & kLong) == 0) {
    *run = {0, first + size_t{1}, 1};
  } else if (at + 1 < bytes.size()) {
    *run = {0, ((first & size_t{63}) << 8 | static_cast<uint8_t>(bytes[at + 1])) + 1, 2};
  } else {
    return false;
  }
  return true;
}

// Calls fn(first register, run) for all runs; false when they do not add up to kRegisters.
template <typename Fn>
bool for_each_run(std::string_view bytes, Fn&& fn) {
  size_t first = 0;
  Run run;
  for (size_t at = HyperLogLog::kHeaderSize; at < bytes.size(); at += run.size) {
    if (!read_run(bytes, at, &run) || first + run.length > HyperLogLog::kRegisters) return false;
    fn(first, run);
    first += run.length;
  }
  return first == HyperLogLog::kRegisters;
}

void append_zeros(std::string* out, size_t length) {
  if (length == 0) return;
  if (length > kLongestShortRun) out->push_back(static_cast<char>(kLong | (length - 1) >> 8));
  out->push_back(static_cast<char>(length - 1));
}

char ranked_run(uint8_t rank, size_t length) {
  return static_cast<char>(kRanked | (rank - 1U) << 2 | (length - 1));
}

void append_ranked(std::string* out, uint8_t rank, size_t length) {
  if (length > 0) out->push_back(ranked_run(rank, length));
}

// --- The estimate -------------------------------------------------------------------------------

// How many registers have each rank; a corrupt dense register may have any 6-bit value.
using Histogram = std::array<uint32_t, 64>;

double tau(double x) {
  if (x == 0 || x == 1) return 0;
  double y = 1;
  double z = 1 - x;
  for (double before = z + 1; before != z;) {
    x = std::sqrt(x);
    before = z;
    y *= 0.5;
    z -= (1 - x) * (1 - x) * y;
  }
  return z / 3;
}

double sigma(double x) {
  if (x == 1) return std::numeric_limits<double>::infinity();
  double y = 1;
  double z = x;
  for (double before = z + 1; before != z;) {
    x *= x;
    before = z;
    z += x * y;
    y += y;
  }
  return z;
}

uint64_t estimate(const Histogram& histogram) {
  constexpr double kAlpha = 0.721347520444481703680;  // 1 / (2 ln 2)
  constexpr auto kCount = static_cast<double>(HyperLogLog::kRegisters);
  double z = kCount * tau((kCount - histogram[kHighestRank]) / kCount);
  for (unsigned rank = kRankBits; rank >= 1; --rank) {
    z += histogram[rank];
    z *= 0.5;
  }
  z += kCount * sigma(histogram[0] / kCount);
  return static_cast<uint64_t>(std::llround(kAlpha * kCount * kCount / z));
}

Histogram histogram_of(const HyperLogLog::Registers& registers) {
  // Four histograms, so that equal neighbours do not wait for each other's increment.
  std::array<Histogram, 4> parts{};
  for (size_t i = 0; i < registers.size(); i += parts.size()) {
    for (size_t part = 0; part < parts.size(); ++part) ++parts[part][registers[i + part]];
  }
  for (size_t part = 1; part < parts.size(); ++part) {
    for (size_t rank = 0; rank < parts[0].size(); ++rank) parts[0][rank] += parts[part][rank];
  }
  return parts[0];
}

}  // namespace

// --- Bytes --------------------------------------------------------------------------------------

bool HyperLogLog::is_one(std::string_view bytes) {
  if (bytes.size() < kHeaderSize || !bytes.starts_with(kMagic)) return false;
  if (bytes[kEncodingAt] == kDense) return bytes.size() == kDenseSize;
  return bytes[kEncodingAt] == kSparse;
}

bool HyperLogLog::is_dense(std::string_view bytes) {
  return bytes[kEncodingAt] == kDense;
}

std::optional<uint64_t> HyperLogLog::cached_count(std::string_view bytes) {
  uint64_t count;
  std::memcpy(&count, bytes.data() + kCountAt, sizeof(count));
  return (count & kOutOfDate) != 0 ? std::nullopt : std::optional(count);
}

void HyperLogLog::cache_count(std::span<char> bytes, uint64_t count) {
  std::memcpy(bytes.data() + kCountAt, &count, sizeof(count));
}

void HyperLogLog::forget_count(std::span<char> bytes) {
  uint64_t count;
  std::memcpy(&count, bytes.data() + kCountAt, sizeof(count));
  cache_count(bytes, count | kOutOfDate);
}

std::optional<uint64_t> HyperLogLog::count(std::string_view bytes) {
  if (is_dense(bytes)) {
    Registers registers{};
    merge(bytes, &registers);
    return count(registers);
  }
  Histogram histogram{};
  const bool whole = for_each_run(bytes, [&](size_t, const Run& run) {
    histogram[run.rank] += static_cast<uint32_t>(run.length);
  });
  return whole ? std::optional(estimate(histogram)) : std::nullopt;
}

uint64_t HyperLogLog::count(const Registers& registers) {
  return estimate(histogram_of(registers));
}

bool HyperLogLog::merge(std::string_view bytes, Registers* registers, bool many_at_a_time) {
  uint8_t* const out = registers->data();
  if (!is_dense(bytes)) {
    return for_each_run(bytes, [&](size_t first, const Run& run) {
      if (run.rank == 0) return;
      for (size_t i = first; i < first + run.length; ++i) out[i] = std::max(out[i], run.rank);
    });
  }
  const char* const packed = bytes.data() + kHeaderSize;
  if (!many_at_a_time) {
    for (size_t i = 0; i < kRegisters; ++i) out[i] = std::max(out[i], get_register(packed, i));
    return true;
  }
  base::byte_kernels().raise_to_sixes(out, {&packed, 1}, kRegisters);
  return true;
}

void HyperLogLog::merge_dense(std::span<const std::string_view> sketches, Registers* registers) {
  // Strings of this size tend to lie at addresses whose lowest bits are equal, and a first-level
  // cache has eight places for those.
  constexpr size_t kAtOnce = 7;
  const char* packed[kAtOnce];
  while (!sketches.empty()) {
    const size_t count = std::min(kAtOnce, sketches.size());
    for (size_t i = 0; i < count; ++i) packed[i] = sketches[i].data() + kHeaderSize;
    base::byte_kernels().raise_to_sixes(registers->data(), {packed, count}, kRegisters);
    sketches = sketches.subspan(count);
  }
}

void HyperLogLog::set_registers(std::span<char> bytes, const Registers& registers) {
  base::pack_sixes(registers.data(), bytes.data() + kHeaderSize, kRegisters);
}

bool HyperLogLog::add_to_dense(std::span<char> bytes, std::string_view element) {
  const Place place = place_of(element);
  char* const registers = bytes.data() + kHeaderSize;
  if (get_register(registers, place.index) >= place.rank) return false;
  set_register(registers, place.index, place.rank);
  return true;
}

std::optional<std::string> HyperLogLog::describe(std::string_view bytes) {
  std::string text;
  Run run;
  for (size_t at = kHeaderSize; at < bytes.size(); at += run.size) {
    if (!read_run(bytes, at, &run)) return std::nullopt;
    if (!text.empty()) text += ' ';
    if (run.rank > 0) {
      text += "v:" + std::to_string(run.rank) + ",";
    } else {
      text += run.size == 1 ? "z:" : "Z:";
    }
    text += std::to_string(run.length);
  }
  return text;
}

// --- An object that owns its bytes --------------------------------------------------------------

HyperLogLog::HyperLogLog() : bytes_(kHeaderSize, '\0') {
  bytes_.replace(0, kMagic.size(), kMagic);
  bytes_[kEncodingAt] = kSparse;
  append_zeros(&bytes_, kRegisters);
}

HyperLogLog::Change HyperLogLog::add(std::string_view element, size_t sparse_limit) {
  const Place place = place_of(element);
  return raise(place.index, place.rank, sparse_limit);
}

bool HyperLogLog::raise(const Registers& registers, size_t sparse_limit) {
  if (is_dense()) {
    Registers highest = registers;
    merge(bytes_, &highest);
    set_registers(bytes_, highest);
    return true;
  }
  for (size_t i = 0; i < kRegisters; ++i) {
    if (registers[i] != 0 && raise(i, registers[i], sparse_limit) == Change::kCorrupt) return false;
  }
  return true;
}

HyperLogLog::Change HyperLogLog::raise(size_t index, uint8_t rank, size_t sparse_limit) {
  if (!is_dense()) return raise_sparse(index, rank, sparse_limit);
  char* const registers = bytes_.data() + kHeaderSize;
  if (get_register(registers, index) >= rank) return Change::kNone;
  set_register(registers, index, rank);
  return Change::kMade;
}

bool HyperLogLog::make_dense() {
  if (is_dense()) return true;
  std::string dense(kDenseSize, '\0');
  dense.replace(0, kHeaderSize, bytes_, 0, kHeaderSize);
  dense[kEncodingAt] = kDense;
  char* const registers = dense.data() + kHeaderSize;
  const bool whole = for_each_run(bytes_, [&](size_t first, const Run& run) {
    if (run.rank == 0) return;
    for (size_t i = first; i < first + run.length; ++i) set_register(registers, i, run.rank);
  });
  if (whole) bytes_ = std::move(dense);
  return whole;
}

HyperLogLog::Change HyperLogLog::raise_sparse(size_t index, uint8_t rank, size_t sparse_limit) {
  const auto raise_dense = [&] {
    return make_dense() ? raise(index, rank, sparse_limit) : Change::kCorrupt;
  };
  if (rank > kHighestSparseRank) return raise_dense();

  // Find the run of the register, and the run before it.
  Run run;
  size_t at = kHeaderSize;
  size_t before = at;
  size_t first = 0;
  for (;; at += run.size, first += run.length) {
    if (at >= bytes_.size() || !read_run(bytes_, at, &run) || first + run.length > kRegisters)
      return Change::kCorrupt;
    if (index < first + run.length) break;
    before = at;
  }
  if (run.rank >= rank) return Change::kNone;

  // The run's registers on both sides keep their rank.
  const size_t left = index - first;
  const size_t right = first + run.length - index - 1;
  std::string runs;
  if (run.rank == 0) {
    append_zeros(&runs, left);
    append_ranked(&runs, rank, 1);
    append_zeros(&runs, right);
  } else {
    append_ranked(&runs, run.rank, left);
    append_ranked(&runs, rank, 1);
    append_ranked(&runs, run.rank, right);
  }
  if (runs.size() > run.size && bytes_.size() + runs.size() - run.size > sparse_limit)
    return raise_dense();
  bytes_.replace(at, run.size, runs);
  merge_runs(before);
  return Change::kMade;
}

// Merges adjacent runs of the same rank, examining only the next five, because the stored bytes
// must equal the reference's.
void HyperLogLog::merge_runs(size_t from) {
  Run run;
  Run next;
  size_t at = from;
  for (int steps = 5; steps > 0 && at < bytes_.size(); --steps) {
    if (!read_run(bytes_, at, &run)) return;
    const bool both_ranked = run.rank > 0 && at + 1 < bytes_.size() && is_ranked(bytes_[at + 1]);
    if (both_ranked && read_run(bytes_, at + 1, &next) && run.rank == next.rank &&
        run.length + next.length <= kLongestRankedRun) {
      bytes_.replace(at, 2, 1, ranked_run(run.rank, run.length + next.length));
    } else {
      at += run.size;
    }
  }
}

}  // namespace latchkey::store
