// Who may hand a client, with its connection, to another server of the process before its request
// runs. The request then comes again there.
//
// It is an interface, because the spaces that there are (testing/spaces.h) are a layer above.
#pragma once

#include <string>

#include "server/command/command_context.h"

namespace latchkey::server {

class Client;
struct Command;

class SpaceGate {
 public:
  virtual ~SpaceGate() = default;

  enum class Verdict : uint8_t {
    kStays,
    kGoes,     // it waits (Client::wait) until then
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
