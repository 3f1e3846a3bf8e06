#include "sentinel/failover.h"

#include <algorithm>
#include <ctime>
#include <string>

#include "base/time_units.h"
#include "sentinel/sentinel.h"

namespace latchkey::sentinel {

using base::LogLevel;

// ---- Begin and end

bool Failover::start_if_needed(Master& master) {
  if (!master.has(kOdown) || master.has(kFailover)) return false;
  const int64_t pause_ms = master.failover_timeout_ms * 2;
  if (sentinel_.now_ms() - master.failover_started_ms < pause_ms) {
    if (master.failover_delay_logged_ms == master.failover_started_ms) return false;
    master.failover_delay_logged_ms = master.failover_started_ms;
    const time_t at = (master.failover_started_ms + pause_ms) / base::kMsPerSecond;
    char text[32] = "";
    tm local{};
    localtime_r(&at, &local);
    std::strftime(text, sizeof(text), "%a %b %e %H:%M:%S %Y", &local);
    sentinel_.host().log(
        LogLevel::kNotice,
        std::string("Next failover delay: I will not start a failover before ") + text);
    return false;
  }
  start(master);
  return true;
}

void Failover::start(Master& master) {
  master.set(kFailover, true);
  enter(master, FailoverState::kWaitStart);
  const uint64_t epoch = sentinel_.current_epoch() + 1;
  sentinel_.adopt_epoch(epoch);
  master.failover_epoch = epoch;
  sentinel_.event(LogLevel::kWarning, "+try-failover", master);
  master.failover_started_ms =
      sentinel_.now_ms() + static_cast<int64_t>(sentinel_.host().random_below(kLongestDelayMs));
}

void Failover::force(Master& master) {
  start(master);
  master.set(kForced, true);
}

void Failover::coordinate(Master& master) {
  start(master);
  master.set(kCoordinated, true);
  sentinel_.failure_detector().ask_others(master, /*at_once=*/true);
}

void Failover::abort(Master& master, std::string_view event) {
  sentinel_.event(LogLevel::kWarning, event, master);
  if (master.has(kCoordinated) && master.failover_state == FailoverState::kWaitPromotion)
    sentinel_.probes().send_failover_abort(master);
  master.set(kFailover | kForced | kCoordinated, false);
  enter(master, FailoverState::kNone);
  if (master.promoted == nullptr) return;
  master.promoted->set(kPromoted, false);
  master.promoted.reset();
}

void Failover::enter(Master& master, FailoverState state) {
  master.failover_state = state;
  master.failover_state_changed_ms = sentinel_.now_ms();
}

bool Failover::timed_out(const Master& master) {
  return sentinel_.now_ms() - master.failover_state_changed_ms > master.failover_timeout_ms;
}

void Failover::announce_switch(Master& master, const Address& from, const Address& to) {
  sentinel_.event_text(LogLevel::kWarning, "+switch-master", &master,
                       master.name + ' ' + sentinel_.announced_host(from) + ' ' +
                           std::to_string(from.port) + ' ' + sentinel_.announced_host(to) + ' ' +
                           std::to_string(to.port));
}

void Failover::finish(Master& master) {
  const Address to = master.promoted != nullptr ? master.promoted->address : master.address;
  announce_switch(master, master.address, to);
  sentinel_.move_master(master, to);
}

// ---- The states

void Failover::advance(Master& master) {
  if (!master.has(kFailover)) return;
  if (master.has(kOdown) && master.has(kCoordinated)) {
    // It cannot hand over: the replica is promoted all the same.
    master.set(kCoordinated, false);
    if (master.failover_state == FailoverState::kWaitPromotion)
      enter(master, FailoverState::kSendReplicaOfNoOne);
  }
  switch (master.failover_state) {
    case FailoverState::kWaitStart:
      return wait_for_election(master);
    case FailoverState::kSelectReplica:
      return select_replica(master);
    case FailoverState::kSendReplicaOfNoOne:
      return promote_replica(master);
    case FailoverState::kWaitPromotion:
      if (timed_out(master)) abort(master, "-failover-abort-slave-timeout");
      return;
    case FailoverState::kReconfReplicas:
      return reconfigure_replicas(master);
    case FailoverState::kNone:
    case FailoverState::kUpdateConfig:
      return;
  }
}

void Failover::wait_for_election(Master& master) {
  const bool elected = sentinel_.election().winner(master, master.failover_epoch) == sentinel_.id();
  if (!elected && !master.has(kForced)) {
    const int64_t timeout =
        std::min(sentinel_.periods().election_timeout, master.failover_timeout_ms);
    if (sentinel_.now_ms() - master.failover_started_ms > timeout)
      abort(master, "-failover-abort-not-elected");
    return;
  }
  sentinel_.event(LogLevel::kWarning, "+elected-leader", master);
  if ((sentinel_.simulated_failures() & kCrashAfterElection) != 0) return sentinel_.host().crash();
  enter(master, FailoverState::kSelectReplica);
  sentinel_.event(LogLevel::kWarning, "+failover-state-select-slave", master);
}

void Failover::select_replica(Master& master) {
  const auto replica = choose_replica(master);
  if (replica == nullptr) return abort(master, "-failover-abort-no-good-slave");
  sentinel_.event(LogLevel::kWarning, "+selected-slave", *replica);
  replica->set(kPromoted, true);
  master.promoted = replica;
  enter(master, FailoverState::kSendReplicaOfNoOne);
  sentinel_.event(LogLevel::kNotice, "+failover-state-send-slaveof-noone", *replica);
}

void Failover::promote_replica(Master& master) {
  if (master.has(kCoordinated)) return hand_over(master);
  Replica& replica = *master.promoted;
  if (!replica.link->is_connected()) {
    if (timed_out(master)) abort(master, "-failover-abort-slave-timeout");
    return;
  }
  sentinel_.probes().send_replicaof(replica, nullptr);
  sentinel_.event(LogLevel::kNotice, "+failover-state-wait-promotion", replica);
  enter(master, FailoverState::kWaitPromotion);
}

void Failover::hand_over(Master& master) {
  if (!master.link->is_connected()) {
    if (timed_out(master)) abort(master, "-failover-abort-master-timeout");
    return;
  }
  const int64_t passed_ms = sentinel_.now_ms() - master.failover_state_changed_ms;
  const int64_t left_ms = std::max<int64_t>(master.failover_timeout_ms - passed_ms, 1);
  sentinel_.probes().send_failover(master, *master.promoted, left_ms);
  sentinel_.event(LogLevel::kNotice, "+failover-state-wait-promotion", *master.promoted);
  enter(master, FailoverState::kWaitPromotion);
}

void Failover::refused(Master& master) {
  if (master.has(kCoordinated) && master.failover_state == FailoverState::kWaitPromotion)
    abort(master, "-failover-abort-master-refused");
}

void Failover::promoted(Master& master, Replica& replica) {
  // From here on this is the configuration, and the epoch, unique to this Sentinel, makes it win.
  master.config_epoch = master.failover_epoch;
  enter(master, FailoverState::kReconfReplicas);
  sentinel_.save();
  if (master.has(kCoordinated)) {
    master.set(kCoordinated, false);
    sentinel_.probes().send_failover_end(master);
    sentinel_.probes().send_failover_end(replica);
  }
  sentinel_.event(LogLevel::kWarning, "+promoted-slave", replica);
  if ((sentinel_.simulated_failures() & kCrashAfterPromotion) != 0) return sentinel_.host().crash();
  sentinel_.event(LogLevel::kWarning, "+failover-state-reconf-slaves", master);
  sentinel_.run_reconfig_script(master, /*is_leader=*/true, master.address, replica.address);
  Probes::hello_soon(master);
}

void Failover::reconfigure_replicas(Master& master) {
  const int64_t now = sentinel_.now_ms();
  auto busy = std::count_if(master.replicas.begin(), master.replicas.end(), [](const auto& entry) {
    return entry.second->has(kReconfSent | kReconfInProgress);
  });
  for (const auto& [name, replica] : master.replicas) {
    if (busy >= master.parallel_syncs) break;
    if (replica->has(kPromoted | kReconfDone)) continue;
    // It may not have received the command; Discovery sends SLAVEOF again when its INFO names
    // another master.
    if (replica->has(kReconfSent) &&
        now - replica->reconf_sent_ms > sentinel_.periods().replica_reconf_timeout) {
      sentinel_.event(LogLevel::kNotice, "-slave-reconf-sent-timeout", *replica);
      replica->set(kReconfSent, false);
      replica->set(kReconfDone, true);
    }
    if (replica->has(kReconfSent | kReconfInProgress | kReconfDone)) continue;
    if (!replica->link->is_connected()) continue;
    sentinel_.probes().send_replicaof(*replica, &master.promoted->address);
    replica->set(kReconfSent, true);
    replica->reconf_sent_ms = now;
    sentinel_.event(LogLevel::kNotice, "+slave-reconf-sent", *replica);
    ++busy;
  }
  detect_end(master);
}

void Failover::detect_end(Master& master) {
  if (master.promoted == nullptr || master.promoted->has(kSdown)) return;
  bool ended = std::all_of(master.replicas.begin(), master.replicas.end(), [](const auto& entry) {
    return entry.second->has(kPromoted | kReconfDone | kSdown);
  });
  const bool late = timed_out(master);
  if (late) {
    sentinel_.event(LogLevel::kWarning, "+failover-end-for-timeout", master);
    ended = true;
  }
  if (!ended) return;
  sentinel_.event(LogLevel::kWarning, "+failover-end", master);
  enter(master, FailoverState::kUpdateConfig);
  if (!late) return;
  // The remaining replicas are sent SLAVEOF at once, whatever parallel-syncs says.
  for (const auto& [name, replica] : master.replicas) {
    if (replica->has(kPromoted | kReconfDone | kReconfSent) || !replica->link->is_connected())
      continue;
    sentinel_.probes().send_replicaof(*replica, &master.promoted->address);
    sentinel_.event(LogLevel::kNotice, "+slave-reconf-sent-be", *replica);
    replica->set(kReconfSent, true);
  }
}

// ---- The choice

bool Failover::is_fit(const Master& master, const Replica& replica) {
  const Periods& periods = sentinel_.periods();
  const int64_t now = sentinel_.now_ms();
  if (replica.has(kSdown | kOdown) || !replica.link->is_connected() || replica.priority == 0)
    return false;
  if (now - replica.link->last_available_ms > periods.ping * 5) return false;
  // While the master is down, replicas are asked each second.
  const int64_t info_ms = master.has(kSdown) ? periods.ping * 5 : periods.info * 3;
  if (replica.info_received_ms == 0 || now - replica.info_received_ms > info_ms) return false;
  // Its data are too old when it was cut off from the master long before that was down.
  int64_t longest_ms = master.down_after_ms * 10;
  if (master.has(kSdown)) longest_ms += now - master.sdown_since_ms;
  return replica.master_link_down_ms <= longest_ms;
}

std::shared_ptr<Replica> Failover::choose_replica(const Master& master) {
  std::shared_ptr<Replica> best;
  const auto is_better = [](const Replica& left, const Replica& right) {
    if (left.priority != right.priority) return left.priority < right.priority;
    if (left.replication_offset != right.replication_offset)
      return left.replication_offset > right.replication_offset;
    // A replica whose id is unknown comes last.
    if (left.run_id.empty() != right.run_id.empty()) return right.run_id.empty();
    return base::lower_case(left.run_id) < base::lower_case(right.run_id);
  };
  for (const auto& [name, replica] : master.replicas) {
    if (!is_fit(master, *replica)) continue;
    if (best == nullptr || is_better(*replica, *best)) best = replica;
  }
  return best;
}

}  // namespace latchkey::sentinel
