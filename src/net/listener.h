// Listening sockets.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "net/connection.h"
#include "net/loop.h"

namespace latchkey::net {

class Listener {
 public:
  // Called with each new connection, and takes ownership of it (start() or close()).
  using Acceptor = std::function<void(Connection*)>;
  // How many connections are accepted in one turn of the loop, asked for in each; at least 1. More
  // of them wait, so that a rush of new ones does not hold up those that are there. Empty: all that
  // have come.
  using Limit = std::function<int()>;

  // Why it cannot listen.
  struct Error {
    std::string text;  // "bind: Address already in use"
    int code;          // the errno
  };

  // Listens at an IPv4 or IPv6 address ("127.0.0.1", "::1", "*" for any IPv4, "::*" for any IPv6)
  // or at the first usable address of a host name. Port 0: one that the system chooses.
  static base::Result<std::unique_ptr<Listener>, Error> tcp(Loop& loop, const std::string& name,
                                                            int port, int backlog,
                                                            const Acceptor& acceptor,
                                                            const Limit& limit);
  // Who may connect to a unix socket. permissions 0: by the umask. group: the name of the group
  // that the file is given to; empty leaves it to the process's own.
  struct UnixAccess {
    unsigned permissions = 0;
    std::string group;
  };
  // Listens at a unix socket; removes any file at `path`. The socket is never more accessible than
  // `access` says, from its creation on. The error begins with what failed ("bind: ...").
  static base::Result<std::unique_ptr<Listener>> unix_socket(Loop& loop, const std::string& path,
                                                             const UnixAccess& access, int backlog,
                                                             Acceptor acceptor, Limit limit);
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
  struct Handle;
  explicit Listener(Handle* handle) : handle_(handle) {}
  Handle* handle_;
};

}  // namespace latchkey::net
