// One key and its value in one allocation.
//
//     +--------------------------------+ 0
//     | form, flags, key length, clock |      8 bytes
//     +--------------------------------+ 8
//     | deadline, wheel links          |     24 bytes, when the key has a deadline
//     +--------------------------------+
//     | integer, blob or value pointer |      8 bytes, unless the value is inline or packed
//     +--------------------------------+
//     | key length                     |      8 bytes, for keys of 64 KiB and more
//     +--------------------------------+
//     | the key's bytes                |
//     +--------------------------------+
//     | an inline value's bytes        |      up to kMaxInlineValue; also of what is packed
//     +--------------------------------+
//
// A collection that is small lies in its entry as the bytes of a listpack or intset: it is packed.
// It is read there (store/value/view.h), and gets an object when it is to be changed
// (Keyspace::find_for_write()), until the keyspace packs it again. Meanwhile the pointer to the
// object stands in the first of these bytes.
//
// A 16-byte key with a 32-byte value takes 56 bytes (64 as allocated), with a deadline 80.
// Allocations are rounded to the allocator's classes, and a new value that fits the same class is
// written in place.
//
// Only Keyspace makes, changes and destroys entries; everything else only reads them. An Entry
// pointer is valid until the next change of its key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "base/blob.h"
#include "store/deadline_wheel.h"

namespace latchkey::store {

class Entry;

// The types that TYPE distinguishes.
enum class Type : uint8_t {
  kString,
  kList,
  kSet,
  kSortedSet,
  kHash,
  kStream,
  kVectorSet,
  kArray,
  // Of classes that derive from ModuleValue (store/value/module_value.h).
  kJson,
  kTimeSeries,
  kBloomFilter,
  kCuckooFilter,
  kCountMinSketch,
  kTopK,
  kTDigest,
};
// An entry has four bits for it.
inline constexpr size_t kTypeCount = static_cast<size_t>(Type::kTDigest) + 1;
static_assert(kTypeCount <= 16);

// The name that TYPE and SCAN's TYPE option use ("string", "zset", ...).
std::string_view type_name(Type type);

// A value's node in the keyspace's index of values whose elements have deadlines; deadline_ms is
// the earliest of them.
struct ElementDeadline : DeadlineNode {
  Entry* entry = nullptr;  // the entry of the value, while it is in the index
};

enum class LookupStep : uint8_t;

// A small collection as it lies in an entry.
struct Packed {
  std::span<const char> bytes = {};  // of a listpack, or an intset; none: it is not packed
  bool is_intset = false;
};

// A value that lives outside of its entry: every type but strings derives from it.
class Value {
 public:
  Value() = default;
  Value(const Value&) {}
  Value& operator=(const Value&) = delete;
  virtual ~Value() = default;
  // The name OBJECT ENCODING gives.
  virtual std::string_view encoding_name() const = 0;
  // The number of elements or bytes to free; large values are freed on a background thread.
  virtual size_t free_effort() const = 0;
  // Bytes held, the entry not included.
  virtual size_t memory_usage() const = 0;
  // An independent copy.
  virtual Value* clone() const = 0;
  // A copy that replaces this value: it keeps the links to other values, where there are any.
  virtual Value* clone_with_links() const { return clone(); }

  // Prefetches what a lookup of an element will read, as HashTable::prefetch does. `hash`: the
  // element's hash under the environment's secret.
  virtual void prefetch(uint64_t, LookupStep) const {}

  // The node for the keyspace's index, for values whose elements may have deadlines. Null when
  // there is nothing to index.
  virtual ElementDeadline* element_deadline() { return nullptr; }
  // The earliest deadline of an element, Unix time in milliseconds; -1 when there is none. O(1).
  virtual int64_t first_deadline_ms() const { return -1; }
  // Removes at most `budget` elements past their deadline, and returns how many.
  virtual size_t expire_elements(size_t) { return 0; }
  // Number of elements, including those past their deadline that have not been removed yet.
  virtual size_t element_count() const = 0;
  // What would be left of the value in its entry, without this object; no bytes when that is not
  // all that there is to it.
  virtual Packed packed() const { return {}; }

 private:
  friend class Keyspace;

  // Index in Environment::changed plus one, when the value is there; else 0.
  uint32_t changed_at_ = 0;
  // The bin in which the database's KeySizes counts the value.
  uint8_t size_bin_ = 0;
};

class Entry {
 public:
  static constexpr size_t kMaxInlineValue = 255;
  // Access fields have 24 bits: under LRU a clock in seconds, under LFU 16 bits of minutes and an
  // 8-bit logarithmic counter.
  static constexpr uint32_t kMaxAccess = (1u << 24) - 1;

  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

  Type type() const { return static_cast<Type>(form_ >> 4); }
  bool is_string() const { return type() == Type::kString; }

  std::string_view key() const { return {bytes() + key_offset(), key_size()}; }

