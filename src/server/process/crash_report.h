// CrashReporter: what the log says when the server dies of a fault of its own.
//
// On SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT, and on a failed LK_ASSERT, a report goes to the
// log between the lines "=== REDIS BUG REPORT START" and "END", which harnesses look for; then the
// signal takes its course, so that the exit status and a core file are the operating system's own.
//
// Signals belong to the process: of several reporters the last one created is used until it goes.
// The parts of the report that come first, down to the stack trace and the registers, need no heap;
// what sections add comes last.
#pragma once

#include <csignal>
#include <functional>
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
  // Puts back the default handling of signals and assertions.
  ~CrashReporter();
  CrashReporter(const CrashReporter&) = delete;
  CrashReporter& operator=(const CrashReporter&) = delete;

  // crash-log-enabled: without it a signal kills the process with no word, and an assertion leaves
  // its line only.
  void enable(bool enabled);

  // Adds "------ TITLE ------" and the text that `section` returns, in order of addition. The
  // server may be in any state when it is called.
  void add_section(std::string title, Section section);

  // Reports `message` as a failure that nothing can mend, and aborts.
  [[noreturn]] void panic(std::string_view message, const char* file, int line);

  // The report of a failed assertion; aborts.
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
  std::vector<char> signal_stack_;
  CrashReporter* previous_;
};

}  // namespace latchkey::server
