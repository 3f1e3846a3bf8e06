// CrashReporter: the report in the log when the server crashes.
//
// On SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT, and on a failed LK_ASSERT, a report goes to the
// log between the lines "=== REDIS BUG REPORT START" and "END", which test harnesses look for; then
// the signal's default action follows, so that the exit status and a core file are the operating
// system's own.
//
// Signals belong to the process: of several reporters the last one created is used until it is
// destroyed. The first parts of the report, up to the stack trace and the registers, need no heap;
// the text of sections comes last.
#pragma once

#include <csignal>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"

namespace latchkey::server {

class CrashReporter {
 public:
  using Section = std::function<std::string()>;

  // Installs itself. `logger` outlives the reporter.
  explicit CrashReporter(base::Logger& logger);
  // Restores the default handling of signals and assertions.
  ~CrashReporter();
  CrashReporter(const CrashReporter&) = delete;
  CrashReporter& operator=(const CrashReporter&) = delete;

  // crash-log-enabled. When it is off a signal kills the process without a report, and an assertion
  // leaves only its own line.
  void enable(bool enabled);

  // Adds "------ TITLE ------" and the text that `section` returns, in order of addition. The
  // server may be in any state when `section` is called.
  void add_section(std::string title, Section section);

  // Reports `message` as an unrecoverable failure, and aborts.
  [[noreturn]] void panic(std::string_view message, const char* file, int line);

  // Reports a failed assertion, and aborts.
  [[noreturn]] void assertion_failed(const char* expression, const char* file, int line);

 private:
  static void on_signal(int signal, siginfo_t* info, void* context);

  void install_handlers();
  static void restore_default_handlers();
  void report_signal(int signal, const siginfo_t& info, void* context);
  void begin_report();
  void sections();
  void end_report();

  base::Logger& logger_;
  bool enabled_ = true;
  std::vector<std::pair<std::string, Section>> sections_;
  // Not initialised, so that its pages are taken by the first crash.
  std::unique_ptr<char[]> signal_stack_;
  CrashReporter* previous_;
};

}  // namespace latchkey::server
