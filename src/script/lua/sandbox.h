// The globals of scripts, as the reference's sandbox offers them.
#pragma once

#include <string>
#include <string_view>

namespace latchkey::script {

class Interpreter;

// Opens the libraries of a new VM and leaves its real table of globals on the stack.
void build_sandbox(Interpreter& interpreter);

// The compiler's message with Lua 5.1's text where LuaJIT's differs.
std::string plain_compile_error(std::string_view message, std::string_view chunk_name);

}  // namespace latchkey::script
