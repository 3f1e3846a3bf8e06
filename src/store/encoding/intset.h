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
//
// Several intsets are intersected by for_each_in_all(), which takes some hundred members of one at
// a time, and reads the others beside them instead of searching for each member.
#pragma once

#include <algorithm>
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

  // Whether untrusted bytes are an intset in every detail, with a member at least. O(bytes).
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
  // Copies the values from `index` on. REQUIRES: there are values.size() of them.
  void copy(size_t index, std::span<int64_t> values) const;
  // Moves those of the ascending values that are in the set to the front, and returns how many they
  // are. O(values + the members between the first and the last of them) or, where that is less,
  // O(values * log n).
  size_t retain(std::span<int64_t> values) const;

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
  template <typename Fn>
  decltype(auto) with_element_type(Fn&& fn) const;
  void widen(size_t new_width);

  char* bytes_;
};

// Calls fn(int64_t) for each value that is in all sets, in ascending order, until fn returns false.
// Iterates over the first set, which should be the smallest. REQUIRES: a set.
template <typename Fn>
void for_each_in_all(std::span<const Intset* const> sets, Fn&& fn) {
  constexpr size_t kAtOnce = 512;
  int64_t values[kAtOnce];
  const Intset& first = *sets.front();
  const size_t size = first.size();
  for (size_t begin = 0; begin < size; begin += kAtOnce) {
    size_t count = std::min(kAtOnce, size - begin);
    first.copy(begin, {values, count});
    for (const Intset* set : sets.subspan(1)) count = set->retain({values, count});
    for (size_t i = 0; i < count; ++i) {
      if (!fn(values[i])) return;
    }
  }
}

}  // namespace latchkey::store
