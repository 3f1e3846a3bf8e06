#include "base/glob.h"

#include <utility>

namespace latchkey::base {

namespace {

// Maximum number of stars before the pattern's end; a pattern with more matches nothing.
constexpr int kMaxStars = 1000;

unsigned char folded(char byte, bool ignore_case) {
  const auto plain = static_cast<unsigned char>(byte);
  return ignore_case && plain >= 'A' && plain <= 'Z' ? static_cast<unsigned char>(plain | 0x20)
                                                     : plain;
}

// The part of a pattern that matches one byte of text: a literal, `?`, `\x` or a class.
class Element {
 public:
  Element(std::string_view pattern, bool ignore_case) : rest_(pattern), ignore_case_(ignore_case) {}

  // True when `byte` matches; rest() is then the pattern after the element.
  bool matches(char byte) {
    switch (rest_[0]) {
      case '?':
        rest_.remove_prefix(1);
        return true;
      case '[':
        rest_.remove_prefix(1);
        return class_matches(byte);
      case '\\':
        if (rest_.size() > 1) rest_.remove_prefix(1);
        [[fallthrough]];
      default:
        return literal_matches(byte);
    }
  }

  std::string_view rest() const { return rest_; }

 private:
  bool literal_matches(char byte) {
    const char literal = rest_[0];
    rest_.remove_prefix(1);
    return folded(literal, ignore_case_) == folded(byte, ignore_case_);
  }

  // Within a class: `\x` is x, `a-c` a range in either direction, and the end of the pattern closes
  // it as `]` does. The whole class is read even after a match, to find its end.
  bool class_matches(char byte) {
    const bool negated = !rest_.empty() && rest_[0] == '^';
    if (negated) rest_.remove_prefix(1);
    bool found = false;
    while (!rest_.empty()) {
      if (rest_[0] == '\\' && rest_.size() >= 2) {
        rest_.remove_prefix(1);
        found |= literal_matches(byte);
      } else if (rest_[0] == ']') {
        rest_.remove_prefix(1);
        break;
      } else if (rest_.size() >= 3 && rest_[1] == '-') {
        found |= range_matches(rest_[0], rest_[2], byte);
        rest_.remove_prefix(3);
      } else {
        found |= literal_matches(byte);
      }
    }
    return found != negated;
  }

  // Bytes are compared as signed numbers, as the reference does on x86.
  bool range_matches(char first, char last, char byte) const {
    auto low = static_cast<signed char>(first);
    auto high = static_cast<signed char>(last);
    if (low > high) std::swap(low, high);
    low = static_cast<signed char>(folded(static_cast<char>(low), ignore_case_));
    high = static_cast<signed char>(folded(static_cast<char>(high), ignore_case_));
    const auto candidate = static_cast<signed char>(folded(byte, ignore_case_));
    return candidate >= low && candidate <= high;
  }

  std::string_view rest_;
  bool ignore_case_;
};

void skip_stars(std::string_view* pattern) {
  while (!pattern->empty() && pattern->front() == '*') pattern->remove_prefix(1);
}

}  // namespace

bool glob_match(std::string_view pattern, std::string_view text, bool ignore_case) {
  if (text.empty()) return pattern.empty();
  // Only the last star is ever extended: whatever an earlier one could match, the last can match as
  // well.
  int stars = 0;
  std::string_view after_star;
  std::string_view widened;

  while (!text.empty()) {
    if (!pattern.empty() && pattern[0] == '*') {
      skip_stars(&pattern);
      if (pattern.empty()) return true;
      if (++stars > kMaxStars) return false;
      after_star = pattern;
      widened = text;
      continue;
    }
    if (!pattern.empty()) {
      Element element(pattern, ignore_case);
      if (element.matches(text[0])) {
        pattern = element.rest();
        text.remove_prefix(1);
        continue;
      }
    }
    if (stars == 0) return false;
    widened.remove_prefix(1);
    pattern = after_star;
    text = widened;
  }
  skip_stars(&pattern);
  return pattern.empty();
}

}  // namespace latchkey::base
