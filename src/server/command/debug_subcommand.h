// A subcommand of DEBUG that a subsystem adds (Server::add_debug_subcommands). DEBUG's own are in
// commands/server/debug.cpp.
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
