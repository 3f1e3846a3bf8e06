// Translates a script for LuaJIT where Lua 5.1 reads the same text differently:
//
// * A `return` of a call to one of our C functions (return redis.call(...)) is made a normal call
//   instead of a tail call, so that errors know their line. Lua 5.1 does so for all C functions;
//   here it is done where the text alone shows that the callee is one: its name, if the script uses
//   that for nothing else, or a local that holds redis.call or redis.pcall.
// * Escapes that Lua 5.1 does not know ("\x41") stand for the letter itself.
// * A function of variable arguments whose body names `arg` has a local of that name: a table of
//   the arguments, or nil if the body has `...` itself. Not done where the script uses `select` for
//   anything but calls, and not in code that a script compiles itself (loadstring).
// * 64-bit number literals (1LL), goto and a first line that begins with '#' are errors.
//
// Linear in the size of the script (times the logarithm of the number of its names) for any text.
// Done once, when the script is compiled.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace latchkey::script {

// The code for LuaJIT; line numbers are kept. The error is the compiler's message ("1: ...", to be
// appended to the chunk's name). Text that cannot be split into tokens is left unchanged: LuaJIT
// reports its error. *looks is increased by the number of tokens looked at.
base::Result<std::string> translate_dialect(std::string_view code, size_t* looks = nullptr);

}  // namespace latchkey::script
