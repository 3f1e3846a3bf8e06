#include "base/text/glob.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/text/text.h"

namespace latchkey::base {

namespace {

// Maximum number of stars before the pattern's end; a pattern with more matches nothing.
constexpr int kMaxStars = 1000;
constexpr size_t kBytes = 256;

constexpr bool is_special(char byte) {
  return byte == '*' || byte == '?' || byte == '[' || byte == '\\';
}

void skip_stars(std::string_view* pattern) {
  while (!pattern->empty() && pattern->front() == '*') pattern->remove_prefix(1);
}

// memmem() takes linear time, but first fills a table. In a short text it is quicker to compare
// wherever the first byte is.
size_t find_literal(std::string_view text, std::string_view literal) {
  constexpr size_t kShortText = 64;
  if (text.size() <= kShortText) return text.find(literal);
  const void* const found = memmem(text.data(), text.size(), literal.data(), literal.size());
  if (found == nullptr) return std::string_view::npos;
  return static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

}  // namespace

void GlobPattern::ByteSet::add_range(signed char low, signed char high) {
  if (low > high) return;
  const size_t first = place(static_cast<unsigned char>(low));
  const size_t last = place(static_cast<unsigned char>(high));
  for (size_t word = first / 64; word <= last / 64; ++word) {
    const size_t from = std::max(first, word * 64) % 64;
    const size_t to = std::min(last, word * 64 + 63) % 64;
    words_[word] |= ~uint64_t{0} >> (63 - (to - from)) << from;
  }
}

void GlobPattern::ByteSet::negate() {
  for (uint64_t& word : words_) word = ~word;
}

// --- Preparing -----------------------------------------------------------------------------------

GlobPattern::GlobPattern(std::string_view pattern, bool ignore_case)
    : ignore_case_(ignore_case), is_empty_(pattern.empty()), is_star_(pattern == "*") {
  first_ = take_part(&pattern);
  int stars = 0;
  while (!pattern.empty() && !matches_nothing_) {
    has_star_ = true;
    skip_stars(&pattern);
    const Part part = take_part(&pattern);
    if (pattern.empty()) {
      last_ = part;
    } else {
      add_middle(part);
    }
    matches_nothing_ = matches_nothing_ || (part.length > 0 && ++stars > kMaxStars);
  }
}

GlobPattern::Part GlobPattern::take_part(std::string_view* pattern) {
  Part part{.begin = literals_.size()};
  const size_t size = pattern->size();
  part.length = take_plain(pattern);
  while (!pattern->empty() && pattern->front() != '*') {
    const Element element = take_element(pattern);
    if (element >= kAny && !part.is_complex) make_complex(&part, pattern->size());
    if (part.is_complex) {
      elements_.push_back(element);
    } else {
      literals_.push_back(static_cast<char>(element));
    }
    ++part.length;
  }
  if (part.is_complex) complex_bytes_ += size - pattern->size();
  return part;
}

// Most parts begin with bytes that stand for themselves, and many have no others.
size_t GlobPattern::take_plain(std::string_view* pattern) {
  size_t length = 0;
  while (length < pattern->size() && !is_special((*pattern)[length])) ++length;
  const std::string_view plain = pattern->substr(0, length);
  ignore_case_ ? literals_.append(lower_case(plain)) : literals_.append(plain);
  pattern->remove_prefix(length);
  return length;
}

// Moves the literals that the part has begun with to the elements, of which `more` may follow.
void GlobPattern::make_complex(Part* part, size_t more) {
  const auto literals = literals_.begin() + static_cast<std::ptrdiff_t>(part->begin);
  part->begin = elements_.size();
  part->is_complex = true;
  elements_.reserve(elements_.size() + part->length + 1 + more);
  std::transform(literals, literals_.end(), std::back_inserter(elements_),
                 [](char byte) { return Element{static_cast<unsigned char>(byte)}; });
  literals_.erase(literals, literals_.end());
}

GlobPattern::Element GlobPattern::take_element(std::string_view* pattern) {
  const char byte = pattern->front();
  if (byte == '[') return take_class(pattern);
  if (byte == '\\' && pattern->size() > 1) pattern->remove_prefix(1);
  const char literal = pattern->front();
  pattern->remove_prefix(1);
  return byte == '?' ? kAny : Element{folded(literal)};
}

// Within a class: `\x` is x, `a-c` a range in either direction, and the end of the pattern closes
// it as `]` does.
GlobPattern::Element GlobPattern::take_class(std::string_view* pattern) {
  std::string_view& rest = *pattern;
  rest.remove_prefix(1);
  const bool is_negated = rest.starts_with('^');
  if (is_negated) rest.remove_prefix(1);
  ByteSet set;
  while (!rest.empty() && rest[0] != ']') {
    if (rest[0] == '\\' && rest.size() >= 2) {
      set.add(folded(rest[1]));
      rest.remove_prefix(2);
    } else if (rest.size() >= 3 && rest[1] == '-') {
      const auto [low, high] =
          std::minmax({static_cast<signed char>(rest[0]), static_cast<signed char>(rest[2])});
      set.add_range(static_cast<signed char>(folded(static_cast<char>(low))),
                    static_cast<signed char>(folded(static_cast<char>(high))));
      rest.remove_prefix(3);
    } else {
      set.add(folded(rest[0]));
      rest.remove_prefix(1);
    }
  }
  if (!rest.empty()) rest.remove_prefix(1);
  if (is_negated) set.negate();
  if (classes_.size() == kMaxClasses) {
    matches_nothing_ = true;
    return kAny;
  }
  classes_.push_back(set);
  return static_cast<Element>(kFirstClass + classes_.size() - 1);
}

void GlobPattern::add_middle(Part part) {
  if (part.is_complex) {
    searched_ += part.length;
    if (searched_ > kMaxSearchedBytes) {
      matches_nothing_ = true;
    } else if (part.length > kShort) {
      make_masks(&part);
    }
  }
  middle_.push_back(part);
}

void GlobPattern::make_masks(Part* part) {
  const size_t words = part->words();
  part->masks = masks_.size();
  masks_.resize(masks_.size() + kBytes * words);
  for (size_t i = 0; i < part->length; ++i) {
    const Element element = elements_[part->begin + i];
    for (size_t byte = 0; byte < kBytes; ++byte) {
      const bool is_set = matches_byte(element, static_cast<unsigned char>(byte));
      masks_[part->masks + byte * words + i / 64] |= uint64_t{is_set} << i % 64;
    }
  }
}

unsigned char GlobPattern::folded(char byte) const {
  return static_cast<unsigned char>(ignore_case_ ? lower_case(byte) : byte);
}

size_t GlobPattern::memory() const {
  return sizeof(*this) + literals_.capacity() + middle_.capacity() * sizeof(Part) +
         elements_.capacity() * sizeof(Element) + classes_.capacity() * sizeof(ByteSet) +
         masks_.capacity() * sizeof(uint64_t);
}

// --- Comparing -----------------------------------------------------------------------------------

bool GlobPattern::matches(std::string_view text) const {
  return ignore_case_ ? matches_folded(lower_case(text)) : matches_folded(text);
}

bool GlobPattern::matches_folded(std::string_view text) const {
  if (text.empty()) return is_empty_;
  if (matches_nothing_) return false;
  if (!has_star_) return text.size() == first_.length && is_at(text.data(), first_);
  if (text.size() < first_.length + last_.length || !is_at(text.data(), first_) ||
      !is_at(text.data() + text.size() - last_.length, last_))
    return false;
  text.remove_suffix(last_.length);
  text.remove_prefix(first_.length);
  for (const Part& part : middle_) {
    const size_t end = find_end(text, part);
    if (end == std::string_view::npos) return false;
    text.remove_prefix(end);
  }
  return true;
}

bool GlobPattern::matches_byte(Element element, unsigned char byte) const {
  if (element < kAny) return element == byte;
  return element == kAny || classes_[element - kFirstClass].has(byte);
}

bool GlobPattern::is_at(const char* text, const Part& part) const {
  if (part.length == 0) return true;
  if (!part.is_complex) {
    const char* const literals = literals_.data() + part.begin;
    return *text == *literals && memcmp(text, literals, part.length) == 0;
  }
  for (size_t i = 0; i < part.length; ++i) {
    if (!matches_byte(elements_[part.begin + i], static_cast<unsigned char>(text[i]))) return false;
  }
  return true;
}

size_t GlobPattern::find_end(std::string_view text, const Part& part) const {
  if (text.size() < part.length) return std::string_view::npos;
  if (!part.is_complex) {
    const size_t at = find_literal(text, {literals_.data() + part.begin, part.length});
    return at == std::string_view::npos ? at : at + part.length;
  }
  if (part.length > kShort) return find_end_by_masks(text, part);
  for (size_t at = 0; at + part.length <= text.size(); ++at) {
    if (is_at(text.data() + at, part)) return at + part.length;
  }
  return std::string_view::npos;
}

size_t GlobPattern::find_end_by_masks(std::string_view text, const Part& part) const {
  // Bit i: the elements up to i match the bytes of text up to here.
  std::array<uint64_t, kMaxSearchedBytes / 64> matched{};
  const size_t words = part.words();
  const uint64_t whole = uint64_t{1} << (part.length - 1) % 64;
  for (size_t at = 0; at < text.size(); ++at) {
    const uint64_t* mask = &masks_[part.masks + static_cast<unsigned char>(text[at]) * words];
    uint64_t carried = 1;
    for (size_t i = 0; i < words; ++i) {
      const uint64_t shifted = matched[i] << 1 | carried;
      carried = matched[i] >> 63;
      matched[i] = shifted & mask[i];
    }
    if ((matched[words - 1] & whole) != 0) return at + 1;
  }
  return std::string_view::npos;
}

}  // namespace latchkey::base
