#include "replication/failover.h"

#include <algorithm>
#include <utility>

#include "base/timeout.h"
#include "replication/replica_role.h"
#include "replication/replication.h"
#include "server/client/pause.h"
#include "server/server.h"

namespace latchkey::replication {

using server::PauseControl;

std::string_view name_of(Failover::State state) {
  switch (state) {
    case Failover::State::kNone:
      return "no-failover";
    case Failover::State::kWaitsForSync:
      return "waiting-for-sync";
    case Failover::State::kInProgress:
      break;
  }
  return "failover-in-progress";
}

std::string Failover::direction() const {
  if (!order_.target) return {};
  return " to " + order_.target->host + ":" + std::to_string(order_.target->port);
}

void Failover::begin(Order order) {
  server::Server& server = replication_.server();
  order_ = std::move(order);
  deadline_ms_ = base::deadline_after(server.machine_ms(), order_.timeout_ms);
  state_ = State::kWaitsForSync;
  server.log().notice("FAILOVER requested" + (order_.target ? direction() : " to any replica") +
                      ".");
  server.pauses().pause(PauseControl::Reason::kFailover, PauseControl::Kind::kWrites,
                        PauseControl::kForEver);
}

const Replica* Failover::find_synced() const {
  const auto is_synced = [this](const Replica* replica) {
    if (replica->state != ReplicaState::kOnline || replica->acked_offset != replication_.offset())
      return false;
    return !order_.target || replica->is_at(order_.target->host, order_.target->port);
  };
  const auto& replicas = replication_.replicas();
  const auto found = std::find_if(replicas.begin(), replicas.end(), is_synced);
  return found == replicas.end() ? nullptr : *found;
}

void Failover::check() {
  if (state_ != State::kWaitsForSync) return;
  server::Server& server = replication_.server();
  if (const Replica* replica = find_synced(); replica != nullptr) {
    server.log().notice("Failover target " + replica->name() + " is synced, failing over.");
    return hand_over({replica->ip(), replica->listening_port});
  }
  if (deadline_ms_ == 0 || server.machine_ms() < deadline_ms_) return;
  if (!order_.force) return abort("Replica never caught up before timeout");
  server.log().notice("FAILOVER" + direction() + " time out exceeded, failing over.");
  hand_over(*order_.target);
}

void Failover::hand_over(const Target& target) {
  state_ = State::kInProgress;
  order_.target = target;
  replication_.replica_role().replicate_from(target.host, target.port);
}

void Failover::accepted() {
  if (!in_progress()) return;
  end();
  replication_.replica_role().end_waits();
}

void Failover::abort(std::string_view reason) {
  if (!active()) return;
  replication_.server().log().notice("FAILOVER" + direction() + " aborted: " + std::string(reason));
  const bool follows = in_progress();
  state_ = State::kNone;
  if (follows) replication_.replica_role().promote();
  end();
}

void Failover::end() {
  state_ = State::kNone;
  order_ = {};
  replication_.server().pauses().unpause(PauseControl::Reason::kFailover);
}

}  // namespace latchkey::replication
