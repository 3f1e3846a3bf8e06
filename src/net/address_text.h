// Addresses of connections as text: "ip:port", or "[ip]:port" for IPv6.
#pragma once

#include <string_view>

namespace latchkey::net {

// The IP address of such a text, without brackets. A view into `address`; empty for an empty text.
inline std::string_view ip_of(std::string_view address) {
  std::string_view ip = address.substr(0, address.rfind(':'));
  if (ip.starts_with('[') && ip.ends_with(']')) ip = ip.substr(1, ip.size() - 2);
  return ip;
}

}  // namespace latchkey::net
