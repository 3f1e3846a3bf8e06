#include "server/process/listeners.h"

#include <cerrno>
#include <string_view>
#include <utility>

#include "server/acl/access_control.h"
#include "server/client/authentication.h"
#include "server/command/fault_injector.h"
#include "server/process/port_owner.h"
#include "server/process/secure_transport.h"
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
  server.config().on_change({"port", "tls-port"}, [this]() -> base::Result<> {
    if (move_tcp()) return {};
    return base::fail("Unable to listen on this port. Check server logs.");
  });
  server.config().on_change({"bind"}, [this]() -> base::Result<> {
    if (move_tcp()) return {};
    return base::fail("Failed to bind to specified addresses.");
  });
}

bool Listeners::open() {
  const ConfigValues& settings = server_.settings();
  if (!open_tcp(settings, &tcp_) || !open_tls(settings, &tls_) || !open_unix_socket()) return false;
  use_tcp();
  opened_ = true;
  if (!address().empty() || unix_socket_ != nullptr) return true;
  server_.log().warning("Configured to not listen anywhere, exiting.");
  return false;
}

void Listeners::use_tcp() {
  ConfigValues& values = server_.config().mutable_values();
  if (!tcp_.listeners.empty()) values.port = tcp_.port;
  port_ = values.port;
  tls_port_ = values.tls_port;
  addresses_ = values.bind;
}

void Listeners::close() {
  tcp_ = {};
  tls_ = {};
  unix_socket_.reset();
}

bool Listeners::open_tcp(const ConfigValues& settings, TcpSockets* sockets) {
  if ((settings.port == 0 && !settings.port_auto) || settings.bind.empty()) return true;
  constexpr int kMaxAttempts = 100;
  const int attempts = settings.port == 0 ? kMaxAttempts : 1;
  Opened opened = Opened::kPortTaken;
  for (int i = 0; i < attempts && opened == Opened::kPortTaken; ++i) {
    opened = open_at(settings.port, settings.bind, /*secure=*/false, sockets);
    if (opened == Opened::kYes) return true;
    *sockets = {};
  }
  base::Logger& log = server_.log();
  if (opened == Opened::kPortTaken)
    log.warning("No port is free at every address that is to be listened on.");
  log.logf(base::LogLevel::kWarning, "Failed listening on port %d (tcp), aborting.", settings.port);
  return false;
}

bool Listeners::open_tls(const ConfigValues& settings, TcpSockets* sockets) {
  if (settings.tls_port == 0 || settings.bind.empty()) return true;
  if (open_at(settings.tls_port, settings.bind, /*secure=*/true, sockets) == Opened::kYes)
    return true;
  *sockets = {};
  server_.log().logf(base::LogLevel::kWarning, "Failed listening on port %d (tls), aborting.",
                     settings.tls_port);
  return false;
}

net::Listener::Purpose Listeners::for_clients(bool secure) {
  return {.accepted = [this, secure](net::Connection* connection) { admit(connection, secure); },
          .cannot_accept =
              [this](const std::string& why) {
                server_.log().warning("Accepting client connection: " + why);
              },
          .limit =
              [this, secure] {
                const ConfigValues& settings = server_.settings();
                return secure ? settings.max_new_tls_connections_per_cycle
                              : settings.max_new_connections_per_cycle;
              }};
}

Listeners::Opened Listeners::open_at(int port, const std::vector<std::string>& addresses,
                                     bool secure, TcpSockets* sockets) {
  sockets->port = port;
  for (const std::string& entry : addresses) {
    const bool optional = entry.starts_with('-');
    int code = 0;
    if (open_one(entry.substr(optional ? 1 : 0), sockets->port, secure, sockets, &code)) continue;
    if (port == 0 && code == EADDRINUSE) return Opened::kPortTaken;
    if (!optional || !is_missing_address(code)) return Opened::kFailed;
  }
  return sockets->listeners.empty() ? Opened::kFailed : Opened::kYes;
}

