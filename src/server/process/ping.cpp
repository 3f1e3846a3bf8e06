#include "server/process/ping.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/file.h"

namespace latchkey::server {

namespace {

constexpr timeval kPatience = {.tv_sec = 2, .tv_usec = 0};

// A socket that is connected, or -1 with errno set.
int connect_to(int family, const sockaddr* address, socklen_t size) {
  const int descriptor = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return -1;
  // Linux applies the limit of sending to connecting as well.
  setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  if (connect(descriptor, address, size) == 0) return descriptor;
  const int error = errno;
  close(descriptor);
  errno = error;
  return -1;
}

int connect_to_socket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return connect_to(AF_UNIX, reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

int connect_to_port(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    errno = EADDRNOTAVAIL;
    return -1;
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  int descriptor = -1;
  for (const addrinfo* at = found; at != nullptr && descriptor < 0; at = at->ai_next)
    descriptor = connect_to(at->ai_family, at->ai_addr, at->ai_addrlen);
  return descriptor;
}

// The address to connect to for one that is listened on.
std::string reachable(std::string_view address) {
  if (address.starts_with('-')) address.remove_prefix(1);
  if (address == "*" || address == "0.0.0.0") return "127.0.0.1";
  if (address == "::*" || address == "::") return "::1";
  return std::string(address);
}

// Sends PING and reads the first line of what comes.
PingResult ask(int descriptor) {
  constexpr std::string_view kRequest = "PING\r\n";
  if (send(descriptor, kRequest.data(), kRequest.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(kRequest.size()))
    return {false, std::string("no request could be sent: ") + strerror(errno)};
  constexpr size_t kLongestLine = 512;
  std::string line;
  while (line.find('\n') == std::string::npos && line.size() < kLongestLine) {
    char bytes[kLongestLine];
    const ssize_t count = recv(descriptor, bytes, sizeof bytes, 0);
    if (count == 0) return {false, "the connection was closed without a reply"};
    if (count < 0) {
      const bool late = errno == EAGAIN || errno == EWOULDBLOCK;
      return {false, late ? "no reply came within two seconds"
                          : std::string("no reply could be read: ") + strerror(errno)};
    }
    line.append(bytes, static_cast<size_t>(count));
  }
  line.resize(std::min(line.find_first_of("\r\n"), line.size()));
  const std::string_view reply = line;
  const bool serves =
      reply == "+PONG" || reply.starts_with("-NOAUTH") || reply.starts_with("-NOPERM");
  return {serves, line.empty() ? line : line.substr(1)};
}

}  // namespace

PingResult ping(const ConfigValues& settings) {
  std::string place;
  int descriptor = -1;
  if (settings.port != 0) {
    const std::string host = settings.bind.empty() ? "127.0.0.1" : reachable(settings.bind.front());
    place = host + ":" + std::to_string(settings.port);
    descriptor = connect_to_port(host, settings.port);
  } else if (!settings.unixsocket.empty()) {
    place = settings.unixsocket;
    descriptor = connect_to_socket(settings.unixsocket);
  } else {
    return {false, "there is neither a port without TLS nor a Unix socket to ask at"};
  }
  if (descriptor < 0) return {false, "no server at " + place + ": " + strerror(errno)};
  const base::Descriptor owner(descriptor);
  return ask(descriptor);
}

}  // namespace latchkey::server
