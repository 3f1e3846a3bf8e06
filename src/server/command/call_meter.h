// Who is told what each call costs: CLUSTER SLOT-STATS and HOTKEYS. The dispatcher tells those who
// have registered (Dispatcher::add_meter); without any, calls cost nothing more.
//
// Calls nest: those that EXEC or a script makes end before the call that makes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "server/command/command_context.h"

namespace latchkey::server {

class Client;
struct Command;

struct MeteredCall {
  // Whose request it is: for a request of a script the client that called it.
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

// The size of "$<size>\r\n<bytes>\r\n".
inline uint64_t bulk_bytes(size_t size) {
  constexpr uint64_t kFrame = 5;
  return kFrame + std::to_string(size).size() + size;
}

// The size of a request as clients send it.
inline uint64_t request_bytes(Arguments words) {
  constexpr uint64_t kFrame = 3;
  uint64_t bytes = kFrame + std::to_string(words.size()).size();
  for (const std::string_view word : words) bytes += bulk_bytes(word.size());
  return bytes;
}

}  // namespace latchkey::server
