#include "script/lua/table_order.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <lua.hpp>
#include <numeric>
#include <span>

#include "script/lua/lua_text.h"

namespace latchkey::script {

namespace {

// PUC Lua's string hash: of long texts only about 32 characters count.
uint32_t hash_of(std::string_view text) {
  auto hash = static_cast<uint32_t>(text.size());
  const size_t step = (text.size() >> 5) + 1;
  for (size_t i = text.size(); i >= step; i -= step)
    hash ^= (hash << 5) + (hash >> 2) + static_cast<unsigned char>(text[i - 1]);
  return hash;
}

uint32_t hash_of(double number) {
  const auto bits = std::bit_cast<uint64_t>(number == 0 ? 0.0 : number);
  return static_cast<uint32_t>(bits) + static_cast<uint32_t>(bits >> 32);
}

// The index in the array part that a number would have, from 1 on; 0: none.
uint32_t array_place(double number) {
  constexpr double kLast = 1 << 26;
  return number >= 1 && number <= kLast && number == std::floor(number)
             ? static_cast<uint32_t>(number)
             : 0;
}

template <typename T>
uint64_t load(const char* bytes) {
  T value = 0;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

// The first 8 bytes, the first one highest, and zeros behind the end. Of shorter texts by two loads
// that overlap: to copy a number of bytes that the compiler does not know costs a call.
uint64_t prefix_of(std::string_view text) {
  const size_t size = text.size();
  const char* const begin = text.data();
  uint64_t bytes = 0;
  if (size >= sizeof bytes) {
    bytes = load<uint64_t>(begin);
  } else if (size >= 4) {
    bytes = load<uint32_t>(begin) | load<uint32_t>(begin + size - 4) << 8 * (size - 4);
  } else if (size > 0) {
    bytes = load<uint8_t>(begin) | load<uint8_t>(begin + size / 2) << 8 * (size / 2) |
            load<uint8_t>(begin + size - 1) << 8 * (size - 1);
  }
  return __builtin_bswap64(bytes);
}

}  // namespace

TableOrder::TableOrder(lua_State* lua, int table) : table_(table), height_(lua_gettop(lua)) {
  // The pairs of tables that are nested so deeply that they would fill a good part of the stack
  // that a function may have are not kept there.
  constexpr int kHighestPlace = 512;
  constexpr int kSlots = 2 * kFewPairs + LUA_MINSTACK;
  are_kept_ = height_ < kHighestPlace && lua_checkstack(lua, kSlots) != 0;
  for (lua_pushnil(lua); lua_next(lua, table_) != 0;) {
    add_key(lua);
    if (keys_.size() > kFewPairs && are_kept_) {
      are_kept_ = false;
      lua_pop(lua, 1);
      lua_replace(lua, height_ + 1);
      lua_settop(lua, height_ + 1);
    } else if (are_kept_) {
      lua_pushvalue(lua, -2);
    } else {
      lua_pop(lua, 1);
    }
  }
  order_.resize(keys_.size());
  std::iota(order_.begin(), order_.end(), 0);
  std::sort(order_.begin(), order_.end(),
            [this](uint32_t one, uint32_t other) { return keys_[one] < keys_[other]; });
  order_by_place(array_part());
}

void TableOrder::add_key(lua_State* lua) {
  Key& key = keys_.emplace_back();
  switch (lua_type(lua, -2)) {
    case LUA_TSTRING:
      key.kind = Key::Kind::kString;
      key.text = text_at(lua, -2);
      key.prefix = prefix_of(key.text);
      break;
    case LUA_TNUMBER:
      key.number = lua_tonumber(lua, -2);
      break;
    case LUA_TBOOLEAN:
      key.kind = lua_toboolean(lua, -2) != 0 ? Key::Kind::kTrue : Key::Kind::kFalse;
      break;
    default:
      is_known_ = false;
  }
}

bool TableOrder::Key::operator<(const Key& other) const {
  if (kind != other.kind) return kind < other.kind;
  if (kind != Kind::kString) return number < other.number;
  return prefix != other.prefix ? prefix < other.prefix : text < other.text;
}

size_t TableOrder::array_part() {
  // Numbers are first.
  if (order_.empty() || keys_[order_.front()].kind != Key::Kind::kNumber) return 0;
  // The size is the greatest power of two of which more than half would be used.
  uint32_t used = 0;
  uint32_t size = 0;
  uint32_t limit = 1;
  const auto place_in_array = [this](uint32_t index) {
    const Key& key = keys_[index];
    return key.kind == Key::Kind::kNumber ? array_place(key.number) : 0;
  };
  for (const uint32_t index : order_) {
    const uint32_t place = place_in_array(index);
    if (place == 0) continue;
    while (place > limit) limit *= 2;
    if (++used > limit / 2) size = limit;
  }
  const auto end = std::stable_partition(order_.begin(), order_.end(), [&](uint32_t index) {
    const uint32_t place = place_in_array(index);
    return place != 0 && place <= size;
  });
  return static_cast<size_t>(end - order_.begin());
}

size_t TableOrder::place_of(const Key& key, size_t places) {
  switch (key.kind) {
    case Key::Kind::kString:
      return hash_of(key.text) & (places - 1);
    case Key::Kind::kNumber:
      return hash_of(key.number) % ((places - 1) | 1);
    default:
      return (key.kind == Key::Kind::kTrue ? 1 : 0) & (places - 1);
  }
}

void TableOrder::order_by_place(size_t first) {
  constexpr uint32_t kNobody = UINT32_MAX;
  const std::span<uint32_t> rest = std::span(order_.data(), order_.size()).subspan(first);
  if (rest.size() < 2) return;
  const size_t places = std::bit_ceil(rest.size());
  for (const uint32_t index : rest) keys_[index].place = place_of(keys_[index], places);
  Indexes table(places, kNobody);
  size_t free = places;
  for (const uint32_t index : rest) {
    size_t place = keys_[index].place;
    if (const uint32_t other = table[place]; other != kNobody) {
      do --free;
      while (table[free] != kNobody);
      // A key that is not in its main slot moves away; otherwise the new key takes the free slot.
      if (keys_[other].place != place) {
        table[free] = other;
      } else {
        place = free;
      }
    }
    table[place] = index;
  }
  std::copy_if(table.begin(), table.end(), rest.begin(),
               [](uint32_t index) { return index != kNobody; });
}

TableOrder::Pair TableOrder::pair(lua_State* lua, size_t i) const {
  const uint32_t index = order_[i];
  const Key& key = keys_[index];
  if (are_kept_) {
    const int place = height_ + 1 + 2 * static_cast<int>(index);
    return {place, place + 1, key.text};
  }
  switch (key.kind) {
    case Key::Kind::kString:
      push_text(lua, key.text);
      break;
    case Key::Kind::kNumber:
      lua_pushnumber(lua, key.number);
      break;
    default:
      lua_pushboolean(lua, key.kind == Key::Kind::kTrue ? 1 : 0);
  }
  lua_pushvalue(lua, -1);
  lua_rawget(lua, table_);
  return {height_ + 1, height_ + 2, key.text};
}

}  // namespace latchkey::script
