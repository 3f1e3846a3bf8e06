// LoopWatchdog: logs a stack trace when the server's loop has not turned for watchdog-period, and
// whenever the process receives SIGALRM. The server goes on.
//
// The alarm is the operating system's (ITIMER_REAL), postponed in every tick of the server. Signals
// belong to the process: there is one watchdog in it.
#pragma once

#include <csignal>

#include "base/log.h"

namespace latchkey::server {

struct ConfigValues;

// watchdog-period in milliseconds, at least two ticks; 0: no watchdog.
int watchdog_period_ms(const ConfigValues& values);

class LoopWatchdog {
 public:
  // Installs the handler of SIGALRM. `logger` outlives the watchdog.
  explicit LoopWatchdog(base::Logger& logger);
  ~LoopWatchdog();
  LoopWatchdog(const LoopWatchdog&) = delete;
  LoopWatchdog& operator=(const LoopWatchdog&) = delete;

  // In milliseconds; 0 switches the watchdog off.
  void set_period(int period_ms);
  // Called at every tick. Costs a system call while the watchdog is on, and nothing otherwise.
  void postpone() {
    if (period_ms_ != 0) set_alarm();
  }

 private:
  static void on_alarm(int signal, siginfo_t* info, void* context);
  void set_alarm() const;

  base::Logger& logger_;
  int period_ms_ = 0;
};

}  // namespace latchkey::server
