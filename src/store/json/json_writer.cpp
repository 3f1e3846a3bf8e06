#include "store/json/json_writer.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "base/text/hex.h"
#include "base/text/number.h"

namespace latchkey::store::json {

namespace {

bool must_be_escaped(char c) {
  return c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20;
}

void write_escaped(char c, std::string* out) {
  constexpr std::string_view kEscaped = "\"\\\b\f\n\r\t";
  constexpr std::string_view kLetters = "\"\\bfnrt";
  out->push_back('\\');
  if (const size_t at = kEscaped.find(c); at != std::string_view::npos) {
    out->push_back(kLetters[at]);
    return;
  }
  out->append("u00");
  base::append_hex(out, static_cast<uint8_t>(c));
}

class Writer {
 public:
  Writer(const Layout& layout, std::string* out, size_t most)
      : layout_(layout), out_(out), most_(most) {}

  size_t nodes() const { return nodes_; }
  void write(const Node& node, size_t level) {
    if (out_->size() > most_) return;
    ++nodes_;
    switch (node.kind()) {
      case Kind::kNull:
        out_->append("null");
        return;
      case Kind::kBoolean:
        out_->append(node.truth() ? "true" : "false");
        return;
      case Kind::kInteger:
        return integer(node);
      case Kind::kNumber: {
        char text[kMaxDoubleText];
        out_->append(text, format_real(node.as_double(), text));
        return;
      }
      case Kind::kString:
        return write_string(node.text(), out_);
      case Kind::kArray:
        return array(node, level);
      case Kind::kObject:
        return object(node, level);
    }
  }

 private:
  void integer(const Node& node) {
    char text[base::kMaxInt64Text];
    out_->append(text, node.is_huge() ? base::format_uint64(node.as_uint64(), text)
                                      : base::format_int64(node.as_int64(), text));
  }

  void new_line(size_t level) {
    if (layout_.is_compact()) return;
    out_->append(layout_.newline);
    for (size_t i = 0; i < level && out_->size() <= most_; ++i) out_->append(layout_.indent);
  }

  void array(const Node& node, size_t level) {
    out_->push_back('[');
    bool is_first = true;
    for (const Node& element : node.elements()) {
      if (!is_first) out_->push_back(',');
      is_first = false;
      new_line(level + 1);
      write(element, level + 1);
    }
    if (!is_first) new_line(level);
    out_->push_back(']');
  }

  void object(const Node& node, size_t level) {
    out_->push_back('{');
    bool is_first = true;
    for (const Member& member : node.members()) {
      if (!is_first) out_->push_back(',');
      is_first = false;
      new_line(level + 1);
      write_string(member.key.text(), out_);
      out_->push_back(':');
      out_->append(layout_.space);
      write(member.value, level + 1);
    }
    if (!is_first) new_line(level);
    out_->push_back('}');
  }

  const Layout& layout_;
  std::string* out_;
  size_t most_;
  size_t nodes_ = 0;
};

}  // namespace

void write_string(std::string_view text, std::string* out) {
  out->push_back('"');
  for (;;) {
    const auto special = std::ranges::find_if(text, must_be_escaped);
    const auto plain = static_cast<size_t>(special - text.begin());
    out->append(text.substr(0, plain));
    if (special == text.end()) break;
    write_escaped(*special, out);
    text.remove_prefix(plain + 1);
  }
  out->push_back('"');
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
