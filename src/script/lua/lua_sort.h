// table.sort that ends in time or can be interrupted: LuaJIT's, like Lua 5.1's, takes quadratic
// time for tables that are made for it, and hears nothing meanwhile unless Lua code compares.
#pragma once

struct lua_State;

namespace latchkey::script {

// A lua_CFunction. Upvalue 2: LuaJIT's table.sort. The interpreter is that of the state
// (Interpreter::of).
int lua_sort(lua_State* lua);

}  // namespace latchkey::script
