// SpaceGate: decides before a request runs whether its client moves, with its connection, to
// another server of the process. The request then runs there.
//
// It is an interface, because the spaces (testing/spaces.h) are a layer above.
#pragma once

#include <string>

#include "server/command/arguments.h"

namespace latchkey::server {

class Client;
struct Command;

class SpaceGate {
 public:
  virtual ~SpaceGate() = default;

  enum class Verdict : uint8_t {
    kStays,
    kMoves,    // it waits (Client::wait) until then
    kRefused,  // it asked for a place that cannot be had: `error`
  };
  struct Answer {
    Verdict verdict = Verdict::kStays;
    std::string error = {};
  };
  // Asked for commands with kMayChangeServer.
  virtual Answer ask(Client& client, const Command& command, Arguments args) = 0;
};

}  // namespace latchkey::server
