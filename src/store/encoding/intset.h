// A sorted array of integers, all stored in the width of the widest: for small sets of integers.
//
// The bytes are those in RDB files (https://rdb.fnordig.de/file_format.html#intset-encoding), so
// that values are dumped and loaded by copying. All numbers are little endian:
//
//     +-------------------+---------+-- ... --+
//     | width: 2, 4 or 8  |  count  | members |
//     +-------------------+---------+-- ... --+
//       4 bytes             4 bytes   width bytes each, ascending, signed
//
// Costs: finding O(log n), adding and erasing O(n), at() O(1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace latchkey::store {

class Intset {
 public:
  Intset();
  ~Intset();
  Intset(const Intset& other);
  Intset& operator=(const Intset&) = delete;
  Intset(Intset&& other) noexcept;
  Intset& operator=(Intset&& other) noexcept;

  // Whether untrusted bytes are an intset in every detail. O(bytes).
  static bool is_valid(std::span<const char> bytes);
  // A copy of bytes that is_valid() has accepted.
  static Intset from_bytes(std::span<const char> bytes);
  // The same without a copy unless `owned`. The intset must not be changed then, nor destroyed.
  static Intset open(std::span<const char> bytes, bool owned);
  std::span<const char> bytes() const { return {bytes_, byte_size()}; }

  size_t size() const;
  // Bytes held besides this object.
  size_t memory_usage() const;
  bool contains(int64_t value) const;
  // The value at `index` in ascending order. REQUIRES: index < size().
  int64_t at(size_t index) const;

  // add(): false when `value` is already in the set. erase(): false when it is not.
  bool add(int64_t value);
  bool erase(int64_t value);

 private:
  explicit Intset(char* bytes) : bytes_(bytes) {}

  size_t width() const;
  size_t byte_size() const;
  // Makes room for so many bytes, which are not set.
  void resize(size_t size);
  void set_size(size_t size);
  int64_t read(size_t index, size_t width) const;
  void write(size_t index, int64_t value);
  // The index of `value`, or the index where it would be inserted.
  size_t lower_bound(int64_t value) const;
  void widen(size_t new_width);

  char* bytes_;
};

}  // namespace latchkey::store
