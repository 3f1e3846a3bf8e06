#include "script/reply_writer.h"

#include <algorithm>
#include <lua.hpp>
#include <string>
#include <string_view>

#include "script/lua/interpreter.h"
#include "script/lua/lua_numbers.h"
#include "script/lua/lua_text.h"

namespace latchkey::script {

namespace {

// Stack slots of one level of nesting.
constexpr int kSlotsToWrite = 3;
constexpr size_t kVerbatimFormatSize = 3;

std::string one_line(std::string_view text) {
  std::string line(text);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\r' || c == '\n'; }, ' ');
  return line;
}

class Writer {
 public:
  Writer(lua_State* lua, int script_protocol, resp::ReplyBuilder& reply)
      : lua_(lua), script_protocol_(script_protocol), reply_(reply) {}

  // Whether the last error written was counted already.
  bool counted() const { return counted_; }

  // Pops the value on top of the stack and writes it.
  void write() {
    if (lua_checkstack(lua_, kSlotsToWrite) == 0 || !Interpreter::of(lua_).has_stack()) {
      reply_.error("ERR reached lua stack limit");
      lua_pop(lua_, 1);
      return;
    }
    switch (lua_type(lua_, -1)) {
      case LUA_TSTRING:
        reply_.bulk(text_at(lua_, -1));
        break;
      case LUA_TNUMBER:
        reply_.integer(as_int64(lua_tonumber(lua_, -1)));
        break;
      case LUA_TBOOLEAN:
        write_boolean(lua_toboolean(lua_, -1) != 0);
        break;
      case LUA_TTABLE:
        write_table();
        break;
      default:
        reply_.null();
    }
    lua_pop(lua_, 1);
  }

 private:
  void write_boolean(bool value) {
    if (script_protocol_ == 3) {
      reply_.boolean(value);
    } else if (value) {
      reply_.integer(1);
    } else {
      reply_.null();
    }
  }

  // Pushes the field of the table on top; false, with nothing pushed, when it is of another type.
  bool push_field(std::string_view name, int type) {
    push_raw_field(lua_, -1, name);
    if (lua_type(lua_, -1) == type) return true;
    lua_pop(lua_, 1);
    return false;
  }

  void write_table() {
    if (push_field(kErrorText, LUA_TSTRING)) {
      push_raw_field(lua_, -2, kErrorCounted);
      counted_ = lua_toboolean(lua_, -1) != 0;
      lua_pop(lua_, 1);
      reply_.error("-" + one_line(text_at(lua_, -1)));
    } else if (push_field("ok", LUA_TSTRING)) {
      reply_.status(one_line(text_at(lua_, -1)));
    } else if (push_field("double", LUA_TNUMBER)) {
      reply_.number(lua_tonumber(lua_, -1));
    } else if (push_field("map", LUA_TTABLE)) {
      write_map();
    } else if (push_field("set", LUA_TTABLE)) {
      write_set();
    } else if (push_field("big_number", LUA_TSTRING)) {
      reply_.big_number(one_line(text_at(lua_, -1)));
    } else if (push_field("verbatim_string", LUA_TTABLE)) {
      if (write_verbatim()) return lua_pop(lua_, 1);
      lua_pop(lua_, 1);
      return write_array();
    } else {
      return write_array();
    }
    lua_pop(lua_, 1);
  }

  void write_array() {
    const int size = array_size();
    reply_.array(static_cast<size_t>(size));
    for (int i = 1; i <= size; ++i) {
      lua_rawgeti(lua_, -1, i);
      write();
    }
  }

  // Number of elements before the first nil.
  int array_size() {
    for (int size = 0;; ++size) {
      lua_rawgeti(lua_, -1, size + 1);
      const bool end = lua_isnil(lua_, -1);
      lua_pop(lua_, 1);
      if (end) return size;
    }
  }

  size_t pair_count() {
    size_t pairs = 0;
    for (lua_pushnil(lua_); lua_next(lua_, -2) != 0; lua_pop(lua_, 1)) ++pairs;
    return pairs;
  }

  void write_map() {
    reply_.map(pair_count());
    lua_pushnil(lua_);
    while (lua_next(lua_, -2) != 0) {
      lua_pushvalue(lua_, -2);
      write();
      write();
    }
  }

  void write_set() {
    reply_.set(pair_count());
    lua_pushnil(lua_);
    while (lua_next(lua_, -2) != 0) {
      lua_pop(lua_, 1);
      lua_pushvalue(lua_, -1);
      write();
    }
  }

  bool write_verbatim() {
    if (!push_field("format", LUA_TSTRING)) return false;
    std::string format(text_at(lua_, -1));
    lua_pop(lua_, 1);
    if (!push_field("string", LUA_TSTRING)) return false;
    format.resize(kVerbatimFormatSize, ' ');
    reply_.verbatim(format, text_at(lua_, -1));
    lua_pop(lua_, 1);
    return true;
  }

  lua_State* lua_;
  int script_protocol_;
  resp::ReplyBuilder& reply_;
  bool counted_ = false;
};

}  // namespace

bool write_reply(lua_State* lua, int script_protocol, resp::ReplyBuilder& reply) {
  Writer writer(lua, script_protocol, reply);
  writer.write();
  return writer.counted();
}

}  // namespace latchkey::script
