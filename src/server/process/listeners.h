// The sockets that accept clients: TCP at every address of `bind`, and the unix socket. Refuses
// connections by maxclients and protected mode, and makes a client of each accepted one.
//
// CONFIG SET of `port` and `bind` replaces the TCP sockets; connected clients stay.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "net/connection.h"
#include "net/listener.h"

namespace latchkey::server {

class Server;

class Listeners {
 public:
  explicit Listeners(Server& server);

  // Opens the configured sockets. False, with the reasons logged, when a required socket cannot be
  // opened, or when there is nothing to open.
  bool open();
  void close();
  // Opens one more TCP socket at the configured addresses. False, with the reason logged, when it
  // cannot be had.
  bool open_port(int port);

 private:
  using Sockets = std::vector<std::unique_ptr<net::Listener>>;

  bool open_tcp(int port, const std::vector<std::string>& addresses, Sockets* sockets);
  bool open_unix_socket();
  // Replaces the TCP sockets after a change of configuration. False, with the old ones in place,
  // when that fails.
  bool move_tcp();
  void admit(net::Connection* connection);
  bool is_protected_from(net::Connection& connection) const;

  Server& server_;
  bool opened_ = false;
  int port_ = 0;
  std::vector<std::string> addresses_;
  Sockets tcp_;
  std::unique_ptr<net::Listener> unix_socket_;
};

}  // namespace latchkey::server
