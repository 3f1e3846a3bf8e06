// What a glob pattern matches, said without any cleverness: every length is tried for every star.
// For the tests that compare base::GlobPattern with it.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/text/text.h"

namespace latchkey::glob_model {

inline bool same(char left, char right, bool ignore_case) {
  return ignore_case ? base::lower_case(left) == base::lower_case(right) : left == right;
}

inline bool in_range(char low, char high, char byte, bool ignore_case) {
  auto first = static_cast<signed char>(low);
  auto last = static_cast<signed char>(high);
  if (first > last) {
    const signed char swapped = first;
    first = last;
    last = swapped;
  }
  if (ignore_case) {
    first = static_cast<signed char>(base::lower_case(static_cast<char>(first)));
    last = static_cast<signed char>(base::lower_case(static_cast<char>(last)));
    byte = base::lower_case(byte);
  }
  const auto candidate = static_cast<signed char>(byte);
  return first <= candidate && candidate <= last;
}

// The length of the element at the start of `pattern`, which is not a star, and whether it matches
// `byte`.
inline size_t match_element(std::string_view pattern, char byte, bool ignore_case, bool* matches) {
  if (pattern[0] == '?') {
    *matches = true;
    return 1;
  }
  if (pattern[0] == '\\' && pattern.size() > 1) {
    *matches = same(pattern[1], byte, ignore_case);
    return 2;
  }
  if (pattern[0] != '[') {
    *matches = same(pattern[0], byte, ignore_case);
    return 1;
  }
  size_t at = 1;
  const bool negated = at < pattern.size() && pattern[at] == '^';
  if (negated) ++at;
  bool found = false;
  while (at < pattern.size() && pattern[at] != ']') {
    if (pattern[at] == '\\' && at + 1 < pattern.size()) {
      found |= same(pattern[at + 1], byte, ignore_case);
      at += 2;
    } else if (at + 2 < pattern.size() && pattern[at + 1] == '-') {
      found |= in_range(pattern[at], pattern[at + 2], byte, ignore_case);
      at += 3;
    } else {
      found |= same(pattern[at], byte, ignore_case);
      at += 1;
    }
  }
  *matches = found != negated;
  return at < pattern.size() ? at + 1 : at;
}

// Tries every length for every star, and remembers what failed.
class Model {
 public:
  Model(std::string_view pattern, std::string_view text, bool ignore_case)
      : pattern_(pattern),
        text_(text),
        ignore_case_(ignore_case),
        fails_((pattern.size() + 1) * (text.size() + 1)) {}

  bool matches(size_t pattern_at, size_t text_at) {
    const size_t place = pattern_at * (text_.size() + 1) + text_at;
    if (fails_[place]) return false;
    const bool found = tries(pattern_.substr(pattern_at), text_.substr(text_at));
    fails_[place] = !found;
    return found;
  }

 private:
  bool tries(std::string_view pattern, std::string_view text) {
    const size_t pattern_at = pattern_.size() - pattern.size();
    const size_t text_at = text_.size() - text.size();
    if (pattern.empty()) return text.empty();
    if (pattern[0] == '*') {
      for (size_t taken = 0; taken <= text.size(); ++taken) {
        if (matches(pattern_at + 1, text_at + taken)) return true;
      }
      return false;
    }
    if (text.empty()) return false;
    bool matches_byte = false;
    const size_t length = match_element(pattern, text[0], ignore_case_, &matches_byte);
    return matches_byte && matches(pattern_at + length, text_at + 1);
  }

  std::string_view pattern_;
  std::string_view text_;
  bool ignore_case_;
  std::vector<bool> fails_;
};

// True when the whole of `text` matches. The cost is the product of the lengths, so that both have
// to be short.
inline bool matches(std::string_view pattern, std::string_view text, bool ignore_case) {
  if (text.empty()) return pattern.empty();
  return Model(pattern, text, ignore_case).matches(0, 0);
}

}  // namespace latchkey::glob_model
