// redis-check-aof: says whether append-only files are whole, and cuts off what is not.
//
// A file is one of three: a manifest, whose base and increments are checked in order; a single file
// of an older server; either may begin with RDB. Only the last file is ever cut, and with --fix
// only when the user says so.
#pragma once

#include <span>
#include <string>

namespace latchkey::persist {

// Runs the program; `arguments` are those of main. Returns the exit status: 0 when all is well, or
// is now; 1 when not.
int run_check_aof(std::span<const std::string> arguments);

}  // namespace latchkey::persist
