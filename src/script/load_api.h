// The globals of a function library's code while it is loaded: `redis` alone, with
// register_function, log and some constants.
#pragma once

namespace latchkey::script {

class Functions;
class Interpreter;
class ScriptRunner;

// Makes the globals for loading. Returns the table for Interpreter::show_globals. All arguments
// outlive the VM.
int add_load_globals(Interpreter& interpreter, Functions& functions, ScriptRunner& runner);

}  // namespace latchkey::script
