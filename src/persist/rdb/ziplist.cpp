#include "persist/rdb/ziplist.h"

#include <cstdint>
#include <cstring>
#include <string_view>

namespace latchkey::persist {

namespace {

using store::Listpack;

constexpr uint8_t kEnd = 0xFF;
constexpr uint8_t kLongLength = 0xFE;

// Reads bytes from the front of a span; a read beyond the end makes all later reads fail.
class Bytes {
 public:
  explicit Bytes(std::span<const char> left) : left_(left) {}

  bool ok() const { return ok_; }
  size_t left() const { return left_.size(); }
  std::string_view take(uint64_t size) {
    if (!ok_ || size > left_.size()) {
      ok_ = false;
      return {};
    }
    const std::string_view taken(left_.data(), static_cast<size_t>(size));
    left_ = left_.subspan(static_cast<size_t>(size));
    return taken;
  }
  // A little-endian number of `size` bytes.
  uint64_t number(size_t size) {
    uint64_t value = 0;
    const std::string_view bytes = take(size);
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }
  uint64_t big_endian(size_t size) {
    uint64_t value = 0;
    for (const char byte : take(size)) value = value << 8 | static_cast<unsigned char>(byte);
    return value;
  }
  int64_t signed_number(size_t size) {
    const auto unused = static_cast<unsigned>(64 - 8 * size);
    return static_cast<int64_t>(number(size) << unused) >> unused;
  }
  bool next_is_end() const {
    return ok_ && !left_.empty() && static_cast<uint8_t>(left_[0]) == kEnd;
  }

 private:
  std::span<const char> left_;
  bool ok_ = true;
};

bool append_text(std::string_view text, Listpack& to) {
  if (!to.room_for(Listpack::encoded_size(text))) return false;
  to.append(text);
  return true;
}

bool append_integer(int64_t value, Listpack& to) {
  if (!to.room_for(Listpack::encoded_size(value))) return false;
  to.append(value);
  return true;
}

// Appends an entry, whose bytes begin after the length of the entry before.
bool append_entry(Bytes& bytes, Listpack& to) {
  const auto encoding = static_cast<uint8_t>(bytes.number(1));
  if (!bytes.ok()) return false;
  const auto text = [&](uint64_t size) {
    const std::string_view taken = bytes.take(size);
    return bytes.ok() && append_text(taken, to);
  };
  const auto integer = [&](size_t size) {
    const int64_t value = bytes.signed_number(size);
    return bytes.ok() && append_integer(value, to);
  };
  switch (encoding >> 6) {
    case 0:
      return text(encoding & 0x3f);
    case 1:
      return text((encoding & 0x3fu) << 8 | bytes.number(1));
    case 2:
      return text(bytes.big_endian(4));
    default:
      break;
  }
  switch (encoding) {
    case 0xC0:
      return integer(2);
    case 0xD0:
      return integer(4);
    case 0xE0:
      return integer(8);
    case 0xF0:
      return integer(3);
    case 0xFE:
      return integer(1);
    default:
      break;
  }
  // Values 0 to 12 are in the byte itself.
  if (encoding < 0xF1 || encoding > 0xFD) return false;
  return append_integer((encoding & 0x0f) - 1, to);
}

}  // namespace

bool append_ziplist(std::span<const char> bytes, Listpack& to) {
  constexpr size_t kHeader = 10;
  constexpr uint64_t kUncounted = 0xFFFF;
  Bytes rest(bytes);
  const uint64_t size = rest.number(4);
  const uint64_t last_offset = rest.number(4);
  const uint64_t entries = rest.number(2);
  if (!rest.ok() || size != bytes.size()) return false;

  uint64_t count = 0;
  size_t previous = bytes.size() - rest.left();
  uint64_t previous_size = 0;
  while (rest.ok() && !rest.next_is_end()) {
    const size_t offset = bytes.size() - rest.left();
    uint64_t told = rest.number(1);
    if (told == kLongLength) told = rest.number(4);
    if (told != previous_size || !append_entry(rest, to)) return false;
    previous = offset;
    previous_size = bytes.size() - rest.left() - offset;
    ++count;
  }
  if (!rest.ok() || rest.left() != 1) return false;
  if (last_offset != (count == 0 ? kHeader : previous)) return false;
  return entries == kUncounted || entries == count;
}

bool append_zipmap(std::span<const char> bytes, Listpack& to) {
  constexpr uint64_t kUncounted = 0xFE;
  Bytes rest(bytes);
  const uint64_t pairs = rest.number(1);
  uint64_t count = 0;
  // A length that is longer than it needs to be is damage too.
  bool is_short = true;
  const auto length = [&] {
    const uint64_t first = rest.number(1);
    if (first != kLongLength) return first;
    const uint64_t told = rest.number(4);
    is_short = is_short && told >= kLongLength;
    return told;
  };
  while (rest.ok() && !rest.next_is_end()) {
    const std::string_view key = rest.take(length());
    const uint64_t value_size = length();
    const uint64_t unused = rest.number(1);
    const std::string_view value = rest.take(value_size);
    rest.take(unused);
    if (!rest.ok() || !is_short || !append_text(key, to) || !append_text(value, to)) return false;
    ++count;
  }
  return rest.ok() && rest.left() == 1 && (pairs >= kUncounted || pairs == count);
}

}  // namespace latchkey::persist
