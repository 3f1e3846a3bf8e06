// The library that scripts know as `cjson`.
#pragma once

struct lua_State;

namespace latchkey::script {

// Pushes a new table of the library, with settings of its own.
void push_json_library(lua_State* lua);

}  // namespace latchkey::script
