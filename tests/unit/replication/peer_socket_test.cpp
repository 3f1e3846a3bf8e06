// The connection of MIGRATE: what it says when the other server is slow, gone, or was never there.
#include "replication/peer_socket.h"

#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "unit/catch.h"
#include "unit/net/listening_socket.h"

namespace latchkey::tests {

namespace {

using replication::PeerSocket;

// Long for what happens at once, and short for what never does.
constexpr int64_t kLongMs = 10'000;
constexpr int64_t kShortMs = 1;

// The other server: listens, and holds the connection that it has accepted.
class Other {
 public:
  Other() = default;
  ~Other() {
    if (accepted_ >= 0) close(accepted_);
  }
  Other(const Other&) = delete;
  Other& operator=(const Other&) = delete;

  std::unique_ptr<PeerSocket> connect() {
    auto peer = PeerSocket::connect("127.0.0.1", port(), kLongMs);
    REQUIRE(peer != nullptr);
    accepted_ = listening_.accept();
    REQUIRE(accepted_ >= 0);
    return peer;
  }
  void send(std::string_view bytes) {
    REQUIRE(::send(accepted_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(bytes.size()));
  }
  std::string receive(size_t size) {
    std::string bytes(size, '\0');
    REQUIRE(recv(accepted_, bytes.data(), size, MSG_WAITALL) == static_cast<ssize_t>(size));
    return bytes;
  }
  // Ends the connection such that the peer is told of a failure.
  void reset() {
    const linger at_once{1, 0};
    setsockopt(accepted_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    hang_up();
  }
  void hang_up() { close(std::exchange(accepted_, -1)); }
  void stop_listening() { listening_.stop(); }
  std::string port() const { return listening_.port(); }

 private:
  ListeningSocket listening_{1};
  int accepted_ = -1;
};

}  // namespace

TEST_CASE("What is written to another server arrives, and its lines are read", "[peer-socket]") {
  Other other;
  const auto peer = other.connect();
  REQUIRE(peer->write("PING\r\n", kLongMs));
  CHECK(other.receive(6) == "PING\r\n");
  other.send("+PONG\r\n-ERR a\rb\r\n\r\n+la");
  std::string line;
  REQUIRE(peer->read_line(&line, kLongMs));
  CHECK(line == "+PONG");
  REQUIRE(peer->read_line(&line, kLongMs));
  CHECK(line == "-ERR a\rb");
  REQUIRE(peer->read_line(&line, kLongMs));
  CHECK(line.empty());
  CHECK_FALSE(peer->read_line(&line, kShortMs));
  CHECK(peer->timed_out());
  // What had come before stays.
  other.send("st\r\n");
  REQUIRE(peer->read_line(&line, kLongMs));
  CHECK(line == "+last");
}

TEST_CASE("A server that sends no line's end is not listened to for ever", "[peer-socket]") {
  Other other;
  const auto peer = other.connect();
  std::string line;
  SECTION("a line may be long") {
    const std::string most(PeerSocket::kLongestLine - 2, 'x');
    other.send(most + "\r\n");
    REQUIRE(peer->read_line(&line, kLongMs));
    CHECK(line == most);
  }
  SECTION("but not longer") {
    other.send(std::string(PeerSocket::kLongestLine + 1, 'x'));
    CHECK_FALSE(peer->read_line(&line, kLongMs));
    CHECK_FALSE(peer->timed_out());
  }
}

TEST_CASE("A server that does not read is waited for no longer than was said", "[peer-socket]") {
  Other other;
  const auto peer = other.connect();
  const std::string much(64'000'000, 'x');
  CHECK_FALSE(peer->write(much, kShortMs));
  CHECK(peer->timed_out());
}

TEST_CASE("A server that has gone is a failure, not a timeout", "[peer-socket]") {
  Other other;
  const auto peer = other.connect();
  std::string line;
  SECTION("found by writing") {
    other.reset();
    CHECK_FALSE(peer->write("PING\r\n", kLongMs));
  }
  SECTION("found by reading") {
    other.reset();
    CHECK_FALSE(peer->read_line(&line, kLongMs));
  }
  SECTION("found at the end of what it sent") {
    other.send("+whole\r\n+half");
    other.hang_up();
    REQUIRE(peer->read_line(&line, kLongMs));
    CHECK(line == "+whole");
    CHECK_FALSE(peer->read_line(&line, kLongMs));
  }
  CHECK_FALSE(peer->timed_out());
}

TEST_CASE("A server that is not there is found by the connection or the first write",
          "[peer-socket]") {
  Other other;
  other.stop_listening();
  const auto peer = PeerSocket::connect("127.0.0.1", other.port(), kLongMs);
  CHECK((peer == nullptr || !peer->write("PING\r\n", kLongMs)));
}

}  // namespace latchkey::tests
