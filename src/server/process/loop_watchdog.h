// LoopWatchdog: says in the log where the server stands when its loop has not turned for as long as
// watchdog-period, and whenever somebody sends SIGALRM. The server lives on.
//
// The alarm is the operating system's (ITIMER_REAL), put off at every tick of the server. Signals
// belong to the process: there is one watchdog in it.
#pragma once

#include <csignal>

#include "base/log.h"

namespace latchkey::server {

struct ConfigValues;

// watchdog-period in milliseconds, no shorter than two ticks; 0 when there shall be none.
int watchdog_period_ms(const ConfigValues& values);

class LoopWatchdog {
 public:
  // Handles SIGALRM from now on. `logger` outlives it.
  explicit LoopWatchdog(base::Logger& logger);
  ~LoopWatchdog();
  LoopWatchdog(const LoopWatchdog&) = delete;
  LoopWatchdog& operator=(const LoopWatchdog&) = delete;

  // In milliseconds; 0 ends the watch.
  void set_period(int period_ms);
  // The loop turns. Costs a system call while there is a watch, and nothing otherwise.
  void put_off() {
    if (period_ms_ != 0) arm();
  }

 private:
  static void on_alarm(int signal, siginfo_t* info, void* context);
  void arm() const;

  base::Logger& logger_;
  int period_ms_ = 0;
};

}  // namespace latchkey::server
