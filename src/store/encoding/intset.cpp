#include "store/encoding/intset.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "base/assert.h"

namespace latchkey::store {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "members are read as they are stored");

namespace {

constexpr size_t kWidthOffset = 0;
constexpr size_t kSizeOffset = 4;
constexpr size_t kHeader = 8;

uint32_t read_u32(const char* bytes) {
  uint32_t value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

template <typename Element>
Element load(const char* elements, size_t index) {
  Element element;
  std::memcpy(&element, elements + index * sizeof(Element), sizeof(element));
  return element;
}

// retain() for the `size` members at `members`. Which of both sides goes on is computed, not
// branched on, because no processor could predict it.
template <typename Element>
size_t retain_by_merging(std::span<int64_t> values, const char* members, size_t size) {
  size_t kept = 0;
  size_t next = 0;
  for (size_t member = 0; next < values.size() && member < size;) {
    const int64_t value = values[next];
    const int64_t other = load<Element>(members, member);
    values[kept] = value;
    kept += value == other ? 1 : 0;
    next += value <= other ? 1 : 0;
    member += value >= other ? 1 : 0;
  }
  return kept;
}

size_t width_of(int64_t value) {
  if (value == static_cast<int16_t>(value)) return 2;
  if (value == static_cast<int32_t>(value)) return 4;
  return 8;
}

}  // namespace

Intset::Intset() : bytes_(nullptr) {
  resize(kHeader);
  std::memset(bytes_, 0, kHeader);
  bytes_[kWidthOffset] = 2;
}

Intset::~Intset() {
  std::free(bytes_);
}

Intset::Intset(const Intset& other) : Intset(from_bytes(other.bytes())) {}

Intset::Intset(Intset&& other) noexcept : bytes_(std::exchange(other.bytes_, nullptr)) {}

Intset& Intset::operator=(Intset&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

bool Intset::is_valid(std::span<const char> bytes) {
  if (bytes.size() < kHeader) return false;
  const size_t width = read_u32(bytes.data() + kWidthOffset);
  if (width != 2 && width != 4 && width != 8) return false;
  const size_t size = read_u32(bytes.data() + kSizeOffset);
  if (size == 0 || bytes.size() != kHeader + size * width) return false;
  const Intset members = from_bytes(bytes);
  for (size_t i = 1; i < size; ++i) {
    if (members.at(i - 1) >= members.at(i)) return false;
  }
  return true;
}

Intset Intset::from_bytes(std::span<const char> bytes) {
  Intset made(nullptr);
  made.resize(bytes.size());
  std::memcpy(made.bytes_, bytes.data(), bytes.size());
  return made;
}

Intset Intset::open(std::span<const char> bytes, bool owned) {
  if (owned) return from_bytes(bytes);
  return Intset(const_cast<char*>(bytes.data()));
}

size_t Intset::byte_size() const {
  return kHeader + size() * width();
}

size_t Intset::memory_usage() const {
  return byte_size();
}

void Intset::resize(size_t size) {
  auto* resized = static_cast<char*>(std::realloc(bytes_, size));
  if (resized == nullptr) throw std::bad_alloc();
  bytes_ = resized;
}

size_t Intset::width() const {
  return static_cast<uint8_t>(bytes_[kWidthOffset]);
}

size_t Intset::size() const {
  return read_u32(bytes_ + kSizeOffset);
}

void Intset::set_size(size_t size) {
  const auto stored = static_cast<uint32_t>(size);
  std::memcpy(bytes_ + kSizeOffset, &stored, sizeof(stored));
}

int64_t Intset::read(size_t index, size_t width) const {
  const char* members = bytes_ + kHeader;
  if (width == 2) return load<int16_t>(members, index);
  if (width == 4) return load<int32_t>(members, index);
  return load<int64_t>(members, index);
}

void Intset::write(size_t index, int64_t value) {
  // Little endian: the low bytes are the narrower number.
  std::memcpy(bytes_ + kHeader + index * width(), &value, width());
}

int64_t Intset::at(size_t index) const {
  LK_ASSERT(index < size());
  return read(index, width());
}

// Calls fn with a zero of the type that the members have.
template <typename Fn>
decltype(auto) Intset::with_element_type(Fn&& fn) const {
  if (width() == 2) return fn(int16_t{});
  if (width() == 4) return fn(int32_t{});
  return fn(int64_t{});
}

void Intset::copy(size_t index, std::span<int64_t> values) const {
  LK_ASSERT(index + values.size() <= size());
  with_element_type([&]<typename Element>(Element) {
    const char* members = bytes_ + kHeader + index * sizeof(Element);
    for (size_t i = 0; i < values.size(); ++i) values[i] = load<Element>(members, i);
  });
}

size_t Intset::retain(std::span<int64_t> values) const {
  if (values.empty()) return 0;
  const size_t begin = lower_bound(values.front());
  const size_t end = lower_bound(values.back());
  const size_t members = std::min(end + 1, size()) - begin;
  if (members == 0) return 0;
  if (members / std::bit_width(members) > values.size()) {
    const auto kept = std::remove_if(values.begin(), values.end(),
                                     [this](int64_t value) { return !contains(value); });
    return static_cast<size_t>(kept - values.begin());
  }
  return with_element_type([&]<typename Element>(Element) {
    return retain_by_merging<Element>(values, bytes_ + kHeader + begin * sizeof(Element), members);
  });
}

size_t Intset::lower_bound(int64_t value) const {
  const size_t member_width = width();
  size_t first = 0;
  size_t count = size();
  while (count > 0) {
    const size_t half = count / 2;
    if (read(first + half, member_width) < value) {
      first += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return first;
}

bool Intset::contains(int64_t value) const {
  if (width_of(value) > width()) return false;
  const size_t place = lower_bound(value);
  return place < size() && at(place) == value;
}

void Intset::widen(size_t new_width) {
  const size_t old_width = width();
  const size_t count = size();
  resize(kHeader + count * new_width);
  bytes_[kWidthOffset] = static_cast<char>(new_width);
  // From the last index down, so that nothing is overwritten before it is read.
  for (size_t i = count; i-- > 0;) write(i, read(i, old_width));
}

bool Intset::add(int64_t value) {
  if (width_of(value) > width()) widen(width_of(value));
  const size_t place = lower_bound(value);
  const size_t count = size();
  if (place < count && at(place) == value) return false;
  resize(byte_size() + width());
  char* at_place = bytes_ + kHeader + place * width();
  std::memmove(at_place + width(), at_place, (count - place) * width());
  set_size(count + 1);
  write(place, value);
  return true;
}

bool Intset::erase(int64_t value) {
  if (!contains(value)) return false;
  const size_t place = lower_bound(value);
  char* at_place = bytes_ + kHeader + place * width();
  std::memmove(at_place, at_place + width(), (size() - place - 1) * width());
  set_size(size() - 1);
  resize(byte_size());
  return true;
}

}  // namespace latchkey::store
