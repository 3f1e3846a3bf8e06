#include "server/pause.h"

#include <algorithm>
#include <utility>

#include "server/blocking.h"
#include "server/client.h"
#include "server/command.h"
#include "server/server.h"

namespace latchkey::server {

void PauseControl::pause(Kind kind, int64_t until_ms) {
  kind_ = std::max(kind_, kind);
  until_ms_ = std::max(until_ms_, until_ms);
  server_.set_state(kStatePaused, true);
  server_.wake_at(until_ms_);
}

void PauseControl::unpause() {
  if (kind_ == Kind::kNone) return;
  kind_ = Kind::kNone;
  until_ms_ = 0;
  server_.set_state(kStatePaused, false);
  for (const uint64_t id : std::exchange(waiting_, {})) {
    Client* client = server_.clients().find(id);
    if (client != nullptr && client->has(kClientPostponed))
      client->unblock(BlockEnd::kTimeout, /*served=*/true);
  }
  server_.blocking().pause_ended();
}

void PauseControl::tick() {
  if (kind_ == Kind::kNone) return;
  if (server_.now_ms() < until_ms_) return server_.wake_at(until_ms_);
  unpause();
}

bool PauseControl::holds(uint32_t flags) const {
  if (kind_ == Kind::kNone) return false;
  return kind_ == Kind::kAll || (flags & (kWrite | kMayReplicate)) != 0;
}

void PauseControl::postpone(Client& client) {
  waiting_.push_back(client.id);
  client.set(kClientPostponed);
  client.wait({.deadline_ms = 0, .may_unblock = false, .outlives_role = true, .ended = nullptr});
}

}  // namespace latchkey::server
