// string.format of Lua 5.1: LuaJIT's accepts more and rounds differently.
#pragma once

struct lua_State;

namespace latchkey::script {

// A lua_CFunction. The C library writes the numbers; %q and %s follow the Lua 5.1 reference manual
// (https://www.lua.org/manual/5.1/manual.html#pdf-string.format), and a %c of 0 writes nothing.
int lua_format(lua_State* lua);

// tostring() for a number: NaN keeps its sign.
int lua_number_to_string(lua_State* lua);

}  // namespace latchkey::script
