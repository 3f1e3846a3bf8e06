#include "server/process/shutdown.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "base/time_units.h"
#include "server/client/client.h"
#include "server/client/pause.h"
#include "server/command/dispatcher.h"
#include "server/config/cluster_shutdown.h"
#include "server/server.h"
#include "server/tasks.h"

namespace latchkey::server {

namespace {

constexpr char kFailed[] = "ERR Errors trying to SHUTDOWN. Check logs.";

// State for the signal handler: a signal has one disposition per process.
struct Watched {
  std::atomic<base::Logger*> logger{nullptr};
  std::atomic<net::Waker*> waker{nullptr};
  std::atomic<int> received{0};
  std::atomic<const uint32_t*> state{nullptr};  // ServerState bits
  // The file to remove on a forced exit, valid while has_file is true.
  std::atomic<bool> has_file{false};
  std::array<char, PATH_MAX> file{};
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
    if (watched.has_file.load()) unlink(watched.file.data());
    _exit(1);
  }
  const uint32_t* state = watched.state.load();
  if (state != nullptr && (*state & kStateLoading) != 0) {
    say("Received shutdown signal during loading, scheduling shutdown.");
  } else {
    say(number == SIGINT ? "Received SIGINT scheduling shutdown..."
                         : "Received SIGTERM scheduling shutdown...");
  }
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
  watched.state = nullptr;
  watched.has_file = false;
}

void Shutdown::watch_signals() {
  waker_ = std::make_unique<net::Waker>(*server_.loop(), [this] { serve_signal(); });
  watched.logger = &server_.log();
  watched.waker = waker_.get();
  watched.state = server_.state_bits();
  watched.received = 0;
  handle(SIGTERM, on_signal);
  handle(SIGINT, on_signal);
  std::signal(SIGHUP, SIG_IGN);
  // Retries a signal that could not be served when it arrived.
  server_.hooks().tick.add([this] { serve_signal(); });
}

void Shutdown::serve_signal() {
  const int number = watched.received.load();
  // A signal waits for a running script, but not for the end of loading.
  const bool loads = (server_.state() & (kStateLoading | kStateAsyncLoading)) != 0;
  if (number == 0 || (server_.tasks().any() && !loads) || server_.ticking_paused()) return;
  const ConfigValues& settings = server_.settings();
  const unsigned flags =
      number == SIGINT ? settings.shutdown_on_sigint : settings.shutdown_on_sigterm;
  // The signal is cleared only after it was served, so that a second SIGINT exits at once.
  static_cast<void>(request(flags));
  watched.received = 0;
}

void Shutdown::schedule() {
  if (waker_ != nullptr && watched.waker.load() == waker_.get()) {
    watched.received = SIGTERM;
    waker_->wake();
    return;
  }
  static_cast<void>(request(server_.settings().shutdown_on_sigterm));
}

bool Shutdown::abort() {
  if (deadline_ms_ != 0) {
    server_.log().notice("Shutdown manually aborted.");
    stop_waiting();
    return true;
  }
  if (waker_ == nullptr || watched.waker.load() != waker_.get()) return false;
  if (watched.received.exchange(0) == 0) return false;
  server_.log().notice("Shutdown manually aborted.");
  return true;
}

void Shutdown::remove_when_interrupted(const std::string& path) {
  if (waker_ == nullptr || watched.waker.load() != waker_.get()) return;
  watched.has_file = false;
  if (path.empty() || path.size() >= watched.file.size()) return;
  *std::copy(path.begin(), path.end(), watched.file.begin()) = '\0';
  watched.has_file = true;
}

bool Shutdown::prepare(unsigned flags) {
  const auto agrees = [&](const Preparation& preparation) { return preparation(flags); };
  return std::all_of(objections_.begin(), objections_.end(), agrees) &&
         std::all_of(preparations_.begin(), preparations_.end(), agrees);
}

base::Result<Shutdown::Outcome> Shutdown::request(unsigned flags) {
  const bool at_once = (flags & kShutdownNow) != 0;
  if (deadline_ms_ != 0 && !at_once) return Outcome::kWaits;
  server_.log().notice("User requested shutdown...");
  const int timeout_s = at_once ? 0 : server_.settings().shutdown_timeout;
  const bool has_to_wait = timeout_s != 0 && replicas_lag_ && replicas_lag_();
  // What is propagated at the end must not be part of a request that goes on.
  if (!has_to_wait && (flags & kShutdownFailover) == 0) {
    if (auto ended = end(flags); !ended) return ended.failure();
    return Outcome::kEnds;
  }
  waiting_flags_ = flags;
  deadline_ms_ = server_.machine_ms() + timeout_s * base::kMsPerSecond;
  // Replicas would not receive writes from here on: they would be lost.
  server_.pauses().pause(PauseControl::Reason::kShutdown, PauseControl::Kind::kWrites,
                         deadline_ms_ + base::kMsPerSecond);
  server_.log().notice("Waiting for replicas before shutting down.");
  return Outcome::kWaits;
}

void Shutdown::wait(Client& client) {
  waiting_clients_.push_back(client.id);
  const auto ended = [this, id = client.id](BlockEnd) { std::erase(waiting_clients_, id); };
  client.wait({.deadline_ms = 0, .may_unblock = false, .outlives_role = true, .ended = ended});
}

void Shutdown::check() {
  if (deadline_ms_ == 0 ||
      (server_.machine_ms() < deadline_ms_ && replicas_lag_ && replicas_lag_()))
    return;
  if (!end(waiting_flags_)) stop_waiting();
}

void Shutdown::stop_waiting() {
  deadline_ms_ = 0;
  server_.pauses().unpause(PauseControl::Reason::kShutdown);
  for (const uint64_t id : std::exchange(waiting_clients_, {})) {
    server_.dispatcher().answer_waiting(id, [](Client& client) { client.reply.error(kFailed); });
  }
}

base::Result<> Shutdown::end(unsigned flags) {
  base::Logger& log = server_.log();
  // A dataset that is only partly loaded must not replace the whole file, and a Sentinel has none.
  if ((server_.state() & kStateLoading) != 0 || server_.is_sentinel())
    flags = (flags & ~kShutdownSave) | kShutdownNosave;
  for (const auto& step : first_steps_) step();
  if (!prepare(flags) && (flags & kShutdownForce) == 0) {
    log.warning("Errors trying to shut down the server. Check the logs for more information.");
    return base::fail(kFailed);
  }
  for (const auto& step : last_steps_) step(flags);
  for (const auto& step : steps_) step();
  if (!server_.settings().unixsocket.empty()) log.notice("Removing the unix socket file.");
  server_.stop_listening();
  log.warning(std::string(server_.is_sentinel() ? "Sentinel" : "Redis") +
              " is now ready to exit, bye bye...");
  server_.request_stop(0);
  return {};
}

}  // namespace latchkey::server
