#include "server/process/listeners.h"

#include <cerrno>
#include <string_view>
#include <utility>

#include "server/acl/access_control.h"
#include "server/client/authentication.h"
#include "server/command/fault_injector.h"
#include "server/server.h"

namespace latchkey::server {

namespace {

constexpr std::string_view kTooManyClients = "-ERR max number of clients reached\r\n";

constexpr std::string_view kDenied =
    "-DENIED Redis is running in protected mode because protected mode is enabled and no password "
    "is set for the default "
    "user. In this mode connections are only accepted from the loopback interface. If you want to "
    "connect from external "
    "computers to Redis you may adopt one of the following solutions: 1) Just disable protected "
    "mode sending the command "
    "'CONFIG SET protected-mode no' from the loopback interface by connecting to Redis from the "
    "same host the server is "
    "running, however MAKE SURE Redis is not publicly accessible from internet if you do so. Use "
    "CONFIG REWRITE to make this "
    "change permanent. 2) Alternatively you can just disable the protected mode by editing the "
    "Redis configuration file, "
    "and setting the protected mode option to 'no', and then restarting the server. 3) If you "
    "started the server manually "
    "just for testing, restart it with the '--protected-mode no' option. 4) Set up an "
    "authentication password for the "
    "default user. NOTE: You only need to do one of the above things in order for the server to "
    "start accepting "
    "connections from the outside.\r\n";

// Errors that are accepted for an optional address ("-::1").
bool is_missing_address(int code) {
  return code == EADDRNOTAVAIL || code == EAFNOSUPPORT || code == EPROTONOSUPPORT ||
         code == ENOPROTOOPT;
}

}  // namespace

Listeners::Listeners(Server& server) : server_(server) {
  server.config().on_change({"port"}, [this](std::string* error) {
    if (move_tcp()) return true;
    *error = "Unable to listen on this port. Check server logs.";
    return false;
  });
  server.config().on_change({"bind"}, [this](std::string* error) {
    if (move_tcp()) return true;
    *error = "Failed to bind to specified addresses.";
    return false;
  });
}

bool Listeners::open() {
  const ConfigValues& settings = server_.settings();
  if (!open_tcp(settings, &tcp_) || !open_unix_socket()) return false;
  use_tcp();
  opened_ = true;
  if (!tcp_.listeners.empty() || unix_socket_ != nullptr) return true;
  server_.log().warning("Configured to not listen anywhere, exiting.");
  return false;
}

void Listeners::use_tcp() {
  ConfigValues& values = server_.config().mutable_values();
  if (!tcp_.listeners.empty()) values.port = tcp_.port;
  port_ = values.port;
  addresses_ = values.bind;
}

void Listeners::close() {
  tcp_ = {};
  unix_socket_.reset();
}

bool Listeners::open_tcp(const ConfigValues& settings, TcpSockets* sockets) {
  if ((settings.port == 0 && !settings.port_auto) || settings.bind.empty()) return true;
  constexpr int kMostAttempts = 100;
  const int attempts = settings.port == 0 ? kMostAttempts : 1;
  Opened opened = Opened::kPortTaken;
  for (int i = 0; i < attempts && opened == Opened::kPortTaken; ++i) {
    opened = open_at(settings.port, settings.bind, sockets);
    if (opened == Opened::kYes) return true;
    *sockets = {};
  }
  base::Logger& log = server_.log();
  if (opened == Opened::kPortTaken)
    log.warning("No port is free at every address that is to be listened on.");
  log.logf(base::LogLevel::kWarning, "Failed listening on port %d (tcp), aborting.", settings.port);
  return false;
}

Listeners::Opened Listeners::open_at(int port, const std::vector<std::string>& addresses,
                                     TcpSockets* sockets) {
  sockets->port = port;
  for (const std::string& entry : addresses) {
    const bool optional = entry.starts_with('-');
    int code = 0;
    if (open_one(entry.substr(optional ? 1 : 0), sockets->port, sockets, &code)) continue;
    if (port == 0 && code == EADDRINUSE) return Opened::kPortTaken;
    if (!optional || !is_missing_address(code)) return Opened::kFailed;
  }
  return sockets->listeners.empty() ? Opened::kFailed : Opened::kYes;
}

bool Listeners::open_one(const std::string& address, int port, TcpSockets* sockets, int* code) {
  std::string error;
  auto listener = net::Listener::tcp(
      *server_.loop(), address, port, server_.settings().tcp_backlog,
      [this](net::Connection* connection) { admit(connection); }, &error, code);
  if (listener != nullptr) {
    if (sockets->listeners.empty()) sockets->address = address;
    sockets->port = listener->port();
    sockets->listeners.push_back(std::move(listener));
    return true;
  }
  server_.log().logf(base::LogLevel::kWarning,
                     "Warning: Could not create server TCP listening socket %s:%d: %s",
                     address.c_str(), port, error.c_str());
  return false;
}

bool Listeners::open_unix_socket() {
  const ConfigValues& settings = server_.settings();
  if (settings.unixsocket.empty()) return true;
  std::string error;
  unix_socket_ = net::Listener::unix_socket(
      *server_.loop(), settings.unixsocket, {settings.unixsocketperm, settings.unixsocketgroup},
      settings.tcp_backlog, [this](net::Connection* connection) { admit(connection); }, &error);
  if (unix_socket_ != nullptr) return true;
  server_.log().warning("Failed opening Unix socket: " + error);
  return false;
}

bool Listeners::move_tcp() {
  const ConfigValues& settings = server_.settings();
  const bool same_port = settings.port == port_ && (port_ != 0 || !settings.port_auto);
  if (!opened_ || (same_port && settings.bind == addresses_)) return true;
  TcpSockets old = std::exchange(tcp_, {});
  // At the same port the old sockets would block the new ones.
  if (same_port) old = {};
  if (open_tcp(settings, &tcp_)) {
    use_tcp();
    return true;
  }
  tcp_ = std::move(old);
  if (same_port) open_at(port_, addresses_, &tcp_);
  return false;
}

bool Listeners::is_protected_from(net::Connection& connection) const {
  return server_.settings().protected_mode && server_.access().default_user()->needs_no_password &&
         !connection.peer_is_local();
}

void Listeners::admit(net::Connection* connection) {
  Stats& stats = server_.stats();
  if ((server_.state() & kStateFaults) != 0 && server_.fault_injector().refuses_connection()) {
    connection->close();
    ++stats.connections_rejected;
    return;
  }
  std::string_view refusal;
  if (server_.clients().size() >= server_.settings().maxclients) {
    refusal = kTooManyClients;
  } else if (is_protected_from(*connection)) {
    refusal = kDenied;
  }
  if (!refusal.empty()) {
    connection->out().append(refusal);
    connection->flush_and_close();
    ++stats.connections_rejected;
    return;
  }
  server_.refresh_clock();
  ++stats.connections_received;
  Client& client = server_.clients().add(connection);
  client.set(kClientUnixSocket, connection->kind() == net::Connection::Kind::kUnix);
  assume_default_user(client);
  connection->start(client, server_.settings().tcp_keepalive);
}

}  // namespace latchkey::server
