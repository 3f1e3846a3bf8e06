#include "script/reply_reader.h"

#include <cstring>
#include <lua.hpp>

#include "base/assert.h"
#include "base/text/number.h"
#include "script/lua/interpreter.h"
#include "script/lua/lua_text.h"

namespace latchkey::script {

namespace {

// Stack slots of one level of nesting.
constexpr int kSlotsToRead = 4;

class Reader {
 public:
  Reader(lua_State* lua, std::string_view bytes)
      : lua_(lua), at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  void push() {
    luaL_checkstack(lua_, kSlotsToRead, "reply nested too deeply");
    LK_ASSERT(at_ < end_);
    const char type = *at_++;
    switch (type) {
      case '$':
        return push_bulk();
      case ':':
        return push_integer();
      case '+':
        return push_field("ok", read_line());
      case '-':
        return push_error();
      case '*':
        return push_array();
      case '_':
        read_line();
        return lua_pushnil(lua_);
      case '#':
        return lua_pushboolean(lua_, read_line() == "t");
      case ',':
        return push_double();
      case '(':
        return push_field("big_number", read_line());
      case '=':
        return push_verbatim();
      case '%':
        return push_map();
      case '~':
        return push_set();
      case '|':
        return skip_attribute();
      default:
        LK_ASSERT(false && "a reply of a known type");
    }
  }

 private:
  std::string_view read_line() {
    const auto* line_end =
        static_cast<const char*>(std::memchr(at_, '\r', static_cast<size_t>(end_ - at_)));
    LK_ASSERT(line_end != nullptr);
    const std::string_view line(at_, static_cast<size_t>(line_end - at_));
    at_ = line_end + 2;
    return line;
  }

  int64_t read_integer() {
    const std::string_view line = read_line();
    int64_t value = 0;
    LK_ASSERT(base::parse_int64(line, &value));
    return value;
  }

  // Lengths and indexes of arrays may be above what 64 bits hold with a sign.
  void push_integer() {
    const std::string_view line = read_line();
    int64_t value = 0;
    uint64_t large = 0;
    if (base::parse_int64(line, &value))
      return lua_pushnumber(lua_, static_cast<lua_Number>(value));
    LK_ASSERT(base::parse_uint64(line, &large));
    lua_pushnumber(lua_, static_cast<lua_Number>(large));
  }

  std::string_view read_bytes(int64_t size) {
    LK_ASSERT(size + 2 <= end_ - at_);
    const std::string_view bytes(at_, static_cast<size_t>(size));
    at_ += size + 2;
    return bytes;
  }

  void push_bulk() {
    const int64_t size = read_integer();
    if (size < 0) return lua_pushboolean(lua_, 0);
    push_text(lua_, read_bytes(size));
  }

  void push_field(const char* name, std::string_view text) {
    lua_createtable(lua_, 0, 1);
    push_text(lua_, text);
    lua_setfield(lua_, -2, name);
  }

  void push_error() {
    push_field(kErrorText, read_line());
    // The error was counted when the command failed.
    lua_pushboolean(lua_, 1);
    lua_setfield(lua_, -2, kErrorCounted);
  }

  void push_array() {
    const int64_t size = read_integer();
    if (size < 0) return lua_pushboolean(lua_, 0);
    lua_createtable(lua_, static_cast<int>(size), 0);
    for (int i = 1; i <= size; ++i) {
      push();
      lua_rawseti(lua_, -2, i);
    }
  }

  void push_double() {
    const std::string_view text = read_line();
    double value = 0;
    if (!base::parse_double(text, &value))
      value = text.starts_with('-') ? -__builtin_nan("") : __builtin_nan("");
    lua_createtable(lua_, 0, 1);
    lua_pushnumber(lua_, value);
    lua_setfield(lua_, -2, "double");
  }

  void push_verbatim() {
    constexpr size_t kFormatSize = 3;
    const std::string_view bytes = read_bytes(read_integer());
    lua_createtable(lua_, 0, 1);
    lua_createtable(lua_, 0, 2);
    push_text(lua_, bytes.substr(kFormatSize + 1));
    lua_setfield(lua_, -2, "string");
    push_text(lua_, bytes.substr(0, kFormatSize));
    lua_setfield(lua_, -2, "format");
    lua_setfield(lua_, -2, "verbatim_string");
  }

  // Sets table[key] = value unless the key is nil.
  void set_pair() {
    if (lua_isnil(lua_, -2)) {
      lua_pop(lua_, 2);
    } else {
      lua_rawset(lua_, -3);
    }
  }

  void push_map() {
    const int64_t pairs = read_integer();
    lua_createtable(lua_, 0, 1);
    lua_createtable(lua_, 0, static_cast<int>(pairs));
    for (int64_t i = 0; i < pairs; ++i) {
      push();
      push();
      set_pair();
    }
    lua_setfield(lua_, -2, "map");
  }

  void push_set() {
    const int64_t size = read_integer();
    lua_createtable(lua_, 0, 1);
    lua_createtable(lua_, 0, static_cast<int>(size));
    for (int64_t i = 0; i < size; ++i) {
      push();
      lua_pushboolean(lua_, 1);
      set_pair();
    }
    lua_setfield(lua_, -2, "set");
  }

  void skip_attribute() {
    for (int64_t left = read_integer() * 2; left > 0; --left) {
      push();
      lua_pop(lua_, 1);
    }
    push();
  }

  lua_State* lua_;
  const char* at_;
  const char* end_;
};

}  // namespace

void push_reply(lua_State* lua, std::string_view bytes) {
  Reader(lua, bytes).push();
}

}  // namespace latchkey::script
