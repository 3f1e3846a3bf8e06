#include "server/process/loop_watchdog.h"

#include <sys/time.h>

#include <algorithm>
#include <cerrno>

#include "base/time_units.h"
#include "server/config/config_values.h"
#include "server/process/stack_traces.h"

namespace latchkey::server {

namespace {

// The signal handler finds its watchdog here.
LoopWatchdog* current_watchdog = nullptr;

}  // namespace

int watchdog_period_ms(const ConfigValues& values) {
  if (values.watchdog_period == 0) return 0;
  const int tick_ms = 1000 / std::max(values.hz, 1);
  return std::max(values.watchdog_period, 2 * tick_ms);
}

LoopWatchdog::LoopWatchdog(base::Logger& logger) : logger_(logger) {
  current_watchdog = this;
  struct sigaction action {};
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  action.sa_sigaction = &LoopWatchdog::on_alarm;
  sigaction(SIGALRM, &action, nullptr);
}

LoopWatchdog::~LoopWatchdog() {
  set_period(0);
  std::signal(SIGALRM, SIG_DFL);
  current_watchdog = nullptr;
}

void LoopWatchdog::set_period(int period_ms) {
  period_ms_ = period_ms;
  set_alarm();
}

void LoopWatchdog::set_alarm() const {
  itimerval alarm{};
  alarm.it_value.tv_sec = period_ms_ / base::kMsPerSecond;
  alarm.it_value.tv_usec = period_ms_ % base::kMsPerSecond * base::kUsPerMs;
  setitimer(ITIMER_REAL, &alarm, nullptr);
}

void LoopWatchdog::on_alarm(int, siginfo_t* info, void* context) {
  const int before = errno;
  base::Logger& logger = current_watchdog->logger_;
  // A signal of the timer has no sender.
  const bool is_sent = info->si_pid != 0;
  logger.signal_line(is_sent ? "\nReceived SIGALRM" : "\n--- WATCHDOG TIMER EXPIRED ---");
  write_stack_traces(logger, interrupted_instruction(context));
  logger.signal_line("--------\n");
  errno = before;
}

}  // namespace latchkey::server
