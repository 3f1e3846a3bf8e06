#include "cluster/election.h"

#include <algorithm>
#include <utility>

#include "base/time_units.h"
#include "cluster/cluster.h"
#include "replication/replica_role.h"
#include "replication/replication.h"
#include "server/server.h"

namespace latchkey::cluster {

namespace {

// Delays of an election: the failing state should have reached all nodes, and the replicas should
// not all begin at once.
constexpr int64_t kDelayMs = 500;
constexpr uint64_t kRandomDelayMs = 500;
constexpr int64_t kDelayPerRankMs = 1000;
// When several masters have failed, their replicas begin one after the other: a master has only one
// vote in an epoch.
constexpr int64_t kDelayPerMasterMs = 500;
constexpr int64_t kShortestTimeoutMs = 2000;
// A master votes for only one replica of the same master within this many timeouts. A manual
// failover does not count: its replica is the only candidate.
constexpr int64_t kVoteTimeouts = 2;

}  // namespace

void Election::reset() {
  begins_ms_ = 0;
  hurries_ = false;
  expired_ = false;
  rank_ = 0;
  votes_requested_ = false;
  votes_ = 0;
  epoch_ = 0;
}

// --- The candidate ------------------------------------------------------------------------------

bool Election::in_progress() const {
  const int64_t timeout_ms = std::max(cluster_.timeout_ms() * 2, kShortestTimeoutMs);
  return votes_requested_ && cluster_.server().machine_ms() - begins_ms_ <= timeout_ms;
}

bool Election::is_eligible() const {
  const Node& myself = cluster_.myself();
  if (!myself.is_replica() || myself.master == nullptr || myself.master->slots.empty())
    return false;
  if (cluster_.manual_failover().may_begin()) return true;
  return myself.master->has(kFailing) && !myself.has(kNoFailover) && cluster_.has_dataset() &&
         !data_is_too_old();
}

bool Election::data_is_too_old() const {
  server::Server& server = cluster_.server();
  const auto& settings = server.settings();
  if (settings.cluster_replica_validity_factor == 0) return false;
  const int64_t silent_ms = server.layer<replication::Replication>().replica_role().silent_ms();
  // Up to the node timeout the master was not failing, and nobody could have replaced it.
  const int64_t age_ms = silent_ms - std::min(silent_ms, cluster_.timeout_ms());
  const int64_t ping_period_ms = settings.repl_ping_replica_period * base::kMsPerSecond;
  return age_ms > ping_period_ms + cluster_.timeout_ms() * settings.cluster_replica_validity_factor;
}

int Election::rank() const {
  const Node& myself = cluster_.myself();
  const uint64_t offset = cluster_.offset();
  const auto is_better = [&](const Node* replica) {
    if (replica->has(kMyself | kNoFailover)) return false;
    return replica->offset > offset || (replica->offset == offset && replica->id < myself.id);
  };
  return static_cast<int>(std::ranges::count_if(myself.master->replicas, is_better));
}

int Election::rank_of_master() const {
  const Node& master = *cluster_.myself().master;
  const auto is_first = [&](const Node* node) {
    return node->votes() && node->has(kFailing) && node->shard_id < master.shard_id;
  };
  return static_cast<int>(std::ranges::count_if(cluster_.nodes().all(), is_first));
}

bool Election::is_best() const {
  if (!cluster_.server().edition().is_valkey_since({9, 1})) return false;
  const Node& master = *cluster_.myself().master;
  const auto knows = [](const Node* replica) { return replica->has(kMyself | kMasterFails); };
  return master.has(kFailing) && rank() == 0 && rank_of_master() == 0 &&
         std::ranges::all_of(master.replicas, knows);
}

void Election::tick() {
  if (!is_eligible()) return;
  const int64_t now_ms = cluster_.server().machine_ms();
  const int64_t timeout_ms = std::max(cluster_.timeout_ms() * 2, kShortestTimeoutMs);
  if (begins_ms_ == 0 || now_ms - begins_ms_ > timeout_ms * 2) return schedule(now_ms);
  if (!votes_requested_ && !cluster_.manual_failover().active()) update_delay(now_ms);
  if (now_ms < begins_ms_) return;
  if (now_ms - begins_ms_ > timeout_ms) {
    if (!std::exchange(expired_, true)) cluster_.server().log().notice("Failover attempt expired.");
    return;
  }
  if (!votes_requested_) return ask_for_votes();
  if (votes_ >= cluster_.nodes().quorum()) win();
}

void Election::update_delay(int64_t now_ms) {
  if (!hurries_ && is_best()) {
    hurries_ = true;
    begins_ms_ = std::min(begins_ms_, now_ms);
    rank_ = 0;
    cluster_.server().log().notice(
        "Myself become the best ranked replica, initiate the election immediately.");
  }
  if (rank() <= rank_) return;
  begins_ms_ += (rank() - rank_) * kDelayPerRankMs;
  rank_ = rank();
}

void Election::schedule(int64_t now_ms) {
  reset();
  // In a manual failover this replica is already chosen: it does not wait.
  if (cluster_.manual_failover().active()) {
    begins_ms_ = now_ms;
    return ask_for_votes();
  }
  rank_ = rank();
  const int master_rank = rank_of_master();
  const auto chance =
      static_cast<int64_t>(cluster_.server().environment().random.below(kRandomDelayMs));
  hurries_ = is_best();
  const int64_t delay_ms =
      hurries_ ? 0 : kDelayMs + chance + rank_ * kDelayPerRankMs + master_rank * kDelayPerMasterMs;
  begins_ms_ = now_ms + delay_ms;
  server::Server& server = cluster_.server();
  if (hurries_) {
    server.log().notice(
        "This is the best ranked replica and can initiate the election immediately.");
  }
  const std::string of_master =
      server.edition().is_valkey() ? "primary rank #" + std::to_string(master_rank) + ", " : "";
  server.log().notice("Start of election delayed for " + std::to_string(delay_ms) +
                      " milliseconds (rank #" + std::to_string(rank_) + ", " + of_master +
                      "offset " + std::to_string(cluster_.offset()) + ").");
  // Sends the offset of this replica to the others, for their ranks.
  cluster_.gossip().broadcast_pong_to_shard();
}

void Election::ask_for_votes() {
  NodeTable& nodes = cluster_.nodes();
  epoch_ = ++nodes.current_epoch;
  votes_requested_ = true;
  cluster_.changed();
  cluster_.server().log().notice("Starting a failover election for epoch " +
                                 std::to_string(epoch_) + ".");
  Message message = cluster_.message(MessageType::kAskForVote);
  if (cluster_.manual_failover().active()) message.message_flags |= kVoteThoughUp;
  cluster_.bus().send_to(nodes.all(), message);
}

void Election::vote_received(const Node& voter, const Message& message) {
  if (voter.votes() && votes_requested_ && message.current_epoch >= epoch_) ++votes_;
}

void Election::win() {
  base::Logger& log = cluster_.server().log();
  Node& myself = cluster_.myself();
  log.notice("Failover election won: I'm the new master.");
  if (myself.config_epoch < epoch_) {
    myself.config_epoch = epoch_;
    log.notice("configEpoch set to " + std::to_string(epoch_) + " after successful failover");
  }
  cluster_.take_over();
}

// --- The voter ----------------------------------------------------------------------------------

std::string Election::refusal_for(const Node& candidate, const Message& message) const {
  const NodeTable& nodes = cluster_.nodes();
  if (message.current_epoch < nodes.current_epoch) return "its epoch is old";
  if (nodes.last_vote_epoch == nodes.current_epoch) return "I have voted in this epoch";
  if (!candidate.is_replica() || candidate.master == nullptr)
    return "it is no replica of a master that I know";
  if (!candidate.master->has(kFailing) && !message.has(kVoteThoughUp)) return "its master is up";
  const int64_t since_ms = cluster_.server().machine_ms() - candidate.master->voted_ms;
  if (!message.has(kVoteThoughUp) && since_ms < cluster_.timeout_ms() * kVoteTimeouts)
    return "I have voted for a replica of its master just now";
  std::string newer_owner;
  message.slots.for_each([&](int slot) {
    const Node* const owner = nodes.owner(slot);
    if (!newer_owner.empty() || owner == nullptr || owner->config_epoch <= message.config_epoch)
      return;
    newer_owner = "slot " + std::to_string(slot) + " epoch (" +
                  std::to_string(owner->config_epoch) + ") > reqConfigEpoch (" +
                  std::to_string(message.config_epoch) + ")";
  });
  return newer_owner;
}

void Election::vote_requested(Node& candidate, const Message& message) {
  if (!cluster_.myself().votes() || candidate.link == nullptr) return;
  base::Logger& log = cluster_.server().log();
  NodeTable& nodes = cluster_.nodes();
  if (const std::string reason = refusal_for(candidate, message); !reason.empty()) {
    log.notice("Failover auth denied to " + title(candidate) + ": " + reason);
    // So that it does not ask in vain for ever.
    return cluster_.claims().send_update_if_outdated(candidate, message);
  }
  nodes.last_vote_epoch = nodes.current_epoch;
  if (!message.has(kVoteThoughUp)) candidate.master->voted_ms = cluster_.server().machine_ms();
  // The node file is written before the vote is sent.
  cluster_.changed();
  cluster_.bus().send(*candidate.link, cluster_.message(MessageType::kVote));
  log.notice("Failover auth granted to " + title(candidate) + " for epoch " +
             std::to_string(nodes.current_epoch));
}

}  // namespace latchkey::cluster
