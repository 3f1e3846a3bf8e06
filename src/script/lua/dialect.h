// Makes LuaJIT take a script as Lua 5.1 does, where the two read the same text differently:
//
// * A function of ours that a `return` ends with (return redis.call(...)) is called, not jumped to,
//   so that its errors know the line they came from. Lua 5.1 does so for all functions written in
//   C; here it is done where the text alone shows that the callee is one: its name, not used for
//   anything else in the script, or a local that holds redis.call or redis.pcall.
// * Escapes that Lua 5.1 does not know ("\x41") stand for the letter itself.
// * 64-bit number literals (1LL), goto and a first line that begins with '#' are errors.
//
// Linear in the size of the script (times the logarithm of the number of its names), whatever it
// says; done once, when it is compiled.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace latchkey::script {

// True with the code for LuaJIT in *translated; lines keep their numbers. False with the compiler's
// message ("1: ...", to be put behind the chunk's name) in *error. Text that cannot be taken apart
// is left as it is, for LuaJIT to complain. What looking at tokens it took is added to *looks.
bool translate_dialect(std::string_view code, std::string* translated, std::string* error,
                       size_t* looks = nullptr);

}  // namespace latchkey::script
