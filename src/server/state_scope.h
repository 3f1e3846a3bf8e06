// Sets a bit of ServerState while it exists; afterwards the bit is what it was before.
#pragma once

#include <cstdint>

#include "server/server.h"

namespace latchkey::server {

class [[nodiscard]] StateScope {
 public:
  StateScope(Server& server, uint32_t bit)
      : server_(server), bit_(bit), outer_((server.state() & bit) != 0) {
    server_.set_state(bit_, true);
  }
  ~StateScope() { server_.set_state(bit_, outer_); }
  StateScope(const StateScope&) = delete;
  StateScope& operator=(const StateScope&) = delete;

 private:
  Server& server_;
  uint32_t bit_;
  bool outer_;
};

}  // namespace latchkey::server
