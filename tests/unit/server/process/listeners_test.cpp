#include "server/process/listeners.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "unit/catch.h"
#include "unit/net/bind_calls.h"
#include "unit/server_fixture.h"
#include "unit/temporary_directory.h"
#include "unit/tls/certificates.h"

namespace latchkey::tests {

namespace {

// A server that listens, with the ports that it has tried at each address.
class Listening {
 public:
  // `taken`: how often a port at 127.0.0.2 is in use.
  explicit Listening(const std::string& settings, int taken = 0)
      : config_(std::make_unique<server::PrivateDirectory>()) {
    log_.set_level(base::LogLevel::kNothing);
    REQUIRE(config_.load("", settings));
    is_port_taken = [this, taken](const sockaddr_in& address) mutable {
      const bool second = address.sin_addr.s_addr == inet_addr("127.0.0.2");
      tried_.emplace_back(second ? 2 : 1, ntohs(address.sin_port));
      return second && taken-- > 0;
    };
    server_ = std::make_unique<server::Server>(clock_, config_, log_, &loop_);
    listens = server_->listen();
  }
  ~Listening() { is_port_taken = nullptr; }

  std::string set(const std::string& name, const std::string& value) {
    const server::Config::NameAndValue pair = {name, value};
    const auto done = config_.set(std::span(&pair, 1), {});
    return done ? "" : done.error();
  }
  int port() const { return config_.values().port; }
  const std::string& address() const { return server_->listeners().address(); }
  std::vector<std::pair<int, int>> take_tried() { return std::exchange(tried_, {}); }
  // Accepts so many connections that have come; returns the most of one turn of the loop.
  size_t accept(size_t count) {
    const size_t wanted = server_->clients().size() + count;
    size_t most = 0;
    for (int turns = 0; server_->clients().size() < wanted && turns < 100; ++turns) {
      const size_t before = server_->clients().size();
      loop_.run_once();
      most = std::max(most, server_->clients().size() - before);
    }
    CHECK(server_->clients().size() == wanted);
    return most;
  }

  bool listens = false;

 private:
  base::VirtualClock clock_;
  base::Logger log_;
  net::Loop loop_;
  server::Config config_;
  std::vector<std::pair<int, int>> tried_;  // which address, port
  std::unique_ptr<server::Server> server_;
};

// Connections to a port of 127.0.0.1, which the system has made and nobody has accepted yet; with
// port 0 a socket that is bound, and no more.
class Peers {
 public:
  Peers(int port, int count) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = inet_addr("127.0.0.1");
    address.sin_port = htons(static_cast<uint16_t>(port));
    const auto* const raw = reinterpret_cast<const sockaddr*>(&address);
    for (int i = 0; i < count; ++i) {
      sockets_.push_back(socket(AF_INET, SOCK_STREAM, 0));
      REQUIRE((port != 0 ? connect(sockets_.back(), raw, sizeof address)
                         : bind(sockets_.back(), raw, sizeof address)) == 0);
    }
  }
  ~Peers() {
    for (const int each : sockets_) close(each);
  }
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;
  int own_port() const {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    REQUIRE(getsockname(sockets_[0], reinterpret_cast<sockaddr*>(&address), &size) == 0);
    return ntohs(address.sin_port);
  }

 private:
  std::vector<int> sockets_;
};

}  // namespace

TEST_CASE("In a turn are accepted as many connections as the port's directive allows") {
  Certificates certificates;
  certificates.add("server", "the server");
  const int tls_port = Peers(0, 1).own_port();
  Listening server("bind 127.0.0.1\nport auto\ntls-port " + std::to_string(tls_port) +
                   "\ntls-cert-file " + certificates.path("server.crt") + "\ntls-key-file " +
                   certificates.path("server.key") + "\ntls-ca-cert-file " +
                   certificates.path("ca.crt") +
                   "\nmax-new-connections-per-cycle 4\nmax-new-tls-connections-per-cycle 2\n");
  REQUIRE(server.listens);
  const Peers plain(server.port(), 10);
  CHECK(server.accept(10) == 4);
  const Peers secure(tls_port, 10);
  CHECK(server.accept(10) == 2);
  // Each port has its own.
  CHECK(server.set("max-new-tls-connections-per-cycle", "7").empty());
  const Peers more_secure(tls_port, 10);
  CHECK(server.accept(10) == 7);
  const Peers more_plain(server.port(), 10);
  CHECK(server.accept(10) == 4);
}

