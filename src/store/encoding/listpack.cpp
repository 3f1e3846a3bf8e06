#include "store/encoding/listpack.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "base/assert.h"
#include "base/text/number.h"

namespace latchkey::store {

namespace {

static_assert(std::endian::native == std::endian::little, "listpacks are written as they are read");

constexpr uint32_t kHeaderBytes = 6;
constexpr uint32_t kEmptyBytes = kHeaderBytes + 1;
constexpr unsigned char kEnd = 0xff;
constexpr uint16_t kUncounted = 0xffff;

// First bytes of elements. The encodings of up to 13 bits are not listed: their first byte holds
// the highest bits of the length or number.
constexpr unsigned char kString32 = 0xf0;
constexpr unsigned char kInteger16 = 0xf1;
constexpr unsigned char kInteger24 = 0xf2;
constexpr unsigned char kInteger32 = 0xf3;
constexpr unsigned char kInteger64 = 0xf4;

constexpr bool is_integer7(unsigned char first) {
  return first < 0x80;
}
constexpr bool is_string6(unsigned char first) {
  return (first & 0xc0) == 0x80;
}
constexpr bool is_integer13(unsigned char first) {
  return (first & 0xe0) == 0xc0;
}
constexpr bool is_string12(unsigned char first) {
  return (first & 0xf0) == 0xe0;
}

template <typename Number>
Number load(const unsigned char* from) {
  Number number;
  std::memcpy(&number, from, sizeof(number));
  return number;
}

template <typename Number>
void store(unsigned char* to, Number number) {
  std::memcpy(to, &number, sizeof(number));
}

// Bytes of the backward length of an element of `size` bytes. Readers compute it when they walk
// forward, so the bounds are part of the format; they are one short of what 7-bit groups can hold.
constexpr uint32_t backward_size(uint64_t size) {
  if (size <= 127) return 1;
  if (size < 16383) return 2;
  if (size < 2097151) return 3;
  if (size < 268435455) return 4;
  return 5;
}

// Groups of seven bits, the highest first; all but the first are marked, so that a reader that
// walks backward knows where to stop.
void write_backward(unsigned char* to, uint64_t size) {
  const uint32_t groups = backward_size(size);
  for (uint32_t i = groups; i-- > 0; size >>= 7) {
    to[i] = static_cast<unsigned char>((size & 127) | (i == 0 ? 0 : 128));
  }
}

// Whether the backward length at `at` is that of an element of `size` bytes.
bool has_backward(const unsigned char* at, uint64_t size) {
  const uint32_t groups = backward_size(size);
  if (groups == 1) return *at == size;
  unsigned char expected[5];
  write_backward(expected, size);
  return std::memcmp(at, expected, groups) == 0;
}

// The size stored in the backward length that ends before `end`.
uint64_t read_backward(const unsigned char* end) {
  uint64_t size = 0;
  for (unsigned shift = 0; shift < 35; shift += 7) {
    const unsigned char group = *--end;
    size |= static_cast<uint64_t>(group & 127) << shift;
    if ((group & 128) == 0) break;
  }
  return size;
}

// Bytes of the element at `at`, without its backward length.
uint64_t element_size(const unsigned char* at) {
  const unsigned char first = *at;
  if (is_integer7(first)) return 1;
  if (is_string6(first)) return 1 + (first & 0x3fu);
  if (is_integer13(first)) return 2;
  if (is_string12(first)) return 2 + ((first & 0x0fu) << 8 | at[1]);
  switch (first) {
    case kInteger16:
      return 3;
    case kInteger24:
      return 4;
    case kInteger32:
      return 5;
    case kInteger64:
      return 9;
    default:
      return 5 + uint64_t{load<uint32_t>(at + 1)};
  }
}

// Bytes of the element at `at` including its backward length.
uint32_t step(const unsigned char* at) {
  const uint64_t size = element_size(at);
  return static_cast<uint32_t>(size + backward_size(size));
}

int64_t sign_extend(uint64_t bits, unsigned width) {
  const unsigned unused = 64 - width;
  return static_cast<int64_t>(bits << unused) >> unused;
}

Listpack::Element decode(const unsigned char* at) {
  const unsigned char first = *at;
  const auto integer = [](int64_t value) { return Listpack::Element{true, value, {}}; };
  const auto string = [](const unsigned char* bytes, size_t size) {
    return Listpack::Element{false, 0, {reinterpret_cast<const char*>(bytes), size}};
  };
  if (is_string6(first)) return string(at + 1, first & 0x3fu);
  if (is_integer7(first)) return integer(first);
  if (is_integer13(first)) return integer(sign_extend((first & 0x1fu) << 8 | at[1], 13));
  if (is_string12(first)) return string(at + 2, (first & 0x0fu) << 8 | at[1]);
  switch (first) {
    case kInteger16:
      return integer(load<int16_t>(at + 1));
    case kInteger24:
      return integer(sign_extend(load<uint16_t>(at + 1) | uint64_t{at[3]} << 16, 24));
    case kInteger32:
      return integer(load<int32_t>(at + 1));
    case kInteger64:
      return integer(load<int64_t>(at + 1));
    default:
      return string(at + 5, load<uint32_t>(at + 1));
  }
}

// The bytes to write for an element.
struct Encoded {
  unsigned char head[9];
  uint32_t head_size;
  std::string_view body;

