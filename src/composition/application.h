// Application: the process, and the one whole server that it runs.
//
// It owns what exists once in a process: the log, daemonizing, supervision, the pid file, the crash
// report, the watchdog of the loop, the title, limits and the kernel's settings. Everything about
// data and clients is in WholeServer.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "server/config/command_line.h"
#include "server/config/config.h"
#include "server/process/automatic_exit.h"
#include "server/process/crash_report.h"
#include "server/process/loop_watchdog.h"
#include "server/process/process.h"
#include "server/process/readiness.h"

namespace latchkey::net {
class Loop;
}

namespace latchkey::server {
class ProcessTitle;
class Server;
}  // namespace latchkey::server

namespace latchkey::composition {

class WholeServer;

class Application {
 public:
  // `arguments`: those of main. `title` must outlive the application. One per process.
  Application(server::CommandLine line, std::vector<std::string> arguments,
              server::ProcessTitle& title);

  // Starts the server and runs it until it ends. Returns an exit status, with the reason printed or
  // logged, when it cannot be started. When it has been served, or its dataset could not be loaded,
  // the process ends here, without the destruction of a dataset that goes with it anyway.
  int run();

 private:
  bool load_configuration();
  // Says why the configuration cannot be used, where it is not said yet.
  void report(const server::ConfigError& error);

  // The log, supervision, the background, the pid file.
  bool set_up_process();
  // Limits and the kernel's settings. False when there is no room for clients.
  bool set_up_resources();
  void log_start();

  // Begins the process anew.
  [[noreturn]] void restart(int64_t delay_ms);
  bool start(WholeServer& whole);
  void attach_process(WholeServer& whole);
  void exit_when_not_needed(server::Server& server);
  // Ends the process when that fails.
  void load_dataset(WholeServer& whole);
  // Says in the log who may use a server that asks for no password.
  void warn_of_open_access(server::Server& server);
  void log_readiness(const server::ConfigValues& values);
  // Ends the process when the readiness of the server could not be reported.
  void announce_readiness(server::Server& server);

  server::CommandLine line_;
  const std::vector<std::string> arguments_;
  // The working directory at the start, for which the arguments were written: `dir` changes it.
  const std::filesystem::path started_in_;
  const pid_t parent_;
  server::ProcessTitle& title_;
  base::Logger log_;
  server::CrashReporter crash_reporter_;
  server::LoopWatchdog watchdog_;
  server::OomScore oom_score_;
  std::unique_ptr<server::Config> config_;  // until there is a server that owns it
  server::Edition edition_;                 // which server the configuration says to stand for
  std::unique_ptr<server::Supervision> supervision_;
  std::string pidfile_;  // empty: none
  server::Readiness readiness_{log_};
  std::unique_ptr<server::AutomaticExit> automatic_exit_;
};

}  // namespace latchkey::composition
