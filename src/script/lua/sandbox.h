// What scripts find in their world, and what they do not.
#pragma once

#include <string>
#include <string_view>

namespace latchkey::script {

class Interpreter;

// Opens the libraries of a new world and leaves its real table of globals on the stack.
void build_sandbox(Interpreter& interpreter);

// The compiler's message in the words of Lua 5.1, where LuaJIT's differ.
std::string plain_compile_error(std::string_view message, std::string_view chunk_name);

}  // namespace latchkey::script