bool Listeners::open_one(const std::string& address, int port, bool secure, TcpSockets* sockets,
                         int* code) {
  auto listener = net::Listener::tcp(*server_.loop(), address, port, server_.settings().tcp_backlog,
                                     for_clients(secure));
  if (listener) {
    if (const uint32_t mark = server_.settings().socket_mark_id; mark != 0) {
      const base::Result<> marked = (*listener)->set_mark(mark);
      if (!marked)
        server_.log().warning("The socket cannot be marked as socket-mark-id asks for: " +
                              marked.error());
    }
    (*listener)->prepare_connections(server_.settings().tcp_keepalive);
    if (sockets->listeners.empty()) sockets->address = address;
    sockets->port = (*listener)->port();
    sockets->listeners.push_back(*std::move(listener));
    return true;
  }
  *code = listener.error().code;
  server_.log().logf(base::LogLevel::kWarning,
                     "Warning: Could not create server TCP listening socket %s:%d: %s",
                     address.c_str(), port, listener.error().text.c_str());
  if (*code == EADDRINUSE && port != 0) {
    const std::string owner = describe_port_owner(port);
    if (!owner.empty()) server_.log().warning(owner);
  }
  return false;
}

bool Listeners::open_unix_socket() {
  const ConfigValues& settings = server_.settings();
  if (settings.unixsocket.empty()) return true;
  auto opened = net::Listener::unix_socket(*server_.loop(), settings.unixsocket,
                                           {settings.unixsocketperm, settings.unixsocketgroup},
                                           settings.tcp_backlog, for_clients(/*secure=*/false));
  if (!opened) {
    unix_socket_.reset();
    server_.log().warning("Failed opening Unix socket: " + opened.error());
    return false;
  }
  unix_socket_ = *std::move(opened);
  return true;
}

bool Listeners::move_tcp() {
  const ConfigValues& settings = server_.settings();
  const bool same_port = settings.port == port_ && (port_ != 0 || !settings.port_auto);
  const bool same_tls_port = settings.tls_port == tls_port_;
  const bool same_addresses = settings.bind == addresses_;
  if (!opened_ || (same_port && same_tls_port && same_addresses)) return true;
  // What stays as it is stays open.
  const bool move_plain = !same_port || !same_addresses;
  const bool move_secure = !same_tls_port || !same_addresses;
  TcpSockets old_tcp = move_plain ? std::exchange(tcp_, {}) : TcpSockets();
  TcpSockets old_tls = move_secure ? std::exchange(tls_, {}) : TcpSockets();
  // At the same port the old sockets would block the new ones. A port may also change hands.
  const bool swaps = move_plain && move_secure;
  if (same_port || (swaps && settings.tls_port == port_)) old_tcp = {};
  if (same_tls_port || (swaps && settings.port == tls_port_)) old_tls = {};
  if ((!move_plain || open_tcp(settings, &tcp_)) && (!move_secure || open_tls(settings, &tls_))) {
    use_tcp();
    return true;
  }
  if (move_plain) tcp_ = std::move(old_tcp);
  if (move_secure) tls_ = std::move(old_tls);
  if (tcp_.listeners.empty() && port_ != 0) open_at(port_, addresses_, /*secure=*/false, &tcp_);
  if (tls_.listeners.empty() && tls_port_ != 0)
    open_at(tls_port_, addresses_, /*secure=*/true, &tls_);
  return false;
}

bool Listeners::is_protected_from(net::Connection& connection) const {
  return server_.settings().protected_mode && server_.access().default_user()->needs_no_password &&
         !connection.peer_is_local();
}

bool Listeners::refuse_protected(Client& client) {
  if (!is_protected_from(*client.connection())) return false;
  ++server_.stats().connections_rejected;
  client.out().append(kDenied);
  client.close_after_reply();
  client.flush_soon();
  return true;
}

void Listeners::admit(net::Connection* connection, bool secure) {
  Stats& stats = server_.stats();
  if ((server_.state() & kStateFaults) != 0 && server_.fault_injector().refuses_connection()) {
    connection->close();
    ++stats.connections_rejected;
    return;
  }
  std::string_view refusal;
  if (server_.clients().size() >= server_.settings().maxclients) {
    refusal = kTooManyClients;
  } else if (!secure && is_protected_from(*connection)) {
    refusal = kDenied;
  }
  if (!refusal.empty()) {
    if (secure) {
      // Before its handshake a TLS client can be told nothing.
      connection->close();
    } else {
      connection->out().append(refusal);
      connection->flush_and_close();
    }
    ++stats.connections_rejected;
    return;
  }
  if (secure) connection->secure(server_.secure_transport().accept());
  server_.refresh_clock();
  ++stats.connections_received;
  Client& client = server_.clients().add(connection);
  client.set(kClientUnixSocket, connection->kind() == net::Connection::Kind::kUnix);
  assume_default_user(client);
  connection->use_io_thread(true);
  connection->start(client, server_.settings().tcp_keepalive);
}

}  // namespace latchkey::server
