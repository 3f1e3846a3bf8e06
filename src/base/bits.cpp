#include "base/bits.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

#include "base/assert.h"
#include "base/byte_kernels.h"

namespace latchkey::base {

namespace {

// A vector of two words, which every 64-bit processor has.
using Lanes = uint64_t __attribute__((vector_size(16)));

Lanes load(const char* bytes) {
  Lanes lanes;
  std::memcpy(&lanes, bytes, sizeof(lanes));
  return lanes;
}

void store(char* bytes, Lanes lanes) {
  std::memcpy(bytes, &lanes, sizeof(lanes));
}

// A mask of the lowest `count` bits.
constexpr unsigned low_bits(unsigned count) {
  return (1u << count) - 1;
}

}  // namespace

uint64_t count_ones(std::string_view bytes, uint64_t from, uint64_t to) {
  LK_ASSERT(from <= to && to <= 8 * bytes.size());
  if (from == to) return 0;
  const uint64_t first = from / 8;
  const uint64_t end = (to + 7) / 8;
  uint64_t count = byte_kernels().count_ones(bytes.data() + first, end - first);
  const auto before = static_cast<uint8_t>(bytes[first]) >> (8 - from % 8);
  const auto behind =
      static_cast<uint8_t>(bytes[end - 1]) & low_bits(static_cast<unsigned>(end * 8 - to));
  return count - static_cast<unsigned>(std::popcount(static_cast<uint8_t>(before))) -
         static_cast<unsigned>(std::popcount(static_cast<uint8_t>(behind)));
}

// --- Searching -----------------------------------------------------------------------------------

namespace {

// Tells whether many bytes are all the same one.
class Uniform {
 public:
  static constexpr size_t kStep = 4 * sizeof(Lanes);
  static constexpr size_t kQuarters = 4;

  explicit Uniform(uint8_t byte) {
    const uint64_t word = uint64_t{0x0101010101010101} * byte;
    pattern_ = Lanes{word, word};
  }
  // Of the kStep bytes from `here` on.
  bool is_step(const char* here) const { return is_zero(difference(here)); }
  // Of `size` bytes, a multiple of kQuarters * kStep. Reads the four quarters side by side, because
  // memory that is read in several places at once comes faster, the more so the longer they are.
  bool is_piece(const char* piece, size_t size) const {
    const size_t quarter = size / kQuarters;
    const auto differs_at = [&](const char* here) {
      return !is_zero(difference(here) | difference(here + quarter) |
                      difference(here + 2 * quarter) | difference(here + 3 * quarter));
    };
    for (size_t at = 0; at < quarter; at += kStep) {
      if (differs_at(piece + at)) return false;
    }
    return true;
  }

 private:
  static bool is_zero(Lanes lanes) { return (lanes[0] | lanes[1]) == 0; }
  Lanes difference(const char* here) const {
    return (load(here) ^ pattern_) | (load(here + 16) ^ pattern_) | (load(here + 32) ^ pattern_) |
           (load(here + 48) ^ pattern_);
  }

