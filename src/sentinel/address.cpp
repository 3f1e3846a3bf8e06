#include "sentinel/address.h"

#include <arpa/inet.h>

namespace latchkey::sentinel {

bool is_ip(const std::string& text) {
  in6_addr bytes{};
  return inet_pton(AF_INET, text.c_str(), &bytes) == 1 ||
         inet_pton(AF_INET6, text.c_str(), &bytes) == 1;
}

}  // namespace latchkey::sentinel
