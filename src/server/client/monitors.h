// MONITOR: clients that are told of every request that is executed.
//
// A request is shown when it has run, so that those of a transaction stand before its EXEC; what
// runs a script is shown before the script's own. Requests that are refused are not shown, and
// neither are those for operators. While nobody listens the server's state does not have
// kStateMonitored, and nothing here is called.
#pragma once

#include <cstddef>
#include <vector>

#include "server/command/command_context.h"

namespace latchkey::server {

class Client;

class Monitors {
 public:
  explicit Monitors(Server& server) : server_(server) {}

  // Shows requests to the client from now on. Nothing happens when it has been added before.
  void add(Client& client);
  // Of no effect on others.
  void remove(Client& client);

  // Shows a request. O(its bytes and the listeners).
  void show(const Client& client, const Command& command, Arguments args);

 private:
  Server& server_;
  std::vector<Client*> listeners_;
};

}  // namespace latchkey::server
