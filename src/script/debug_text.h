// Lua values and replies of commands as text for the user of the debugger.
#pragma once

#include <string>
#include <string_view>

struct lua_State;

namespace latchkey::script {

// The value at an index of the stack: `12`, `"text"`, `{1; 2}`, `{["name"]="value"}`,
// `"function@0x7f01"`. Tables are shown ten levels deep. May raise a memory error.
std::string value_text(lua_State* lua, int index);

// A complete reply of a command in either protocol: `12`, `"text"`, `"+OK"`, `NULL`, `["a",1]`,
// `{"field" => "value"}`, `~("member")`.
std::string reply_text(std::string_view reply);

}  // namespace latchkey::script
