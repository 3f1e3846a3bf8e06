#include "replication/peer_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <utility>

namespace latchkey::replication {

std::unique_ptr<PeerSocket> PeerSocket::connect(const std::string& host, const std::string& port,
                                                int64_t timeout_ms, const net::LayerMaker& layer) {
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
    if (error != 0 && each->ai_next != nullptr) continue;
    if (layer && !peer->secure(layer(host), timeout_ms)) return nullptr;
    return peer;
  }
  return nullptr;
}

PeerSocket::~PeerSocket() {
  close(descriptor_);
}

std::optional<PeerSocket::Place> PeerSocket::place_at_this_machine() const {
  // Of either end of the connection.
  const auto place_of = [this](auto get_name) -> std::optional<Place> {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    char ip[INET6_ADDRSTRLEN] = "";
    char port[6] = "";
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    if (get_name(descriptor_, generic, &size) != 0 ||
        getnameinfo(generic, size, ip, sizeof ip, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
      return std::nullopt;
    return Place{ip, std::atoi(port)};
  };
  const auto here = place_of(getsockname);
  auto there = place_of(getpeername);
  if (!here || !there || here->ip != there->ip) return std::nullopt;
  return there;
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

bool PeerSocket::secure(std::unique_ptr<net::TransportLayer> layer, int64_t timeout_ms) {
  using State = net::TransportLayer::State;
  if (layer == nullptr) return false;
  layer_ = std::move(layer);
  layer_->begin();
  while (layer_->state() == State::kHandshake) {
    if (!send_wire(timeout_ms) || !receive(timeout_ms)) return false;
  }
  return send_wire(timeout_ms) && layer_->state() == State::kOpen;
}

bool PeerSocket::write(std::string_view bytes, int64_t timeout_ms) {
  if (layer_ == nullptr) return send_all(bytes, timeout_ms);
  constexpr size_t kMaxEncrypted = 64 * 1024;
  while (!bytes.empty()) {
    const std::string_view part = bytes.substr(0, kMaxEncrypted);
    bytes.remove_prefix(part.size());
    layer_->write(part);
    if (layer_->state() != net::TransportLayer::State::kOpen || !send_wire(timeout_ms))
      return false;
  }
  return true;
}

bool PeerSocket::send_wire(int64_t timeout_ms) {
  resp::OutputBuffer& wire = layer_->wire();
  while (!wire.empty()) {
    std::string_view piece;
    wire.gather(&piece, 1);
    if (!send_all(piece, timeout_ms)) return false;
    wire.take(piece.size());
  }
  return true;
}

bool PeerSocket::send_all(std::string_view bytes, int64_t timeout_ms) {
  while (!bytes.empty()) {
    const ssize_t count = send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count >= 0) {
      bytes.remove_prefix(static_cast<size_t>(count));
    } else if ((errno != EAGAIN && errno != EINTR) || !wait(POLLOUT, timeout_ms)) {
      return false;
    }
  }
  return true;
}

bool PeerSocket::receive(int64_t timeout_ms) {
  char bytes[4096];
  for (;;) {
    const ssize_t count = recv(descriptor_, bytes, sizeof bytes, 0);
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) return false;
    if (count < 0) {
      if (!wait(POLLIN, timeout_ms)) return false;
      continue;
    }
    if (layer_ == nullptr) {
      received_.append(bytes, static_cast<size_t>(count));
      return true;
    }
    layer_->receive({bytes, static_cast<size_t>(count)});
    char plain[4096];
    for (size_t size = 0; (size = layer_->read(plain, sizeof plain)) > 0;)
      received_.append(plain, size);
    using State = net::TransportLayer::State;
    return layer_->state() == State::kHandshake || layer_->state() == State::kOpen;
  }
}

bool PeerSocket::read_line(std::string* line, int64_t timeout_ms) {
  size_t searched = 0;
  size_t end;
  while ((end = received_.find("\r\n", searched)) == std::string::npos) {
    // Half of a line's end may be there.
    if (!received_.empty()) searched = received_.size() - 1;
    if (searched >= kLongestLine || !receive(timeout_ms)) return false;
  }
  *line = received_.substr(0, end);
  received_.erase(0, end + 2);
  return true;
}

}  // namespace latchkey::replication
