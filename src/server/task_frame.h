// TaskFrame: the server's state of a command that a task has suspended (server/tasks.h). It is
// saved so that other clients can be served, and restored when the command goes on.
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
  bool is_audited = false;  // ClusterAudit::is_sampling()
};

// Takes the frame of the running command. What is left is a server between two commands.
TaskFrame suspend_frame(Server& server);
// REQUIRES: the server is between two commands.
void resume_frame(Server& server, TaskFrame frame);

}  // namespace latchkey::server
