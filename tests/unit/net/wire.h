// A net::Connection over a real socket, and the peer at the other end of it.
//
//     net::Loop loop;
//     Wire wire(loop);
//     wire.connection->start(handler, 0);
//     wire.peer.send("PING\r\n");
//     turn(loop);
//
// The peer never waits: it sends and receives what the system takes and has at once.
#pragma once

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "net/connection.h"
#include "net/listener.h"
#include "net/loop.h"
#include "unit/catch.h"
#include "unit/temporary_directory.h"

namespace latchkey::tests {

// Serves what is ready.
inline void turn(net::Loop& loop, int times = 3) {
  for (int i = 0; i < times; ++i) loop.run_once();
}

class Peer {
 public:
  // Takes ownership of a socket.
  explicit Peer(int socket) : socket_(socket) {
    REQUIRE(socket_ >= 0);
    fcntl(socket_, F_SETFL, O_NONBLOCK);
  }
  ~Peer() { close(); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  void connect(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    REQUIRE(path.size() < sizeof address.sun_path);
    path.copy(address.sun_path, path.size());
    REQUIRE(::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  }
  void send(std::string_view bytes) { REQUIRE(send_some(bytes) == bytes.size()); }
  // How many bytes the system took.
  size_t send_some(std::string_view bytes) {
    const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    return static_cast<size_t>(std::max<ssize_t>(count, 0));
  }
  void send_no_more() { shutdown(socket_, SHUT_WR); }
  // What has arrived, up to `most` bytes.
  std::string receive(size_t most = SIZE_MAX) {
    std::string text;
    char bytes[4096];
    while (text.size() < most) {
      const ssize_t count = recv(socket_, bytes, std::min(sizeof bytes, most - text.size()), 0);
      if (count == 0) is_at_end_ = true;
      if (count <= 0) break;
      text.append(bytes, static_cast<size_t>(count));
    }
    return text;
  }
  // Bytes that have arrived and were not received yet.
  size_t waiting() const {
    int bytes = 0;
    REQUIRE(ioctl(socket_, FIONREAD, &bytes) == 0);
    return static_cast<size_t>(bytes);
  }
  // Whether receive() came to the end of what is sent.
  bool is_at_end() const { return is_at_end_; }
  // On a Unix socket the other end is told of a reset when there are bytes that were not received.
  void close() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }

 private:
  int socket_;
  bool is_at_end_ = false;
};

// Over a Unix socket. Who starts the connection also closes it, and before the loop ends.
class Wire {
 public:
  explicit Wire(net::Loop& loop) : peer(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const auto listener = net::Listener::unix_socket(
        loop, path(), {.permissions = 0700, .group = {}}, 1,
        {.accepted = [this](net::Connection* accepted) { connection = accepted; },
         .cannot_accept = {},
         .limit = {}});
    INFO((listener ? "" : listener.error()));
    REQUIRE(listener);
    peer.connect(path());
    turn(loop);
    REQUIRE(connection != nullptr);
  }
  std::string path() const { return directory_.path() / "socket"; }

 private:
  TemporaryDirectory directory_;

 public:
  Peer peer;
  net::Connection* connection = nullptr;
};

}  // namespace latchkey::tests
