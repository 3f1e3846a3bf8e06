#include "script/lua/json_decoder.h"

#include <strings.h>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <lua.hpp>

#include "base/text/text.h"
#include "script/lua/interpreter.h"
#include "script/lua/lua_json.h"
#include "script/lua/lua_text.h"

namespace latchkey::script {

namespace {

// Elements for which a table has room when it is made; it grows from there.
constexpr int kUsualSize = 4;

// Whether strtod accepts the number although JSON does not.
bool is_beyond_json(const char* text) {
  if (*text == '+') return true;
  if (*text == '-') ++text;
  if (*text == '0') return text[1] == 'x' || text[1] == 'X' || base::is_digit(text[1]);
  return ::strncasecmp(text, "inf", 3) == 0 || ::strncasecmp(text, "nan", 3) == 0;
}

// Four hexadecimal digits, or -1. Stops at a null character.
int32_t hex4(const char* text) {
  int32_t code = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = text[i];
    const char lower = static_cast<char>(c | 0x20);
    if (!base::is_digit(c) && !(lower >= 'a' && lower <= 'f')) return -1;
    code = code * 16 + (base::is_digit(c) ? c - '0' : lower - 'a' + 10);
  }
  return code;
}

void append_utf8(std::string& text, int32_t code) {
  const auto add = [&text](int32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) return add(code);
  if (code < 0x800) {
    add(0xC0 | (code >> 6));
  } else {
    if (code < 0x10000) {
      add(0xE0 | (code >> 12));
    } else {
      add(0xF0 | (code >> 18));
      add(0x80 | ((code >> 12) & 0x3F));
    }
    add(0x80 | ((code >> 6) & 0x3F));
  }
  add(0x80 | (code & 0x3F));
}

// The index of the next quote, backslash or null character from `at` on, or the size.
size_t end_of_plain(std::string_view text, size_t at) {
  while (at < text.size() && text[at] != '"' && text[at] != '\\' && text[at] != '\0') ++at;
  return at;
}

// Reads a number as strtod does, if it begins like one in JSON; the rest, such as "0x10" and what
// is too large for a double, is left to strtod. Returns its end, or null.
const char* read_plain_number(const char* begin, const char* end, double* number) {
  const char* const digits = begin + (*begin == '-' ? 1 : 0);
  // Integers that a double holds exactly.
  constexpr int kExactDigits = 15;
  int64_t integer = 0;
  const char* at = digits;
  while (at - digits < kExactDigits && base::is_digit(*at)) integer = integer * 10 + (*at++ - '0');
  if (at == digits || (*at | 0x20) == 'x') return nullptr;
  if (!base::is_digit(*at) && *at != '.' && (*at | 0x20) != 'e') {
    *number = digits == begin ? static_cast<double>(integer) : -static_cast<double>(integer);
    return at;
  }
  const auto [stop, problem] = std::from_chars(begin, end, *number);
  return problem == std::errc() ? stop : nullptr;
}

}  // namespace

JsonDecoder::JsonDecoder(lua_State* lua, std::string_view text, const JsonOptions& options)
    : lua_(lua), text_(text), options_(options), interpreter_(Interpreter::of(lua)) {}

bool JsonDecoder::decode() {
  if (text_.size() >= 2 && (text_[0] == '\0' || text_[1] == '\0')) {
    std::snprintf(error_, sizeof error_, "JSON parser does not support UTF-16 or UTF-32");
    return false;
  }
  advance();
  if (!value(0)) return false;
  advance();
  return token_.kind == Kind::kEnd || expected("the end");
}

// --- Tokens -------------------------------------------------------------------------------------

