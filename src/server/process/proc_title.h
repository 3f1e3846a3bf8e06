// The title of a server in `ps`: proc-title-template with its variables filled in.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/config/config_values.h"

namespace latchkey::server {

// Fills in {title}, {listen-addr}, {server-mode}, {port}, {tls-port}, {unixsocket} and
// {config-file}, trims spaces at both ends, and replaces {{ by a brace. Nothing when a brace is
// left open or names an unknown variable.
std::optional<std::string> expand_proc_title(std::string_view pattern, const ConfigValues& values,
                                             std::string_view title,
                                             std::string_view config_file = {});

// The memory of a process's arguments, which the kernel shows as its title.
//
// The title overwrites the strings of main's argv and of the environment behind them; the
// environment is copied elsewhere first, and stays there when this object is destroyed. One per
// process.
class ProcessTitle {
 public:
  // `argv` is main's own. REQUIRES: all arguments are read before the first set().
  ProcessTitle(int argc, char** argv);

  // A title that is too long is cut.
  void set(std::string_view title);

 private:
  char* begin_ = nullptr;
  size_t size_ = 0;
};

}  // namespace latchkey::server
