// MONITOR: clients that are sent every request that is executed.
//
// A request is sent to them when it has run, so that the requests of a transaction come before its
// EXEC; EVAL and the like come before the commands of their script. Requests that are refused are
// left out, and so are administrative commands. Without a monitor kStateMonitored is not set, and
// nothing here is called.
#pragma once

#include <vector>

#include "server/command/arguments.h"

namespace latchkey::server {

class Client;
class Server;
struct Command;

class Monitors {
 public:
  explicit Monitors(Server& server) : server_(server) {}

  // Adds the client to the monitors. No effect when it is one already.
  void add(Client& client);
  // No effect on clients that are not monitors.
  void remove(Client& client);

  // Sends a request to the monitors. O(its bytes and the monitors).
  void show(const Client& client, const Command& command, Arguments args);

 private:
  Server& server_;
  std::vector<Client*> listeners_;
};

}  // namespace latchkey::server
