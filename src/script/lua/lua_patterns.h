// string.find, match, gmatch and gsub, as the manual of Lua 5.1 describes them (section 5.4.1).
//
// LuaJIT's own cannot be interrupted, and a pattern may take forever: ("a?"):rep(50) ..
// ("a"):rep(50). These call Interpreter::poll every now and then, and raise an error where the
// pattern is nested too deeply for the C stack, or uses more than 8 MiB of it.
//
// Beyond the manual: a null character in a pattern stands for itself too.
#pragma once

struct lua_State;

namespace latchkey::script {

// lua_CFunctions. The interpreter is that of the state (Interpreter::of).
int lua_pattern_find(lua_State* lua);
int lua_pattern_match(lua_State* lua);
int lua_pattern_gmatch(lua_State* lua);
int lua_pattern_gsub(lua_State* lua);

}  // namespace latchkey::script
