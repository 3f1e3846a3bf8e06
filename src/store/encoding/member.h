// A member of a large set, in one allocation:
//
//     +--------+---------------+-- ... --+
//     | length | longer length | bytes   |
//     +--------+---------------+-- ... --+
//       1        8, for members of 255 bytes and more
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string_view>

namespace latchkey::store {

class Member {
 public:
  static Member* make(std::string_view text) {
    const size_t header = header_size(text.size());
    auto* made = static_cast<Member*>(::operator new(header + text.size()));
    char* bytes = reinterpret_cast<char*>(made);
    made->length_ = static_cast<uint8_t>(text.size() < kLong ? text.size() : kLong);
    if (const size_t length = text.size(); length >= kLong)
      std::memcpy(bytes + kShortHeader, &length, sizeof(length));
    if (!text.empty()) std::memcpy(bytes + header, text.data(), text.size());
    return made;
  }
  static void destroy(Member* member) { ::operator delete(member); }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  std::string_view text() const {
    const char* bytes = reinterpret_cast<const char*>(this);
    if (length_ != kLong) return {bytes + kShortHeader, length_};
    size_t length;
    std::memcpy(&length, bytes + kShortHeader, sizeof(length));
    return {bytes + kShortHeader + sizeof(length), length};
  }
  size_t memory_usage() const { return header_size(text().size()) + text().size(); }

 private:
  static constexpr uint8_t kLong = 255;
  static constexpr size_t kShortHeader = 1;
  static size_t header_size(size_t length) {
    return length < kLong ? kShortHeader : kShortHeader + sizeof(size_t);
  }

  uint8_t length_;
};

}  // namespace latchkey::store
