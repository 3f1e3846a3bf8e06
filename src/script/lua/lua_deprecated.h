// getfenv, setfenv and newproxy, which Lua 5.1 has and later versions do not. Scripts get them
// where `lua-enable-deprecated-api` asks for them.
//
// They keep within the sandbox: the environment of C functions is shown as that of scripts, and
// only that of Lua functions can be set. Userdata that newproxy makes are never finalized: `__gc`
// of their metatables is not kept, since a collection may run at any time, also while no script
// runs.
#pragma once

struct lua_State;

namespace latchkey::script {

class Interpreter;

// Adds the functions to the globals of scripts.
void add_deprecated_functions(Interpreter& interpreter);

// For functions that bypass metatables: whether the table at index 1 may not have the field whose
// name is at index 2, which must then be left out without an error.
bool is_finalizer_of_proxy(lua_State* lua);

}  // namespace latchkey::script
