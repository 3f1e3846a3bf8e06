#include "store/vector/json_fields.h"

#include <algorithm>
#include <vector>

#include "base/text/number.h"

namespace latchkey::store {

namespace {

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  std::string_view rest() const { return text_.substr(at_); }
  bool at_end() {
    skip_space();
    return at_ == text_.size();
  }
  // Steps over the character if it comes next.
  bool take(char wanted) {
    if (at_end() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  bool value(JsonValue* value);

 private:
  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }
  bool word(std::string_view word, JsonValue::Kind kind, double number, JsonValue* value);
  bool number(JsonValue* value);
  bool string(JsonValue* value);
  bool skip_string();
  bool container(JsonValue::Kind kind, JsonValue* value);

  std::string_view text_;
  size_t at_ = 0;
};

bool Cursor::word(std::string_view word, JsonValue::Kind kind, double number, JsonValue* value) {
  if (!rest().starts_with(word)) return false;
  at_ += word.size();
  value->kind = kind;
  value->number = number;
  return true;
}

bool Cursor::number(JsonValue* value) {
  constexpr std::string_view kPartsOfNumbers = "+-.0123456789Ee";
  const size_t end = std::min(text_.find_first_not_of(kPartsOfNumbers, at_), text_.size());
  const std::string_view digits = text_.substr(at_, end - at_);
  value->kind = JsonValue::Kind::kNumber;
  at_ = end;
  return base::parse_rounded_double(digits, &value->number);
}

// Steps over the rest of a string whose opening quote has been passed.
bool Cursor::skip_string() {
  for (; at_ < text_.size(); ++at_) {
    if (text_[at_] == '"') {
      ++at_;
      return true;
    }
    if (text_[at_] == '\\') ++at_;
  }
  at_ = text_.size();
  return false;
}

bool Cursor::string(JsonValue* value) {
  const size_t begin = ++at_;
  if (!skip_string()) return false;
  value->kind = JsonValue::Kind::kString;
  value->text = text_.substr(begin, at_ - 1 - begin);
  value->has_escapes = value->text.find('\\') != std::string_view::npos;
  return true;
}

// Steps over an array or object by its brackets; what is in it is looked at when somebody asks.
bool Cursor::container(JsonValue::Kind kind, JsonValue* value) {
  const size_t begin = at_ + 1;
  size_t depth = 0;
  while (at_ < text_.size()) {
    const char c = text_[at_++];
    if (c == '"' && !skip_string()) return false;
    if (c == '[' || c == '{') ++depth;
    if ((c == ']' || c == '}') && --depth == 0) {
      value->kind = kind;
      value->text = text_.substr(begin, at_ - 1 - begin);
      return c == (kind == JsonValue::Kind::kArray ? ']' : '}');
    }
  }
  return false;
}

bool Cursor::value(JsonValue* value) {
  if (at_end()) return false;
  switch (text_[at_]) {
    case '"':
      return string(value);
    case '[':
      return container(JsonValue::Kind::kArray, value);
    case '{':
      return container(JsonValue::Kind::kObject, value);
    case 't':
      return word("true", JsonValue::Kind::kNumber, 1, value);
    case 'f':
      return word("false", JsonValue::Kind::kNumber, 0, value);
    case 'n':
      return word("null", JsonValue::Kind::kNull, 0, value);
    default:
      return number(value);
  }
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The number of \uXXXX whose digits stand at `at`, or -1.
int32_t code_unit(std::string_view text, size_t at) {
  constexpr size_t kDigits = 4;
  if (text.size() < at + kDigits) return -1;
  int32_t unit = 0;
  for (size_t i = 0; i < kDigits; ++i) {
    const int digit = hex_digit(text[at + i]);
    if (digit < 0) return -1;
    unit = unit * 16 + digit;
  }
  return unit;
}

void append_utf8(uint32_t code, std::string& out) {
  const auto put = [&](uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xc0 | code >> 6);
    return put(0x80 | (code & 0x3f));
  }
  if (code < 0x10000) {
    put(0xe0 | code >> 12);
  } else {
    put(0xf0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3f));
  }
  put(0x80 | (code >> 6 & 0x3f));
  put(0x80 | (code & 0x3f));
}

// Appends what the escape behind the backslash at `at` stands for; returns where the text goes on.
size_t append_escape(std::string_view text, size_t at, std::string& out) {
  constexpr std::string_view kLetters = "bfnrt";
  constexpr std::string_view kControls = "\b\f\n\r\t";
  if (at + 1 == text.size()) {
    out += text[at];
    return at + 1;
  }
  const char letter = text[at + 1];
  if (const size_t found = kLetters.find(letter); found != std::string_view::npos) {
    out += kControls[found];
    return at + 2;
  }
  const int32_t unit = letter == 'u' ? code_unit(text, at + 2) : -1;
  if (unit < 0) {
    out += letter;
    return at + 2;
  }
  const bool is_first = unit >= 0xd800 && unit < 0xdc00;
  const int32_t second =
      is_first && text.substr(at + 6).starts_with("\\u") ? code_unit(text, at + 8) : -1;
  if (second >= 0xdc00 && second < 0xe000) {
    append_utf8(static_cast<uint32_t>(0x10000 + ((unit - 0xd800) << 10) + (second - 0xdc00)), out);
    return at + 12;
  }
  append_utf8(static_cast<uint32_t>(unit), out);
  return at + 6;
}

}  // namespace

bool find_json_fields(std::string_view object, std::span<const std::string_view> names,
                      std::span<JsonValue> values) {
  Cursor cursor(object);
  if (!cursor.take('{')) return names.empty();
  std::vector<bool> is_found(names.size());
  size_t missing = names.size();
  while (missing > 0) {
    JsonValue key;
    JsonValue value;
    if (!cursor.value(&key) || key.kind != JsonValue::Kind::kString || !cursor.take(':') ||
        !cursor.value(&value))
      return false;
    const std::string plain = key.has_escapes ? unescaped_json(key.text) : std::string();
    const std::string_view name = key.has_escapes ? std::string_view(plain) : key.text;
    const auto at = std::lower_bound(names.begin(), names.end(), name);
    const auto which = static_cast<size_t>(at - names.begin());
    if (at != names.end() && *at == name && !is_found[which]) {
      is_found[which] = true;
      values[which] = value;
      --missing;
    }
    if (missing > 0 && !cursor.take(',')) return false;
  }
  return true;
}

bool is_plain_json_array(std::string_view elements) {
  Cursor cursor(elements);
  if (cursor.at_end()) return true;
  size_t depth = 0;
  for (;;) {
    if (cursor.take('[')) {
      if (!cursor.take(']')) {
        ++depth;
        continue;
      }
    } else {
      JsonValue value;
      if (!cursor.value(&value) || value.kind == JsonValue::Kind::kObject) return false;
    }
    while (depth > 0 && cursor.take(']')) --depth;
    if (cursor.at_end()) return depth == 0;
    if (!cursor.take(',')) return false;
  }
}

std::optional<JsonValue> next_json_element(std::string_view* rest) {
  Cursor cursor(*rest);
  JsonValue value;
  if (!cursor.value(&value)) return std::nullopt;
  const bool is_last = cursor.at_end();
  if (!is_last && !cursor.take(',')) return std::nullopt;
  *rest = cursor.rest();
  return value;
}

std::string unescaped_json(std::string_view text) {
  std::string plain;
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '\\') {
      at = append_escape(text, at, plain);
    } else {
      plain += text[at++];
    }
  }
  return plain;
}

}  // namespace latchkey::store
