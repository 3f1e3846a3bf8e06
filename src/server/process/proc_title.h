// The title that `ps` shows for a server: proc-title-template with its variables filled in.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/config/config_values.h"

namespace latchkey::server {

// Fills in {title}, {listen-addr}, {server-mode}, {port}, {tls-port}, {unixsocket} and
// {config-file}, trims spaces at both ends, and takes {{ for a brace. Nothing when a brace is left
// open or names something else.
std::optional<std::string> expand_proc_title(std::string_view pattern, const ConfigValues& values,
                                             std::string_view title,
                                             std::string_view config_file = {});

// The place where the kernel shows a process's arguments, which becomes its title.
//
// The strings of main's argv, and of the environment that follows them in memory, are overwritten;
// the environment moves to memory of its own first, and stays there when this object goes. One per
// process.
class ProcessTitle {
 public:
  // `argv` is main's own. Read all arguments before the first set().
  ProcessTitle(int argc, char** argv);

  // What does not fit is cut.
  void set(std::string_view title);

 private:
  char* begin_ = nullptr;
  size_t size_ = 0;
};

}  // namespace latchkey::server
