// Whether bytes are replies, to the last one.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/text/number.h"

namespace latchkey::fuzz {

// Takes replies of RESP2 and RESP3 apart, whatever they hold.
class ReplyCheck {
 public:
  explicit ReplyCheck(std::string_view bytes) : rest_(bytes) {}

  // How many replies there are; none when what is there is no whole number of replies. Pushes do
  // not count.
  std::optional<size_t> count() {
    size_t replies = 0;
    while (!rest_.empty()) {
      const bool is_push = rest_[0] == '>';
      if (!skip_reply(0)) return std::nullopt;
      if (!is_push) ++replies;
    }
    return replies;
  }

 private:
  static constexpr int kDeepest = 10'000;

  bool skip_reply(int depth) {
    if (depth > kDeepest || rest_.empty()) return false;
    const char kind = rest_[0];
    rest_.remove_prefix(1);
    switch (kind) {
      case '+':
      case '-':
      case ',':
      case '(':
        return read_line().has_value();
      case ':':
        return read_number().has_value();
      case '_':
        return read_line() == "";
      case '#': {
        const auto line = read_line();
        return line == "t" || line == "f";
      }
      case '$':
      case '=':
      case '!':
        return skip_bulk();
      case '*':
      case '~':
      case '>':
        return skip_elements(1, depth);
      case '%':
        return skip_elements(2, depth);
      case '|':
        // An attribute stands before the reply that it belongs to.
        return skip_elements(2, depth) && skip_reply(depth + 1);
      default:
        return false;
    }
  }
  std::optional<std::string_view> read_line() {
    const size_t end = rest_.find("\r\n");
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end + 2);
    if (line.find_first_of("\r\n") != std::string_view::npos) return std::nullopt;
    return line;
  }
  std::optional<int64_t> read_number() {
    const auto line = read_line();
    int64_t number = 0;
    if (!line || !base::parse_int64(*line, &number)) return std::nullopt;
    return number;
  }
  bool skip_bulk() {
    const auto length = read_number();
    if (!length || *length < -1) return false;
    if (*length == -1) return true;
    const auto size = static_cast<size_t>(*length);
    if (rest_.size() < size + 2 || rest_.substr(size, 2) != "\r\n") return false;
    rest_.remove_prefix(size + 2);
    return true;
  }
  bool skip_elements(int64_t each, int depth) {
    const auto count = read_number();
    if (!count || *count < -1) return false;
    for (int64_t i = 0; i < *count * each; ++i) {
      if (!skip_reply(depth + 1)) return false;
    }
    return true;
  }

  std::string_view rest_;
};

}  // namespace latchkey::fuzz
