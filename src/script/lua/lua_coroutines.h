// coroutine.resume and coroutine.wrap. LuaJIT's own check neither the C stack, of which each
// resumed coroutine takes some, nor whether the script is being stopped.
#pragma once

struct lua_State;

namespace latchkey::script {

// lua_CFunctions. The interpreter is that of the state (Interpreter::of).
int lua_coroutine_resume(lua_State* lua);
int lua_coroutine_wrap(lua_State* lua);

}  // namespace latchkey::script
