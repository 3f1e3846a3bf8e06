#include "script/lua/lua_msgpack.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <lua.hpp>
#include <string>
#include <string_view>

#include "script/lua/interpreter.h"
#include "script/lua/lua_numbers.h"
#include "script/lua/lua_text.h"
#include "script/lua/table_order.h"

namespace latchkey::script {

namespace {

// First bytes. Those of the fix family contain a value or a size in their low bits.
enum Lead : uint8_t {
  kFixMap = 0x80,
  kFixArray = 0x90,
  kFixString = 0xa0,
  kNil = 0xc0,
  kFalse = 0xc2,
  kTrue = 0xc3,
  kFloat32 = 0xca,
  kFloat64 = 0xcb,
  kUnsigned8 = 0xcc,  // and 16, 32, 64
  kUnsigned64 = 0xcf,
  kSigned8 = 0xd0,  // and 16, 32, 64
  kSigned64 = 0xd3,
  kString8 = 0xd9,
  kString16 = 0xda,
  kString32 = 0xdb,
  kArray16 = 0xdc,
  kArray32 = 0xdd,
  kMap16 = 0xde,
  kMap32 = 0xdf,
  kNegativeFix = 0xe0,
};

// --- Packing ------------------------------------------------------------------------------------

class Packer {
 public:
  // Tables nested more deeply become nil.
  static constexpr int kDeepest = 16;
  // Stack slots that a value may need, besides what TableOrder takes by itself.
  static constexpr int kSlots = kDeepest * 3 + 3;

  explicit Packer(lua_State* lua) : lua_(lua) { bytes_.reserve(kUsualSize); }

  // Appends the value at that place of the stack, counted from its bottom. Raises no errors. False
  // when the result exceeds a Lua string's size or the memory limit, or when the script is being
  // stopped; what is on the stack then is not to be used.
  bool pack(int place, int depth = 0);
  const std::string& bytes() const { return bytes_; }

 private:
  static constexpr size_t kLongest = 0x7fff'0000;
  static constexpr size_t kUsualSize = 256;

  // Appends a first byte, and the `size` low bytes of a number, the highest first.
  void lead(int byte, uint64_t value = 0, unsigned size = 0) {
    if (size == 0) return bytes_.push_back(static_cast<char>(byte));
    char head[1 + sizeof value] = {static_cast<char>(byte)};
    const uint64_t big_endian = __builtin_bswap64(value) >> (64 - 8 * size);
    std::memcpy(head + 1, &big_endian, sizeof big_endian);
    bytes_.append(head, 1 + size);
  }
  void string(std::string_view text);
  void number(double value);
  void integer(int64_t value);
  // Appends the head of an array or a map.
  void collection(int fix, int lead16, size_t size);
  bool table(int place, int depth);
  bool array(int place, int depth, size_t size);
  bool map(int place, int depth);
  // Whether the keys of the table are 1 .. `*size`.
  bool is_array(int place, size_t* size);

