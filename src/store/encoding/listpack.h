// A listpack: a sequence of strings and integers in one allocation, which can be walked in both
// directions. Small lists, hashes, sets and sorted sets are kept in one, and the nodes of large
// lists and streams are listpacks.
//
// The bytes are those of the listpack specification
// (https://github.com/antirez/listpack/blob/master/listpack.md), as found in RDB files, so that
// values are dumped and loaded by copying:
//
//     +-------------+----------+-----------+-- ... --+-----------+------+
//     | total bytes | elements | element 0 |         | element n | 0xFF |
//     +-------------+----------+-----------+-- ... --+-----------+------+
//       4 bytes       2 bytes, 0xFFFF when there are more than fit
//
//     element = encoding and length | bytes, if any | length of the two before, for walking back
//
// All numbers are little endian. Text that is the shortest form of a 64-bit integer is stored as an
// integer. There are encodings for integers of 7, 13, 16, 24, 32 and 64 bits, and for strings of up
// to 63, 4,095 and 2^32 - 1 bytes.
//
// A position is the offset of an element; kNone means that there is no such element. It is valid
// until the listpack is changed, except as stated at the functions that change it.
//
// Costs: walking is O(1) a step, at() O(distance from the nearer end), changes O(bytes behind). A
// listpack holds at most kMaxBytes; check with room_for() before adding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "base/prefetch.h"

namespace latchkey::store {

class Listpack {
 public:
  using Position = uint32_t;
  static constexpr Position kNone = 0;
  static constexpr size_t kMaxBytes = size_t{1} << 30;
  // The buffer size that text() needs for integers.
  static constexpr size_t kScratch = 21;

  // An element as it is stored: an integer, or bytes within the listpack.
  struct Element {
    bool is_integer;
    int64_t integer;
    std::string_view bytes;

    // The element as text; integers are written to `scratch` (kScratch bytes).
    std::string_view text(char* scratch) const;
    // Whether the element's text is `text`. Matcher is faster for the same text again.
    bool equals(std::string_view text) const;
  };

  // Compares elements with a text, which is parsed once. It must outlive this.
  class Matcher {
   public:
    explicit Matcher(std::string_view text);
    bool matches(const Element& element) const {
      return element.is_integer ? is_integer_ && element.integer == integer_
                                : is_text(element.bytes);
    }

   private:
    // Not ==, which GCC does not always inline: a search takes twice as long then.
    bool is_text(std::string_view bytes) const {
      return bytes.size() == text_.size() &&
             std::memcmp(bytes.data(), text_.data(), text_.size()) == 0;
    }

    std::string_view text_;
    int64_t integer_ = 0;
    bool is_integer_;
  };

  Listpack();
  ~Listpack();
  Listpack(const Listpack& other);
  Listpack& operator=(const Listpack& other);
  Listpack(Listpack&& other) noexcept;
  Listpack& operator=(Listpack&& other) noexcept;

  // Whether untrusted bytes are a listpack in every detail: header, each element's encoding and
  // backward length, count, terminator. O(bytes).
  static bool is_valid(std::span<const char> bytes);
  // A copy of bytes that is_valid() has accepted.
  static Listpack from_bytes(std::span<const char> bytes);
  // The same without a copy unless `owned`. The listpack must not be changed then, nor destroyed.
  static Listpack open(std::span<const char> bytes, bool owned);
  std::span<const char> bytes() const;

  // Number of elements; O(1) up to 65,534 of them, else O(n).
  size_t size() const;
  bool empty() const;
  // Size in bytes, header included.
  size_t byte_size() const;
  // Bytes held besides this object.
  size_t memory_usage() const;
  // Bytes that an element with this text will take.
  static size_t encoded_size(std::string_view text);
  static size_t encoded_size(int64_t value);
  // Prefetches the first bytes of the listpack.
  void prefetch() const { base::prefetch(bytes_); }
  // Whether `bytes` more bytes fit into the listpack.
  bool room_for(size_t bytes) const { return byte_size() + bytes <= kMaxBytes; }

  // --- Walking ---------------------------------------------------------------------------------

  Position first() const;
  Position last() const;
  Position next(Position position) const;
  Position previous(Position position) const;
  // The element at that index; negative indexes count from the end, -1 being the last.
  Position at(int64_t index) const;
  Element get(Position position) const;
  // Finds the first element with this text, starting at `from` and skipping `skip` elements after
  // each comparison (1: every other element, such as the fields of field-value pairs).
  Position find(std::string_view text, Position from, size_t skip = 0) const {
    return find(Matcher(text), from, skip);
  }
  Position find(const Matcher& matcher, Position from, size_t skip = 0) const;

  // --- Changing --------------------------------------------------------------------------------

  void append(std::string_view text);
  void append(int64_t value);
  void prepend(std::string_view text);
  // Inserts before that position (behind the last element when kNone); returns the new element's
  // position. Neither insert_before() nor replace() accepts a `text` within this listpack.
  Position insert_before(Position position, std::string_view text);
  Position insert_before(Position position, int64_t value);
  // Replaces the element; its position stays.
  void replace(Position position, std::string_view text);
  void replace(Position position, int64_t value);
  // Removes up to `count` elements from `position` on; returns the position of the element that
  // follows them, or kNone.
  Position erase(Position position, size_t count = 1);
  void clear();
  // Appends the elements of `other` from `from` on.
  void append_range(const Listpack& other, Position from);
  // Moves the elements from `position` on to a new listpack, which is returned.
  Listpack split(Position position);

 private:
  explicit Listpack(unsigned char* bytes) : bytes_(bytes) {}

  unsigned char* bytes_;
};

}  // namespace latchkey::store
