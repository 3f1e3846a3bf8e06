// Clients that come through TLS: who they are by their certificates, and who is not let in.
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/buffer_pool.h"
#include "commands/groups.h"
#include "net/loop.h"
#include "server/process/listeners.h"
#include "tls/context.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"
#include "unit/tls/certificates.h"

namespace latchkey::tests {

namespace {

// One authority, and what it has signed; made once, because keys take their time.
const Certificates& certificates() {
  static const std::unique_ptr<Certificates> made = [] {
    auto fresh = std::make_unique<Certificates>();
    fresh->add("server", "the server");
    fresh->add("client", "anna");
    fresh->add("uris", "anna", -Certificates::kDay, Certificates::kDay, "",
               "URI:urn:b,DNS:name.example,URI:urn:a");
    return fresh;
  }();
  return *made;
}

sockaddr_in local_port(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = inet_addr("127.0.0.1");
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

// A port that nobody listens at.
int free_port() {
  sockaddr_in address = local_port(0);
  socklen_t size = sizeof address;
  auto* const raw = reinterpret_cast<sockaddr*>(&address);
  const int probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  REQUIRE(bind(probe, raw, size) == 0);
  REQUIRE(getsockname(probe, raw, &size) == 0);
  close(probe);
  return ntohs(address.sin_port);
}

// A server that listens at a port for TLS and at another one.
class SecureServer {
 public:
  explicit SecureServer(const std::string& settings = {})
      : tls_port(free_port()), config_(std::make_unique<server::PrivateDirectory>()) {
    log_.set_level(base::LogLevel::kNothing);
    REQUIRE(config_.load("", "bind 127.0.0.1\nport auto\ntls-port " + std::to_string(tls_port) +
                                 "\ntls-cert-file " + certificates().path("server.crt") +
                                 "\ntls-key-file " + certificates().path("server.key") +
                                 "\ntls-ca-cert-file " + certificates().path("ca.crt") + "\n" +
                                 settings));
    server_ = std::make_unique<server::Server>(clock, config_, log_, &loop);
    for (const auto& rows :
         {commands::acl_rows(), commands::connection_rows(), commands::client_rows()})
      server_->commands().add(rows);
    REQUIRE(server_->listen());
    root = std::make_unique<TestClient>(*server_);
  }
  int port() const { return config_.values().port; }
  server::Server& server() { return *server_; }
  void tick() {
    server_->refresh_clock();
    server_->tick();
  }

  base::VirtualClock clock;
  net::Loop loop;
  int tls_port;

 private:
  base::Logger log_;
  server::Config config_;
  std::unique_ptr<server::Server> server_;

 public:
  std::unique_ptr<TestClient> root;
};

// A client at one of its ports. Nothing waits: everything goes through the local host.
class Caller {
 public:
  // `certificate`: its name; empty: it has none. Without `secure` it speaks plainly.
  explicit Caller(SecureServer& server, const std::string& certificate, bool secure = true)
      : server_(server), socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (secure) {
      tls::Settings settings;
      settings.ca_cert_file = certificates().path("ca.crt");
      settings.cert_file =
          certificates().path((certificate.empty() ? "server" : certificate) + ".crt");
      settings.key_file =
          certificates().path((certificate.empty() ? "server" : certificate) + ".key");
      auto context = tls::Context::make(settings);
      REQUIRE(context);
      context_ = *std::move(context);
      layer_ = context_->connect(pool_, "server.example");
      layer_->begin();
    }
    const sockaddr_in address = local_port(secure ? server.tls_port : server.port());
    REQUIRE(connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    fcntl(socket_, F_SETFL, O_NONBLOCK);
  }
  ~Caller() { close(socket_); }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  bool shake_hands() {
    for (int turns = 0; turns < 5000 && !is_at_end && layer_->state() == State::kHandshake; ++turns)
      turn();
    return layer_->state() == State::kOpen;
  }
  std::string ask(std::string_view request) {
    layer_->write(request);
    return receive();
  }
  // What comes next; nothing when the server has closed.
  std::string receive() {
    for (int turns = 0; turns < 5000 && !is_at_end && text_.empty(); ++turns) turn();
    return std::exchange(text_, {});
  }
  void turn() {
    if (layer_ != nullptr && !layer_->wire().empty()) {
      const std::string bytes = layer_->wire().copy_since(0);
      layer_->wire().clear();
      if (send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) is_at_end = true;
    }
    server_.loop.run_once();
    char piece[4096];
    const ssize_t count = recv(socket_, piece, sizeof piece, 0);
    if (count == 0) is_at_end = true;
    if (count <= 0) return;
    const std::string_view bytes(piece, static_cast<size_t>(count));
    if (layer_ == nullptr) {
      text_ += bytes;
      return;
    }
    layer_->receive(bytes);
    char room[4096];
    for (size_t size = 0; (size = layer_->read(room, sizeof room)) > 0;) text_.append(room, size);
  }

  bool is_at_end = false;

 private:
  using State = net::TransportLayer::State;
  SecureServer& server_;
  int socket_;
  base::BufferPool pool_;
  std::unique_ptr<tls::Context> context_;
  std::unique_ptr<net::TransportLayer> layer_;
  std::string text_;
};

constexpr std::string_view kWhoAmI = "ACL WHOAMI\r\n";

}  // namespace

TEST_CASE("A client is the user that its certificate names", "[secure clients]") {
  SecureServer server("tls-auth-clients-user CN\n");
  server.root->run("ACL SETUSER anna on +@all");
  {
    Caller caller(server, "client");
    REQUIRE(caller.shake_hands());
    CHECK(caller.ask(kWhoAmI) == bulk("anna"));
  }
  CHECK(server.root->run("ACL LOG") == "*0\r\n");
  // Nobody logs in as one who is off.
  server.root->run("ACL SETUSER anna off");
  Caller caller(server, "client");
  REQUIRE(caller.shake_hands());
  CHECK(caller.ask(kWhoAmI) == bulk("default"));
  const std::string log = server.root->run("ACL LOG");
  CHECK(log.starts_with("*1\r\n*20\r\n" + bulk("count") + integer(1) + bulk("reason") +
                        bulk("tls-cert") + bulk("context") + bulk("toplevel") + bulk("object") +
                        bulk("") + bulk("username") + bulk("anna")));
}

TEST_CASE("A client is the first user that its certificate has as a URI", "[secure clients]") {
  SecureServer server("tls-auth-clients-user URI\n");
  server.root->run("ACL SETUSER urn:a on +@all");
  {
    Caller caller(server, "uris");
    REQUIRE(caller.shake_hands());
    CHECK(caller.ask(kWhoAmI) == bulk("urn:a"));
  }
  server.root->run("ACL SETUSER urn:b on +@all");
  {
    Caller caller(server, "uris");
    REQUIRE(caller.shake_hands());
    CHECK(caller.ask(kWhoAmI) == bulk("urn:b"));
  }
  CHECK(server.root->run("ACL LOG") == "*0\r\n");
  server.root->run("ACL DELUSER urn:a urn:b");
  Caller caller(server, "uris");
  REQUIRE(caller.shake_hands());
  CHECK(caller.ask(kWhoAmI) == bulk("default"));
  CHECK(server.root->run("ACL LOG").find(bulk("username") + bulk("urn:a")) != std::string::npos);
  // One without URIs asks for nobody.
  server.root->run("ACL LOG RESET");
  Caller other(server, "client");
  REQUIRE(other.shake_hands());
  CHECK(other.ask(kWhoAmI) == bulk("default"));
  CHECK(server.root->run("ACL LOG") == "*0\r\n");
}

TEST_CASE("Without tls-auth-clients-user a certificate names nobody", "[secure clients]") {
  SecureServer server;
  server.root->run("ACL SETUSER anna on +@all");
  Caller caller(server, "client");
  REQUIRE(caller.shake_hands());
  CHECK(caller.ask(kWhoAmI) == bulk("default"));
}

TEST_CASE("A handshake may take as long as timeout says, and ten seconds at most",
          "[secure clients]") {
  const struct {
    const char* settings;
    int64_t limit_ms;
  } rows[] = {{"", 10'000}, {"timeout 5\n", 5'000}, {"timeout 60\n", 10'000}};
  for (const auto& row : rows) {
    INFO(row.settings);
    SecureServer server(row.settings);
    const size_t before = server.server().clients().size();
    // It connects, and says nothing.
    Caller caller(server, "client");
    for (int i = 0; i < 5000 && server.server().clients().size() == before; ++i)
      server.loop.run_once();
    REQUIRE(server.server().clients().size() == before + 1);
    server.clock.advance_ms(row.limit_ms);
    server.tick();
    CHECK(server.server().clients().size() == before + 1);
    server.clock.advance_ms(1);
    server.tick();
    CHECK(server.server().clients().size() == before);
  }
}

TEST_CASE("More clients than maxclients are refused, through TLS without a word",
          "[secure clients]") {
  SecureServer server("maxclients 1\n");
  Caller plain(server, "", /*secure=*/false);
  CHECK(plain.receive() == error("ERR max number of clients reached"));
  CHECK(server.server().stats().connections_rejected == 1);
  Caller secure(server, "client");
  CHECK_FALSE(secure.shake_hands());
  CHECK(secure.is_at_end);
  CHECK(server.server().stats().connections_rejected == 2);
  CHECK(server.server().clients().size() == 1);
}

}  // namespace latchkey::tests
