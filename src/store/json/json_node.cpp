#include "store/json/json_node.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <string>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/assert.h"

namespace latchkey::store::json {

namespace {

constexpr int64_t kLeastShort = -(int64_t{1} << 47);
constexpr int64_t kMostShort = (int64_t{1} << 47) - 1;

// Nodes are moved as bytes: what is left behind is not destroyed.
void move_bytes(void* to, const void* from, size_t bytes) {
  if (bytes != 0) std::memmove(to, from, bytes);
}

// A half more, at least four.
size_t grown(size_t capacity, size_t needed) {
  return std::min<size_t>(std::max({needed, capacity + capacity / 2, size_t{4}}),
                          Node::kMostElements);
}

}  // namespace

// --- Bodies --------------------------------------------------------------------------------------

Node::StringBody* Node::new_string(size_t size) {
  LK_ASSERT(size <= kLongestText);
  auto* const body = static_cast<StringBody*>(::operator new(sizeof(StringBody) + size));
  body->references = 1;
  body->size = static_cast<uint32_t>(size);
  return body;
}

Node::ArrayBody* Node::new_array(size_t capacity) {
  LK_ASSERT(capacity <= kMostElements);
  auto* const body =
      static_cast<ArrayBody*>(::operator new(sizeof(ArrayBody) + capacity * sizeof(Node)));
  body->size = 0;
  body->capacity = static_cast<uint32_t>(capacity);
  return body;
}

Node::ObjectBody* Node::new_object(size_t capacity) {
  LK_ASSERT(capacity <= kMostElements);
  auto* const body =
      static_cast<ObjectBody*>(::operator new(sizeof(ObjectBody) + capacity * sizeof(Member)));
  body->size = 0;
  body->capacity = static_cast<uint32_t>(capacity);
  body->index = nullptr;
  return body;
}

void Node::destroy() {
  switch (tag()) {
    case kLongInteger:
    case kUnsigned:
      ::operator delete(body<void>(), sizeof(uint64_t));
      return;
    case kLongString: {
      auto* const string = body<StringBody>();
      if (--string->references == 0) ::operator delete(string, sizeof(StringBody) + string->size);
      return;
    }
    case kArrayTag: {
      auto* const array = body<ArrayBody>();
      for (size_t i = 0; i < array->size; ++i) array->nodes()[i].~Node();
      ::operator delete(array, sizeof(ArrayBody) + array->capacity * sizeof(Node));
      return;
    }
    default: {
      auto* const object = body<ObjectBody>();
      for (size_t i = 0; i < object->size; ++i) object->members()[i].~Member();
      free_index(object->index);
      ::operator delete(object, sizeof(ObjectBody) + object->capacity * sizeof(Member));
    }
  }
}

// --- Making --------------------------------------------------------------------------------------

Node Node::integer(int64_t value) {
  if (value >= kLeastShort && value <= kMostShort)
    return Node(tagged(kShortInteger, static_cast<uint64_t>(value) & kPayload));
  return {kLongInteger, new (::operator new(sizeof value)) int64_t(value)};
}

Node Node::unsigned_integer(uint64_t value) {
  if (value <= INT64_MAX) return integer(static_cast<int64_t>(value));
  return {kUnsigned, new (::operator new(sizeof value)) uint64_t(value)};
}

Node Node::string(std::string_view text) {
  if (text.size() <= kLongestShort) {
    uint64_t payload = 0;
    std::memcpy(&payload, text.data(), text.size());
    return Node(tagged(static_cast<Tag>(kShortString + text.size()), payload));
  }
  StringBody* const body = new_string(text.size());
  std::memcpy(body->bytes(), text.data(), text.size());
  return {kLongString, body};
}

Node Node::array() {
  return {kArrayTag, new_array(0)};
}

Node Node::array(std::span<Node> elements) {
  ArrayBody* const body = new_array(elements.size());
  for (Node& element : elements) new (body->nodes() + body->size++) Node(std::move(element));
  return {kArrayTag, body};
}

Node Node::object() {
  return {kObjectTag, new_object(0)};
}

Node Node::object(std::span<Member> members, uint64_t seed) {
  ObjectBody* const body = new_object(members.size());
  const bool is_indexed = members.size() > kMaxUnindexed;
  if (is_indexed) body->index = new_index(members.size(), seed);
  Node object(kObjectTag, body);
  for (Member& member : members) {
    size_t known = npos;
    if (is_indexed) {
      new (body->members() + body->size) Member(std::move(member));
      known = enter(*body, body->size);
      if (known != npos) {
        body->members()[known].value = std::move(body->members()[body->size].value);
        body->members()[body->size].~Member();
      } else {
        ++body->size;
      }
      continue;
    }
    known = object.find(member.key.text());
    if (known != npos)
      body->members()[known].value = std::move(member.value);
    else
      new (body->members() + body->size++) Member(std::move(member));
  }
  return object;
}

Node Node::shared() const {
  if (tag() == kLongString) ++body<StringBody>()->references;
  return Node(bits_);
}

Node Node::clone() const {
  switch (tag()) {
    case kLongInteger:
      return integer(as_int64());
    case kUnsigned:
      return unsigned_integer(as_uint64());
    case kLongString:
      return string(text());
    case kArrayTag: {
      const std::span<const Node> from = elements();
      ArrayBody* const to = new_array(from.size());
      Node array(kArrayTag, to);
      for (const Node& element : from) new (to->nodes() + to->size++) Node(element.clone());
      return array;
    }
    case kObjectTag: {
      const auto* const from = body<ObjectBody>();
      ObjectBody* const to = new_object(from->size);
      Node object(kObjectTag, to);
      for (const Member& member : members())
        new (to->members() + to->size++) Member{member.key.clone(), member.value.clone()};
      if (from->index != nullptr) {
        const size_t bytes = Index::bytes(from->index->mask + size_t{1});
        to->index = static_cast<Index*>(::operator new(bytes));
        std::memcpy(static_cast<void*>(to->index), from->index, bytes);
      }
      return object;
    }
    default:
      return Node(bits_);
  }
}

// --- Reading -------------------------------------------------------------------------------------

Kind Node::kind() const {
  if (is_double()) return Kind::kNumber;
  if (is_short_string()) return Kind::kString;
  switch (tag()) {
    case kConstant:
      return bits_ == kNullBits ? Kind::kNull : Kind::kBoolean;
    case kLongString:
      return Kind::kString;
    case kArrayTag:
      return Kind::kArray;
    case kObjectTag:
      return Kind::kObject;
    default:
      return Kind::kInteger;
  }
}

int64_t Node::as_int64() const {
  if (tag() != kShortInteger) return *body<int64_t>();
  constexpr unsigned kUnused = 64 - kTagShift;
  return static_cast<int64_t>(bits_ << kUnused) >> kUnused;
}

uint64_t Node::as_uint64() const {
  return static_cast<uint64_t>(as_int64());
}

double Node::as_double() const {
  if (is_double()) return std::bit_cast<double>(bits_);
  return is_huge() ? static_cast<double>(as_uint64()) : static_cast<double>(as_int64());
}

std::string_view Node::text() const {
  if (is_short_string())
    return {reinterpret_cast<const char*>(&bits_), static_cast<size_t>(tag() - kShortString)};
  auto* const string = body<StringBody>();
  return {string->bytes(), string->size};
}

size_t Node::size() const {
  return is_array() ? body<ArrayBody>()->size : body<ObjectBody>()->size;
}

std::span<Node> Node::elements() {
  auto* const array = body<ArrayBody>();
  return {array->nodes(), array->size};
}

std::span<Member> Node::members() {
  auto* const object = body<ObjectBody>();
  return {object->members(), object->size};
}

Node& Node::child(size_t position) {
  return is_array() ? body<ArrayBody>()->nodes()[position]
                    : body<ObjectBody>()->members()[position].value;
}

size_t Node::find(std::string_view key) const {
  auto* const object = body<ObjectBody>();
  Member* const members = object->members();
  if (Index* const index = object->index; index != nullptr) {
    for (uint64_t at = hash_of(key, index->seed);; ++at) {
      const uint32_t slot = index->slots()[at & index->mask];
      if (slot == 0) return npos;
      if (members[slot - 1].key.text() == key) return slot - 1;
    }
  }
  if (key.size() <= kLongestShort) {
    const uint64_t wanted = string(key).bits_;
    for (size_t i = 0; i < object->size; ++i) {
      if (members[i].key.bits_ == wanted) return i;
    }
    return npos;
  }
  for (size_t i = 0; i < object->size; ++i) {
    const Node& other = members[i].key;
    if (other.tag() == kLongString && other.text() == key) return i;
  }
  return npos;
}

bool Node::equals(const Node& other, size_t* cost) const {
  ++*cost;
  if (kind() != other.kind()) return false;
  switch (kind()) {
    case Kind::kInteger:
      return as_uint64() == other.as_uint64() && is_huge() == other.is_huge();
    case Kind::kNumber:
      return as_double() == other.as_double();
    case Kind::kString:
      if (text().size() != other.text().size()) return false;
      *cost += cost_of_bytes(text().size());
      return text() == other.text();
    case Kind::kArray:
      return std::ranges::equal(elements(), other.elements(),
                                [&](const Node& a, const Node& b) { return a.equals(b, cost); });
    case Kind::kObject:
      if (size() != other.size()) return false;
      return std::ranges::all_of(members(), [&](const Member& member) {
        *cost += cost_of_bytes(member.key.text().size());
        const size_t at = other.find(member.key.text());
        return at != npos && member.value.equals(other.child(at), cost);
      });
    default:
      return bits_ == other.bits_;
  }
}

size_t Node::memory_usage() const {
  switch (tag()) {
    case kLongInteger:
    case kUnsigned:
      return sizeof(uint64_t);
    case kLongString:
      return (sizeof(StringBody) + text().size()) / body<StringBody>()->references;
    case kArrayTag: {
      size_t bytes = sizeof(ArrayBody) + body<ArrayBody>()->capacity * sizeof(Node);
      for (const Node& element : elements()) bytes += element.memory_usage();
      return bytes;
    }
    case kObjectTag: {
      const auto* const object = body<ObjectBody>();
      size_t bytes = sizeof(ObjectBody) + object->capacity * sizeof(Member);
      if (object->index != nullptr) bytes += Index::bytes(object->index->mask + size_t{1});
      for (const Member& member : members())
        bytes += member.key.memory_usage() + member.value.memory_usage();
      return bytes;
    }
    default:
      return 0;
  }
}

size_t Node::allocation_count(size_t most) const {
  if (!is_allocated()) return 0;
  size_t count = 1;
  if (is_container()) {
    for (size_t i = 0; i < size() && count < most; ++i)
      count += child(i).allocation_count(most - count);
  }
  return count;
}

size_t Node::node_count() const {
  size_t count = 1;
  if (is_container()) {
    for (size_t i = 0; i < size(); ++i) count += child(i).node_count();
  }
  return count;
}

size_t Node::read_cost() const {
  size_t cost = 1;
  if (is_string()) cost += cost_of_bytes(text().size());
  if (is_array()) {
    for (const Node& element : elements()) cost += element.read_cost();
  } else if (is_object()) {
    for (const Member& member : members())
      cost += cost_of_bytes(member.key.text().size()) + member.value.read_cost();
  }
  return cost;
}

size_t Node::depth() const {
  if (!is_container()) return 0;
  size_t deepest = 0;
  for (size_t i = 0; i < size(); ++i) deepest = std::max(deepest, child(i).depth());
  return deepest + 1;
}

// --- Changing ------------------------------------------------------------------------------------

void Node::insert(size_t at, std::span<Node> added) {
  auto* array = body<ArrayBody>();
  const size_t size = array->size;
  if (size + added.size() > array->capacity) {
    ArrayBody* const larger = new_array(grown(array->capacity, size + added.size()));
    move_bytes(larger->nodes(), array->nodes(), size * sizeof(Node));
    ::operator delete(array, sizeof(ArrayBody) + array->capacity * sizeof(Node));
    array = larger;
    set_body(kArrayTag, array);
  }
  Node* const place = array->nodes() + at;
  move_bytes(place + added.size(), place, (size - at) * sizeof(Node));
  for (size_t i = 0; i < added.size(); ++i) new (place + i) Node(std::move(added[i]));
  array->size = static_cast<uint32_t>(size + added.size());
}

void Node::erase_elements(size_t first, size_t last) {
  if (first == last) return;
  auto* const array = body<ArrayBody>();
  Node* const nodes = array->nodes();
  for (size_t i = first; i < last; ++i) nodes[i].~Node();
  move_bytes(nodes + first, nodes + last, (array->size - last) * sizeof(Node));
  cut_array(array->size - (last - first));
}

size_t Node::erase_each(std::span<const uint32_t> positions) {
  auto* const array = body<ArrayBody>();
  Node* const nodes = array->nodes();
  const size_t size = array->size;
  // What is left of those from `begin` on is kept at the end of the array:
  //
  //     | not looked at yet | free | kept |
  //     0                 begin   kept   size
  size_t begin = size;
  size_t kept = size;
  for (size_t i = positions.size(); i-- > 0;) {
    const size_t at = positions[i];
    if (at >= size) continue;
    kept -= begin - at;
    move_bytes(nodes + kept, nodes + at, (begin - at) * sizeof(Node));
    begin = at;
    if (kept < size) nodes[kept++].~Node();
  }
  move_bytes(nodes + begin, nodes + kept, (size - kept) * sizeof(Node));
  if (kept != begin) cut_array(size - (kept - begin));
  return kept - begin;
}

void Node::cut_array(size_t size) {
  auto* const array = body<ArrayBody>();
  array->size = static_cast<uint32_t>(size);
  if (array->size >= array->capacity / 4) return;
  ArrayBody* const smaller = new_array(array->size);
  move_bytes(smaller->nodes(), array->nodes(), array->size * sizeof(Node));
  smaller->size = array->size;
  ::operator delete(array, sizeof(ArrayBody) + array->capacity * sizeof(Node));
  set_body(kArrayTag, smaller);
}

void Node::put(std::string_view key, Node value, uint64_t seed) {
  if (const size_t at = find(key); at != npos) {
    child(at) = std::move(value);
    return;
  }
  auto* object = body<ObjectBody>();
  if (object->size == object->capacity) {
    ObjectBody* const larger = new_object(grown(object->capacity, object->size + size_t{1}));
    move_bytes(larger->members(), object->members(), object->size * sizeof(Member));
    larger->size = object->size;
    larger->index = object->index;
    ::operator delete(object, sizeof(ObjectBody) + object->capacity * sizeof(Member));
    object = larger;
    set_body(kObjectTag, object);
  }
  new (object->members() + object->size) Member{string(key), std::move(value)};
  const size_t position = object->size++;
  if (object->size <= kMaxUnindexed) return;
  constexpr size_t kSlotsToMembers = 2;
  if (object->index == nullptr || object->size * kSlotsToMembers > object->index->mask + size_t{1})
    build_index(*object, object->index == nullptr ? seed : object->index->seed);
  else
    enter(*object, position);
}

void Node::erase_member(size_t position) {
  auto* const object = body<ObjectBody>();
  Member* const members = object->members();
  const size_t last = object->size - size_t{1};
  if (object->index != nullptr) {
    leave(*object, position);
    if (position != last) *slot_of(*object, last) = static_cast<uint32_t>(position) + 1;
  }
  if (position != last) std::swap(members[position], members[last]);
  members[last].~Member();
  object->size = static_cast<uint32_t>(last);
  if (object->size <= kMaxUnindexed) {
    free_index(object->index);
    object->index = nullptr;
  }
}

void Node::append(std::string_view added) {
  const std::string_view old = text();
  const size_t size = old.size() + added.size();
  if (size <= kLongestShort) {
    std::string joined(old);
    joined += added;
    *this = string(joined);
    return;
  }
  StringBody* const body = new_string(size);
  std::ranges::copy(added, std::ranges::copy(old, body->bytes()).out);
  *this = Node(kLongString, body);
}

// --- The index of an object ----------------------------------------------------------------------

uint64_t Node::hash_of(std::string_view key, uint64_t seed) {
  return XXH3_64bits_withSeed(key.data(), key.size(), seed);
}

Node::Index* Node::new_index(size_t members, uint64_t seed) {
  const size_t slots = std::bit_ceil(members * 2);
  auto* const index = static_cast<Index*>(::operator new(Index::bytes(slots)));
  index->seed = seed;
  LK_ASSERT(slots - 1 <= UINT32_MAX);
  index->mask = static_cast<uint32_t>(slots - 1);
  std::memset(index->slots(), 0, slots * sizeof(uint32_t));
  return index;
}

void Node::free_index(Index* index) {
  if (index != nullptr) ::operator delete(index, Index::bytes(index->mask + size_t{1}));
}

size_t Node::enter(ObjectBody& body, size_t position) {
  const std::string_view key = body.members()[position].key.text();
  Index& index = *body.index;
  for (uint64_t at = hash_of(key, index.seed);; ++at) {
    uint32_t& slot = index.slots()[at & index.mask];
    if (slot == 0) {
      slot = static_cast<uint32_t>(position) + 1;
      return npos;
    }
    if (body.members()[slot - 1].key.text() == key) return slot - 1;
  }
}

void Node::build_index(ObjectBody& body, uint64_t seed) {
  free_index(body.index);
  body.index = new_index(body.capacity, seed);
  for (size_t i = 0; i < body.size; ++i) enter(body, i);
}

uint32_t* Node::slot_of(ObjectBody& body, size_t position) {
  Index& index = *body.index;
  for (uint64_t at = hash_of(body.members()[position].key.text(), index.seed);; ++at) {
    uint32_t& slot = index.slots()[at & index.mask];
    if (slot == position + 1) return &slot;
  }
}

// Closes the gap in the run of slots (D. Knuth, "The Art of Computer Programming", volume 3,
// algorithm R of section 6.4).
void Node::leave(ObjectBody& body, size_t position) {
  Index& index = *body.index;
  uint32_t* const slots = index.slots();
  auto gap = static_cast<size_t>(slot_of(body, position) - slots);
  for (size_t at = (gap + 1) & index.mask; slots[at] != 0; at = (at + 1) & index.mask) {
    const size_t home = hash_of(body.members()[slots[at] - 1].key.text(), index.seed) & index.mask;
    if (((at - home) & index.mask) < ((at - gap) & index.mask)) continue;
    slots[gap] = slots[at];
    gap = at;
  }
  slots[gap] = 0;
}

// --- Others --------------------------------------------------------------------------------------

Node KeyCache::key(std::string_view text) {
  constexpr size_t kSample = 8;
  if (text.size() < kSample) return Node::string(text);
  uint64_t first;
  uint64_t last;
  std::memcpy(&first, text.data(), kSample);
  std::memcpy(&last, text.data() + text.size() - kSample, kSample);
  constexpr uint64_t kMultiplier = 0x9e3779b97f4a7c15;  // 2^64 / the golden ratio
  const uint64_t mixed = (first ^ std::rotl(last, 23) ^ text.size()) * kMultiplier;
  Node& place = places_[mixed >> 58];
  if (!place.is_string() || place.text() != text) place = Node::string(text);
  return place.shared();
}

std::string_view kind_name(Kind kind) {
  constexpr std::string_view kNames[] = {"null",   "boolean", "integer", "number",
                                         "string", "array",   "object"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace latchkey::store::json
