#include "cluster/manual_failover.h"

#include "cluster/cluster.h"
#include "server/client/pause.h"
#include "server/server.h"

namespace latchkey::cluster {

using server::PauseControl;

namespace {

int64_t timeout_ms(Cluster& cluster) {
  return cluster.server().settings().cluster_manual_failover_timeout;
}

}  // namespace

void ManualFailover::begin(bool force) {
  reset();
  Election& election = cluster_.election();
  if (election.in_progress()) {
    cluster_.server().log().notice(
        "Failover election in progress for epoch " + std::to_string(election.epoch()) +
        " while a manual failover is asked for. Resetting the election.");
  }
  election.reset();
  deadline_ms_ = cluster_.server().machine_ms() + timeout_ms(cluster_);
  may_begin_ = force;
  Node* const master = cluster_.myself().master;
  if (!force) cluster_.bus().send(*master->link, cluster_.message(MessageType::kManualFailover));
}

void ManualFailover::receive_offset(const Node& sender, const Message& message) {
  const bool waits = deadline_ms_ != 0 && !may_begin_ && !wanted_offset_;
  if (!waits || &sender != cluster_.myself().master || !message.has(kWritesPaused)) return;
  wanted_offset_ = message.offset;
  cluster_.server().log().notice("Received replication offset for paused master manual failover: " +
                                 std::to_string(message.offset));
}

void ManualFailover::requested(Node& sender) {
  if (sender.master != &cluster_.myself()) return;
  server::Server& server = cluster_.server();
  reset();
  // What comes to this node from here on would not be its successor's.
  cluster_.slot_migration().cancel_all("Cancelled due to failover");
  cluster_.slot_jobs().end_imports();
  deadline_ms_ = server.machine_ms() + timeout_ms(cluster_);
  successor_ = &sender;
  // Writes stay paused until the new master is known.
  server.pauses().pause(PauseControl::Reason::kFailover, PauseControl::Kind::kWrites,
                        server.machine_ms() + 2 * timeout_ms(cluster_));
  server.log().notice("Manual failover requested by replica " + title(sender) + ".");
  if (sender.link != nullptr) cluster_.gossip().send(*sender.link, MessageType::kPing);
}

void ManualFailover::tick() {
  if (deadline_ms_ == 0) return;
  base::Logger& log = cluster_.server().log();
  if (cluster_.server().machine_ms() > deadline_ms_) {
    log.warning("Manual failover timed out.");
    return reset();
  }
  if (!wanted_offset_ || may_begin_ || !cluster_.is_synchronized()) return;
  // What the stream brings behind that offset is no write: those are paused.
  if (cluster_.offset() < *wanted_offset_) return;
  log.notice("All master replication stream processed, manual failover can start.");
  may_begin_ = true;
}

void ManualFailover::reset() {
  if (successor_ != nullptr) cluster_.server().pauses().unpause(PauseControl::Reason::kFailover);
  deadline_ms_ = 0;
  successor_ = nullptr;
  wanted_offset_.reset();
  may_begin_ = false;
}

void ManualFailover::forget(const Node& node) {
  if (successor_ == &node) reset();
}

}  // namespace latchkey::cluster
