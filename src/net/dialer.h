// Connects to another server: resolves its name, tries one address after the other, and runs the
// handshake of a layer (TLS) if there is to be one. There is no timeout: the caller
// calls give_up().
#pragma once

#include <functional>
#include <string>

#include "net/loop.h"
#include "net/transport_layer.h"

namespace latchkey::net {

class Connection;

class Dialer {
 public:
  struct Target {
    std::string host;  // a name or an address
    int port = 0;
    std::string source;  // the address to connect from; empty: any
    LayerMaker layer;    // empty: the connection is plain
  };
  // Called with a connection whose start() is yet to be called, or with null and the reason.
  using Done = std::function<void(Connection* connection, const std::string& error)>;

  // `done` is called once on the loop, after the constructor has returned, unless the dialer is
  // destroyed before.
  Dialer(Loop& loop, Target target, Done done);
  ~Dialer() { give_up(); }
  // Cancels the attempt; `done` is not called any more.
  void give_up();
  Dialer(const Dialer&) = delete;
  Dialer& operator=(const Dialer&) = delete;

 private:
  struct Attempt;
  // Lives until libuv has called its callbacks.
  Attempt* attempt_;
};

}  // namespace latchkey::net