  explicit Encoded(int64_t value) {
    const auto bits = static_cast<uint64_t>(value);
    if (value >= 0 && value <= 127) {
      head[0] = static_cast<unsigned char>(value);
      head_size = 1;
    } else if (value >= -4096 && value <= 4095) {
      head[0] = static_cast<unsigned char>(0xc0 | (bits >> 8 & 0x1f));
      head[1] = static_cast<unsigned char>(bits);
      head_size = 2;
    } else {
      write_wide(value);
    }
  }

  explicit Encoded(std::string_view text) : Encoded(text, int64_t{0}) {}

  uint64_t size() const { return head_size + body.size(); }
  uint64_t total() const { return size() + backward_size(size()); }

  void write(unsigned char* to) const {
    std::memcpy(to, head, head_size);
    if (!body.empty()) std::memcpy(to + head_size, body.data(), body.size());
    write_backward(to + size(), size());
  }

 private:
  Encoded(std::string_view text, int64_t value) {
    if (base::parse_int64(text, &value)) {
      *this = Encoded(value);
      return;
    }
    body = text;
    if (text.size() < 64) {
      head[0] = static_cast<unsigned char>(0x80 | text.size());
      head_size = 1;
    } else if (text.size() < 4096) {
      head[0] = static_cast<unsigned char>(0xe0 | text.size() >> 8);
      head[1] = static_cast<unsigned char>(text.size());
      head_size = 2;
    } else {
      head[0] = kString32;
      store(head + 1, static_cast<uint32_t>(text.size()));
      head_size = 5;
    }
  }

