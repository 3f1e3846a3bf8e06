// The errors that functions of the host raise in scripts: tables {err = "ERR ..."}.
#pragma once

struct lua_State;

namespace latchkey::script {

// From now on errors of this Lua state are worded as Valkey words them.
void word_errors_as_valkey(lua_State* lua);

// Pushes the error with this text of the reference; gives 1, the number of values pushed.
int push_error(lua_State* lua, const char* text);
// Does not return.
[[noreturn]] int raise_error(lua_State* lua, const char* text);

}  // namespace latchkey::script
