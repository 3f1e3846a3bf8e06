// CallListener: the dispatcher notifies it of every request that is run or refused, while
// kStateRecorded is set. The layer that implements it is CALLS (testing/calls.h).
//
// Calls nest: EXEC and EVAL begin before the calls that they make, and end after them. Requests of
// the append-only file, the master and replicas are left out.
#pragma once

#include <cstdint>
#include <string_view>

#include "server/command/arguments.h"

namespace latchkey::server {

class Client;
struct Command;

// A request, and where it comes from.
struct Call {
  enum class Context : uint8_t { kPlain, kMulti, kScript };
  // For a request of a script the client that called the script.
  Client& client;
  // Null: there is no such command.
  const Command* command;
  Arguments args;
  int database;
  Context context;
};

class CallListener {
 public:
  virtual ~CallListener() = default;
  // The number by which end() and waits() name the call; 0 when it is not recorded.
  virtual uint64_t begin(const Call& call) = 0;
  // The call has ended. `reply`: protocol text, at least the first kReplyBytes of it; empty when
  // there is none.
  virtual void end(uint64_t id, int64_t duration_us, std::string_view reply) = 0;
  // The call has made its client wait; wait_ended() follows.
  virtual void waits(uint64_t id, int64_t duration_us) = 0;
  // The client's wait is over. Of no effect on a client none of whose calls waits.
  virtual void wait_ended(const Client& client, std::string_view reply) = 0;

  static constexpr size_t kReplyBytes = 128;
};

}  // namespace latchkey::server
