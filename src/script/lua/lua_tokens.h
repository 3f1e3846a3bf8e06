// The tokens of a Lua 5.1 program, in the detail that script/lua/dialect.h needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace latchkey::script {

struct LuaToken {
  enum class Kind : uint8_t { kName, kNumber, kString, kLongString, kSymbol, kEnd };
  Kind kind;
  std::string_view text;
  size_t offset;
  int line;

  bool is(std::string_view word) const {
    return (kind == Kind::kName || kind == Kind::kSymbol) && text == word;
  }
};

// The program's tokens, the last of them kEnd; empty when a string or comment does not end.
std::vector<LuaToken> read_lua_tokens(std::string_view code);

}  // namespace latchkey::script