  void write_wide(int64_t value) {
    // The low bytes of the number are those of its narrower forms.
    store(head + 1, value);
    if (value >= INT16_MIN && value <= INT16_MAX) {
      head[0] = kInteger16;
      head_size = 3;
    } else if (value >= -(1 << 23) && value < (1 << 23)) {
      head[0] = kInteger24;
      head_size = 4;
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
      head[0] = kInteger32;
      head_size = 5;
    } else {
      head[0] = kInteger64;
      head_size = 9;
    }
  }
};

uint32_t total_of(const unsigned char* bytes) {
  return load<uint32_t>(bytes);
}

uint16_t count_of(const unsigned char* bytes) {
  return load<uint16_t>(bytes + 4);
}

// Adds `delta` to the count of elements; an unknown count stays unknown.
void add_to_count(unsigned char* bytes, int64_t delta) {
  const uint16_t count = count_of(bytes);
  if (count == kUncounted) return;
  store(bytes + 4, static_cast<uint16_t>(std::min<int64_t>(count + delta, kUncounted)));
}

// Bytes to allocate for a listpack of that size: steps of 16 bytes, then four steps to each
// doubling. It depends on the size alone, so it is not stored.
size_t capacity_for(size_t size) {
  if (size <= 128) return (size + 15) & ~size_t{15};
  const size_t grain = std::bit_floor(size - 1) / 4;
  return (size + grain - 1) / grain * grain;
}

unsigned char* allocate(size_t size) {
  auto* bytes = static_cast<unsigned char*>(std::malloc(capacity_for(size)));
  if (bytes == nullptr) throw std::bad_alloc();
  return bytes;
}

unsigned char* allocate_empty() {
  unsigned char* bytes = allocate(kEmptyBytes);
  store(bytes, kEmptyBytes);
  store(bytes + 4, uint16_t{0});
  bytes[kHeaderBytes] = kEnd;
  return bytes;
}

// Replaces `removed` bytes at `position` by room for `added` ones, and returns its address.
unsigned char* splice(unsigned char*& bytes, uint32_t position, uint64_t removed, uint64_t added) {
  const size_t old_size = total_of(bytes);
  const size_t new_size = old_size - removed + added;
  LK_ASSERT(new_size <= Listpack::kMaxBytes);
  const bool moves = capacity_for(new_size) != capacity_for(old_size);
  const auto resize = [&] {
    auto* resized = static_cast<unsigned char*>(std::realloc(bytes, capacity_for(new_size)));
    if (resized == nullptr) throw std::bad_alloc();
    bytes = resized;
  };
  if (moves && new_size > old_size) resize();
  const size_t behind = old_size - position - removed;
  if (removed != added) std::memmove(bytes + position + added, bytes + position + removed, behind);
  if (moves && new_size < old_size) resize();
  store(bytes, static_cast<uint32_t>(new_size));
  return bytes + position;
}

}  // namespace

// --- Elements -----------------------------------------------------------------------------------

std::string_view Listpack::Element::text(char* scratch) const {
  return is_integer ? std::string_view(scratch, base::format_int64(integer, scratch)) : bytes;
}

bool Listpack::Element::equals(std::string_view text) const {
  int64_t value = 0;
  return is_integer ? base::parse_int64(text, &value) && value == integer : bytes == text;
}

Listpack::Matcher::Matcher(std::string_view text)
    : text_(text), is_integer_(base::parse_int64(text, &integer_)) {}

// --- Making -------------------------------------------------------------------------------------

Listpack::Listpack() : bytes_(allocate_empty()) {}

Listpack::~Listpack() {
  std::free(bytes_);
}

Listpack::Listpack(const Listpack& other) : bytes_(allocate(other.byte_size())) {
  std::memcpy(bytes_, other.bytes_, other.byte_size());
}

Listpack& Listpack::operator=(const Listpack& other) {
  if (this != &other) *this = Listpack(other);
  return *this;
}

Listpack::Listpack(Listpack&& other) noexcept : bytes_(std::exchange(other.bytes_, nullptr)) {}

Listpack& Listpack::operator=(Listpack&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

bool Listpack::is_valid(std::span<const char> untrusted) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(untrusted.data());
  const size_t size = untrusted.size();
  if (size < kEmptyBytes || size > kMaxBytes) return false;
  if (total_of(bytes) != size || bytes[size - 1] != kEnd) return false;

  uint64_t at = kHeaderBytes;
  uint64_t count = 0;
  const uint64_t end = size - 1;
  while (at < end) {
    const unsigned char first = bytes[at];
    if (first > kInteger64) return false;
    // Heads of more than one byte must be complete before they are read.
    const bool long_head = is_string12(first) ? end - at < 2 : first == kString32 && end - at < 5;
    if (long_head) return false;
    const uint64_t element = element_size(bytes + at);
    const uint64_t whole = element + backward_size(element);
    if (whole > end - at) return false;
    if (!has_backward(bytes + at + element, element)) return false;
    at += whole;
    ++count;
  }
  return count_of(bytes) == kUncounted || count_of(bytes) == count;
}

Listpack Listpack::from_bytes(std::span<const char> bytes) {
  Listpack copy(allocate(bytes.size()));
  std::memcpy(copy.bytes_, bytes.data(), bytes.size());
  return copy;
}

Listpack Listpack::open(std::span<const char> bytes, bool owned) {
  if (owned) return from_bytes(bytes);
  return Listpack(reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data())));
}

std::span<const char> Listpack::bytes() const {
  return {reinterpret_cast<const char*>(bytes_), byte_size()};
}

// --- Figures ------------------------------------------------------------------------------------

size_t Listpack::size() const {
  const uint16_t known = count_of(bytes_);
  if (known != kUncounted) return known;
  size_t count = 0;
  for (Position at = first(); at != kNone; at = next(at)) ++count;
  if (count < kUncounted) store(bytes_ + 4, static_cast<uint16_t>(count));
  return count;
}

bool Listpack::empty() const {
  return byte_size() == kEmptyBytes;
}

size_t Listpack::byte_size() const {
  return total_of(bytes_);
}

size_t Listpack::memory_usage() const {
  return capacity_for(byte_size());
}

size_t Listpack::encoded_size(std::string_view text) {
  return Encoded(text).total();
}

size_t Listpack::encoded_size(int64_t value) {
  return Encoded(value).total();
}

