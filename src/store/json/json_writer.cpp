#include "store/json/json_writer.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "base/text/hex.h"
#include "base/text/number.h"
#include "store/json/json_text.h"

namespace latchkey::store::json {

namespace {

// Appends to a string by way of a buffer, so that a character costs no call.
class Buffered {
 public:
  explicit Buffered(std::string* out) : out_(out) {}
  ~Buffered() { flush(); }
  Buffered(const Buffered&) = delete;
  Buffered& operator=(const Buffered&) = delete;

  // Of the string, once flushed.
  size_t size() const { return out_->size() + used_; }

  void put(char c) {
    *room(1) = c;
    ++used_;
  }
  void put(std::string_view text) {
    if (text.size() > sizeof buffer_) {
      flush();
      out_->append(text);
      return;
    }
    std::ranges::copy(text, room(text.size()));
    used_ += text.size();
  }
  // fn(char* out) writes up to `most` characters and returns how many.
  template <typename Fn>
  void put_with(size_t most, Fn&& fn) {
    used_ += fn(room(most));
  }

 private:
  char* room(size_t size) {
    if (size > sizeof buffer_ - used_) flush();
    return buffer_ + used_;
  }
  void flush() {
    out_->append(buffer_, used_);
    used_ = 0;
  }

  std::string* out_;
  size_t used_ = 0;
  char buffer_[2048];
};

void put_escaped(char c, Buffered* out) {
  constexpr std::string_view kEscaped = "\"\\\b\f\n\r\t";
  constexpr std::string_view kLetters = "\"\\bfnrt";
  out->put('\\');
  if (const size_t at = kEscaped.find(c); at != std::string_view::npos)
    return out->put(kLetters[at]);
  std::string code = "u00";
  base::append_hex(&code, static_cast<uint8_t>(c));
  out->put(code);
}

void put_string(std::string_view text, Buffered* out) {
  out->put('"');
  const char* const end = text.data() + text.size();
  for (const char* at = text.data();;) {
    const char* const special = find_escaped(at, end);
    out->put(std::string_view(at, static_cast<size_t>(special - at)));
    if (special == end) break;
    put_escaped(*special, out);
    at = special + 1;
  }
  out->put('"');
}

class Writer {
 public:
  Writer(const Layout& layout, std::string* out, size_t most)
      : layout_(layout), out_(out), most_(most) {}

  size_t nodes() const { return nodes_; }
  void write(const Node& node, size_t level) {
    if (out_.size() > most_) return;
    ++nodes_;
    switch (node.kind()) {
      case Kind::kNull:
        out_.put("null");
        return;
      case Kind::kBoolean:
        out_.put(node.truth() ? "true" : "false");
        return;
      case Kind::kInteger:
        return integer(node);
      case Kind::kNumber:
        out_.put_with(kMaxDoubleText,
                      [&](char* out) { return format_real(node.as_double(), out); });
        return;
      case Kind::kString:
        return put_string(node.text(), &out_);
      case Kind::kArray:
        return array(node, level);
      case Kind::kObject:
        return object(node, level);
    }
  }

 private:
  void integer(const Node& node) {
    out_.put_with(base::kMaxInt64Text, [&](char* out) {
      return node.is_huge() ? base::format_uint64(node.as_uint64(), out)
                            : base::format_int64(node.as_int64(), out);
    });
  }

  void new_line(size_t level) {
    if (layout_.is_compact()) return;
    out_.put(layout_.newline);
    for (size_t i = 0; i < level && out_.size() <= most_; ++i) out_.put(layout_.indent);
  }

  void array(const Node& node, size_t level) {
    out_.put('[');
    bool is_first = true;
    for (const Node& element : node.elements()) {
      if (!is_first) out_.put(',');
      is_first = false;
      new_line(level + 1);
      write(element, level + 1);
    }
    if (!is_first) new_line(level);
    out_.put(']');
  }

  void object(const Node& node, size_t level) {
    out_.put('{');
    bool is_first = true;
    for (const Member& member : node.members()) {
      if (!is_first) out_.put(',');
      is_first = false;
      new_line(level + 1);
      put_string(member.key.text(), &out_);
      out_.put(':');
      out_.put(layout_.space);
      write(member.value, level + 1);
    }
    if (!is_first) new_line(level);
    out_.put('}');
  }

  const Layout& layout_;
  Buffered out_;
  size_t most_;
  size_t nodes_ = 0;
};

}  // namespace

void write_string(std::string_view text, std::string* out) {
  Buffered buffered(out);
  put_string(text, &buffered);
}

size_t format_real(double value, char* out) {
  constexpr int kMostIntegerDigits = 16;
  constexpr int kMostLeadingZeros = 5;
  char* at = out;
  if (std::signbit(value)) *at++ = '-';
  if (value == 0) {
    std::memcpy(at, "0.0", 3);
    return static_cast<size_t>(at + 3 - out);
  }
  // d.ddde+xx, the shortest that reads back as the same.
  char scientific[kMaxDoubleText];
  const char* const end = std::to_chars(scientific, scientific + sizeof scientific, std::abs(value),
                                        std::chars_format::scientific)
                              .ptr;
  const char* const mark = std::find(static_cast<const char*>(scientific), end, 'e');
  char digits[kMaxDoubleText];
  int count = 0;
  for (const char* c = scientific; c != mark; ++c) {
    if (*c != '.') digits[count++] = *c;
  }
  int exponent = 0;
  std::from_chars(mark[1] == '+' ? mark + 2 : mark + 1, end, exponent);
  const int integer_digits = exponent + 1;
  const auto copy = [&](int first, int last) { at = std::copy(digits + first, digits + last, at); };
  const auto zeros = [&](int number) { at = std::fill_n(at, number, '0'); };
  if (integer_digits >= count && integer_digits <= kMostIntegerDigits) {
    copy(0, count);
    zeros(integer_digits - count);
    *at++ = '.';
    *at++ = '0';
  } else if (integer_digits > 0 && integer_digits <= kMostIntegerDigits) {
    copy(0, integer_digits);
    *at++ = '.';
    copy(integer_digits, count);
  } else if (integer_digits > -kMostLeadingZeros && integer_digits <= 0) {
    *at++ = '0';
    *at++ = '.';
    zeros(-integer_digits);
    copy(0, count);
  } else {
    *at++ = digits[0];
    if (count > 1) {
      *at++ = '.';
      copy(1, count);
    }
    *at++ = 'e';
    at = std::to_chars(at, at + 5, exponent).ptr;
  }
  return static_cast<size_t>(at - out);
}

size_t write(const Node& node, const Layout& layout, std::string* out, size_t level, size_t most) {
  Writer writer(layout, out, most);
  writer.write(node, level);
  return writer.nodes();
}

std::string written(const Node& node) {
  std::string text;
  write(node, Layout{}, &text);
  return text;
}

}  // namespace latchkey::store::json
