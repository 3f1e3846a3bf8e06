// Runs the requests by which another node sends slots, after looking at each: only writes of keys
// in the slots that are being migrated, and FUNCTION LOAD and RESTORE. What else a stream of writes
// may have around them (PING, MULTI and EXEC: nobody sees these keys yet) is accepted and does
// nothing. SELECT names the database of what follows.
//
// Expired keys are visible to these requests, as to a master's: the source propagates their
// deletion.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/slot_set.h"
#include "server/command/key_spec.h"

namespace latchkey::server {
class Client;
class Server;
struct Command;
}  // namespace latchkey::server

namespace latchkey::cluster {

class StreamRunner {
 public:
  // The requests run as `client`, which must be internal and outlive the runner; several runners
  // may share it.
  StreamRunner(server::Server& server, server::Client& client, const SlotSet& slots);

  // What follows is for the first database, until a SELECT.
  void begin_stream() { database_ = 0; }
  // Runs the request. Fails when it is none of those above, or when its reply is an error; the
  // stream must not be run any further then.
  base::Result<> run(std::span<const std::string_view> words);

 private:
  base::Result<> select(std::span<const std::string_view> words);
  base::Result<> check(const server::Command& command, std::span<const std::string_view> words);

  server::Server& server_;
  SlotSet slots_;
  server::Client& client_;
  int database_ = 0;
  std::vector<server::KeyReference> found_;
};

}  // namespace latchkey::cluster
