// Where an instance is: its IP address and port, and the name by which it was given.
#pragma once

#include <string>
#include <string_view>

#include "base/port.h"

namespace latchkey::sentinel {

struct Address {
  // As given: a host name, or the IP address.
  std::string hostname;
  // Empty while the name could not be resolved.
  std::string ip;
  // 0: not known any more; the instance is not connected to.
  int port = 0;

  // The same port and IP address, or name while one of them has no IP address.
  bool operator==(const Address& other) const {
    if (port != other.port) return false;
    return ip.empty() || other.ip.empty() ? hostname == other.hostname : ip == other.ip;
  }
  // Whether `host`, a name or an IP address, and `port` mean this address.
  bool is_at(std::string_view host, int at_port) const {
    return port == at_port && (host == ip || host == hostname);
  }
};

// Whether the text is an IPv4 or IPv6 address.
bool is_ip(const std::string& text);

// True for 0 .. 65535.
constexpr bool is_port(int64_t port) {
  return port >= 0 && port <= base::kLastPort;
}

}  // namespace latchkey::sentinel
