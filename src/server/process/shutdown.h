// Shutdown of the server: by SHUTDOWN, SIGTERM and SIGINT.
//
// When replicas lag behind, the shutdown waits for them, for up to shutdown-timeout seconds, and
// writes are paused.
//
// The shutdown first runs the steps that save data (before_exit), and is refused when one of them
// fails; then the steps of on_exit, which cannot fail, then the last line of the log; then the
// process ends with status 0. Without a loop (tests) the server only remembers that it should end.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace latchkey::net {
class Waker;
}

namespace latchkey::server {

class Client;
class Server;

class Shutdown {
 public:
  explicit Shutdown(Server& server);
  // Restores the default handling of signals, if watch_signals() changed it.
  ~Shutdown();
  Shutdown(const Shutdown&) = delete;
  Shutdown& operator=(const Shutdown&) = delete;

  // SIGTERM and SIGINT shut the server down as shutdown-on-sigterm and shutdown-on-sigint say; a
  // second SIGINT exits at once, whatever the server is doing. SIGHUP is ignored.
  // Signals belong to the process: of several servers the last one that watches them receives them.
  void watch_signals();

  enum class Outcome : uint8_t { kEnds, kWaits };
  // Shuts down. `flags`: kShutdownSave and the like of config_values.h; while the dataset is being
  // loaded nothing is saved. Fails when the server goes on; the error is the reply. kWaits: check()
  // shuts down, or refuses, when the replicas have caught up or the time is over.
  base::Result<Outcome> request(unsigned flags);
  // Shuts down as SIGTERM does: as shutdown-on-sigterm says, and not before a running script has
  // ended.
  void schedule();
  // Blocks a client whose SHUTDOWN waits; it gets a reply only if the server goes on after all. To
  // be called last by a handler that has replied nothing.
  void wait(Client& client);
  // Cancels the waiting, and drops a signal that has not been served yet. False when there is
  // neither.
  bool abort();
  // Until when the shutdown waits for replicas (Unix time); 0: it does not wait.
  int64_t deadline_ms() const { return deadline_ms_; }
  // Shuts down if the replicas have caught up, or the time is over.
  void check();

  // `replicas_lag` returns whether replicas lag behind; it is called at the request, and again
  // until the waiting is over.
  void on_lag_question(std::function<bool()> replicas_lag) {
    replicas_lag_ = std::move(replicas_lag);
  }

  // Called in the order of registration with the flags of the request; with kShutdownForce a
  // failure does not matter. False, after logging the reason, refuses the shutdown.
  using Preparation = std::function<bool(unsigned flags)>;
  void before_exit(Preparation preparation) { preparations_.push_back(std::move(preparation)); }
  // Called before anything is saved, in the same way: whether the server may end at all.
  void before_saving(Preparation objection) { objections_.push_back(std::move(objection)); }

  // Called with the flags of the request when nothing can refuse it any more, before on_exit.
  void before_leaving(std::function<void(unsigned flags)> step) {
    last_steps_.push_back(std::move(step));
  }

  // Called when the waiting for replicas is over, whether or not the server then ends.
  void before_preparations(std::function<void()> step) { first_steps_.push_back(std::move(step)); }

  // Called when the server ends, in the order of registration.
  void on_exit(std::function<void()> step) { steps_.push_back(std::move(step)); }

  // When the server has ended, the process is to begin anew, as it was called, so many milliseconds
  // later (Application).
  void restart_after(int64_t delay_ms) { restart_delay_ms_ = delay_ms; }
  // Nothing: it is not.
  std::optional<int64_t> restart_delay_ms() const { return restart_delay_ms_; }

  // The file to remove when a second SIGINT exits at once; empty: none.
  void remove_when_interrupted(const std::string& path);

 private:
  void serve_signal();

  bool prepare(unsigned flags);
  base::Result<> end(unsigned flags);
  void stop_waiting();

  Server& server_;
  std::vector<Preparation> objections_;
  std::vector<Preparation> preparations_;
  std::vector<std::function<void()>> first_steps_;
  std::vector<std::function<void(unsigned)>> last_steps_;
  std::vector<std::function<void()>> steps_;
  std::function<bool()> replicas_lag_;
  unsigned waiting_flags_ = 0;
  int64_t deadline_ms_ = 0;
  std::optional<int64_t> restart_delay_ms_;
  std::vector<uint64_t> waiting_clients_;  // ids
  std::unique_ptr<net::Waker> waker_;
};

}  // namespace latchkey::server