// --- Walking ------------------------------------------------------------------------------------

Listpack::Position Listpack::first() const {
  return bytes_[kHeaderBytes] == kEnd ? kNone : kHeaderBytes;
}

Listpack::Position Listpack::last() const {
  return previous(total_of(bytes_) - 1);
}

Listpack::Position Listpack::next(Position position) const {
  position += step(bytes_ + position);
  return bytes_[position] == kEnd ? kNone : position;
}

Listpack::Position Listpack::previous(Position position) const {
  if (position == kHeaderBytes) return kNone;
  const uint64_t size = read_backward(bytes_ + position);
  return static_cast<Position>(position - size - backward_size(size));
}

Listpack::Position Listpack::at(int64_t index) const {
  if (const uint16_t known = count_of(bytes_); known != kUncounted) {
    const int64_t count = known;
    if (index < -count || index >= count) return kNone;
    // Walk from the nearer end.
    if (index >= 0 && index > count / 2) index -= count;
    if (index < 0 && -index > count / 2 + 1) index += count;
  }
  Position position;
  if (index >= 0) {
    for (position = first(); position != kNone && index > 0; --index) position = next(position);
  } else {
    for (position = last(); position != kNone && index < -1; ++index) position = previous(position);
  }
  return position;
}

Listpack::Element Listpack::get(Position position) const {
  return decode(bytes_ + position);
}

Listpack::Position Listpack::find(const Matcher& matcher, Position from, size_t skip) const {
  if (from == kNone) return kNone;
  const unsigned char* at = bytes_ + from;
  while (*at != kEnd) {
    if (matcher.matches(decode(at))) return static_cast<Position>(at - bytes_);
    at += step(at);
    for (size_t i = 0; i < skip && *at != kEnd; ++i) at += step(at);
  }
  return kNone;
}

// --- Changing -----------------------------------------------------------------------------------

void Listpack::append(std::string_view text) {
  insert_before(kNone, text);
}

void Listpack::append(int64_t value) {
  insert_before(kNone, value);
}

void Listpack::prepend(std::string_view text) {
  insert_before(kHeaderBytes, text);
}

namespace {

Listpack::Position insert(unsigned char*& bytes, Listpack::Position position,
                          const Encoded& element) {
  if (position == Listpack::kNone) position = total_of(bytes) - 1;
  element.write(splice(bytes, position, 0, element.total()));
  add_to_count(bytes, 1);
  return position;
}

void overwrite(unsigned char*& bytes, Listpack::Position position, const Encoded& element) {
  element.write(splice(bytes, position, step(bytes + position), element.total()));
}

}  // namespace

Listpack::Position Listpack::insert_before(Position position, std::string_view text) {
  return insert(bytes_, position, Encoded(text));
}

Listpack::Position Listpack::insert_before(Position position, int64_t value) {
  return insert(bytes_, position, Encoded(value));
}

void Listpack::replace(Position position, std::string_view text) {
  overwrite(bytes_, position, Encoded(text));
}

void Listpack::replace(Position position, int64_t value) {
  overwrite(bytes_, position, Encoded(value));
}

Listpack::Position Listpack::erase(Position position, size_t count) {
  size_t erased = 0;
  Position end = position;
  for (; erased < count && bytes_[end] != kEnd; ++erased) end += step(bytes_ + end);
  splice(bytes_, position, end - position, 0);
  add_to_count(bytes_, -static_cast<int64_t>(erased));
  return bytes_[position] == kEnd ? kNone : position;
}

void Listpack::clear() {
  *this = Listpack();
}

void Listpack::append_range(const Listpack& other, Position from) {
  if (from == kNone) return;
  int64_t count = 0;
  if (from == other.first()) {
    count = static_cast<int64_t>(other.size());
  } else {
    for (Position at = from; at != kNone; at = other.next(at)) ++count;
  }
  const size_t size = other.byte_size() - 1 - from;
  unsigned char* place = splice(bytes_, total_of(bytes_) - 1, 0, size);
  std::memcpy(place, other.bytes_ + from, size);
  add_to_count(bytes_, count);
}

Listpack Listpack::split(Position position) {
  Listpack tail;
  if (position == kNone) return tail;
  tail.append_range(*this, position);
  const auto moved = static_cast<int64_t>(tail.size());
  splice(bytes_, position, byte_size() - 1 - position, 0);
  add_to_count(bytes_, -moved);
  return tail;
}

}  // namespace latchkey::store
