// The hooks of directives that must take effect at once when CONFIG SET changes them.
#pragma once

#include <string>

namespace latchkey::base {
class Logger;
}
namespace latchkey::net {
class Loop;
}

namespace latchkey::server {

class Config;
class CrashReporter;
class LoopWatchdog;
class OomScore;
class ProcessTitle;
class Server;

// To be called once, when the server is composed.
void register_live_settings(Server& server);

// Has so many threads do the loop's socket calls (io-threads); logs how many could not be started.
void use_io_threads(int threads, net::Loop& loop, base::Logger& log);

// The parts of the process that settings act upon.
struct ProcessParts {
  CrashReporter* crash_reporter;
  LoopWatchdog* watchdog;
  OomScore* oom_score;
  ProcessTitle* title;
  std::string program;  // as the process was called
};
// Registers the hooks that concern the process. The parts must outlive the server.
void register_process_settings(Server& server, const ProcessParts& parts);
// Shows proc-title-template as the process's title. False when the template is malformed.
bool show_title(ProcessTitle& title, const std::string& program, const Config& config);

}  // namespace latchkey::server
