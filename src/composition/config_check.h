// `latchkey-server FILE --check-config`, which reports all errors of a configuration at once and
// starts nothing; and `--ping`, which reads the configuration to find the server.
#pragma once

#include <string>

#include "server/config/command_line.h"

namespace latchkey::composition {

// What is wrong, a problem after the other with its place, and how many there are; or that there is
// none. Looks as a start would, users, renamed commands, TLS files and a Sentinel's directives
// included, and at whether the directory of data can be written to. Creates and changes no file.
// What concerns the moment is left out: whether a port is free, how large limits are.
struct ConfigCheck {
  bool fine = false;
  std::string report;  // lines
};

// Reads the file and, where the command line asks for it, standard input.
ConfigCheck check_configuration(const server::CommandLine& line);

// Asks the server of the configuration whether it serves, and prints what it says (server/process/
// ping.h). Returns the exit status: 0 when it does.
int ping_server(const server::CommandLine& line);

}  // namespace latchkey::composition
