#include "script/lua/json_encoder.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <lua.hpp>

#include "base/hex.h"
#include "script/lua/interpreter.h"
#include "script/lua/lua_json.h"
#include "script/lua/lua_text.h"
#include "script/lua/table_order.h"

namespace latchkey::script {

namespace {

// The maximum size of a Lua string.
constexpr size_t kLongestText = 0x7fff'0000;

// The letter after the backslash in a character's escape, 'u' for a code, 0 for no escape.
char escape_letter(unsigned char c) {
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

void append_escaped(std::string& text, std::string_view bytes) {
  size_t plain = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto c = static_cast<unsigned char>(bytes[i]);
    const char letter = escape_letter(c);
    if (letter == '\0') continue;
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

}  // namespace

bool JsonEncoder::fail_value(int index, const char* reason) {
  std::snprintf(error_, sizeof error_, "Cannot serialise %s: %s", luaL_typename(lua_, index),
                reason);
  return false;
}

bool JsonEncoder::value(int depth) {
  constexpr unsigned kPollInterval = 4096;
  if (text_.size() > kLongestText) {
    std::snprintf(error_, sizeof error_, "Cannot serialise: the text is too long");
    return false;
  }
  if (++values_ % kPollInterval == 0) {
    Interpreter& interpreter = Interpreter::of(lua_);
    if (!interpreter.poll_quietly(lua_)) return false;
    if (text_.size() > interpreter.memory().left()) {
      std::snprintf(error_, sizeof error_, "not enough memory");
      return false;
    }
  }
  switch (lua_type(lua_, -1)) {
    case LUA_TSTRING:
      string();
      return true;
    case LUA_TNUMBER:
      return number();
    case LUA_TBOOLEAN:
      text_ += lua_toboolean(lua_, -1) != 0 ? "true" : "false";
      return true;
    case LUA_TNIL:
      text_ += "null";
      return true;
    case LUA_TTABLE:
      return table(depth + 1);
    case LUA_TLIGHTUSERDATA:
      if (lua_touserdata(lua_, -1) != nullptr) break;
      text_ += "null";
      return true;
    default:
      break;
  }
  return fail_value(-1, "type not supported");
}

void JsonEncoder::string() {
  text_ += '"';
  append_escaped(text_, text_at(lua_, -1));
  text_ += '"';
}

bool JsonEncoder::number() {
  const double value = lua_tonumber(lua_, -1);
  if (!std::isfinite(value)) {
    if (options_.encode_invalid_numbers == JsonOptions::kRefuse)
      return fail_value(-1, "must not be NaN or Inf");
    if (options_.encode_invalid_numbers == JsonOptions::kNull) {
      text_ += "null";
    } else {
      text_ += std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
    }
    return true;
  }
  char digits[32];
  const int size =
      std::snprintf(digits, sizeof digits, "%.*g", options_.encode_number_precision, value);
  text_.append(digits, static_cast<size_t>(size));
  return true;
}

bool JsonEncoder::table(int depth) {
  // A key, a value and a temporary.
  constexpr int kSlots = 3;
  if (depth > options_.encode_max_depth || lua_checkstack(lua_, kSlots) == 0 ||
      !Interpreter::of(lua_).has_stack()) {
    std::snprintf(error_, sizeof error_, "Cannot serialise, excessive nesting (%d)", depth);
    return false;
  }
  if (is_marked()) return array(depth, static_cast<int>(lua_objlen(lua_, -1)));
  int length = 0;
  if (!measure_array(&length)) return false;
  return length > 0 ? array(depth, length) : object(depth);
}

bool JsonEncoder::is_marked() const {
  if (lua_getmetatable(lua_, -1) == 0) return false;
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

bool JsonEncoder::measure_array(int* length) {
  int64_t places = 0;
  int64_t values = 0;
  *length = 0;
  for (lua_pushnil(lua_); lua_next(lua_, -2) != 0; lua_pop(lua_, 1)) {
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
    return options_.sparse_convert || fail_value(-1, "excessively sparse array");
  }
  *length = static_cast<int>(places);
  return true;
}

bool JsonEncoder::array(int depth, int length) {
  text_ += '[';
  for (int i = 1; i <= length; ++i) {
    if (i > 1) text_ += ',';
    lua_rawgeti(lua_, -1, i);
    if (!value(depth)) return false;
    lua_pop(lua_, 1);
  }
  text_ += ']';
  return true;
}

bool JsonEncoder::object(int depth) {
  text_ += '{';
  bool first = true;
  const auto write = [&] {
    if (!first) text_ += ',';
    first = false;
    lua_pushvalue(lua_, -2);
    if (!key()) return false;
    lua_pop(lua_, 1);
    text_ += ':';
    return value(depth);
  };
  if (!for_each_pair(lua_, write)) return false;
  text_ += '}';
  return true;
}

bool JsonEncoder::key() {
  switch (lua_type(lua_, -1)) {
    case LUA_TSTRING:
      string();
      return true;
    case LUA_TNUMBER:
      text_ += '"';
      if (!number()) return false;
      text_ += '"';
      return true;
    default:
      return fail_value(-1, "table key must be a number or string");
  }
}

}  // namespace latchkey::script
