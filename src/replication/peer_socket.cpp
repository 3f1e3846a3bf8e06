#include "replication/peer_socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>

namespace latchkey::replication {

std::unique_ptr<PeerSocket> PeerSocket::connect(const std::string& host, const std::string& port,
                                                int64_t timeout_ms) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return nullptr;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, freeaddrinfo);
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    const int descriptor =
        socket(each->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, each->ai_protocol);
    if (descriptor < 0) continue;
    std::unique_ptr<PeerSocket> peer(new PeerSocket(descriptor));
    const int on = 1;
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (::connect(descriptor, each->ai_addr, each->ai_addrlen) != 0 && errno != EINPROGRESS)
      continue;
    if (!peer->wait(POLLOUT, timeout_ms)) return nullptr;
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error == 0 || each->ai_next == nullptr) return peer;
  }
  return nullptr;
}

PeerSocket::~PeerSocket() {
  close(descriptor_);
}

bool PeerSocket::wait(short events, int64_t timeout_ms) {
  pollfd watched{descriptor_, events, 0};
  const auto limit =
      static_cast<int>(std::min<int64_t>(timeout_ms, std::numeric_limits<int>::max()));
  int ready = 0;
  do {
    ready = poll(&watched, 1, limit);
  } while (ready < 0 && errno == EINTR);
  timed_out_ = ready == 0;
  return ready > 0;
}

bool PeerSocket::write(std::string_view bytes, int64_t timeout_ms) {
  while (!bytes.empty()) {
    const ssize_t count = send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count >= 0) {
      bytes.remove_prefix(static_cast<size_t>(count));
    } else if (errno != EAGAIN && errno != EINTR) {
      return false;
    } else if (!wait(POLLOUT, timeout_ms)) {
      return false;
    }
  }
  return true;
}

bool PeerSocket::read_line(std::string* line, int64_t timeout_ms) {
  size_t end;
  while ((end = received_.find("\r\n")) == std::string::npos) {
    char bytes[4096];
    const ssize_t count = recv(descriptor_, bytes, sizeof bytes, 0);
    if (count > 0) {
      received_.append(bytes, static_cast<size_t>(count));
    } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
      return false;
    } else if (!wait(POLLIN, timeout_ms)) {
      return false;
    }
  }
  *line = received_.substr(0, end);
  received_.erase(0, end + 2);
  return true;
}

}  // namespace latchkey::replication
