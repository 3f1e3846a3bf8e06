#include "server/task_frame.h"

#include <utility>

#include "server/server.h"

namespace latchkey::server {

TaskFrame suspend_frame(Server& server) {
  store::Environment& environment = server.environment();
  TaskFrame frame{
      .calls = server.dispatcher().suspend_calls(),
      .unit = server.propagation().suspend_unit(),
      .ready = server.blocking().suspend_ready(),
      .now_ms = environment.now_ms,
      .access_clock = environment.access_clock,
      .freeze_access = std::exchange(environment.freeze_access, false),
      .follows = (server.state() & kStateApplyingMaster) != 0,
      .is_audited = server.cluster_audit().is_sampling(),
  };
  server.set_state(kStateApplyingMaster, false);
  server.cluster_audit().end();
  return frame;
}

void resume_frame(Server& server, TaskFrame frame) {
  store::Environment& environment = server.environment();
  server.dispatcher().resume_calls(std::move(frame.calls));
  server.propagation().resume_unit(std::move(frame.unit));
  server.blocking().resume_ready(std::move(frame.ready));
  environment.now_ms = frame.now_ms;
  environment.access_clock = frame.access_clock;
  environment.freeze_access = frame.freeze_access;
  server.set_state(kStateApplyingMaster, frame.follows);
  if (frame.is_audited) server.cluster_audit().resume();
}

}  // namespace latchkey::server
