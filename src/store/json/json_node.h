// A JSON value (RFC 8259) in eight bytes, and the trees made of them.
//
// A node is a double, or what a double never is here: bits whose exponent is all ones, with a tag
// in the upper sixteen and 48 bits beside it.
//
//     double                            itself; infinities and NaN do not occur
//     null, false, true                 in the 48 bits
//     integer of 48 bits                in the 48 bits; larger ones, up to 2^64-1, point to theirs
//     string of up to six bytes         in the 48 bits; longer ones point to a StringBody
//     array, object                     point to an ArrayBody, an ObjectBody
//
// Long strings are counted references, so that the keys of one document that are equal can be one
// allocation. Counts are not atomic: two documents never share a string, and a document is used by
// one thread at a time.
//
// Objects keep their members in the order in which they came, and find a key by comparing all of
// them up to kMaxUnindexed members, by a hash table of positions beyond. Erasing a member moves the
// last one to its place.
//
// What walks down a tree (clone(), the destructor, equal(), memory_usage()) calls itself once a
// level. Whoever makes trees keeps them within kMaxDepth levels.
//
// Costs: the elements of an array as those of a std::vector; find() O(1) expected; clone(),
// destroying, equal() and memory_usage() linear in what is below.
//
// Where work is counted, its unit is one node that is looked at (cost_of_bytes() has it for texts).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

namespace latchkey::store::json {

static_assert(std::endian::native == std::endian::little, "short strings lie in the lower bytes");

enum class Kind : uint8_t { kNull, kBoolean, kInteger, kNumber, kString, kArray, kObject };

struct Member;

// What it costs to read or move so many bytes, in nodes that are looked at.
constexpr size_t cost_of_bytes(size_t bytes) {
  constexpr size_t kBytesAsNode = 64;
  return bytes / kBytesAsNode;
}

class Node {
 public:
  // The most levels that a tree may have: that of a scalar is 0, that of an empty array 1.
  static constexpr size_t kMaxDepth = 1024;
  static constexpr size_t kMaxUnindexed = 12;
  static constexpr size_t kLongestText = UINT32_MAX;
  static constexpr size_t kMostElements = UINT32_MAX;
  static constexpr size_t npos = SIZE_MAX;

  // --- Making -----------------------------------------------------------------------------------

  // null
  Node() = default;
  Node(Node&& other) noexcept : bits_(std::exchange(other.bits_, kNullBits)) {}
  Node& operator=(Node&& other) noexcept {
    std::swap(bits_, other.bits_);
    return *this;
  }
  ~Node() {
    if (is_allocated()) destroy();
  }

  static Node boolean(bool value) { return Node(tagged(kConstant, value ? 2 : 1)); }
  static Node integer(int64_t value);
  // Of integers up to 2^64-1.
  static Node unsigned_integer(uint64_t value);
  // REQUIRES: finite.
  static Node number(double value) { return Node(std::bit_cast<uint64_t>(value)); }
  // REQUIRES: at most kLongestText bytes.
  static Node string(std::string_view text);
  static Node array();
  // Of these elements, which are moved. REQUIRES: at most kMostElements.
  static Node array(std::span<Node> elements);
  static Node object();
  // Of these members, which are moved; of two with one key the later one's value takes the place of
  // the earlier one's. `seed`: of the hash of keys, which clients must not know.
  static Node object(std::span<Member> members, uint64_t seed);
  // The same string again: a long one is not copied. REQUIRES: it is a string, and the two stay in
  // one document.
  Node shared() const;
  Node clone() const;

  // --- Reading ----------------------------------------------------------------------------------

  Kind kind() const;
  bool is_null() const { return bits_ == kNullBits; }
  bool is_boolean() const { return tag() == kConstant && bits_ != kNullBits; }
  bool is_string() const { return is_short_string() || tag() == kLongString; }
  bool is_array() const { return tag() == kArrayTag; }
  bool is_object() const { return tag() == kObjectTag; }
  bool is_container() const { return is_array() || is_object(); }
  bool is_integer() const { return tag() >= kShortInteger && tag() <= kUnsigned; }
  bool is_double() const { return (bits_ & kExponent) != kExponent; }
  bool is_numeric() const { return is_double() || is_integer(); }

  // REQUIRES: is_boolean().
  bool truth() const { return bits_ == tagged(kConstant, 2); }
  // REQUIRES: is_integer(). An integer over INT64_MAX is_huge(), and only to be had unsigned.
  bool is_huge() const { return tag() == kUnsigned; }
  int64_t as_int64() const;
  uint64_t as_uint64() const;
  // REQUIRES: is_numeric(). Integers are rounded.
  double as_double() const;
  // REQUIRES: is_string(). Valid while the node stays where it is.
  std::string_view text() const;

  // Number of elements or members. REQUIRES: is_container().
  size_t size() const;
  // REQUIRES: is_array(). Valid until an element is added.
  std::span<Node> elements();
  std::span<const Node> elements() const { return const_cast<Node*>(this)->elements(); }
  // REQUIRES: is_object(). Valid until a member is added.
  std::span<Member> members();
  std::span<const Member> members() const { return const_cast<Node*>(this)->members(); }
  // Position of the member with that key, or npos. REQUIRES: is_object().
  size_t find(std::string_view key) const;
  // What is at a position of an array or object. REQUIRES: is_container(), position < size().
  Node& child(size_t position);
  const Node& child(size_t position) const { return const_cast<Node*>(this)->child(position); }

