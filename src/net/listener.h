// Listening sockets.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "net/connection.h"
#include "net/descriptor_watcher.h"
#include "net/loop.h"

namespace latchkey::net {

class Listener {
 public:
  // What a listener is for. It may not be destroyed by either callback.
  struct Purpose {
    // Called with each new connection, and takes ownership of it (start() or close()).
    std::function<void(Connection*)> accepted;
    // Called with the reason why none can be accepted ("accept: Too many open files"), once until
    // one can again. Those that come wait meanwhile, and are tried again ten times a second. May be
    // empty.
    std::function<void(const std::string&)> cannot_accept;
    // How many connections are accepted in one turn of the loop, asked for in each; at least 1.
    // More of them wait, so that a rush of new ones does not hold up those that are there. Empty:
    // all that have come.
    std::function<int()> limit;
  };

  // Why it cannot listen.
  struct Error {
    std::string text;  // "bind: Address already in use"
    int code;          // the errno
  };

  // Listens at an IPv4 or IPv6 address ("127.0.0.1", "::1", "*" for any IPv4, "::*" for any IPv6)
  // or at the first usable address of a host name. Port 0: one that the system chooses.
  static base::Result<std::unique_ptr<Listener>, Error> tcp(Loop& loop, const std::string& name,
                                                            int port, int backlog,
                                                            const Purpose& purpose);
  // Who may connect to a unix socket. permissions 0: by the umask. group: the name of the group
  // that the file is given to; empty leaves it to the process's own.
  struct UnixAccess {
    unsigned permissions = 0;
    std::string group;
  };
  // Listens at a unix socket; removes any file at `path`, and the socket's at the end. The socket
  // is never more accessible than `access` says, from its creation on. The error begins with what
  // failed ("bind: ...").
  static base::Result<std::unique_ptr<Listener>> unix_socket(Loop& loop, const std::string& path,
                                                             const UnixAccess& access, int backlog,
                                                             Purpose purpose);
  ~Listener();
  // The TCP port it listens at: the one that the system chose where 0 was asked for; 0 for a unix
  // socket.
  int port() const;
  // Sets TCP_NODELAY and the keep-alive probes (Connection::start) that the connections it accepts
  // are to have, which inherit them: five system calls less for each. Of no effect on a unix
  // socket.
  void prepare_connections(int keepalive_seconds);
  // Marks the socket, and with it the connections that it accepts, for the kernel's routing and
  // filtering (SO_MARK in socket(7)). Fails where that is not permitted; the error is strerror's
  // text.
  base::Result<> set_mark(uint32_t mark);
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

 private:
  Listener(Loop& loop, int socket, Connection::Kind kind, Purpose purpose);
  // An errno, or 0.
  int listen(int backlog);
  // The address of a TCP socket, "::" for all of them.
  std::string ip_of_socket() const;
  void accept();
  void cannot_accept(int code);

  Loop& loop_;
  int socket_;
  Connection::Kind kind_;
  Purpose purpose_;
  std::string path_;                      // the file of a bound unix socket
  std::optional<int> keepalive_seconds_;  // of prepare_connections()
  bool failing_ = false;                  // the last connection could not be accepted
  std::optional<DescriptorWatcher> watcher_;
  Timer retry_;
};

}  // namespace latchkey::net
