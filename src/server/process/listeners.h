// The sockets that accept clients: TCP and TLS at every address of `bind`, and the unix socket.
// Refuses
// connections by maxclients and protected mode, and makes a client of each accepted one.
//
// CONFIG SET of `port`, `tls-port` and `bind` replaces the TCP sockets; connected clients stay.
// With `port auto` the system chooses a port that is free at every address, and the configuration's
// port is set to it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "net/connection.h"
#include "net/listener.h"

namespace latchkey::server {

class Client;
class Server;
struct ConfigValues;

class Listeners {
 public:
  explicit Listeners(Server& server);

  // Opens the configured sockets. False, with the reasons logged, when a required socket cannot be
  // opened, or when there is nothing to open.
  bool open();
  void close();
  // Whether protected mode refuses a client whose TLS handshake is over: sends the error, and
  // closes it. Others are refused when they connect.
  bool refuse_protected(Client& client);
  // The first address of `bind` that clients are accepted at; empty when there is none.
  const std::string& address() const {
    return !tcp_.listeners.empty() ? tcp_.address : tls_.address;
  }

 private:
  // Those of every address, at one port.
  struct TcpSockets {
    std::vector<std::unique_ptr<net::Listener>> listeners;
    std::string address;  // of the first
    int port = 0;
  };
  enum class Opened { kYes, kPortTaken, kFailed };

  bool open_tcp(const ConfigValues& settings, TcpSockets* sockets);
  bool open_tls(const ConfigValues& settings, TcpSockets* sockets);
  // `secure`: of a TLS socket, here and below.
  net::Listener::Purpose for_clients(bool secure);
  // Port 0: the system chooses. kPortTaken: the port that it chose is in use at another address.
  Opened open_at(int port, const std::vector<std::string>& addresses, bool secure,
                 TcpSockets* sockets);
  bool open_one(const std::string& address, int port, bool secure, TcpSockets* sockets, int* code);
  // Notes what the TCP and TLS sockets stand for, and tells the configuration the port that the
  // system chose.
  void use_tcp();
  bool open_unix_socket();
  // Replaces the TCP and TLS sockets after a change of configuration. False, with the old ones in
  // place, when that fails.
  bool move_tcp();
  void admit(net::Connection* connection, bool secure);
  bool is_protected_from(net::Connection& connection) const;

  Server& server_;
  bool opened_ = false;
  int port_ = 0;
  int tls_port_ = 0;
  std::vector<std::string> addresses_;
  TcpSockets tcp_;
  TcpSockets tls_;
  std::unique_ptr<net::Listener> unix_socket_;
};

}  // namespace latchkey::server
