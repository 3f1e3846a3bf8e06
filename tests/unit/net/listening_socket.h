// A socket that listens at a port of 127.0.0.1 that the system has chosen.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "unit/catch.h"

namespace latchkey::tests {

class ListeningSocket {
 public:
  explicit ListeningSocket(int backlog)
      : descriptor_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* plain = reinterpret_cast<sockaddr*>(&address_);
    socklen_t size = sizeof address_;
    REQUIRE(bind(descriptor_, plain, size) == 0);
    REQUIRE(listen(descriptor_, backlog) == 0);
    REQUIRE(getsockname(descriptor_, plain, &size) == 0);
  }
  ~ListeningSocket() { stop(); }
  ListeningSocket(const ListeningSocket&) = delete;
  ListeningSocket& operator=(const ListeningSocket&) = delete;

  const sockaddr* address() const { return reinterpret_cast<const sockaddr*>(&address_); }
  std::string port() const { return std::to_string(ntohs(address_.sin_port)); }
  // Waits for a connection. The caller owns it; negative after an error.
  int accept(sockaddr_in* from = nullptr) const {
    socklen_t size = sizeof *from;
    return ::accept(descriptor_, reinterpret_cast<sockaddr*>(from), from ? &size : nullptr);
  }
  void stop() {
    if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
  }

 private:
  int descriptor_;
  sockaddr_in address_{};
};

}  // namespace latchkey::tests
