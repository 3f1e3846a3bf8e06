#include "script/lua/lua_struct.h"

#include <algorithm>
#include <bit>
#include <climits>
#include <cstdint>
#include <lua.hpp>
#include <string_view>

#include "base/text/text.h"
#include "script/lua/lua_numbers.h"
#include "script/lua/lua_text.h"

namespace latchkey::script {

namespace {

constexpr int kLargestInteger = 32;
constexpr int kNumberBytes = 8;
constexpr size_t kNaturalAlignment = 8;

// A letter of a format, with its size. Like everything here it has no destructor: errors would not
// run it.
struct Item {
  char letter;
  size_t size;
  // Bytes of padding before it.
  size_t padding;
};

// Steps through a format.
class Format {
 public:
  Format(lua_State* lua, const char* text) : lua_(lua), next_(text) {}

  // Reads the item after `total` packed bytes. False at the end.
  bool next(size_t total, Item* item);
  bool is_little() const { return little_; }
  // Applies a letter that changes how the following ones are read. False when it is none.
  bool set(char letter);

 private:
  bool has_number() const { return base::is_digit(*next_); }
  int number(int default_value);
  size_t size_of(char letter);

  lua_State* lua_;
  const char* next_;
  bool little_ = true;
  size_t alignment_ = 1;
};

int Format::number(int default_value) {
  if (!has_number()) return default_value;
  int value = 0;
  while (has_number()) {
    const int digit = *next_++ - '0';
    if (value > (INT_MAX - digit) / 10) luaL_error(lua_, "integral size overflow");
    value = value * 10 + digit;
  }
  return value;
}

size_t Format::size_of(char letter) {
  switch (letter) {
    case 'b':
    case 'B':
    case 'x':
      return 1;
    case 'h':
    case 'H':
      return sizeof(short);
    case 'l':
    case 'L':
      return sizeof(long);
    case 'T':
      return sizeof(size_t);
    case 'f':
      return sizeof(float);
    case 'd':
      return sizeof(double);
    case 'c':
      return static_cast<size_t>(number(1));
    case 'i':
    case 'I': {
      const int size = number(sizeof(int));
      if (size > kLargestInteger) {
        luaL_error(lua_, "integral size %d is larger than limit of %d", size, kLargestInteger);
      }
      return static_cast<size_t>(size);
    }
    default:
      return 0;
  }
}

bool Format::next(size_t total, Item* item) {
  if (*next_ == '\0') return false;
  item->letter = *next_++;
  item->size = size_of(item->letter);
  item->padding = 0;
  if (item->size > 0 && item->letter != 'c') {
    const size_t mask = std::min(item->size, alignment_) - 1;
    item->padding = (mask + 1 - (total & mask)) & mask;
  }
  return true;
}

bool Format::set(char letter) {
  switch (letter) {
    case ' ':
      return true;
    case '<':
      little_ = true;
      return true;
    case '>':
      little_ = false;
      return true;
    case '!': {
      const int alignment = number(kNaturalAlignment);
      if (!std::has_single_bit(static_cast<unsigned>(alignment)))
        luaL_error(lua_, "alignment %d is not a power of 2", alignment);
      alignment_ = static_cast<size_t>(alignment);
      return true;
    }
    default:
      return false;
  }
}

bool is_alphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

int bad_letter(lua_State* lua, char letter) {
  lua_pushfstring(lua, "invalid format option '%c'", letter);
  return luaL_argerror(lua, 1, lua_tostring(lua, -1));
}

// --- Packing ------------------------------------------------------------------------------------

// The index of byte i of a number of `size` bytes; byte 0 is the lowest.
size_t place(size_t i, size_t size, bool little) {
  return little ? i : size - 1 - i;
}

void add_integer(luaL_Buffer* buffer, uint64_t bits, size_t size, bool little) {
  char bytes[kLargestInteger] = {};
  for (size_t i = 0; i < std::min<size_t>(size, kNumberBytes); ++i)
    bytes[place(i, size, little)] = static_cast<char>(bits >> (i * 8));
  luaL_addlstring(buffer, bytes, size);
}

// Appends the argument for an item; *extra: bytes appended besides item.size.
void pack_item(lua_State* lua, luaL_Buffer* buffer, const Item& item, bool little, int argument,
               size_t* extra) {
  switch (item.letter) {
    case 'f':
      return add_integer(
          buffer, std::bit_cast<uint32_t>(static_cast<float>(luaL_checknumber(lua, argument))),
          item.size, little);
    case 'd':
      return add_integer(buffer, std::bit_cast<uint64_t>(luaL_checknumber(lua, argument)),
                         item.size, little);
    case 's':
    case 'c': {
      size_t length = 0;
      const char* text = luaL_checklstring(lua, argument, &length);
      const size_t taken = item.size == 0 ? length : item.size;
      luaL_argcheck(lua, length >= taken, argument + 1, "string too short");
      luaL_addlstring(buffer, text, taken);
      if (item.letter == 's') luaL_addchar(buffer, '\0');
      *extra = taken - item.size + (item.letter == 's' ? 1 : 0);
      return;
    }
    default:
      return add_integer(buffer, as_uint64(luaL_checknumber(lua, argument)), item.size, little);
  }
}

bool is_value(char letter) {
  return letter != '\0' && std::string_view("bBhHlLTiIsfdc").find(letter) != std::string_view::npos;
}

int pack(lua_State* lua) {
  Format format(lua, luaL_checkstring(lua, 1));
  // Nil stands for a missing argument; the buffer keeps its pieces above it.
  lua_pushnil(lua);
  luaL_Buffer buffer;
  luaL_buffinit(lua, &buffer);
  int argument = 2;
  size_t total = 0;
  for (Item item; format.next(total, &item);) {
    for (size_t i = 0; i < item.padding; ++i) luaL_addchar(&buffer, '\0');
    size_t extra = 0;
    if (item.letter == 'x') {
      luaL_addchar(&buffer, '\0');
    } else if (is_value(item.letter)) {
      pack_item(lua, &buffer, item, format.is_little(), argument++, &extra);
    } else if (!format.set(item.letter)) {
      return bad_letter(lua, item.letter);
    }
    total += item.padding + item.size + extra;
  }
  luaL_pushresult(&buffer);
  return 1;
}

// --- Unpacking ----------------------------------------------------------------------------------

uint64_t read_integer(std::string_view bytes, bool little) {
  uint64_t bits = 0;
  for (size_t i = std::min<size_t>(bytes.size(), kNumberBytes); i-- > 0;)
    bits = (bits << 8) | static_cast<unsigned char>(bytes[place(i, bytes.size(), little)]);
  return bits;
}

double signed_number(uint64_t bits, size_t size) {
  if (size == 0) return 0;
  const int unused = size < kNumberBytes ? static_cast<int>(kNumberBytes - size) * 8 : 0;
  return static_cast<double>(static_cast<int64_t>(bits << unused) >> unused);
}

// Pops the number before a string, which is its length.
size_t previous_size(lua_State* lua, int results) {
  if (results == 0 || lua_isnumber(lua, -1) == 0)
    luaL_error(lua, "format 'c0' needs a previous size");
  const auto size = static_cast<size_t>(as_uint64(lua_tonumber(lua, -1)));
  lua_pop(lua, 1);
  return size;
}

void push_number(lua_State* lua, char letter, std::string_view bytes, bool little) {
  const uint64_t bits = read_integer(bytes, little);
  switch (letter) {
    case 'f':
      return lua_pushnumber(lua, std::bit_cast<float>(static_cast<uint32_t>(bits)));
    case 'd':
      return lua_pushnumber(lua, std::bit_cast<double>(bits));
    case 'b':
    case 'h':
    case 'l':
    case 'i':
      return lua_pushnumber(lua, signed_number(bits, bytes.size()));
    default:
      return lua_pushnumber(lua, static_cast<double>(bits));
  }
}

int unpack(lua_State* lua) {
  constexpr char kTooShort[] = "data string too short";
  Format format(lua, luaL_checkstring(lua, 1));
  luaL_checkstring(lua, 2);
  const std::string_view data = text_at(lua, 2);
  const auto first = static_cast<int64_t>(luaL_optinteger(lua, 3, 1));
  luaL_argcheck(lua, first != 0, 3, "offset must be 1 or greater");
  luaL_argcheck(lua, first > 0 || *luaL_checkstring(lua, 1) == '\0', 2, kTooShort);
  auto position = static_cast<size_t>(first - 1);
  lua_settop(lua, 2);
  int results = 0;
  for (Item item; format.next(position, &item);) {
    position += item.padding;
    luaL_argcheck(lua, position <= data.size() && item.size <= data.size() - position, 2,
                  kTooShort);
    luaL_checkstack(lua, 2, "too many results");
    std::string_view bytes = data.substr(position, item.size);
    if (item.letter == 's') {
      const size_t end = data.find('\0', position);
      if (end == data.npos) return luaL_error(lua, "unfinished string in data");
      bytes = data.substr(position, end - position);
      push_text(lua, bytes);
      ++results;
      ++position;
    } else if (item.letter == 'c') {
      if (item.size == 0) {
        const size_t size = previous_size(lua, results--);
        luaL_argcheck(lua, size <= data.size() - position, 2, kTooShort);
        bytes = data.substr(position, size);
      }
      push_text(lua, bytes);
      ++results;
    } else if (is_value(item.letter)) {
      push_number(lua, item.letter, bytes, format.is_little());
      ++results;
    } else if (item.letter != 'x' && !format.set(item.letter)) {
      return bad_letter(lua, item.letter);
    }
    position += bytes.size();
  }
  lua_pushnumber(lua, static_cast<double>(position + 1));
  return results + 1;
}

int size(lua_State* lua) {
  Format format(lua, luaL_checkstring(lua, 1));
  size_t total = 0;
  for (Item item; format.next(total, &item);) {
    total += item.padding + item.size;
    luaL_argcheck(lua, item.letter != 's', 1, "option 's' has no fixed size");
    luaL_argcheck(lua, item.letter != 'c' || item.size > 0, 1, "option 'c0' has no fixed size");
    // Unknown letters have size 0; only other characters are errors here.
    if (!format.set(item.letter) && !is_alphanumeric(item.letter))
      return bad_letter(lua, item.letter);
  }
  lua_pushnumber(lua, static_cast<double>(total));
  return 1;
}

}  // namespace

void push_struct_library(lua_State* lua) {
  constexpr luaL_Reg kFunctions[] = {{"pack", pack}, {"unpack", unpack}, {"size", size}};
  lua_newtable(lua);
  for (const luaL_Reg& function : kFunctions) {
    lua_pushcfunction(lua, function.func);
    lua_setfield(lua, -2, function.name);
  }
}

}  // namespace latchkey::script