  // Equal values, whatever the order of members. An integer is equal to no double.
  bool equals(const Node& other) const {
    size_t ignored = 0;
    return equals(other, &ignored);
  }
  // The same, which adds to *cost what it has looked at before it knew.
  bool equals(const Node& other, size_t* cost) const;
  // Bytes allocated, this node not included.
  size_t memory_usage() const;
  // Nodes that have an allocation, counted up to `most`.
  size_t allocation_count(size_t most) const;
  // Itself and all below.
  size_t node_count() const;
  // What it costs to read itself and all below, texts and keys included. At least node_count().
  size_t read_cost() const;
  // Levels: 0 for a scalar.
  size_t depth() const;

  // --- Changing ---------------------------------------------------------------------------------

  // Inserts elements, which are moved, before position `at` <= size(). REQUIRES: is_array(), and
  // no more than kMostElements afterwards.
  void insert(size_t at, std::span<Node> elements);
  // REQUIRES: is_array(), first <= last <= size().
  void erase_elements(size_t first, size_t last);
  // Erases the element at each of these positions, from the last to the first of them: a position
  // that comes twice erases what has moved there as well, if there is anything. Returns how many
  // elements that were. Cost: linear in size() and positions. REQUIRES: is_array(), positions in
  // ascending order.
  size_t erase_each(std::span<const uint32_t> positions);
  // Sets a member. REQUIRES: is_object(), and no more than kMostElements afterwards.
  void put(std::string_view key, Node value, uint64_t seed);
  // REQUIRES: is_object(), position < size().
  void erase_member(size_t position);
  // Appends to a string. REQUIRES: is_string(), the result is at most kLongestText bytes.
  void append(std::string_view text);

 private:
  friend class KeyCache;

  enum Tag : uint16_t {
    kConstant = 0x7ff0,
    kShortInteger,
    kLongInteger,
    kUnsigned,
    kLongString,
    kArrayTag,
    kObjectTag,
    kShortString = 0xfff0,  // plus the length
  };
  static constexpr unsigned kTagShift = 48;
  static constexpr uint64_t kPayload = (uint64_t{1} << kTagShift) - 1;
  static constexpr uint64_t kExponent = uint64_t{0x7ff} << 52;
  static constexpr size_t kLongestShort = 6;
  static constexpr uint64_t tagged(Tag tag, uint64_t payload) {
    return uint64_t{tag} << kTagShift | payload;
  }
  static constexpr uint64_t kNullBits = uint64_t{kConstant} << kTagShift;

  struct StringBody {
    uint32_t references;
    uint32_t size;
    char* bytes() { return reinterpret_cast<char*>(this + 1); }
  };
  struct ArrayBody {
    uint32_t size;
    uint32_t capacity;
    Node* nodes() { return reinterpret_cast<Node*>(this + 1); }
  };
  // Positions by the hash of their keys, with linear probing; 0 is a free slot, else position + 1.
  struct Index {
    uint64_t seed;
    uint32_t mask;
    uint32_t* slots() { return reinterpret_cast<uint32_t*>(this + 1); }
    static size_t bytes(size_t slots) { return sizeof(Index) + slots * sizeof(uint32_t); }
  };
  struct ObjectBody {
    uint32_t size;
    uint32_t capacity;
    Index* index;  // null up to kMaxUnindexed members
    Member* members() { return reinterpret_cast<Member*>(this + 1); }
  };

  explicit Node(uint64_t bits) : bits_(bits) {}
  Node(Tag tag, const void* body) : bits_(tagged(tag, reinterpret_cast<uint64_t>(body))) {}

  // Of doubles too it is a number, below kConstant or between kObjectTag and kShortString.
  uint16_t tag() const { return static_cast<uint16_t>(bits_ >> kTagShift); }
  bool is_short_string() const { return tag() >= kShortString; }
  bool is_allocated() const { return tag() >= kLongInteger && tag() <= kObjectTag; }
  template <typename Body>
  Body* body() const {
    return reinterpret_cast<Body*>(bits_ & kPayload);
  }
  void set_body(Tag tag, const void* body) { bits_ = Node(tag, body).release(); }
  uint64_t release() { return std::exchange(bits_, kNullBits); }

  static StringBody* new_string(size_t size);
  static ArrayBody* new_array(size_t capacity);
  static ObjectBody* new_object(size_t capacity);
  static Index* new_index(size_t members, uint64_t seed);
  static void free_index(Index* index);
  static uint64_t hash_of(std::string_view key, uint64_t seed);
  // Enters a member of an object with an index; or returns the position of another with its key.
  static size_t enter(ObjectBody& body, size_t position);
  static void build_index(ObjectBody& body, uint64_t seed);
  // The slot that holds a position.
  static uint32_t* slot_of(ObjectBody& body, size_t position);
  static void leave(ObjectBody& body, size_t position);

  void destroy();
  // Sets the size of an array whose nodes from `size` on are gone, and gives back memory when it
  // has become much too large.
  void cut_array(size_t size);

  uint64_t bits_ = kNullBits;
};
static_assert(sizeof(Node) == 8);

struct Member {
  Node key;  // a string
  Node value;
};

// Gives strings that come again and again, as the keys of a document do, one allocation: a table of
// the last ones by a hash of their bytes. Cost: a hash and a comparison.
class KeyCache {
 public:
  // A string of that text, for the document that the cache is used for.
  Node key(std::string_view text);

 private:
  static constexpr size_t kPlaces = 64;

  Node places_[kPlaces];
};

// The word JSON.TYPE has for it.
std::string_view kind_name(Kind kind);

}  // namespace latchkey::store::json
