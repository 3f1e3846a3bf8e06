// A subcommand of DEBUG that a subsystem brings along (Server::debug_subcommands), as DEBUG's own
// are written down in commands/server/debug.cpp.
#pragma once

#include <cstddef>
#include <string_view>

#include "server/command/command.h"

namespace latchkey::server {

struct DebugSubcommand {
  std::string_view name;  // upper case
  // Words behind the name.
  size_t least;
  size_t most;
  Handler handler;
  // What DEBUG HELP says of it: the name with its arguments, and a sentence.
  std::string_view usage = {};
  std::string_view summary = {};
};

}  // namespace latchkey::server
