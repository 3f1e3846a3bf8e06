#include "server/task_frame.h"

#include <utility>

#include "server/server.h"

namespace latchkey::server {

TaskFrame put_aside(Server& server) {
  store::Environment& environment = server.environment();
  TaskFrame frame{
      .calls = server.dispatcher().put_aside(),
      .unit = server.propagation().put_aside(),
      .ready = server.blocking().put_aside(),
      .now_ms = environment.now_ms,
      .access_clock = environment.access_clock,
      .freeze_access = std::exchange(environment.freeze_access, false),
      .follows = (server.state() & kStateApplyingMaster) != 0,
      .is_audited = server.cluster_audit().looking(),
  };
  server.set_state(kStateApplyingMaster, false);
  server.cluster_audit().end();
  return frame;
}

void put_back(Server& server, TaskFrame frame) {
  store::Environment& environment = server.environment();
  server.dispatcher().put_back(std::move(frame.calls));
  server.propagation().put_back(std::move(frame.unit));
  server.blocking().put_back(std::move(frame.ready));
  environment.now_ms = frame.now_ms;
  environment.access_clock = frame.access_clock;
  environment.freeze_access = frame.freeze_access;
  server.set_state(kStateApplyingMaster, frame.follows);
  if (frame.is_audited) server.cluster_audit().go_on();
}

}  // namespace latchkey::server
