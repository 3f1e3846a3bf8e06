// The title that `ps` shows for a server: proc-title-template with its variables filled in.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/config_values.h"

namespace latchkey::server {

// Fills in {title}, {listen-addr}, {server-mode}, {port}, {tls-port}, {unixsocket} and
// {config-file}, trims spaces at both ends, and takes {{ for a brace. Nothing when a brace is left open or names
// something else.
std::optional<std::string> expand_proc_title(std::string_view pattern, const ConfigValues& values,
                                             std::string_view title,
                                             std::string_view config_file = {});

}  // namespace latchkey::server
