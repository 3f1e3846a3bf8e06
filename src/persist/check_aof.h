// redis-check-aof: checks append-only files, and truncates damaged ones.
//
// The argument is a manifest, whose base and increments are checked in order, or a single file of
// an older server. The base and the single file may begin with RDB. Only the last file is ever
// truncated, and with --fix only after the user confirms.
#pragma once

#include <span>
#include <string>

namespace latchkey::persist {

// Runs the program; `arguments` are those of main. Returns the exit status: 0 when the files are
// valid or have been repaired, else 1.
int run_check_aof(std::span<const std::string> arguments);

}  // namespace latchkey::persist
