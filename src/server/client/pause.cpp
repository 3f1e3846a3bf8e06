#include "server/client/pause.h"

#include <algorithm>
#include <utility>

#include "base/timeout.h"
#include "server/client/blocking.h"
#include "server/client/client.h"
#include "server/command/command.h"
#include "server/server.h"

namespace latchkey::server {

void PauseControl::pause(Reason reason, Kind kind, int64_t until_ms) {
  Pause& pause = pauses_[static_cast<size_t>(reason)];
  pause.kind = std::max(pause.kind, kind);
  pause.until_ms = std::max(pause.until_ms, until_ms);
  const int64_t machine_ms = server_.machine_ms();
  const int64_t left_ms = std::min(until_ms - now_ms(reason), kForEver - machine_ms);
  pause.until_machine_ms = std::max(pause.until_machine_ms, machine_ms + left_ms);
  kind_ = std::max(kind_, kind);
  server_.set_state(kStatePaused, true);
  if (pause.until_ms != kForEver) wake_at_end(reason, pause);
}

int64_t PauseControl::now_ms(Reason reason) const {
  return reason == Reason::kClient ? server_.now_ms() : server_.machine_ms();
}

bool PauseControl::is_over(Reason reason, const Pause& pause) const {
  return now_ms(reason) >= pause.until_ms ||
         (server_.is_replica() && server_.machine_ms() >= pause.until_machine_ms);
}

// Where the two times differ, the ticks see the end of a pause in the machine's.
void PauseControl::wake_at_end(Reason reason, const Pause& pause) {
  if (reason == Reason::kClient || server_.data_clock().is_wall())
    server_.wake_at(server_.now_ms() + (pause.until_ms - now_ms(reason)));
}

void PauseControl::unpause(Reason reason) {
  pauses_[static_cast<size_t>(reason)] = {};
  recompute();
}

PauseControl::ActivePause PauseControl::active() const {
  ActivePause found;
  for (size_t i = 0; i < pauses_.size(); ++i) {
    const Pause& pause = pauses_[i];
    const auto reason = static_cast<Reason>(i);
    if (pause.kind == Kind::kNone) continue;
    const int64_t left_ms = pause.until_ms == kForEver
                                ? kForEver
                                : std::max<int64_t>(pause.until_ms - now_ms(reason), 0);
    if (pause.kind > found.kind || (pause.kind == found.kind && left_ms > found.left_ms))
      found = {.kind = pause.kind, .reason = reason, .left_ms = left_ms};
  }
  return found;
}

void PauseControl::recompute() {
  Kind strongest = Kind::kNone;
  for (const Pause& pause : pauses_) strongest = std::max(strongest, pause.kind);
  if (std::exchange(kind_, strongest) == strongest) return;
  server_.set_state(kStatePaused, kind_ != Kind::kNone);
  for (const uint64_t id : std::exchange(waiting_, {})) {
    Client* client = server_.clients().find(id);
    if (client != nullptr && client->has(kClientPostponed)) client->unblock(BlockEnd::kServed);
  }
  server_.blocking().pause_ended();
}

void PauseControl::tick() {
  if (kind_ == Kind::kNone) return;
  for (const Reason reason :
       {Reason::kClient, Reason::kShutdown, Reason::kFailover, Reason::kSlotHandoff}) {
    Pause& pause = pauses_[static_cast<size_t>(reason)];
    if (pause.kind == Kind::kNone || pause.until_ms == kForEver) continue;
    if (is_over(reason, pause)) {
      pause = {};
    } else {
      wake_at_end(reason, pause);
    }
  }
  recompute();
}

void PauseControl::clock_went_back(int64_t by_ms) {
  Pause& pause = pauses_[static_cast<size_t>(Reason::kClient)];
  if (pause.kind != Kind::kNone && pause.until_ms != kForEver)
    pause.until_ms = base::moved_deadline(pause.until_ms, by_ms);
}

bool PauseControl::holds(uint32_t flags) const {
  if (kind_ == Kind::kNone || (flags & kDuringPause) != 0) return false;
  return kind_ == Kind::kAll || (flags & (kWrite | kMayReplicate)) != 0;
}

void PauseControl::postpone(Client& client) {
  waiting_.push_back(client.id);
  client.set(kClientPostponed);
  client.wait({.deadline_ms = 0, .may_unblock = false, .outlives_role = true, .ended = nullptr});
}

}  // namespace latchkey::server
