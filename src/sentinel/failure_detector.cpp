#include "sentinel/failure_detector.h"

#include <memory>
#include <string>
#include <string_view>

#include "sentinel/hello.h"
#include "sentinel/sentinel.h"

namespace latchkey::sentinel {

using base::LogLevel;

void FailureDetector::close_dead_connections(Instance& instance) {
  Link& link = *instance.link;
  const Periods& periods = sentinel_.periods();
  const int64_t now = sentinel_.now_ms();
  if (link.has_requests() && now - link.requests_since_ms > periods.min_link_reconnect &&
      link.unanswered_ping_ms != 0 && now - link.unanswered_ping_ms > instance.down_after_ms / 2 &&
      now - link.last_pong_ms > instance.down_after_ms / 2) {
    link.close_requests();
  }
  // This Sentinel's own hello messages come back by the subscription.
  if (link.has_messages() && now - link.messages_since_ms > periods.min_link_reconnect &&
      now - link.last_message_ms > periods.publish * 3) {
    link.close_messages();
  }
}

bool FailureDetector::is_down(Instance& instance) {
  const Link& link = *instance.link;
  const int64_t now = sentinel_.now_ms();
  int64_t silent_ms = 0;
  if (link.unanswered_ping_ms != 0) {
    silent_ms = now - link.unanswered_ping_ms;
  } else if (!link.is_connected()) {
    silent_ms = now - link.last_available_ms;
  }
  if (silent_ms > instance.down_after_ms) return true;
  if (instance.kind != Kind::kMaster) return false;
  const auto& master = static_cast<const Master&>(instance);
  if (master.role_reported == Role::kReplica &&
      now - master.role_reported_ms > master.down_after_ms + sentinel_.periods().info * 2) {
    return true;
  }
  return master.has(kRebooting) && now - master.rebooted_ms > master.reboot_down_after_ms;
}

void FailureDetector::check_subjectively(Instance& instance) {
  close_dead_connections(instance);
  const bool down = is_down(instance);
  if (down == instance.has(kSdown)) return;
  instance.set(kSdown, down);
  if (down) {
    instance.sdown_since_ms = sentinel_.now_ms();
  } else {
    instance.set(kScriptKillSent, false);
  }
  sentinel_.event(LogLevel::kWarning, down ? "+sdown" : "-sdown", instance);
}

void FailureDetector::check_objectively(Master& master) {
  unsigned agreeing = 0;
  if (master.has(kSdown)) {
    agreeing = 1;
    for (const auto& [id, sentinel] : master.sentinels)
      agreeing += sentinel->has(kMasterDown) ? 1 : 0;
  }
  const bool down = master.has(kSdown) && agreeing >= master.quorum;
  if (down == master.has(kOdown)) return;
  master.set(kOdown, down);
  if (!down) return sentinel_.event(LogLevel::kWarning, "-odown", master);
  master.odown_since_ms = sentinel_.now_ms();
  sentinel_.event(LogLevel::kWarning, "+odown", master,
                  " #quorum " + std::to_string(agreeing) + '/' + std::to_string(master.quorum));
}

void FailureDetector::ask_others(Master& master, bool at_once) {
  const int64_t now = sentinel_.now_ms();
  const int64_t period = sentinel_.periods().ask;
  for (const auto& [id, sentinel] : master.sentinels) {
    const int64_t passed = now - sentinel->master_down_reply_ms;
    // What it said is too old to count.
    if (passed > period * 5) {
      sentinel->set(kMasterDown, false);
      sentinel->leader.clear();
    }
    // Of a master that is to hand over, the vote counts alone.
    if (!master.has(kSdown | kCoordinated) || !sentinel->link->is_connected()) continue;
    if (!at_once && passed < period) continue;
    const bool candidate = master.failover_state != FailoverState::kNone;
    const std::string port = std::to_string(master.address.port);
    const std::string epoch = std::to_string(sentinel_.current_epoch());
    const std::weak_ptr<PeerSentinel> known = sentinel;
    sentinel->link->send(
        {"SENTINEL", "is-master-down-by-addr", sentinel_.announced_host(master.address), port,
         epoch, candidate ? std::string_view(sentinel_.id()) : "*"},
        [this, known](const Reply& reply) {
          if (const auto alive = known.lock()) process_master_down_reply(*alive, reply);
        });
  }
}

// The reply is an array: 1 if the Sentinel finds the master down, the id of the Sentinel that it
// has voted for or "*", and the epoch of that vote.
void FailureDetector::process_master_down_reply(PeerSentinel& sentinel, const Reply& reply) {
  if (!reply.is(Reply::Type::kArray) || reply.elements.size() != 3) return;
  const Reply& down = reply.elements[0];
  const Reply& leader = reply.elements[1];
  const Reply& epoch = reply.elements[2];
  if (!down.is(Reply::Type::kInteger) || !leader.is_text() || !epoch.is(Reply::Type::kInteger) ||
      epoch.integer < 0) {
    return;
  }
  sentinel.master_down_reply_ms = sentinel_.now_ms();
  sentinel.set(kMasterDown, down.integer == 1);
  if (!is_id(leader.text)) return;
  const auto voted_in = static_cast<uint64_t>(epoch.integer);
  if (sentinel.leader_epoch != voted_in || sentinel.leader != leader.text) {
    sentinel_.host().log(LogLevel::kNotice, sentinel.name + " voted for " + leader.text + ' ' +
                                                std::to_string(voted_in));
  }
  sentinel.leader = leader.text;
  sentinel.leader_epoch = voted_in;
}

}  // namespace latchkey::sentinel
