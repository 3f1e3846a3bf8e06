#include "base/text/glob.h"

#include <array>
#include <cstring>
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

// --- GlobPattern ---------------------------------------------------------------------------------

std::optional<GlobPattern> GlobPattern::compile(std::string_view pattern, bool ignore_case,
                                                size_t most_complex) {
  GlobPattern compiled;
  compiled.is_empty_ = pattern.empty();
  int stars = 0;
  for (;;) {
    if (!compiled.take_part(&pattern, ignore_case, most_complex)) return std::nullopt;
    if (pattern.empty()) break;
    skip_stars(&pattern);
    if (!pattern.empty() && ++stars > kMaxStars) {
      compiled.matches_nothing_ = true;
      return compiled;
    }
  }
  for (size_t i = 1; i + 1 < compiled.parts_.size(); ++i) compiled.parts_[i].make_masks();
  return compiled;
}

bool GlobPattern::take_part(std::string_view* pattern, bool ignore_case, size_t most_complex) {
  Part part;
  bool is_complex = false;
  std::vector<std::string_view> elements;
  const std::string_view begin = *pattern;
  while (!pattern->empty() && pattern->front() != '*') {
    Element element(*pattern, ignore_case);
    element.matches('\0');
    const std::string_view text = pattern->substr(0, pattern->size() - element.rest().size());
    is_complex = is_complex || text[0] == '?' || text[0] == '[';
    part.literals += static_cast<char>(folded(text.back(), ignore_case));
    elements.push_back(text);
    *pattern = element.rest();
  }
  part.length = elements.size();
  if (is_complex) {
    complex_bytes_ += begin.size() - pattern->size();
    if (complex_bytes_ > most_complex) return false;
    part.literals.clear();
    for (const std::string_view text : elements) {
      ByteSet& set = part.sets.emplace_back();
      if (text[0] != '?' && text[0] != '[') {
        set.set(folded(text.back(), ignore_case));
        continue;
      }
      for (size_t byte = 0; byte < set.size(); ++byte)
        set[byte] = Element(text, ignore_case).matches(static_cast<char>(byte));
    }
  }
  parts_.push_back(std::move(part));
  return true;
}

bool GlobPattern::matches(std::string_view text) const {
  if (text.empty()) return is_empty_;
  if (matches_nothing_) return false;
  const Part& first = parts_.front();
  const Part& last = parts_.back();
  if (parts_.size() == 1) return text.size() == first.length && first.matches(text);
  if (text.size() < first.length + last.length || !first.matches(text.substr(0, first.length)) ||
      !last.matches(text.substr(text.size() - last.length)))
    return false;
  text.remove_suffix(last.length);
  text.remove_prefix(first.length);
  for (size_t i = 1; i + 1 < parts_.size(); ++i) {
    const size_t end = parts_[i].find_end(text);
    if (end == std::string_view::npos) return false;
    text.remove_prefix(end);
  }
  return true;
}

bool GlobPattern::Part::matches(std::string_view text) const {
  if (sets.empty()) return text == literals;
  for (size_t i = 0; i < length; ++i) {
    if (!sets[i][static_cast<unsigned char>(text[i])]) return false;
  }
  return true;
}

void GlobPattern::Part::make_masks() {
  masks.resize(sets.empty() ? 0 : sets[0].size() * words());
  for (size_t i = 0; i < sets.size(); ++i) {
    for (size_t byte = 0; byte < sets[i].size(); ++byte)
      masks[byte * words() + i / 64] |= uint64_t{sets[i][byte]} << i % 64;
  }
}

size_t GlobPattern::Part::find_end(std::string_view text) const {
  if (text.size() < length) return std::string_view::npos;
  if (!sets.empty()) return find_end_of_sets(text);
  const void* found = memmem(text.data(), text.size(), literals.data(), literals.size());
  if (found == nullptr) return std::string_view::npos;
  return static_cast<size_t>(static_cast<const char*>(found) - text.data()) + length;
}

size_t GlobPattern::Part::find_end_of_sets(std::string_view text) const {
  // Bit i: the elements up to i match the bytes of text up to here.
  std::array<uint64_t, kMostComplex / 64> matched{};
  const size_t count = words();
  const uint64_t whole = uint64_t{1} << (length - 1) % 64;
  for (size_t at = 0; at < text.size(); ++at) {
    const uint64_t* mask = masks.data() + static_cast<unsigned char>(text[at]) * count;
    uint64_t carried = 1;
    for (size_t i = 0; i < count; ++i) {
      const uint64_t shifted = matched[i] << 1 | carried;
      carried = matched[i] >> 63;
      matched[i] = shifted & mask[i];
    }
    if ((matched[count - 1] & whole) != 0) return at + 1;
  }
  return std::string_view::npos;
}

}  // namespace latchkey::base
