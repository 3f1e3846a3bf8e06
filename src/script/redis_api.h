// The library `redis` of scripts and functions.
#pragma once

#include "script/script_runner.h"

struct lua_State;

namespace latchkey::script {

class Interpreter;

// Adds the library to a new VM. The runner outlives it.
void add_redis_library(Interpreter& interpreter, ScriptRunner& runner, Program::Kind kind);

// Pushes a table of the parts that function libraries see while they are loaded.
void push_load_library(lua_State* lua, ScriptRunner& runner);

}  // namespace latchkey::script
