#include "net/socket_options.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>

namespace latchkey::net {

void set_tcp_options(int socket, int keepalive_seconds) {
  const int immediate = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &immediate, sizeof immediate);
  const int probed = keepalive_seconds > 0 ? 1 : 0;
  setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &probed, sizeof probed);
  if (probed == 0) return;
  const int interval = std::max(keepalive_seconds / 3, 1);
  const int probes = 3;
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &keepalive_seconds, sizeof keepalive_seconds);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

}  // namespace latchkey::net
