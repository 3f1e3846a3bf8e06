// coroutine.resume and coroutine.wrap: LuaJIT's own look neither at C's stack, of which each
// coroutine that is resumed takes some, nor at a script's being stopped.
#pragma once

struct lua_State;

namespace latchkey::script {

// lua_CFunctions. The interpreter is that of the state (Interpreter::of).
int lua_coroutine_resume(lua_State* lua);
int lua_coroutine_wrap(lua_State* lua);

}  // namespace latchkey::script
