// Makes a connection to another server: looks its name up, and tries one address after the other.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "net/loop.h"

namespace latchkey::net {

class Connection;

class Dialer {
 public:
  struct Target {
    std::string host;  // a name or an address
    int port = 0;
    std::string source;  // the address to connect from; empty: any
  };
  // A connection that is not started yet, or null and the reason.
  using Done = std::function<void(Connection* connection, const std::string& error)>;

  // `done` is called once, on the loop and not before this returns, unless the dialer has gone.
  Dialer(Loop& loop, Target target, Done done);
  ~Dialer() { give_up(); }
  // Whatever is not done is not done any more.
  void give_up();
  Dialer(const Dialer&) = delete;
  Dialer& operator=(const Dialer&) = delete;

 private:
  struct Attempt;
  // Lives on until libuv has let go of it.
  Attempt* attempt_;
};

}  // namespace latchkey::net
