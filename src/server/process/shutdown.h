// How the server ends: on SHUTDOWN, and on SIGTERM and SIGINT.
//
// When replicas have not yet got all that was written, the end waits for them, for up to
// shutdown-timeout seconds, while nothing more is written.
//
// Ending takes the steps of those who have something to bring to safety first (before_exit), and
// goes no further when one of them fails; then those of who only wants to be told (on_exit), then
// the last line of the log, then the process ends with status 0. Without a loop (tests) the server
// only remembers that it was to end.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace latchkey::net {
class Waker;
}

namespace latchkey::server {

class Client;
class Server;

class Shutdown {
 public:
  explicit Shutdown(Server& server);
  // Puts back the default handling of signals, if watch_signals() changed it.
  ~Shutdown();
  Shutdown(const Shutdown&) = delete;
  Shutdown& operator=(const Shutdown&) = delete;

  // SIGTERM and SIGINT end the server in good order, as shutdown-on-sigterm and shutdown-on-sigint
  // say; a second SIGINT ends the process at once, whatever it is doing. SIGHUP and SIGPIPE are
  // ignored. Signals belong to the process: of several servers the last one that watches them gets
  // them.
  void watch_signals();

  enum class Outcome : uint8_t { kEnds, kWaits, kRefused };
  // Ends the server. `flags`: kShutdownSave and the like of config_values.h; while the dataset is
  // being loaded nothing is saved. kRefused with the reply in `error`: it goes on. kWaits: it ends
  // when its replicas have caught up, or refuses then.
  Outcome request(unsigned flags, std::string* error);
  // Suspends a client whose request waits; it hears only when the server goes on after all. To be
  // called last by a handler that has replied nothing.
  void wait(Client& client);
  // Ends the waiting, and forgets a signal that has come and was not yet served. False when there
  // is nothing of the kind.
  bool abort();
  // Until when the end waits for replicas (Unix time), 0: it does not.
  int64_t deadline_ms() const { return deadline_ms_; }
  // Ends the server if what it waits for has come, or the time is over.
  void look();

  // Whether replicas lag behind; asked when the end is requested, and again until it is over.
  void on_lag_question(std::function<bool()> replicas_lag) {
    replicas_lag_ = std::move(replicas_lag);
  }

  // Called in the order of registration with the flags of the request, kShutdownForce among them
  // when failing is no reason to go on. False, with the reason in the log, keeps the server from
  // ending.
  using Preparation = std::function<bool(unsigned flags)>;
  void before_exit(Preparation preparation) { preparations_.push_back(std::move(preparation)); }

  // Called when the waiting for replicas is over, whether or not the server ends then.
  void before_preparations(std::function<void()> step) { first_steps_.push_back(std::move(step)); }

  // Called when the server ends, in the order of registration.
  void on_exit(std::function<void()> step) { steps_.push_back(std::move(step)); }

  // The file that is removed when a second SIGINT ends the process at once; empty: none.
  void remove_when_interrupted(const std::string& path);

 private:
  void serve_signal();

  bool prepare(unsigned flags);
  Outcome end(unsigned flags, std::string* error);
  void stop_waiting();

  Server& server_;
  std::vector<Preparation> preparations_;
  std::vector<std::function<void()>> first_steps_;
  std::vector<std::function<void()>> steps_;
  std::function<bool()> replicas_lag_;
  unsigned waiting_flags_ = 0;
  int64_t deadline_ms_ = 0;
  std::vector<uint64_t> waiting_clients_;  // ids
  std::unique_ptr<net::Waker> waker_;
};

}  // namespace latchkey::server