const char* JsonDecoder::name_of(Kind kind) {
  switch (kind) {
    case Kind::kObjectBegin:
      return "T_OBJ_BEGIN";
    case Kind::kObjectEnd:
      return "T_OBJ_END";
    case Kind::kArrayBegin:
      return "T_ARR_BEGIN";
    case Kind::kArrayEnd:
      return "T_ARR_END";
    case Kind::kString:
      return "T_STRING";
    case Kind::kNumber:
      return "T_NUMBER";
    case Kind::kBoolean:
      return "T_BOOLEAN";
    case Kind::kNull:
      return "T_NULL";
    case Kind::kColon:
      return "T_COLON";
    case Kind::kComma:
      return "T_COMMA";
    case Kind::kEnd:
      return "T_END";
    case Kind::kError:
      break;
  }
  return "T_ERROR";
}

void JsonDecoder::take(Kind kind, size_t size) {
  token_.kind = kind;
  next_ += size;
}

void JsonDecoder::fail_token(size_t offset, const char* problem) {
  token_.kind = Kind::kError;
  token_.offset = offset;
  token_.problem = problem;
}

void JsonDecoder::advance() {
  // The text ends with a null character, which is not skipped.
  char c = text_.data()[next_];
  while (c == ' ' || c == '\n' || c == '\t' || c == '\r') c = text_.data()[++next_];
  token_.offset = next_;
  switch (c) {
    case '\0':
      return take(Kind::kEnd, 0);
    case '{':
      return take(Kind::kObjectBegin, 1);
    case '}':
      return take(Kind::kObjectEnd, 1);
    case '[':
      return take(Kind::kArrayBegin, 1);
    case ']':
      return take(Kind::kArrayEnd, 1);
    case ':':
      return take(Kind::kColon, 1);
    case ',':
      return take(Kind::kComma, 1);
    case '"':
      return read_string();
    default:
      break;
  }
  if (base::is_digit(c) || c == '-') {
    if (!options_.decode_invalid_numbers && is_beyond_json(text_.data() + next_))
      return fail_token(next_, "invalid number");
    return read_number();
  }
  read_word();
}

void JsonDecoder::read_word() {
  if (starts_with("true")) {
    token_.boolean = true;
    return take(Kind::kBoolean, 4);
  }
  if (starts_with("false")) {
    token_.boolean = false;
    return take(Kind::kBoolean, 5);
  }
  if (starts_with("null")) return take(Kind::kNull, 4);
  if (options_.decode_invalid_numbers && is_beyond_json(text_.data() + next_)) return read_number();
  fail_token(next_, "invalid token");
}

void JsonDecoder::read_number() {
  const char* begin = text_.data() + next_;
  const char* end = read_plain_number(begin, text_.data() + text_.size(), &token_.number);
  if (end == nullptr) {
    char* stop = nullptr;
    token_.number = std::strtod(begin, &stop);
    end = stop;
  }
  if (end == begin) return fail_token(next_, "invalid number");
  take(Kind::kNumber, static_cast<size_t>(end - begin));
}

void JsonDecoder::read_string() {
  const size_t begin = ++next_;
  next_ = end_of_plain(text_, next_);
  token_.kind = Kind::kString;
  if (next_ < text_.size() && text_[next_] == '"') {
    token_.string = text_.substr(begin, next_ - begin);
    ++next_;
    return;
  }
  unescaped_.assign(text_, begin, next_ - begin);
  while (next_ < text_.size() && text_[next_] == '\\') {
    if (!read_escape()) return;
    const size_t plain = next_;
    next_ = end_of_plain(text_, next_);
    unescaped_.append(text_, plain, next_ - plain);
  }
  if (next_ == text_.size() || text_[next_] != '"')
    return fail_token(next_, "unexpected end of string");
  ++next_;
  token_.string = unescaped_;
}

bool JsonDecoder::read_escape() {
  constexpr std::string_view kLetters = "\"\\/bfnrt";
  constexpr std::string_view kMeant = "\"\\/\b\f\n\r\t";
  const char letter = next_ + 1 < text_.size() ? text_[next_ + 1] : '\0';
  if (letter == 'u') return read_unicode_escape();
  const size_t known = kLetters.find(letter);
  if (known == kLetters.npos) {
    fail_token(next_, "invalid escape code");
    return false;
  }
  unescaped_ += kMeant[known];
  next_ += 2;
  return true;
}

