// Where a command's keys stand among its arguments, and what the command does to them: what COMMAND
// INFO, COMMAND GETKEYS, key permissions and cluster clients go by.
//
// A specification says where a run of keys begins, how far it reaches, and what happens to its
// keys:
//
//     keys(1).rw().update()                     the first argument
//     keys(1, -1).rm().remove()                 from the first argument to the last
//     keys(1, -1, 2).ow().update()              every second argument
//     counted_keys(2).rw()                      the argument at 2 counts the keys after it
//     keys_after("STREAMS", 1).limit(2).ro()    the first half of what follows the word
//     keys(1).ow() + keys(2, -1).ro()           two runs
//
// Positions count the command's words from 0, its name; negative ones count from the end, -1 being
// the last. For a subcommand the container's name is word 0.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/command/arguments.h"

namespace latchkey::server {

// In the order in which COMMAND INFO lists them. One of the first four says how the value is
// touched as a whole, the next four what a client may see of it or do to it.
enum KeyFlag : uint32_t {
  kKeyReadOnly = 1 << 0,
  kKeyReadWrite = 1 << 1,
  kKeyOverwrite = 1 << 2,
  kKeyRemove = 1 << 3,
  kKeyAccess = 1 << 4,
  kKeyUpdate = 1 << 5,
  kKeyInsert = 1 << 6,
  kKeyDelete = 1 << 7,
  kKeyNotKey = 1 << 8,
  kKeyIncomplete = 1 << 9,
  kKeyVariableFlags = 1 << 10,
};

struct KeySpec {
  enum class Begin : uint8_t { kIndex, kKeyword, kUnknown };
  enum class Find : uint8_t { kRange, kCounted, kUnknown };

  Begin begin = Begin::kUnknown;
  Find find = Find::kUnknown;
  uint32_t flags = 0;
  // Begin: the position, or the word and the position from which it is looked for (backwards if
  // that is negative).
  const char* keyword = "";
  int32_t position = 0;
  // Range: the last key relative to the first, or from the end if negative; the distance between
  // keys; with last -1, the run takes only the first 1/limit of what is there (0 and 1: all of it).
  // Counted: the count's and the first key's places relative to the beginning, and the distance
  // between keys.
  int32_t last = 0;
  int32_t step = 1;
  int32_t range_limit = 0;
  int32_t count_at = 0;
  int32_t first_at = 0;
  const char* remark = nullptr;

  constexpr KeySpec with(uint32_t flag) const {
    KeySpec copy = *this;
    copy.flags |= flag;
    return copy;
  }
  // Reads the value, without changing it.
  constexpr KeySpec ro() const { return with(kKeyReadOnly); }
  // Changes the value, with regard to what it was.
  constexpr KeySpec rw() const { return with(kKeyReadWrite); }
  // Puts a value there, whatever it was.
  constexpr KeySpec ow() const { return with(kKeyOverwrite); }
  // Removes the key.
  constexpr KeySpec rm() const { return with(kKeyRemove); }

  constexpr KeySpec access() const { return with(kKeyAccess); }
  constexpr KeySpec update() const { return with(kKeyUpdate); }
  constexpr KeySpec insert() const { return with(kKeyInsert); }
  constexpr KeySpec remove() const { return with(kKeyDelete); }
  constexpr KeySpec not_key() const { return with(kKeyNotKey); }
  constexpr KeySpec incomplete() const { return with(kKeyIncomplete); }
  constexpr KeySpec variable_flags() const { return with(kKeyVariableFlags); }

  constexpr KeySpec limit(int32_t part) const {
    KeySpec copy = *this;
    copy.range_limit = part;
    return copy;
  }
  constexpr KeySpec note(const char* text) const {
    KeySpec copy = *this;
    copy.remark = text;
    return copy;
  }
};

// Keys at positions first, first + step, ... last. A single key when only `first` is given.
constexpr KeySpec keys(int32_t first, int32_t last, int32_t step = 1) {
  KeySpec spec;
  spec.begin = KeySpec::Begin::kIndex;
  spec.find = KeySpec::Find::kRange;
  spec.position = first;
  spec.last = last < 0 ? last : last - first;
  spec.step = step;
  return spec;
}
constexpr KeySpec keys(int32_t first) {
  return keys(first, first);
}

// The argument at `position` counts the keys, which start after it.
constexpr KeySpec counted_keys(int32_t position, int32_t step = 1) {
  KeySpec spec;
  spec.begin = KeySpec::Begin::kIndex;
  spec.find = KeySpec::Find::kCounted;
  spec.position = position;
  spec.first_at = 1;
  spec.step = step;
  return spec;
}

// Keys after the word `keyword` (in any case), looked for from position `start`: one key, or with
// last = -1 all that follow it.
constexpr KeySpec keys_after(const char* keyword, int32_t start, int32_t last = 0,
                             int32_t step = 1) {
  KeySpec spec;
  spec.begin = KeySpec::Begin::kKeyword;
  spec.find = KeySpec::Find::kRange;
  spec.keyword = keyword;
  spec.position = start;
  spec.last = last;
  spec.step = step;
  return spec;
}

// Keys that no specification can describe.
constexpr KeySpec unknown_keys() {
  return KeySpec();
}

// The specifications of one command, in order.
class KeySpecs {
 public:
  static constexpr size_t kMax = 3;

  constexpr KeySpecs() = default;
  // Implicit, so that a row may name a single specification.
  constexpr KeySpecs(const KeySpec& only)
      : specs_{only}, size_(1) {}  // NOLINT(google-explicit-constructor)

  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const KeySpec* begin() const { return specs_.data(); }
  constexpr const KeySpec* end() const { return specs_.data() + size_; }
  constexpr const KeySpec& operator[](size_t index) const { return specs_[index]; }

  // Fails to compile in a row when there are more than kMax.
  friend constexpr KeySpecs operator+(KeySpecs left, const KeySpec& right) {
    left.specs_[left.size_++] = right;
    return left;
  }

 private:
  std::array<KeySpec, kMax> specs_{};
  size_t size_ = 0;
};

constexpr KeySpecs operator+(const KeySpec& left, const KeySpec& right) {
  return KeySpecs(left) + right;
}

// A key of one request: the position of its argument and the KeyFlags that hold for it.
struct KeyReference {
  uint32_t position;
  uint32_t flags;
};

// Appends the keys of a request that `specs` find, in order. A run whose keyword is missing is no
// run. Returns false, with what was found before, when a run begins or ends outside the request, is
// not counted by a number, or cannot be described. The request must have the command's arity.
// Linear in the number of words.
bool find_keys(const KeySpecs& specs, Arguments words, std::vector<KeyReference>* out);

}  // namespace latchkey::server
