// HyperLogLog: how many different elements a set has had, in at most 12 KiB, to within 0.81 % (the
// standard error). It is kept in the bytes of a string, in the reference's layout, so that such
// strings can be read from one server and given to another.
//
//     "HYLL" | encoding | 3 unused | cached count, 8 bytes | registers
//
// The encoding is 0 (dense) or 1 (sparse); the count is little-endian, and its highest bit says
// that it is out of date. There are 16,384 registers of 6 bits. An element's hash (MurmurHash64A)
// chooses a register by its lowest 14 bits, and is of the rank 1 plus the number of zeros that
// follow, up to 51; a register holds the highest rank it has met.
//
// Dense, registers follow each other from the lowest bit of the first byte on. Sparse, they are
// runs:
//
//     00nnnnnn              n + 1 registers are zero
//     01nnnnnn nnnnnnnn     n + 1 registers are zero, higher bits first
//     1vvvvvnn              n + 1 registers are v + 1
//
// The layout and the estimate's formulas are public: http://antirez.com/news/75, and O. Ertl, "New
// cardinality estimation algorithms for HyperLogLog sketches" (2017), algorithm 6.
//
// The bytes may come from anywhere. Everything here is safe for any bytes of which is_one() is
// true, and says of those that are corrupt that they are, when it comes upon it. Costs: O(1) for an
// element added to a dense one, O(bytes) to a sparse one, O(registers) for the rest.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace latchkey::store {

class HyperLogLog {
 public:
  static constexpr size_t kRegisters = 16'384;
  static constexpr size_t kHeaderSize = 16;
  static constexpr size_t kDenseSize = kHeaderSize + kRegisters * 6 / 8;
  using Registers = std::array<uint8_t, kRegisters>;

  // --- Bytes, wherever they are; REQUIRES of all but the first: is_one(bytes) -------------------

  // Whether header and size are those of a HyperLogLog.
  static bool is_one(std::string_view bytes);
  static bool is_dense(std::string_view bytes);
  // None if it is out of date.
  static std::optional<uint64_t> cached_count(std::string_view bytes);
  static void cache_count(std::span<char> bytes, uint64_t count);
  static void forget_count(std::span<char> bytes);
  // The estimate, whatever the header says; none if the bytes are corrupt.
  static std::optional<uint64_t> count(std::string_view bytes);
  static uint64_t count(const Registers& registers);
  // Raises registers to those of `bytes`; false if these are corrupt. Dense ones are taken apart
  // eight at a time, or one by one, with the same result.
  static bool merge(std::string_view bytes, Registers* registers, bool eight_at_a_time = true);
  // Adds an element to a dense one; true when a register has changed.
  static bool add_to_dense(std::span<char> bytes, std::string_view element);
  // The runs of a sparse one as text, "Z:8436 v:1,1 z:3", sound or not; none if the last is cut
  // off.
  static std::optional<std::string> describe(std::string_view bytes);

  // --- One of its own ---------------------------------------------------------------------------

  enum class Change : uint8_t { kNone, kMade, kCorrupt };

  // Empty and sparse, with an up-to-date count.
  HyperLogLog();
  explicit HyperLogLog(std::string_view bytes) : bytes_(bytes) {}

  std::string_view bytes() const { return bytes_; }
  bool is_dense() const { return is_dense(bytes_); }
  // Adds an element. A sparse one becomes dense when it would take more than `sparse_limit` bytes,
  // or cannot hold the rank. After kCorrupt it is not to be used.
  Change add(std::string_view element, size_t sparse_limit);
  // Raises each register, as add() would.
  bool raise(const Registers& registers, size_t sparse_limit);
  // False when it is corrupt; it then stays as it is.
  bool make_dense();
  // Sets the header's mark that the count is out of date.
  void forget_count() { forget_count(bytes_); }

 private:
  Change raise(size_t index, uint8_t rank, size_t sparse_limit);
  Change raise_sparse(size_t index, uint8_t rank, size_t sparse_limit);
  void merge_runs(size_t from);

  std::string bytes_;
};

}  // namespace latchkey::store
