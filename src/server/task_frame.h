// What a command that is suspended in the middle (server/tasks.h) keeps to itself: what the server
// holds of the call that it is in, put aside so that others can be served, and put back when the
// command goes on.
#pragma once

#include <cstdint>
#include <memory>

#include "server/client/blocking.h"
#include "server/command/dispatcher.h"
#include "server/command/propagation.h"

namespace latchkey::server {

class Server;

struct TaskFrame {
  std::unique_ptr<Dispatcher::Calls> calls;
  Propagation::Unit unit;
  Blocking::ReadyKeys ready;
  // Time stands still for the command.
  int64_t now_ms = 0;
  uint32_t access_clock = 0;
  bool freeze_access = false;
  bool follows = false;     // kStateApplyingMaster
  bool is_audited = false;  // ClusterAudit::looking()
};

// Puts the frame of what goes on aside. What is left is a server between two commands.
TaskFrame put_aside(Server& server);
// REQUIRES: the server is between two commands.
void put_back(Server& server, TaskFrame frame);

}  // namespace latchkey::server
