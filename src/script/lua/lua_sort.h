// table.sort that can be interrupted. LuaJIT's, like Lua 5.1's, takes quadratic time for
// adversarial tables, and cannot be interrupted unless the comparison is Lua code. Numbers and
// strings in their own order are sorted outside of Lua, which takes a third of the time or less.
#pragma once

struct lua_State;

namespace latchkey::script {

// A lua_CFunction. Upvalue 2: LuaJIT's table.sort. The interpreter is that of the state
// (Interpreter::of).
int lua_sort(lua_State* lua);

}  // namespace latchkey::script
