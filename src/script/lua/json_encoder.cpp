#include "script/lua/json_encoder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <lua.hpp>

#include "base/text/hex.h"
#include "base/text/number.h"
#include "script/lua/interpreter.h"
#include "script/lua/lua_json.h"
#include "script/lua/lua_text.h"

namespace latchkey::script {

namespace {

// The maximum size of a Lua string.
constexpr size_t kLongestText = 0x7fff'0000;

// The letter after the backslash in a character's escape, 'u' for a code, 0 for no escape.
constexpr char escape_letter(unsigned char c) {
  switch (c) {
    case '"':
    case '\\':
    case '/':
      return static_cast<char>(c);
    case '\b':
      return 'b';
    case '\f':
      return 'f';
    case '\n':
      return 'n';
    case '\r':
      return 'r';
    case '\t':
      return 't';
    default:
      return c < ' ' || c == 0x7f ? 'u' : '\0';
  }
}

constexpr auto kEscapeLetters = [] {
  std::array<char, 256> letters{};
  for (size_t c = 0; c < letters.size(); ++c)
    letters[c] = escape_letter(static_cast<unsigned char>(c));
  return letters;
}();

void append_escaped(std::string& text, std::string_view bytes) {
  size_t plain = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto c = static_cast<unsigned char>(bytes[i]);
    const char letter = kEscapeLetters[c];
    if (letter == '\0') [[likely]]
      continue;
    text.append(bytes, plain, i - plain);
    plain = i + 1;
    text += '\\';
    text += letter;
    if (letter == 'u') {
      text += "00";
      base::append_hex(&text, c);
    }
  }
  text.append(bytes, plain);
}

// Writes `value` as %.*g would with that precision, where a short exact text is known to be the
// same: any decimal of up to 15 digits is found again from the double next to it. Returns the size,
// or 0 where snprintf must decide.
size_t write_short_number(double value, int precision, char* out) {
  // Below this, %g turns to exponents.
  constexpr double kSmallest = 1e-4;
  // Above, its text is longer than any precision.
  constexpr double kLargest = 1e14;
  const double size = std::abs(value);
  if ((size < kSmallest && size != 0) || size > kLargest) return 0;
  const size_t length = base::format_double(value, out);
  const bool is_plain = std::memchr(out, 'e', length) == nullptr;
  return is_plain && length <= static_cast<size_t>(precision) ? length : 0;
}

}  // namespace

JsonEncoder::JsonEncoder(lua_State* lua, const JsonOptions& options)
    : lua_(lua), options_(options), interpreter_(Interpreter::of(lua)) {
  // Most texts are shorter.
  constexpr size_t kUsualSize = 512;
  text_.reserve(kUsualSize);
}

bool JsonEncoder::fail_value(int place, const char* reason) {
  std::snprintf(error_, sizeof error_, "Cannot serialise %s: %s", luaL_typename(lua_, place),
                reason);
  return false;
}

bool JsonEncoder::encode() {
  return value(lua_gettop(lua_), 0);
}

bool JsonEncoder::value(int place, int depth) {
  constexpr unsigned kPollInterval = 4096;
  if (text_.size() > kLongestText) {
    std::snprintf(error_, sizeof error_, "Cannot serialise: the text is too long");
    return false;
  }
  if (++values_ % kPollInterval == 0) {
    if (!interpreter_.poll_quietly(lua_)) return false;
    if (text_.size() > interpreter_.memory().left()) {
      std::snprintf(error_, sizeof error_, "not enough memory");
      return false;
    }
  }
  switch (lua_type(lua_, place)) {
    case LUA_TSTRING:
      string(text_at(lua_, place));
      return true;
    case LUA_TNUMBER:
      return number(place);
    case LUA_TBOOLEAN:
      text_ += lua_toboolean(lua_, place) != 0 ? "true" : "false";
      return true;
    case LUA_TNIL:
      text_ += "null";
      return true;
    case LUA_TTABLE:
      return table(place, depth + 1);
    case LUA_TLIGHTUSERDATA:
      if (lua_touserdata(lua_, place) != nullptr) break;
      text_ += "null";
      return true;
    default:
      break;
  }
  return fail_value(place, "type not supported");
}

