// `latchkey-server [FILE] [OPTIONS] --ping`: asks the server of that configuration whether it
// serves, for health checks where no client is at hand (a container with nothing but the server).
#pragma once

#include <string>

#include "server/config/config_values.h"

namespace latchkey::server {

struct PingResult {
  bool serves = false;
  std::string text;  // the reply, or why there is none: a line
};

// Connects to the server's port, at the first address of `bind` (the loopback address for all), or
// to its Unix socket where there is no port, and sends PING. A server that wants a password or
// permits this user nothing does serve; one that is loading its dataset does not yet. Waits for
// each step for two seconds. TLS is not spoken: a server without another way in is not asked.
PingResult ping(const ConfigValues& settings);

}  // namespace latchkey::server