  lua_State* lua_;
  std::string bytes_;
  unsigned values_ = 0;
};

void Packer::string(std::string_view text) {
  if (text.size() < 32) {
    lead(kFixString | static_cast<int>(text.size()));
  } else if (text.size() <= UINT8_MAX) {
    lead(kString8, text.size(), 1);
  } else if (text.size() <= UINT16_MAX) {
    lead(kString16, text.size(), 2);
  } else {
    lead(kString32, text.size(), 4);
  }
  bytes_ += text;
}

void Packer::integer(int64_t value) {
  const auto bits = static_cast<uint64_t>(value);
  if (value >= -32 && value < 128) return lead(static_cast<int>(bits & 0xff));
  const int first = value >= 0 ? kUnsigned8 : kSigned8;
  // The width in bits, without the sign.
  const auto magnitude = static_cast<uint64_t>(value >= 0 ? value : ~value);
  const int width = static_cast<int>(std::bit_width(magnitude)) + (value >= 0 ? 0 : 1);
  const int power = width <= 8 ? 0 : width <= 16 ? 1 : width <= 32 ? 2 : 3;
  lead(first + power, bits, 1u << power);
}

void Packer::number(double value) {
  if (value >= -kTwoTo63 && value < kTwoTo63 && value == std::trunc(value))
    return integer(static_cast<int64_t>(value));
  const auto narrow = static_cast<float>(value);
  if (static_cast<double>(narrow) == value) {
    lead(kFloat32, std::bit_cast<uint32_t>(narrow), 4);
  } else {
    lead(kFloat64, std::bit_cast<uint64_t>(value), 8);
  }
}

void Packer::collection(int fix, int lead16, size_t size) {
  if (size < 16) {
    lead(fix | static_cast<int>(size));
  } else if (size <= UINT16_MAX) {
    lead(lead16, size, 2);
  } else {
    lead(lead16 + 1, size, 4);
  }
}

bool Packer::is_array(int place, size_t* size) {
  double highest = 0;
  *size = 0;
  for (lua_pushnil(lua_); lua_next(lua_, place) != 0; lua_pop(lua_, 1)) {
    const double key = lua_type(lua_, -2) == LUA_TNUMBER ? lua_tonumber(lua_, -2) : 0;
    if (!(key >= 1) || key != std::floor(key)) {
      lua_pop(lua_, 2);
      return false;
    }
    highest = std::max(highest, key);
    ++*size;
  }
  // Different numbers from 1 on are 1 .. n when their number equals the highest.
  return highest == static_cast<double>(*size);
}

bool Packer::array(int place, int depth, size_t size) {
  collection(kFixArray, kArray16, size);
  const int element = lua_gettop(lua_) + 1;
  for (size_t i = 1; i <= size; ++i) {
    lua_rawgeti(lua_, place, static_cast<int>(i));
    if (!pack(element, depth)) return false;
    lua_pop(lua_, 1);
  }
  return true;
}

bool Packer::map(int place, int depth) {
  const TableOrder order(lua_, place);
  collection(kFixMap, kMap16, order.size());
  return for_each_pair(lua_, place, order, [&](const TableOrder::Pair& pair) {
    if (pair.text.data() != nullptr) {
      string(pair.text);
    } else if (!pack(pair.key, depth)) {
      return false;
    }
    return pack(pair.value, depth);
  });
}

bool Packer::table(int place, int depth) {
  if (depth > kDeepest) {
    lead(kNil);
    return true;
  }
  size_t size = 0;
  return is_array(place, &size) ? array(place, depth, size) : map(place, depth);
}

bool Packer::pack(int place, int depth) {
  constexpr unsigned kPollInterval = 4096;
  if (bytes_.size() > kLongest) return false;
  if (++values_ % kPollInterval == 0) {
    Interpreter& interpreter = Interpreter::of(lua_);
    if (!interpreter.poll_quietly(lua_)) return false;
    if (bytes_.size() > interpreter.memory().left()) return false;
  }
  switch (lua_type(lua_, place)) {
    case LUA_TSTRING:
      string(text_at(lua_, place));
      return true;
    case LUA_TNUMBER:
      number(lua_tonumber(lua_, place));
      return true;
    case LUA_TBOOLEAN:
      lead(lua_toboolean(lua_, place) != 0 ? kTrue : kFalse);
      return true;
    case LUA_TTABLE:
      return table(place, depth + 1);
    default:
      lead(kNil);
      return true;
  }
}

int pack(lua_State* lua) {
  const int count = lua_gettop(lua);
  luaL_argcheck(lua, count > 0, 0, "MessagePack pack needs input.");
  luaL_checkstack(lua, Packer::kSlots, "in function pack");
  Interpreter& interpreter = Interpreter::of(lua);
  {
    // Errors do not run destructors: the limit is suspended so that memory errors cannot occur
    // here.
    const LuaMemory::Exemption no_limit(interpreter.memory());
    Packer packer(lua);
    bool fits = true;
    for (int i = 1; i <= count && fits; ++i) fits = packer.pack(i);
    lua_settop(lua, count);
    if (fits && packer.bytes().size() <= interpreter.memory().left()) {
      push_text(lua, packer.bytes());
      return 1;
    }
  }
  interpreter.pass_on_stop(lua);
  return luaL_error(lua, "too much to pack");
}

// --- Unpacking ----------------------------------------------------------------------------------

// Has no members with a destructor: it raises Lua errors.
class Unpacker {
 public:
  Unpacker(lua_State* lua, std::string_view bytes) : lua_(lua), left_(bytes) {}

