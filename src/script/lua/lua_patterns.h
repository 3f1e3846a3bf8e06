// string.find, match, gmatch and gsub, as the manual of Lua 5.1 describes them (section 5.4.1).
//
// They are our own because LuaJIT's cannot be interrupted, and a pattern may take longer than
// anybody lives: ("a?"):rep(50) .. ("a"):rep(50). These look every now and then whether whoever
// watches the script wants something (Interpreter::poll), and end with an error where the pattern
// is nested too deeply for C's stack.
//
// Beyond the manual: a null character stands for itself in patterns too.
#pragma once

struct lua_State;

namespace latchkey::script {

// lua_CFunctions. The interpreter is that of the state (Interpreter::of).
int lua_pattern_find(lua_State* lua);
int lua_pattern_match(lua_State* lua);
int lua_pattern_gmatch(lua_State* lua);
int lua_pattern_gsub(lua_State* lua);

}  // namespace latchkey::script
