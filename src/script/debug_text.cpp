#include "script/debug_text.h"

#include <cstdint>
#include <cstdio>
#include <lua.hpp>
#include <utility>

#include "base/text/escape.h"
#include "base/text/number.h"
#include "script/lua/lua_text.h"
#include "script/lua/table_order.h"

namespace latchkey::script {

namespace {

constexpr int kDeepestTable = 10;

class ValueWriter {
 public:
  explicit ValueWriter(lua_State* lua) : lua_(lua) {}

  // Writes the value at that place of the stack, counted from its bottom.
  void write(int place, int depth = 0);
  std::string take() { return std::move(text_); }

 private:
  void number(int place);
  void table(int place, int depth);
  bool is_array(int place);
  // Writes a value without a text form by its kind and address.
  void other(int place);

  lua_State* lua_;
  std::string text_;
};

void ValueWriter::write(int place, int depth) {
  if (depth == kDeepestTable || lua_checkstack(lua_, LUA_MINSTACK) == 0) {
    text_ += "<max recursion level reached! Nested table?>";
    return;
  }
  switch (lua_type(lua_, place)) {
    case LUA_TNIL:
      text_ += "nil";
      return;
    case LUA_TBOOLEAN:
      text_ += lua_toboolean(lua_, place) != 0 ? "true" : "false";
      return;
    case LUA_TNUMBER:
      return number(place);
    case LUA_TSTRING:
      return base::append_quoted(&text_, text_at(lua_, place));
    case LUA_TTABLE:
      return table(place, depth);
    default:
      return other(place);
  }
}

void ValueWriter::number(int place) {
  char digits[32];
  const int size = std::snprintf(digits, sizeof digits, "%g", lua_tonumber(lua_, place));
  text_.append(digits, static_cast<size_t>(size));
}

void ValueWriter::other(int place) {
  const bool is_light = lua_type(lua_, place) == LUA_TLIGHTUSERDATA;
  const char* kind = is_light ? "light-userdata" : luaL_typename(lua_, place);
  char text[64];
  std::snprintf(text, sizeof text, "\"%s@%p\"", kind, lua_topointer(lua_, place));
  text_ += text;
}

bool ValueWriter::is_array(int place) {
  int expected = 1;
  return for_each_pair(lua_, place, [&](const TableOrder::Pair& pair) {
    return lua_type(lua_, pair.key) == LUA_TNUMBER && lua_tonumber(lua_, pair.key) == expected++;
  });
}

void ValueWriter::table(int place, int depth) {
  const bool bare = is_array(place);
  const char* separator = "";
  text_ += '{';
  for_each_pair(lua_, place, [&](const TableOrder::Pair& pair) {
    text_ += std::exchange(separator, "; ");
    if (!bare) {
      text_ += '[';
      write(pair.key, depth + 1);
      text_ += "]=";
    }
    write(pair.value, depth + 1);
    return true;
  });
  text_ += '}';
}

// Reads the server's own replies, which are well-formed.
class ReplyWriter {
 public:
  explicit ReplyWriter(std::string_view reply) : left_(reply) {}

  void write();
  std::string take() { return std::move(text_); }

 private:
  std::string_view line();
  // The number of elements or bytes in the header; -1 for null.
  int64_t count(std::string_view header);
  void string(int64_t size);
  void elements(int64_t count, std::string_view open, std::string_view close);
  void pairs(int64_t count);
  // Skips a map of attributes, which precedes the value it belongs to.
  void skip_attributes(int64_t count);

  std::string_view left_;
  std::string text_;
};

std::string_view ReplyWriter::line() {
  const size_t end = left_.find("\r\n");
  const std::string_view taken = left_.substr(0, end);
  left_.remove_prefix(end + 2);
  return taken;
}

int64_t ReplyWriter::count(std::string_view header) {
  int64_t number = -1;
  base::parse_int64(header.substr(1), &number);
  return number;
}

void ReplyWriter::string(int64_t size) {
  if (size < 0) {
    text_ += "NULL";
    return;
  }
  base::append_quoted(&text_, left_.substr(0, static_cast<size_t>(size)));
  left_.remove_prefix(static_cast<size_t>(size) + 2);
}

void ReplyWriter::elements(int64_t count, std::string_view open, std::string_view close) {
  if (count < 0) {
    text_ += "NULL";
    return;
  }
  text_ += open;
  for (int64_t i = 0; i < count; ++i) {
    if (i > 0) text_ += ',';
    write();
  }
  text_ += close;
}

void ReplyWriter::pairs(int64_t count) {
  text_ += '{';
  for (int64_t i = 0; i < count; ++i) {
    if (i > 0) text_ += ',';
    write();
    text_ += " => ";
    write();
  }
  text_ += '}';
}

void ReplyWriter::skip_attributes(int64_t count) {
  const size_t kept = text_.size();
  for (int64_t i = 0; i < 2 * count; ++i) write();
  text_.resize(kept);
}

void ReplyWriter::write() {
  const std::string_view header = line();
  switch (header.front()) {
    case ':':
      text_ += header.substr(1);
      return;
    case '$':
    case '=':
      return string(count(header));
    case '*':
      return elements(count(header), "[", "]");
    case '~':
      return elements(count(header), "~(", ")");
    case '%':
      return pairs(count(header));
    case '|':
      skip_attributes(count(header));
      return write();
    case '_':
      text_ += "(null)";
      return;
    case '#':
      text_ += header == "#t" ? "#true" : "#false";
      return;
    case ',':
      text_.append("(double) ").append(header.substr(1));
      return;
    case '(':
      text_.append("(big number) ").append(header.substr(1));
      return;
    default:
      return base::append_quoted(&text_, header);
  }
}

}  // namespace

std::string value_text(lua_State* lua, int index) {
  lua_pushvalue(lua, index);
  ValueWriter writer(lua);
  writer.write(lua_gettop(lua));
  lua_pop(lua, 1);
  return writer.take();
}

std::string reply_text(std::string_view reply) {
  ReplyWriter writer(reply);
  writer.write();
  return writer.take();
}

}  // namespace latchkey::script
