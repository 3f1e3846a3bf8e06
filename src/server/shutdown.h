// How the server ends: on SHUTDOWN, and on SIGTERM and SIGINT.
//
// Ending takes the steps of those who asked to be told (on_exit), then the last line of the log,
// then the process ends with status 0. Without a loop (tests) the server only remembers that it was
// to end.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace latchkey::net {
class Waker;
}

namespace latchkey::server {

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

  // Ends the server. `flags`: kShutdownSave and the like of config_values.h. False with the reply
  // in `error` when it goes on.
  bool request(unsigned flags, std::string* error);

  // Called when the server ends, in the order of registration.
  void on_exit(std::function<void()> step) { steps_.push_back(std::move(step)); }

 private:
  void serve_signal();

  Server& server_;
  std::vector<std::function<void()>> steps_;
  std::unique_ptr<net::Waker> waker_;
};

}  // namespace latchkey::server
