// A member of a large sorted set and its score, in one allocation:
//
//     +-------+--------+---------------+-- ... --+
//     | score | length | longer length | bytes   |
//     +-------+--------+---------------+-- ... --+
//       8       1        8, for members of 255 bytes and more
//
// A member of up to 23 bytes takes 32 bytes. is_before() defines the order: by score, then by
// bytes. Scores are never NaN.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string_view>

namespace latchkey::store {

class ScoredMember {
 public:
  static ScoredMember* make(std::string_view member, double score) {
    const size_t header = header_size(member.size());
    auto* made = static_cast<ScoredMember*>(::operator new(header + member.size()));
    made->score = score;
    char* bytes = reinterpret_cast<char*>(made);
    if (member.size() < kLong) {
      made->length_ = static_cast<uint8_t>(member.size());
    } else {
      made->length_ = kLong;
      const size_t length = member.size();
      std::memcpy(bytes + kShortHeader, &length, sizeof(length));
    }
    if (!member.empty()) std::memcpy(bytes + header, member.data(), member.size());
    return made;
  }
  static void destroy(ScoredMember* member) { ::operator delete(member); }
  ScoredMember(const ScoredMember&) = delete;
  ScoredMember& operator=(const ScoredMember&) = delete;

  std::string_view member() const {
    const char* bytes = reinterpret_cast<const char*>(this);
    if (length_ != kLong) return {bytes + kShortHeader, length_};
    size_t length;
    std::memcpy(&length, bytes + kShortHeader, sizeof(length));
    return {bytes + kShortHeader + sizeof(length), length};
  }
  size_t memory_usage() const { return header_size(member().size()) + member().size(); }
  bool is_before(const ScoredMember& other) const {
    if (score != other.score) return score < other.score;
    return member() < other.member();
  }

  double score;

 private:
  static constexpr uint8_t kLong = 255;
  static constexpr size_t kShortHeader = sizeof(double) + 1;
  static size_t header_size(size_t length) {
    return length < kLong ? kShortHeader : kShortHeader + sizeof(size_t);
  }

  uint8_t length_;
};

}  // namespace latchkey::store