bool JsonDecoder::read_unicode_escape() {
  // "\uXXXX", two of them for codes beyond 65535. Reading stops at the null character after the
  // text at the latest.
  constexpr size_t kSize = 6;
  const char* escape = text_.data() + next_;
  int32_t code = hex4(escape + 2);
  size_t size = kSize;
  if ((code & ~0x7FF) == 0xD800) {
    const bool is_high = (code & 0x400) == 0;
    const int32_t low = is_high && escape[kSize] == '\\' && escape[kSize + 1] == 'u'
                            ? hex4(escape + kSize + 2)
                            : -1;
    code = (low & ~0x3FF) == 0xDC00 ? 0x10000 + ((code & 0x3FF) << 10) + (low & 0x3FF) : -1;
    size += kSize;
  }
  if (code < 0) {
    fail_token(next_, "invalid unicode escape code");
    return false;
  }
  append_utf8(unescaped_, code);
  next_ += size;
  return true;
}

// --- Values -------------------------------------------------------------------------------------

bool JsonDecoder::expected(const char* what) {
  const char* found = token_.kind == Kind::kError ? token_.problem : name_of(token_.kind);
  std::snprintf(error_, sizeof error_, "Expected %s but found %s at character %zu", what, found,
                token_.offset + 1);
  return false;
}

bool JsonDecoder::enter(int depth, int slots) {
  if (depth <= options_.decode_max_depth && lua_checkstack(lua_, slots) != 0 &&
      interpreter_.has_stack()) {
    return true;
  }
  std::snprintf(error_, sizeof error_,
                "Found too many nested data structures (%d) at character %zu", depth,
                token_.offset + 1);
  return false;
}

bool JsonDecoder::value(int depth) {
  if (interpreter_.memory().left() == 0) {
    std::snprintf(error_, sizeof error_, "not enough memory");
    return false;
  }
  switch (token_.kind) {
    case Kind::kString:
      push_text(lua_, token_.string);
      return true;
    case Kind::kNumber:
      lua_pushnumber(lua_, token_.number);
      return true;
    case Kind::kBoolean:
      lua_pushboolean(lua_, token_.boolean ? 1 : 0);
      return true;
    case Kind::kNull:
      lua_pushlightuserdata(lua_, nullptr);
      return true;
    case Kind::kObjectBegin:
      return object(depth + 1);
    case Kind::kArrayBegin:
      return array(depth + 1);
    default:
      return expected("value");
  }
}

bool JsonDecoder::array(int depth) {
  // Stack slots for the table and a value.
  if (!enter(depth, 2)) return false;
  advance();
  lua_createtable(lua_, token_.kind == Kind::kArrayEnd ? 0 : kUsualSize, 0);
  if (options_.mark_arrays) {
    lua_getfield(lua_, LUA_REGISTRYINDEX, kArrayMetatable);
    lua_setmetatable(lua_, -2);
  }
  if (token_.kind == Kind::kArrayEnd) return true;
  for (int i = 1;; ++i) {
    if (!value(depth)) return false;
    lua_rawseti(lua_, -2, i);
    advance();
    if (token_.kind == Kind::kArrayEnd) return true;
    if (token_.kind != Kind::kComma) return expected("comma or array end");
    advance();
  }
}

bool JsonDecoder::object(int depth) {
  // Stack slots for the table, a key and a value.
  if (!enter(depth, 3)) return false;
  advance();
  lua_createtable(lua_, 0, token_.kind == Kind::kObjectEnd ? 0 : kUsualSize);
  if (token_.kind == Kind::kObjectEnd) return true;
  for (;;) {
    if (token_.kind != Kind::kString) return expected("object key string");
    push_text(lua_, token_.string);
    advance();
    if (token_.kind != Kind::kColon) return expected("colon");
    advance();
    if (!value(depth)) return false;
    lua_rawset(lua_, -3);
    advance();
    if (token_.kind == Kind::kObjectEnd) return true;
    if (token_.kind != Kind::kComma) return expected("comma or object end");
    advance();
  }
}

}  // namespace latchkey::script
