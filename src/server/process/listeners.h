// The sockets that clients come in by: TCP at every address of `bind`, and the unix socket. Decides
// who may come in (maxclients, protected mode) and makes a client of each who may.
//
// CONFIG SET of `port` and `bind` moves the TCP sockets; clients that are connected stay.
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

  // Opens what the configuration asks for. False, with the reasons logged, when a socket that must
  // be there cannot be had, or when there is nothing to open.
  bool open();
  void close();

 private:
  using Sockets = std::vector<std::unique_ptr<net::Listener>>;

  bool open_tcp(int port, const std::vector<std::string>& addresses, Sockets* sockets);
  bool open_unix_socket();
  // Brings the TCP sockets in line with the configuration. False, with the old ones in place, when
  // that fails.
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
