// The library `cjson` of scripts.
#pragma once

struct lua_State;

namespace latchkey::script {

// Pushes a new table of the library, which has its own settings.
void push_json_library(lua_State* lua);

}  // namespace latchkey::script
