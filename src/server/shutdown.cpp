#include "server/shutdown.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>

#include "server/server.h"

namespace latchkey::server {

namespace {

// What a signal handler can reach: there is one disposition of a signal per process.
struct Watched {
  std::atomic<base::Logger*> logger{nullptr};
  std::atomic<net::Waker*> waker{nullptr};
  std::atomic<int> received{0};
};
Watched watched;

void on_signal(int number) {
  const int earlier = watched.received.load();
  base::Logger* logger = watched.logger.load();
  const auto say = [&](std::string_view line) {
    if (logger != nullptr) logger->signal_line(line);
  };
  if (number == SIGINT && earlier == SIGINT) {
    say("You insist... exiting now.");
    _exit(1);
  }
  say(number == SIGINT ? "Received SIGINT scheduling shutdown..."
                       : "Received SIGTERM scheduling shutdown...");
  watched.received = number;
  if (net::Waker* waker = watched.waker.load(); waker != nullptr) waker->wake();
}

void handle(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(number, &action, nullptr);
}

}  // namespace

Shutdown::Shutdown(Server& server) : server_(server) {}

Shutdown::~Shutdown() {
  if (waker_ == nullptr || watched.waker.load() != waker_.get()) return;
  handle(SIGTERM, SIG_DFL);
  handle(SIGINT, SIG_DFL);
  watched.waker = nullptr;
  watched.logger = nullptr;
}

void Shutdown::watch_signals() {
  waker_ = std::make_unique<net::Waker>(*server_.loop(), [this] { serve_signal(); });
  watched.logger = &server_.log();
  watched.waker = waker_.get();
  watched.received = 0;
  handle(SIGTERM, on_signal);
  handle(SIGINT, on_signal);
  std::signal(SIGHUP, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
  // A signal that comes while a script runs is served when the script has ended.
  server_.on_tick([this] { serve_signal(); });
}

void Shutdown::serve_signal() {
  if (watched.received == 0 || server_.loop()->nested()) return;
  const int number = watched.received.exchange(0);
  const ConfigValues& settings = server_.settings();
  std::string error;
  request(number == SIGINT ? settings.shutdown_on_sigint : settings.shutdown_on_sigterm, &error);
}

bool Shutdown::request(unsigned flags, std::string* error) {
  base::Logger& log = server_.log();
  const bool asked_to_save = (flags & kShutdownSave) != 0;
  log.notice("User requested shutdown...");
  if (asked_to_save || (!server_.settings().save.empty() && (flags & kShutdownNosave) == 0)) {
    log.warning("This server cannot save its dataset: what is in memory only will be lost.");
    if (asked_to_save && (flags & kShutdownForce) == 0) {
      log.warning("Errors trying to shut down the server. Check the logs for more information.");
      *error =
          "ERR Errors trying to SHUTDOWN. This server cannot save its dataset; use SHUTDOWN NOSAVE";
      return false;
    }
  }
  for (const auto& step : steps_) step();
  if (!server_.settings().unixsocket.empty()) log.notice("Removing the unix socket file.");
  server_.stop_listening();
  log.warning("Redis is now ready to exit, bye bye...");
  // Up the stack a script may run that never ends.
  if (server_.loop() != nullptr && server_.loop()->nested()) std::_Exit(0);
  server_.request_stop(0);
  return true;
}

}  // namespace latchkey::server
