#include "store/json/json_parser.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <vector>

#include "base/text/number.h"
#include "base/text/text.h"
#include "store/json/json_text.h"

namespace latchkey::store::json {

namespace {

int hex_value(char c) {
  if (base::is_digit(c)) return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

void append_utf8(std::string* out, uint32_t code) {
  const auto add = [&](uint32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (code < 0x80) return add(code);
  if (code < 0x800) {
    add(0xc0 | code >> 6);
  } else {
    if (code < 0x10000) {
      add(0xe0 | code >> 12);
    } else {
      add(0xf0 | code >> 18);
      add(0x80 | (code >> 12 & 0x3f));
    }
    add(0x80 | (code >> 6 & 0x3f));
  }
  add(0x80 | (code & 0x3f));
}

class Parser {
 public:
  Parser(std::string_view text, size_t max_depth, uint64_t seed, std::optional<Precision> precision)
      : begin_(text.data()),
        at_(begin_),
        end_(begin_ + text.size()),
        max_depth_(max_depth),
        seed_(seed),
        precision_(precision) {}

  base::Result<Parsed> parse() {
    Parsed parsed;
    if (!value(&parsed.root)) return base::fail(error());
    skip_space();
    if (at_ != end_) {
      fail_at_next("trailing characters");
      return base::fail(error());
    }
    parsed.depth = deepest_;
    return parsed;
  }

 private:
  // --- Errors -----------------------------------------------------------------------------------

  // Behind what was read, or at the character that is next. Always false.
  bool fail(std::string_view problem) { return fail_at(problem, at_); }
  bool fail_at_next(std::string_view problem) { return fail_at(problem, std::min(at_ + 1, end_)); }
  bool fail_at(std::string_view problem, const char* place) {
    problem_ = problem;
    place_ = place;
    return false;
  }
  std::string error() const {
    size_t line = 1;
    const char* line_begin = begin_;
    for (const char* c = begin_; c < place_; ++c) {
      if (*c != '\n') continue;
      ++line;
      line_begin = c + 1;
    }
    return std::string(problem_) + " at line " + std::to_string(line) + " column " +
           std::to_string(place_ - line_begin);
  }

  // --- Values -----------------------------------------------------------------------------------

  void skip_space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) ++at_;
  }

  bool value(Node* node) {
    skip_space();
    if (at_ == end_) return fail_at_next("EOF while parsing a value");
    switch (*at_) {
      case '"':
        return string(node, /*is_key=*/false);
      case '{':
        return object(node);
      case '[':
        return array(node);
      case 't':
        return word("true", Node::boolean(true), node);
      case 'f':
        return word("false", Node::boolean(false), node);
      case 'n':
        return word("null", Node(), node);
      default:
        return *at_ == '-' || base::is_digit(*at_) ? number(node) : fail_at_next("expected value");
    }
  }

  bool word(std::string_view text, Node value, Node* node) {
    for (const char c : text) {
      if (at_ == end_) return fail("EOF while parsing a value");
      if (*at_++ != c) return fail("expected ident");
    }
    *node = std::move(value);
    return true;
  }

  bool enter() {
    if (depth_ == max_depth_) return fail_at_next("recursion limit exceeded");
    deepest_ = std::max(deepest_, ++depth_);
    ++at_;
    return true;
  }

  bool array(Node* node) {
    if (!enter()) return false;
    const size_t first = nodes_.size();
    bool is_rounded = precision_.has_value();
    for (;;) {
      skip_space();
      if (at_ == end_) return fail_at_next("EOF while parsing a list");
      if (*at_ == ']') break;
      if (nodes_.size() != first) {
        if (*at_ != ',') return fail_at_next("expected `,` or `]`");
        ++at_;
        skip_space();
        if (at_ == end_) return fail_at_next("EOF while parsing a value");
        if (*at_ == ']') return fail_at_next("trailing comma");
      }
      Node element;
      if (!value(&element)) return false;
      is_rounded = is_rounded && element.is_numeric();
      if (is_rounded && !round(&element)) return false;
      nodes_.push_back(std::move(element));
    }
    ++at_;
    --depth_;
    if (is_rounded) {
      for (Node& element : std::span(nodes_).subspan(first))
        element = Node::number(shortest(element.as_double(), *precision_));
    }
    *node = Node::array(std::span(nodes_).subspan(first));
    nodes_.resize(first);
    return true;
  }

  bool round(Node* number) {
    const std::optional<double> nearest = rounded(number->as_double(), *precision_);
    if (!nearest) {
      out_of_range_ = "value out of range for " + std::string(precision_name(*precision_));
      return fail_at_next(out_of_range_);
    }
    *number = Node::number(*nearest);
    return true;
  }

  bool object(Node* node) {
    if (!enter()) return false;
    const size_t first = members_.size();
    for (;;) {
      skip_space();
      if (at_ == end_) return fail_at_next("EOF while parsing an object");
      if (*at_ == '}') break;
      if (members_.size() != first) {
        if (*at_ != ',') return fail_at_next("expected `,` or `}`");
        ++at_;
        skip_space();
        if (at_ == end_) return fail_at_next("EOF while parsing a value");
        if (*at_ == '}') return fail_at_next("trailing comma");
      }
      if (*at_ != '"') return fail_at_next("key must be a string");
      Member member;
      if (!string(&member.key, /*is_key=*/true)) return false;
      skip_space();
      if (at_ == end_) return fail_at_next("EOF while parsing an object");
      if (*at_ != ':') return fail_at_next("expected `:`");
      ++at_;
      if (!value(&member.value)) return false;
      members_.push_back(std::move(member));
    }
    ++at_;
    --depth_;
    *node = Node::object(std::span(members_).subspan(first), seed_);
    members_.resize(first);
    return true;
  }

  // --- Numbers ----------------------------------------------------------------------------------

  bool number(Node* node) {
    const char* const first = at_;
    const bool is_negative = *at_ == '-';
    if (is_negative) ++at_;
    if (at_ == end_) return fail("EOF while parsing a value");
    if (!base::is_digit(*at_)) {
      ++at_;
      return fail("invalid number");
    }
    const char* const digits = at_;
    while (at_ != end_ && base::is_digit(*at_)) ++at_;
    if (*digits == '0' && at_ - digits > 1) {
      at_ = digits + 1;
      return fail_at_next("invalid number");
    }
    bool is_integer = true;
    if (at_ != end_ && *at_ == '.') {
      is_integer = false;
      ++at_;
      if (at_ == end_) return fail_at_next("EOF while parsing a value");
      if (!base::is_digit(*at_)) return fail_at_next("invalid number");
      while (at_ != end_ && base::is_digit(*at_)) ++at_;
    }
    if (at_ != end_ && (*at_ | 0x20) == 'e') {
      is_integer = false;
      ++at_;
      if (at_ != end_ && (*at_ == '+' || *at_ == '-')) ++at_;
      if (at_ == end_) return fail("EOF while parsing a value");
      if (!base::is_digit(*at_++)) return fail("invalid number");
      while (at_ != end_ && base::is_digit(*at_)) ++at_;
    }
    if (is_integer && integer({digits, static_cast<size_t>(at_ - digits)}, is_negative, node))
      return true;
    return real({first, static_cast<size_t>(at_ - first)}, node);
  }

  // False when it does not fit, or is -0.
  static bool integer(std::string_view digits, bool is_negative, Node* node) {
    uint64_t magnitude = 0;
    const auto [end, problem] =
        std::from_chars(digits.data(), digits.data() + digits.size(), magnitude);
    if (problem != std::errc()) return false;
    constexpr uint64_t kLeastMagnitude = uint64_t{1} << 63;
    if (!is_negative) {
      *node = Node::unsigned_integer(magnitude);
      return true;
    }
    if (magnitude == 0 || magnitude > kLeastMagnitude) return false;
    *node = Node::integer(static_cast<int64_t>(0 - magnitude));
    return true;
  }

  bool real(std::string_view text, Node* node) {
    double number = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (problem != std::errc() && !base::parse_rounded_double(text, &number))
      return fail("invalid number");
    if (!std::isfinite(number)) return fail("number out of range");
    *node = Node::number(number);
    return true;
  }

  // --- Strings ----------------------------------------------------------------------------------

  bool string(Node* node, bool is_key) {
    const char* const first = ++at_;
    at_ = find_escaped(at_, end_);
    std::string_view text(first, static_cast<size_t>(at_ - first));
    if (at_ == end_ || *at_ != '"') {
      scratch_.assign(text);
      if (!rest_of_string()) return false;
      text = scratch_;
    }
    ++at_;
    if (text.size() > Node::kLongestText) return fail("string too long");
    *node = is_key ? keys_.key(text) : Node::string(text);
    return true;
  }

  bool rest_of_string() {
    for (;;) {
      if (at_ == end_) return fail("EOF while parsing a string");
      if (*at_ == '"') return true;
      if (*at_++ != '\\')
        return fail("control character (\\u0000-\\u001F) found while parsing a string");
      if (!escape()) return false;
      const char* const first = at_;
      at_ = find_escaped(at_, end_);
      scratch_.append(first, at_);
    }
  }

  bool escape() {
    if (at_ == end_) return fail("EOF while parsing a string");
    constexpr std::string_view kLetters = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    const char letter = *at_++;
    if (letter == 'u') return unicode_escape();
    const size_t at = kLetters.find(letter);
    if (at == std::string_view::npos) return fail("invalid escape");
    scratch_ += kMeanings[at];
    return true;
  }

  bool four_digits(uint32_t* code) {
    constexpr int kDigits = 4;
    if (end_ - at_ < kDigits) {
      at_ = end_;
      return fail("EOF while parsing a string");
    }
    *code = 0;
    bool is_valid = true;
    for (int i = 0; i < kDigits; ++i) {
      const int digit = hex_value(*at_++);
      is_valid = is_valid && digit >= 0;
      *code = *code << 4 | static_cast<uint32_t>(digit & 15);
    }
    return is_valid || fail("invalid escape");
  }

  bool unicode_escape() {
    constexpr uint32_t kFirstLow = 0xdc00;
    uint32_t code;
    if (!four_digits(&code)) return false;
    if (code >= kFirstLow && code <= 0xdfff) return fail("lone leading surrogate in hex escape");
    if (code >= 0xd800 && code < kFirstLow) {
      for (const char expected : {'\\', 'u'}) {
        if (at_ == end_) return fail("EOF while parsing a string");
        if (*at_++ != expected) return fail("unexpected end of hex escape");
      }
      uint32_t low;
      if (!four_digits(&low)) return false;
      if (low < kFirstLow || low > 0xdfff) return fail("lone leading surrogate in hex escape");
      code = 0x10000 + ((code - 0xd800) << 10) + (low - kFirstLow);
    }
    append_utf8(&scratch_, code);
    return true;
  }

  const char* begin_;
  const char* at_;
  const char* end_;
  size_t max_depth_;
  uint64_t seed_;
  std::optional<Precision> precision_;
  size_t depth_ = 0;
  size_t deepest_ = 0;
  std::string_view problem_;
  std::string out_of_range_;
  const char* place_ = nullptr;
  // What is inside of the arrays and objects that are open.
  std::vector<Node> nodes_;
  std::vector<Member> members_;
  std::string scratch_;
  KeyCache keys_;
};

}  // namespace

base::Result<Parsed> parse(std::string_view text, size_t max_depth, uint64_t seed,
                           std::optional<Precision> precision) {
  return Parser(text, max_depth, seed, precision).parse();
}

bool is_valid_utf8(std::string_view text) {
  const auto* at = reinterpret_cast<const unsigned char*>(text.data());
  const auto* const end = at + text.size();
  const auto continues = [&](ptrdiff_t i) { return at[i] >> 6 == 2; };
  while (at != end) {
    if (end - at >= 8 && (load_word(reinterpret_cast<const char*>(at)) & kHighBits) == 0) {
      at += 8;
    } else if (*at < 0x80) {
      ++at;
    } else if (*at >= 0xc2 && *at < 0xe0) {
      if (end - at < 2 || !continues(1)) return false;
      at += 2;
    } else if (*at >= 0xe0 && *at < 0xf0) {
      if (end - at < 3 || !continues(1) || !continues(2)) return false;
      const unsigned code = (at[0] & 15u) << 12 | (at[1] & 63u) << 6;
      if (code < 0x800 || (code >= 0xd800 && code < 0xe000)) return false;
      at += 3;
    } else if (*at >= 0xf0 && *at < 0xf5) {
      if (end - at < 4 || !continues(1) || !continues(2) || !continues(3)) return false;
      const unsigned code = (at[0] & 7u) << 18 | (at[1] & 63u) << 12;
      if (code < 0x10000 || code > 0x10ffff) return false;
      at += 4;
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace latchkey::store::json
