// The banner at start: a picture with the mode, the port and the process id, or one line with the
// same.
#pragma once

#include "base/log.h"
#include "server/config/config_values.h"

namespace latchkey::server {

// Shows the picture when always-show-logo is set or the log goes to a terminal; test harnesses wait
// for its "PID: ...".
void show_logo(const ConfigValues& values, base::Logger& log);

}  // namespace latchkey::server