  Lanes pattern_;
};

// The index of the first byte from `at` on that is not `skipped`, or bytes.size().
size_t skip_bytes(std::string_view bytes, size_t at, uint8_t skipped) {
  const Uniform uniform(skipped);
  const auto skip_steps = [&](size_t end) {
    while (at + Uniform::kStep <= end && uniform.is_step(bytes.data() + at)) at += Uniform::kStep;
  };
  // What is near is found without reading a whole piece. A piece is about as long as what was
  // skipped before it, so that no search reads more than twice as much as it has to.
  constexpr size_t kLeast = 64 << 10;
  constexpr size_t kMost = 4 << 20;
  size_t piece = kLeast;
  skip_steps(std::min(bytes.size(), at + piece));
  while (at + piece <= bytes.size() && uniform.is_piece(bytes.data() + at, piece)) {
    at += piece;
    piece = std::min(2 * piece, kMost);
  }
  skip_steps(bytes.size());
  while (at < bytes.size() && static_cast<uint8_t>(bytes[at]) == skipped) ++at;
  return at;
}

}  // namespace

std::optional<uint64_t> find_bit(std::string_view bytes, bool bit, uint64_t from, uint64_t to) {
  LK_ASSERT(from <= to && to <= 8 * bytes.size());
  if (from == to) return std::nullopt;
  const std::string_view searched = bytes.substr(0, (to + 7) / 8);
  const uint8_t skipped = bit ? 0 : 0xff;
  // Inverts if a zero is searched for, so that a one is searched for; masks the bits before `from`.
  const auto ones_at = [&](size_t index) {
    return static_cast<uint8_t>(static_cast<uint8_t>(searched[index]) ^ skipped);
  };
  size_t index = from / 8;
  unsigned ones = ones_at(index) & low_bits(static_cast<unsigned>(8 - from % 8));
  if (ones == 0) {
    index = skip_bytes(searched, index + 1, skipped);
    if (index == searched.size()) return std::nullopt;
    ones = ones_at(index);
  }
  const uint64_t found =
      8 * index + static_cast<unsigned>(std::countl_zero(static_cast<uint8_t>(ones)));
  return found < to ? std::optional(found) : std::nullopt;
}

// --- Combining -----------------------------------------------------------------------------------

namespace {

// Computes results a piece at a time, so that a piece stays in the cache for all sources.
constexpr size_t kPiece = 4096;

// into[i] = step(into[i], from[i])
template <typename Step>
void fold(char* into, std::string_view from, Step step) {
  size_t i = 0;
  for (; i + sizeof(Lanes) <= from.size(); i += sizeof(Lanes))
    store(into + i, step(load(into + i), load(from.data() + i)));
  for (; i < from.size(); ++i)
    into[i] = static_cast<char>(step(static_cast<int>(into[i]), static_cast<int>(from[i])));
}

constexpr auto kAndStep = [](auto a, auto b) { return a & b; };
constexpr auto kOrStep = [](auto a, auto b) { return a | b; };
constexpr auto kXorStep = [](auto a, auto b) { return a ^ b; };
constexpr auto kAndNotStep = [](auto a, auto b) { return a & ~b; };
constexpr auto kNotStep = [](auto, auto b) { return ~b; };

// Folds the others into the first source by step(), as far as all sources reach in blocks, in one
// pass over memory. Returns how many bytes of the result that are.
template <typename Step>
size_t fold_blocks(std::span<const std::string_view> sources, char* into, Step step) {
  constexpr size_t kVectors = 4;
  constexpr size_t kBlock = kVectors * sizeof(Lanes);
  size_t common = sources[0].size();
  for (const std::string_view source : sources) common = std::min(common, source.size());
  common -= common % kBlock;
  for (size_t at = 0; at < common; at += kBlock) {
    Lanes folded[kVectors];
    for (size_t i = 0; i < kVectors; ++i)
      folded[i] = load(sources[0].data() + at + i * sizeof(Lanes));
    for (const std::string_view source : sources.subspan(1)) {
      for (size_t i = 0; i < kVectors; ++i)
        folded[i] = step(folded[i], load(source.data() + at + i * sizeof(Lanes)));
    }
    for (size_t i = 0; i < kVectors; ++i) store(into + at + i * sizeof(Lanes), folded[i]);
  }
  return common;
}

// What can be computed by fold_blocks(); returns as it does.
size_t combine_blocks(BitOperation operation, std::span<const std::string_view> sources,
                      char* into) {
  switch (operation) {
    case BitOperation::kAnd:
      return fold_blocks(sources, into, kAndStep);
    case BitOperation::kOr:
      return fold_blocks(sources, into, kOrStep);
    case BitOperation::kXor:
      return fold_blocks(sources, into, kXorStep);
    case BitOperation::kDiff:
      return fold_blocks(sources, into, kAndNotStep);
    default:
      return 0;
  }
}

class Piece {
 public:
  Piece(std::span<const std::string_view> sources, std::span<char> result, size_t start)
      : sources_(sources), result_(result), start_(start) {}