  bool has_deadline() const { return (flags_ & kHasDeadline) != 0; }
  // The key has been taken as a lock: Environment::lock_observer hears of its changes.
  bool is_lock() const { return (flags_ & kLock) != 0; }
  // Unix time in milliseconds, or -1.
  int64_t deadline_ms() const { return has_deadline() ? node().deadline_ms : -1; }

  uint32_t access() const { return access_and_size_ >> 8; }
  void set_access(uint32_t access) { access_and_size_ = (access << 8) | (access_and_size_ & 0xff); }

  // Strings.
  bool is_integer() const { return form() == Form::kInteger; }
  bool is_blob() const { return form() == Form::kBlob; }
  int64_t integer() const { return *reinterpret_cast<const int64_t*>(payload()); }
  base::Blob* blob() const { return *reinterpret_cast<base::Blob* const*>(payload()); }
  // The bytes of an inline or blob value. REQUIRES: not an integer.
  std::string_view text() const {
    if (form() == Form::kBlob) return blob()->view();
    return {bytes() + key_offset() + key_size(), inline_size()};
  }
  // The value's bytes; integers are written to `scratch` (room for 20 bytes).
  std::string_view string(char* scratch) const;
  size_t string_size() const;

  // Other types. store::View gives the value as its class, packed or not.
  bool is_packed() const { return form() == Form::kPacked; }
  // REQUIRES: it is packed.
  Packed packed() const {
    return {{bytes() + key_offset() + key_size(), inline_size()}, (flags_ & kPackedIntset) != 0};
  }
  // REQUIRES: it is not packed.
  Value* value() const {
    Value* value;
    std::memcpy(&value, value_place(), sizeof(value));
    return value;
  }
  // Number of elements, including those past their deadline. REQUIRES: not a string.
  size_t element_count() const;

  // "int", "embstr" or "raw" for strings, or Value::encoding_name().
  std::string_view encoding_name() const;
  // Bytes of this entry and its value.
  size_t memory_usage() const;

 private:
  friend class Keyspace;
  friend class UndoLog;

  enum class Form : uint8_t { kInline, kInteger, kBlob, kValue, kPacked };
  enum Flag : uint8_t {
    kHasDeadline = 1,
    kHasPayload = 2,
    kHasLongKey = 4,
    kChangedInPlace = 8,  // by APPEND and similar commands: reported as "raw" even when short
    kAbsent = 16,         // there was no such key (only in an undo log)
    kLock = 32,
    kPackedIntset = 64,
  };

  Entry() = default;

  Form form() const { return static_cast<Form>(form_ & 15); }
  const char* bytes() const { return reinterpret_cast<const char*>(this); }
  char* bytes() { return reinterpret_cast<char*>(this); }
  size_t payload_offset() const {
    return sizeof(Entry) + (flags_ & kHasDeadline) * sizeof(DeadlineNode);
  }
  const char* payload() const { return bytes() + payload_offset(); }
  char* payload() { return bytes() + payload_offset(); }
  size_t key_offset() const { return key_offset(flags_); }
  static size_t key_offset(uint8_t flags) {
    return sizeof(Entry) + (flags & kHasDeadline) * sizeof(DeadlineNode) +
           ((flags & kHasPayload) << 2) + ((flags & kHasLongKey) << 1);
  }
  size_t key_size() const {
    if ((flags_ & kHasLongKey) == 0) return short_key_size_;
    size_t size;
    std::memcpy(&size, bytes() + key_offset() - sizeof(size), sizeof(size));
    return size;
  }
  char* inline_bytes() { return bytes() + key_offset() + key_size(); }
  // Of the value, or what a packed collection took until it was given an object; else 0.
  size_t inline_size() const { return access_and_size_ & 0xff; }
  const char* value_place() const {
    return (flags_ & kHasPayload) != 0 ? payload() : bytes() + key_offset() + key_size();
  }
  void set_value(Value* value) {
    std::memcpy(const_cast<char*>(value_place()), &value, sizeof(value));
  }
  void set_form(Form form) {
    form_ = static_cast<uint8_t>((form_ & 0xf0) | static_cast<unsigned>(form));
  }
  void set_inline_size(size_t size) {
    access_and_size_ = (access_and_size_ & ~0xffu) | static_cast<uint32_t>(size);
  }
  const DeadlineNode& node() const {
    return *reinterpret_cast<const DeadlineNode*>(bytes() + sizeof(Entry));
  }
  DeadlineNode& node() { return *reinterpret_cast<DeadlineNode*>(bytes() + sizeof(Entry)); }
  static Entry& of(DeadlineNode& node) {
    return *reinterpret_cast<Entry*>(reinterpret_cast<char*>(&node) - sizeof(Entry));
  }

  uint8_t form_;  // type << 4 | form
  uint8_t flags_;
  uint16_t short_key_size_;
  uint32_t access_and_size_;  // access clock << 8 | size of an inline value
};
static_assert(sizeof(Entry) == 8);
static_assert(sizeof(DeadlineNode) == 24);

}  // namespace latchkey::store
