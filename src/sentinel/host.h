// The interface of a Sentinel to its process. Tests implement it on virtual time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "sentinel/channel.h"

namespace latchkey::sentinel {

class Host {
 public:
  virtual ~Host() = default;
  // Unix time.
  virtual int64_t now_ms() = 0;
  // Uniform in [0, bound); bound > 0.
  virtual uint64_t random_below(uint64_t bound) = 0;
  virtual Network& network() = 0;
  // The port at which this Sentinel serves; the password that its own clients must give, if any.
  virtual int port() = 0;
  virtual std::string password() = 0;
  // The IP address of a host name; empty, with that logged, when there is none. Waits for the
  // answer.
  virtual std::string resolve(const std::string& hostname) = 0;
  virtual void log(base::LogLevel level, std::string_view text) = 0;
  virtual void publish(std::string_view channel, std::string_view message) = 0;
  // Writes the configuration and the state to the file, and syncs it. False, with the reason
  // logged, when it could not be written.
  virtual bool save() = 0;
  // Has a script run soon: its path and its arguments.
  virtual void run_script(std::vector<std::string> words) = 0;
  // Ends the process at once (SENTINEL SIMULATE-FAILURE).
  virtual void crash() = 0;
};

}  // namespace latchkey::sentinel
