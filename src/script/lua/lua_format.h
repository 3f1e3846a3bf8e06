// string.format of Lua 5.1: LuaJIT's accepts more and rounds differently.
#pragma once

struct lua_State;

namespace latchkey::script {

// A function for Lua. Numbers are written by the C library; %q and %s as the Lua 5.1 reference
// manual says (https://www.lua.org/manual/5.1/manual.html#pdf-string.format), and a %c of 0 as
// nothing.
int lua_format(lua_State* lua);

// tostring() for a number: NaN keeps its sign.
int lua_number_to_string(lua_State* lua);

}  // namespace latchkey::script
