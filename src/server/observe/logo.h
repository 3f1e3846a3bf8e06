// What a server shows when it starts: a picture with the mode, the port and the process id, or a
// line with the same.
#pragma once

#include "base/log.h"
#include "server/config/config_values.h"

namespace latchkey::server {

// The picture when always-show-logo says so, or when the log goes to a terminal; harnesses wait for
// its "PID: ...".
void show_logo(const ConfigValues& values, base::Logger& log);

}  // namespace latchkey::server