  // Reads one value and pushes it.
  void unpack();
  std::string_view left() const { return left_; }

 private:
  std::string_view take(size_t size) {
    if (size > left_.size()) luaL_error(lua_, "Missing bytes in input.");
    const std::string_view taken = left_.substr(0, size);
    left_.remove_prefix(size);
    return taken;
  }
  uint64_t big_endian(int size) {
    uint64_t value = 0;
    for (const char byte : take(static_cast<size_t>(size)))
      value = (value << 8) | static_cast<unsigned char>(byte);
    return value;
  }
  int64_t signed_big_endian(int size) {
    const int unused = 64 - size * 8;
    return static_cast<int64_t>(big_endian(size) << unused) >> unused;
  }
  void fix(int lead);
  void string(size_t size) { push_text(lua_, take(size)); }
  void array(size_t size);
  void map(size_t size);

  lua_State* lua_;
  std::string_view left_;
};

void Unpacker::array(size_t size) {
  lua_newtable(lua_);
  luaL_checkstack(lua_, 1, "in function mp_decode_to_lua_array");
  for (size_t i = 1; i <= size; ++i) {
    unpack();
    lua_rawseti(lua_, -2, static_cast<int>(i));
  }
}

void Unpacker::map(size_t size) {
  lua_newtable(lua_);
  for (size_t i = 0; i < size; ++i) {
    unpack();
    const int type = lua_type(lua_, -1);
    if (type == LUA_TNIL) {
      lua_pushliteral(lua_, "table index is nil");
      lua_error(lua_);
    }
    if (type == LUA_TNUMBER && std::isnan(lua_tonumber(lua_, -1))) {
      lua_pushliteral(lua_, "table index is NaN");
      lua_error(lua_);
    }
    unpack();
    lua_rawset(lua_, -3);
  }
}

void Unpacker::fix(int lead) {
  constexpr int kSmallSize = 0x0f;
  constexpr int kStringSize = 0x1f;
  if (lead < kFixMap) return lua_pushinteger(lua_, lead);
  if (lead >= kNegativeFix) return lua_pushinteger(lua_, static_cast<int8_t>(lead));
  if (lead >= kNil) {
    luaL_error(lua_, "Bad data format in input.");
  } else if (lead >= kFixString) {
    string(static_cast<size_t>(lead & kStringSize));
  } else if (lead >= kFixArray) {
    array(static_cast<size_t>(lead & kSmallSize));
  } else {
    map(static_cast<size_t>(lead & kSmallSize));
  }
}

void Unpacker::unpack() {
  if (!Interpreter::of(lua_).has_stack()) luaL_error(lua_, "C stack overflow");
  luaL_checkstack(lua_, 1,
                  "too many return values at once; use unpack_one or unpack_limit instead.");
  const int lead = static_cast<unsigned char>(take(1).front());
  if (lead >= kUnsigned8 && lead < kUnsigned64)
    return lua_pushnumber(lua_, static_cast<double>(big_endian(1 << (lead - kUnsigned8))));
  if (lead >= kSigned8 && lead <= kSigned64)
    return lua_pushnumber(lua_, static_cast<double>(signed_big_endian(1 << (lead - kSigned8))));
  switch (lead) {
    case kNil:
      return lua_pushnil(lua_);
    case kFalse:
    case kTrue:
      return lua_pushboolean(lua_, lead == kTrue);
    case kFloat32:
      return lua_pushnumber(lua_, std::bit_cast<float>(static_cast<uint32_t>(big_endian(4))));
    case kFloat64:
      return lua_pushnumber(lua_, std::bit_cast<double>(big_endian(8)));
    case kUnsigned64:
      // Converted through int64_t, as the reference always did.
      return lua_pushnumber(lua_, static_cast<double>(static_cast<int64_t>(big_endian(8))));
    case kString8:
      return string(big_endian(1));
    case kString16:
      return string(big_endian(2));
    case kString32:
      return string(big_endian(4));
    case kArray16:
      return array(big_endian(2));
    case kArray32:
      return array(big_endian(4));
    case kMap16:
      return map(big_endian(2));
    case kMap32:
      return map(big_endian(4));
    default:
      return fix(lead);
  }
}

// Pushes up to `limit` values from `offset` on, below them the offset of the rest, or -1 when
// nothing is left.
int unpack_some(lua_State* lua, int64_t limit, int64_t offset) {
  const std::string_view bytes = text_at(lua, 1);
  const auto size = static_cast<int64_t>(bytes.size());
  if (offset < 0 || limit < 0) {
    return luaL_error(lua, "Invalid request to unpack with offset of %d and limit of %d.",
                      static_cast<int>(offset), static_cast<int>(size));
  }
  if (offset > size) {
    return luaL_error(lua, "Start offset %d greater than input length %d.",
                      static_cast<int>(offset), static_cast<int>(size));
  }
  Unpacker unpacker(lua, bytes.substr(static_cast<size_t>(offset)));
  lua_settop(lua, 1);
  lua_pushnil(lua);
  int count = 0;
  for (; count < limit && !unpacker.left().empty(); ++count) unpacker.unpack();
  lua_pushnumber(lua, unpacker.left().empty()
                          ? -1
                          : static_cast<double>(bytes.size() - unpacker.left().size()));
  lua_replace(lua, 2);
  return count + 1;
}

int unpack(lua_State* lua) {
  luaL_checkstring(lua, 1);
  Unpacker unpacker(lua, text_at(lua, 1));
  lua_settop(lua, 1);
  int count = 0;
  for (; !unpacker.left().empty(); ++count) unpacker.unpack();
  return count;
}

int unpack_one(lua_State* lua) {
  const auto offset = static_cast<int64_t>(luaL_optinteger(lua, 2, 0));
  luaL_checkstring(lua, 1);
  return unpack_some(lua, 1, offset);
}

int unpack_limit(lua_State* lua) {
  const int64_t limit = as_int64(luaL_checknumber(lua, 2));
  const auto offset = static_cast<int64_t>(luaL_optinteger(lua, 3, 0));
  luaL_checkstring(lua, 1);
  if (limit == 0 && offset == 0) return unpack(lua);
  return unpack_some(lua, limit, offset);
}

}  // namespace

void push_msgpack_library(lua_State* lua) {
  constexpr luaL_Reg kFunctions[] = {{"pack", pack},
                                     {"unpack", unpack},
                                     {"unpack_one", unpack_one},
                                     {"unpack_limit", unpack_limit}};
  constexpr const char* kConstants[][2] = {
      {"_NAME", "cmsgpack"},
      {"_VERSION", "lua-cmsgpack 0.4.0"},
      {"_COPYRIGHT", "Copyright (C) 2012, Salvatore Sanfilippo"},
      {"_DESCRIPTION", "MessagePack C implementation for Lua"}};
  lua_newtable(lua);
  for (const luaL_Reg& function : kFunctions) {
    lua_pushcfunction(lua, function.func);
    lua_setfield(lua, -2, function.name);
  }
  for (const auto& [name, text] : kConstants) {
    lua_pushstring(lua, text);
    lua_setfield(lua, -2, name);
  }
}

}  // namespace latchkey::script