void JsonEncoder::string(std::string_view text) {
  text_ += '"';
  append_escaped(text_, text);
  text_ += '"';
}

bool JsonEncoder::number(int place) {
  const double value = lua_tonumber(lua_, place);
  if (!std::isfinite(value)) {
    if (options_.encode_invalid_numbers == JsonOptions::kRefuse)
      return fail_value(place, "must not be NaN or Inf");
    if (options_.encode_invalid_numbers == JsonOptions::kNull) {
      text_ += "null";
    } else {
      text_ += std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
    }
    return true;
  }
  char digits[std::max(size_t{32}, base::kMaxDoubleText)];
  const int precision = options_.encode_number_precision;
  size_t size = write_short_number(value, precision, digits);
  if (size == 0)
    size = static_cast<size_t>(std::snprintf(digits, sizeof digits, "%.*g", precision, value));
  text_.append(digits, size);
  return true;
}

bool JsonEncoder::table(int place, int depth) {
  // A key, a value and a temporary.
  constexpr int kSlots = 3;
  if (depth > options_.encode_max_depth || lua_checkstack(lua_, kSlots) == 0 ||
      !interpreter_.has_stack()) {
    std::snprintf(error_, sizeof error_, "Cannot serialise, excessive nesting (%d)", depth);
    return false;
  }
  if (is_marked(place)) return array(place, depth, static_cast<int>(lua_objlen(lua_, place)));
  int length = 0;
  if (!measure_array(place, &length)) return false;
  return length > 0 ? array(place, depth, length) : object(place, depth);
}

bool JsonEncoder::is_marked(int place) const {
  if (lua_getmetatable(lua_, place) == 0) return false;
  lua_getfield(lua_, LUA_REGISTRYINDEX, kArrayMetatable);
  bool marked = lua_rawequal(lua_, -1, -2) != 0;
  if (!marked) {
    lua_pop(lua_, 1);
    push_raw_field(lua_, -1, kArrayMark);
    marked = lua_toboolean(lua_, -1) != 0;
  }
  lua_pop(lua_, 2);
  return marked;
}

bool JsonEncoder::measure_array(int place, int* length) {
  int64_t places = 0;
  int64_t values = 0;
  *length = 0;
  for (lua_pushnil(lua_); lua_next(lua_, place) != 0; lua_pop(lua_, 1)) {
    const double key = lua_type(lua_, -2) == LUA_TNUMBER ? lua_tonumber(lua_, -2) : 0;
    if (!(key >= 1 && key <= INT32_MAX && std::floor(key) == key)) {
      lua_pop(lua_, 2);
      return true;
    }
    places = std::max(places, static_cast<int64_t>(key));
    ++values;
  }
  if (options_.sparse_ratio > 0 && places > values * options_.sparse_ratio &&
      places > options_.sparse_safe) {
    return options_.sparse_convert || fail_value(place, "excessively sparse array");
  }
  *length = static_cast<int>(places);
  return true;
}

bool JsonEncoder::array(int place, int depth, int length) {
  text_ += '[';
  const int element = lua_gettop(lua_) + 1;
  for (int i = 1; i <= length; ++i) {
    if (i > 1) text_ += ',';
    lua_rawgeti(lua_, place, i);
    if (!value(element, depth)) return false;
    lua_pop(lua_, 1);
  }
  text_ += ']';
  return true;
}

bool JsonEncoder::object(int place, int depth) {
  text_ += '{';
  bool first = true;
  const auto write = [&](const TableOrder::Pair& pair) {
    if (!first) text_ += ',';
    first = false;
    if (!key(pair)) return false;
    text_ += ':';
    return value(pair.value, depth);
  };
  if (!for_each_pair(lua_, place, write)) return false;
  text_ += '}';
  return true;
}

bool JsonEncoder::key(const TableOrder::Pair& pair) {
  if (pair.text.data() != nullptr) {
    string(pair.text);
    return true;
  }
  if (lua_type(lua_, pair.key) != LUA_TNUMBER)
    return fail_value(pair.key, "table key must be a number or string");
  text_ += '"';
  if (!number(pair.key)) return false;
  text_ += '"';
  return true;
}

}  // namespace latchkey::script
