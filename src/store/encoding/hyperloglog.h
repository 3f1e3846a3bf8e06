// HyperLogLog: estimates how many different elements were added to a set, in at most 12 KiB, with a
// standard error of 0.81 %. It is stored in the bytes of a string, in the reference's layout, so
// that a string of one server can be read by another.
//
//     "HYLL" | encoding | 3 unused | cached count, 8 bytes | registers
//
// The encoding is 0 (dense) or 1 (sparse); the count is little-endian, and its highest bit says
// that it is out of date. There are 16,384 registers of 6 bits. An element's hash (MurmurHash64A)
// selects a register by its lowest 14 bits. The element's rank is 1 plus the number of zero bits
// that follow, at most 51; a register holds the highest rank of its elements.
//
// In the dense encoding the registers follow each other from the lowest bit of the first byte on.
// In the sparse encoding they are runs:
//
//     00nnnnnn              n + 1 registers are zero
//     01nnnnnn nnnnnnnn     n + 1 registers are zero, higher bits first
//     1vvvvvnn              n + 1 registers are v + 1
//
// The layout and the estimate's formulas are public: http://antirez.com/news/75, and O. Ertl, "New
// cardinality estimation algorithms for HyperLogLog sketches" (2017), algorithm 6.
//
// The bytes may come from an untrusted client. Every function is safe for all bytes that is_one()
// accepts, and reports corrupt ones when it reads them. Costs: add() O(1) if dense, O(bytes) if
// sparse; everything else O(registers).
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

  // --- Functions on the bytes of a string; REQUIRES of all but the first: is_one(bytes) ----------

  // Whether `bytes` have the header and the size of a HyperLogLog.
  static bool is_one(std::string_view bytes);
  static bool is_dense(std::string_view bytes);
  // The cached count, or nothing if it is out of date.
  static std::optional<uint64_t> cached_count(std::string_view bytes);
  static void cache_count(std::span<char> bytes, uint64_t count);
  static void forget_count(std::span<char> bytes);
  // The estimate, ignoring the cached count; nothing if the bytes are corrupt.
  static std::optional<uint64_t> count(std::string_view bytes);
  static uint64_t count(const Registers& registers);
  // Raises `registers` to the registers of `bytes` where those are higher; false if `bytes` are
  // corrupt. Dense registers are unpacked many at a time or one by one, with the same result.
  static bool merge(std::string_view bytes, Registers* registers, bool many_at_a_time = true);
  // The same for any number of dense ones at once, which is faster.
  static void merge_dense(std::span<const std::string_view> sketches, Registers* registers);
  // Sets the registers of a dense HyperLogLog.
  static void set_registers(std::span<char> bytes, const Registers& registers);
  // Adds an element to a dense HyperLogLog; true when a register has changed.
  static bool add_to_dense(std::span<char> bytes, std::string_view element);
  // The runs of a sparse HyperLogLog as text, "Z:8436 v:1,1 z:3", even if they are corrupt; nothing
  // if the last run is cut off.
  static std::optional<std::string> describe(std::string_view bytes);

  // --- An object that owns its bytes ------------------------------------------------------------

  enum class Change : uint8_t { kNone, kMade, kCorrupt };

  // An empty sparse HyperLogLog with an up-to-date count.
  HyperLogLog();
  explicit HyperLogLog(std::string_view bytes) : bytes_(bytes) {}

  std::string_view bytes() const { return bytes_; }
  bool is_dense() const { return is_dense(bytes_); }
  // Adds an element. Converts sparse to dense when the sparse encoding would take more than
  // `sparse_limit` bytes or cannot hold the rank. After kCorrupt the object must not be used.
  Change add(std::string_view element, size_t sparse_limit);
  // Raises each register to that of `registers`, converting to dense as add() does.
  bool raise(const Registers& registers, size_t sparse_limit);
  // Returns false, and changes nothing, if the bytes are corrupt.
  bool make_dense();
  // Marks the cached count as out of date.
  void forget_count() { forget_count(bytes_); }

 private:
  Change raise(size_t index, uint8_t rank, size_t sparse_limit);
  Change raise_sparse(size_t index, uint8_t rank, size_t sparse_limit);
  void merge_runs(size_t from);

  std::string bytes_;
};

}  // namespace latchkey::store
