#include "script/lua/lua_format.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <lua.hpp>
#include <string_view>

#include "base/text/text.h"
#include "script/lua/lua_numbers.h"
#include "script/lua/lua_text.h"

namespace latchkey::script {

namespace {

constexpr std::string_view kFlags = "-+ #0";
// Strings of at least this many bytes are copied as they are unless a precision cuts them.
constexpr size_t kLongString = 100;
// Larger than a number with 99 digits before the point and 99 after it.
constexpr size_t kMaxNumberText = 512;

// One conversion, from the percent sign to the letter.
struct Conversion {
  char text[16];  // for the C library, without the letter
  bool has_precision = false;
  char letter = 0;
};

// Reads the conversion after a percent sign; raises Lua errors.
Conversion read_conversion(lua_State* lua, std::string_view format, size_t* at) {
  size_t end = *at;
  const auto skip_digits = [&] {
    constexpr size_t kMax = 2;
    for (size_t i = 0; i < kMax && end < format.size() && base::is_digit(format[end]); ++i) ++end;
  };
  while (end < format.size() && kFlags.find(format[end]) != std::string_view::npos) ++end;
  if (end - *at > kFlags.size()) luaL_error(lua, "invalid format (repeated flags)");
  Conversion conversion;
  skip_digits();
  if (end < format.size() && format[end] == '.') {
    conversion.has_precision = true;
    ++end;
    skip_digits();
  }
  if (end < format.size() && base::is_digit(format[end]))
    luaL_error(lua, "invalid format (width or precision too long)");
  conversion.text[0] = '%';
  std::memcpy(conversion.text + 1, format.data() + *at, end - *at);
  conversion.text[1 + end - *at] = '\0';
  conversion.letter = end < format.size() ? format[end] : '\0';
  *at = end + 1;
  return conversion;
}

template <typename Value>
void add_printed(luaL_Buffer* out, const Conversion& conversion, const char* length, Value value) {
  // No objects with destructors: Lua's errors do not run any.
  char text[sizeof(conversion.text) + 4];
  std::snprintf(text, sizeof(text), "%s%s%c", conversion.text, length, conversion.letter);
  char printed[kMaxNumberText];
  std::snprintf(printed, sizeof(printed), text, value);
  luaL_addstring(out, printed);
}

void add_quoted(luaL_Buffer* out, std::string_view text) {
  luaL_addchar(out, '"');
  for (const char byte : text) {
    if (byte == '\r') {
      luaL_addstring(out, "\\r");
    } else if (byte == '\0') {
      luaL_addstring(out, "\\000");
    } else {
      if (byte == '"' || byte == '\\' || byte == '\n') luaL_addchar(out, '\\');
      luaL_addchar(out, byte);
    }
  }
  luaL_addchar(out, '"');
}

void add_argument(lua_State* lua, int argument, const Conversion& conversion, luaL_Buffer* out) {
  switch (conversion.letter) {
    case 'c':
      return add_printed(out, conversion, "", as_int32(luaL_checknumber(lua, argument)));
    case 'd':
    case 'i': {
      const long long number = as_int64(luaL_checknumber(lua, argument));
      return add_printed(out, conversion, "ll", number);
    }
    case 'o':
    case 'u':
    case 'x':
    case 'X': {
      const unsigned long long bits = as_uint64(luaL_checknumber(lua, argument));
      return add_printed(out, conversion, "ll", bits);
    }
    case 'e':
    case 'E':
    case 'f':
    case 'g':
    case 'G':
      return add_printed(out, conversion, "", luaL_checknumber(lua, argument));
    case 'q':
      luaL_checkstring(lua, argument);
      return add_quoted(out, text_at(lua, argument));
    case 's': {
      luaL_checkstring(lua, argument);
      const std::string_view text = text_at(lua, argument);
      if (!conversion.has_precision && text.size() >= kLongString) {
        luaL_addlstring(out, text.data(), text.size());
        return;
      }
      // The C library's string ends at a NUL, and so does Lua 5.1's.
      return add_printed(out, conversion, "", text.data());
    }
    default:
      luaL_error(lua, "invalid option '%%%c' to 'format'", conversion.letter);
  }
}

}  // namespace

int lua_format(lua_State* lua) {
  luaL_checkstring(lua, 1);
  const std::string_view format = text_at(lua, 1);
  const int arguments = lua_gettop(lua);
  luaL_Buffer out;
  luaL_buffinit(lua, &out);
  int argument = 1;
  size_t at = 0;
  while (at < format.size()) {
    const size_t percent = std::min(format.find('%', at), format.size());
    luaL_addlstring(&out, format.data() + at, percent - at);
    at = percent + 1;
    if (percent == format.size()) break;
    if (at < format.size() && format[at] == '%') {
      luaL_addchar(&out, format[at++]);
      continue;
    }
    luaL_argcheck(lua, ++argument <= arguments, argument, "no value");
    add_argument(lua, argument, read_conversion(lua, format, &at), &out);
  }
  luaL_pushresult(&out);
  return 1;
}

int lua_number_to_string(lua_State* lua) {
  const lua_Number number = lua_tonumber(lua, 1);
  if (std::isnan(number)) {
    lua_pushstring(lua, std::signbit(number) ? "-nan" : "nan");
  } else {
    lua_pushvalue(lua, 1);
    lua_tostring(lua, -1);
  }
  return 1;
}

}  // namespace latchkey::script
