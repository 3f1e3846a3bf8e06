// CallMeter: the dispatcher notifies it of what each call has cost, for CLUSTER SLOT-STATS and
// HOTKEYS. Meters are registered with Dispatcher::meters(); without any, calls cost nothing more.
//
// Calls nest: those that EXEC or a script makes end before the call that makes them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "resp/request_encoder.h"
#include "server/command/arguments.h"

namespace latchkey::server {

class Client;
struct Command;

struct MeteredCall {
  // For a request of a script the client that called the script.
  Client& sender;
  const Command& command;
  Arguments args;
  int database;
  uint64_t ticks;       // base::CycleClock
  size_t reply_bytes;   // that it added to the client's output
  size_t stream_bytes;  // that it, and what it called, added to the stream of each replica
  bool nested;          // within EXEC or a script
  bool in_script;
};

class CallMeter {
 public:
  virtual ~CallMeter() = default;
  // The call has ended; one that had to wait, when the wait is over.
  virtual void called(const MeteredCall& call) = 0;
};

// The size of a request as clients send it.
using resp::request_bytes;

}  // namespace latchkey::server