  void combine(BitOperation operation) {
    switch (operation) {
      case BitOperation::kAnd:
        set_to_first();
        for (const std::string_view source : sources_.subspan(1)) keep(source);
        return;
      case BitOperation::kOr:
        set_to_first();
        return add_others();
      case BitOperation::kXor:
        set_to_first();
        for (const std::string_view source : sources_.subspan(1))
          fold(result_.data(), part_of(source), kXorStep);
        return;
      case BitOperation::kNot:
        return fold(result_.data(), part_of(sources_[0]), kNotStep);
      case BitOperation::kDiff:
        set_to_first();
        for (const std::string_view source : sources_.subspan(1))
          fold(result_.data(), part_of(source), kAndNotStep);
        return;
      case BitOperation::kDiff1:
        clear();
        add_others();
        return fold(result_.data(), part_of(sources_[0]), kAndNotStep);
      case BitOperation::kAndOr:
        clear();
        add_others();
        return keep(sources_[0]);
      case BitOperation::kOne:
        return keep_single_ones();
    }
  }

 private:
  // The source's part of this piece.
  std::string_view part_of(std::string_view source) const {
    return start_ < source.size() ? source.substr(start_, result_.size()) : std::string_view();
  }
  void clear() { std::fill(result_.begin(), result_.end(), '\0'); }
  void set_to_first() {
    const std::string_view first = part_of(sources_[0]);
    const auto rest = std::copy(first.begin(), first.end(), result_.begin());
    std::fill(rest, result_.end(), '\0');
  }
  void keep(std::string_view source) {
    const std::string_view kept = part_of(source);
    fold(result_.data(), kept, kAndStep);
    std::fill(result_.begin() + static_cast<std::ptrdiff_t>(kept.size()), result_.end(), '\0');
  }
  void add_others() {
    for (const std::string_view source : sources_.subspan(1))
      fold(result_.data(), part_of(source), kOrStep);
  }
  void keep_single_ones() {
    char again[kPiece] = {};
    set_to_first();
    for (const std::string_view source : sources_.subspan(1)) {
      const std::string_view more = part_of(source);
      size_t i = 0;
      for (; i + sizeof(Lanes) <= more.size(); i += sizeof(Lanes)) {
        const Lanes seen = load(result_.data() + i);
        const Lanes bits = load(more.data() + i);
        store(again + i, load(again + i) | (seen & bits));
        store(result_.data() + i, seen | bits);
      }
      for (; i < more.size(); ++i) {
        again[i] = static_cast<char>(again[i] | (result_[i] & more[i]));
        result_[i] = static_cast<char>(result_[i] | more[i]);
      }
    }
    fold(result_.data(), {again, result_.size()}, kAndNotStep);
  }

  std::span<const std::string_view> sources_;
  std::span<char> result_;
  size_t start_;
};

}  // namespace

void combine_bits(BitOperation operation, std::span<const std::string_view> sources,
                  std::span<char> result) {
  for (size_t start = combine_blocks(operation, sources, result.data()); start < result.size();
       start += kPiece) {
    const size_t size = std::min(kPiece, result.size() - start);
    Piece(sources, result.subspan(start, size), start).combine(operation);
  }
}

// --- Numbers -------------------------------------------------------------------------------------

namespace {

// The part of a number that lies within one byte.
struct Part {
  Part(uint64_t offset, unsigned left)
      : index(offset / 8),
        count(std::min(left, static_cast<unsigned>(8 - offset % 8))),
        shift(static_cast<unsigned>(8 - offset % 8) - count),
        mask(low_bits(count)) {}
  size_t index;
  unsigned count;
  unsigned shift;
  unsigned mask;
};

}  // namespace

uint64_t read_bits(std::string_view bytes, uint64_t offset, unsigned count) {
  uint64_t value = 0;
  for (unsigned left = count; left > 0;) {
    const Part part(offset, left);
    const uint8_t byte = part.index < bytes.size() ? static_cast<uint8_t>(bytes[part.index]) : 0;
    value = value << part.count | ((byte >> part.shift) & part.mask);
    offset += part.count;
    left -= part.count;
  }
  return value;
}

void write_bits(std::span<char> bytes, uint64_t offset, unsigned count, uint64_t value) {
  for (unsigned left = count; left > 0;) {
    const Part part(offset, left);
    offset += part.count;
    left -= part.count;
    const auto piece = static_cast<unsigned>(value >> left) & part.mask;
    auto byte = static_cast<unsigned>(static_cast<uint8_t>(bytes[part.index]));
    byte = (byte & ~(part.mask << part.shift)) | piece << part.shift;
    bytes[part.index] = static_cast<char>(byte);
  }
}

}  // namespace latchkey::base