TEST_CASE("All addresses share the port that the system chose at the first") {
  Listening server("port auto\nbind 127.0.0.1 127.0.0.2\n");
  REQUIRE(server.listens);
  CHECK(server.port() > 0);
  CHECK(server.address() == "127.0.0.1");
  CHECK(server.take_tried() == std::vector<std::pair<int, int>>{{1, 0}, {2, server.port()}});
}

TEST_CASE("Where the port is in use at the second address another one is chosen") {
  Listening server("port auto\nbind 127.0.0.1 127.0.0.2\n", 3);
  REQUIRE(server.listens);
  const auto tried = server.take_tried();
  REQUIRE(tried.size() == 8);
  for (size_t i = 0; i < tried.size(); i += 2) CHECK(tried[i] == std::pair(1, 0));
  CHECK(tried.back() == std::pair(2, server.port()));
}

TEST_CASE("A server that finds no port at all says so in the end") {
  const Listening server("port auto\nbind 127.0.0.1 127.0.0.2\n", 1'000'000);
  CHECK_FALSE(server.listens);
}

TEST_CASE("A port that was asked for is not replaced by another") {
  int port = 0;
  {
    const Listening probe("port auto\nbind 127.0.0.1\n");
    port = probe.port();
  }
  const Listening server("port " + std::to_string(port) + "\nbind 127.0.0.1 127.0.0.2\n", 1);
  CHECK_FALSE(server.listens);
}

TEST_CASE("A change that fails brings back the port that the system chose") {
  Listening server("port auto\nbind 127.0.0.1\n", 1'000'000);
  REQUIRE(server.listens);
  const int port = server.port();
  CHECK(server.set("bind", "127.0.0.2").ends_with("Failed to bind to specified addresses."));
  CHECK(server.port() == port);
  CHECK(server.address() == "127.0.0.1");
  CHECK(server.take_tried().back() == std::pair(1, port));
}

TEST_CASE("A server without a port may be given one that the system chooses") {
  Listening server("port auto\nbind 127.0.0.1\n");
  REQUIRE(server.listens);
  CHECK(server.set("port", "0") == "");
  CHECK(server.address() == "");
  CHECK(server.set("port", "auto") == "");
  CHECK(server.port() > 0);
  CHECK(server.address() == "127.0.0.1");
}

TEST_CASE("A server that can listen nowhere does not start") {
  CHECK_FALSE(Listening("port 0\n").listens);
  CHECK_FALSE(Listening("port 0\nunixsocket /nonexistent/directory/socket\n").listens);
  const TemporaryDirectory directory;
  CHECK(Listening("port 0\nunixsocket " + (directory.path() / "socket").string() + "\n").listens);
}

TEST_CASE("A port for TLS must be free at every address") {
  Certificates certificates;
  certificates.add("server", "the server");
  const std::string settings = "\ntls-cert-file " + certificates.path("server.crt") +
                               "\ntls-key-file " + certificates.path("server.key") +
                               "\ntls-ca-cert-file " + certificates.path("ca.crt") + "\n";
  const std::string port = "tls-port " + std::to_string(Peers(0, 1).own_port());
  CHECK_FALSE(Listening("bind 127.0.0.1 127.0.0.2\nport 0\n" + port + settings, 1).listens);
  CHECK(Listening("bind 127.0.0.1 127.0.0.2\nport 0\n" + port + settings).listens);
}

TEST_CASE("A change of the port for TLS that fails leaves the old one open") {
  Certificates certificates;
  certificates.add("server", "the server");
  const std::string port = std::to_string(Peers(0, 1).own_port());
  Listening server("bind 127.0.0.1\nport 0\ntls-port " + port + "\ntls-cert-file " +
                       certificates.path("server.crt") + "\ntls-key-file " +
                       certificates.path("server.key") + "\ntls-ca-cert-file " +
                       certificates.path("ca.crt") + "\n",
                   1'000'000);
  REQUIRE(server.listens);
  CHECK(server.set("bind", "127.0.0.2").ends_with("Failed to bind to specified addresses."));
  CHECK(server.address() == "127.0.0.1");
  const Peers peers(std::stoi(port), 1);
  server.accept(1);
}

}  // namespace latchkey::tests
