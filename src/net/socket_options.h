// Options of TCP sockets.
#pragma once

namespace latchkey::net {

// Has small writes sent at once (TCP_NODELAY), and a peer probed that says nothing for
// `keepalive_seconds`, then three times at a third of that: a dead one is noticed after twice the
// time. 0: no probes. On a listening socket it is for the connections accepted from then on, which
// inherit it.
void set_tcp_options(int socket, int keepalive_seconds);

}  // namespace latchkey::net
