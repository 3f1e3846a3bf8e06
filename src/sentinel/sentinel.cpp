#include "sentinel/sentinel.h"

#include <utility>
#include <vector>

#include "base/assert.h"

namespace latchkey::sentinel {

using base::LogLevel;

Sentinel::Sentinel(Host& host)
    : host_(host),
      last_tick_ms_(host.now_ms()),
      probes_(*this),
      discovery_(*this),
      failure_detector_(*this),
      election_(*this),
      failover_(*this) {}

// ---- Ticks

void Sentinel::tick() {
  check_tilt();
  // Masters are neither added nor removed by what happens here.
  for (const auto& [name, master] : masters_) handle_master(*master);
}

void Sentinel::check_tilt() {
  const int64_t now = now_ms();
  const int64_t passed = now - std::exchange(last_tick_ms_, now);
  if (passed >= 0 && passed <= periods_.tilt_trigger) return;
  tilt_since_ms_ = now;
  ++tilts_;
  event_text(LogLevel::kWarning, "+tilt", nullptr, "#tilt mode entered");
}

void Sentinel::handle(Instance& instance) {
  probes_.reconnect(instance);
  probes_.send_due(instance);
  if (in_tilt()) {
    if (now_ms() - tilt_since_ms_ < periods_.tilt) return;
    tilt_since_ms_ = 0;
    event_text(LogLevel::kWarning, "-tilt", nullptr, "#tilt mode exited");
  }
  failure_detector_.check_subjectively(instance);
  if (instance.kind != Kind::kMaster) return;
  auto& master = static_cast<Master&>(instance);
  failure_detector_.check_objectively(master);
  if (failover_.start_if_needed(master)) failure_detector_.ask_others(master, /*at_once=*/true);
  failover_.advance(master);
  failure_detector_.ask_others(master, /*at_once=*/false);
}

void Sentinel::handle_master(Master& master) {
  handle(master);
  for (const auto& [name, replica] : master.replicas) handle(*replica);
  for (const auto& [id, sentinel] : master.sentinels) handle(*sentinel);
  if (master.failover_state == FailoverState::kUpdateConfig) failover_.finish(master);
}

// ---- Instances

Master* Sentinel::find_master(std::string_view name) const {
  const auto found = masters_.find(std::string(name));
  return found == masters_.end() ? nullptr : found->second.get();
}

Master* Sentinel::find_master_at(std::string_view host, int port) const {
  for (const auto& [name, master] : masters_) {
    if (master->address.is_at(host, port)) return master.get();
  }
  return nullptr;
}

Address Sentinel::make_address(const std::string& host, int port) {
  if (is_ip(host)) return {host, host, port};
  if (!settings_.resolve_hostnames) return {host, "", port};
  return {host, host_.resolve(host), port};
}

Master& Sentinel::add_master(const std::string& name, const Address& address, unsigned quorum) {
  auto master = std::make_shared<Master>(name, address, now_ms());
  master->quorum = quorum;
  master->down_after_ms = periods_.default_down_after;
  master->failover_timeout_ms = periods_.default_failover_timeout;
  const auto [place, added] = masters_.emplace(name, std::move(master));
  LK_ASSERT(added);
  return *place->second;
}

Replica* Sentinel::add_replica(Master& master, const Address& address) {
  for (const auto& [name, replica] : master.replicas) {
    if (replica->address == address) return nullptr;
  }
  const std::string& host = announced_host(address);
  // "[ip6]:port" tells where the address ends.
  const bool ipv6 = host.find(':') != std::string::npos;
  const std::string name = (ipv6 ? '[' + host + ']' : host) + ':' + std::to_string(address.port);
  const auto [place, added] = master.replicas.emplace(name, nullptr);
  if (!added) return nullptr;
  place->second = std::make_shared<Replica>(name, address, master, now_ms());
  return place->second.get();
}

PeerSentinel& Sentinel::add_sentinel(Master& master, const std::string& id,
                                     const Address& address) {
  const auto sentinel = std::make_shared<PeerSentinel>(id, address, master, now_ms());
  // One link to each Sentinel, whatever the number of masters.
  for (const auto& [name, other] : masters_) {
    const auto same = other->sentinels.find(id);
    if (same == other->sentinels.end() || !(same->second->address == address)) continue;
    sentinel->link = same->second->link;
    break;
  }
  const bool added = master.sentinels.emplace(id, sentinel).second;
  LK_ASSERT(added);
  return *sentinel;
}

void Sentinel::reset(Master& master, bool keep_sentinels) {
  const int64_t now = now_ms();
  master.replicas.clear();
  if (!keep_sentinels) master.sentinels.clear();
  master.link->close();
  master.link->begin_anew(now);
  master.flags = 0;
  master.leader.clear();
  master.failover_state = FailoverState::kNone;
  master.failover_state_changed_ms = 0;
  // Or the next failover would have to wait for the delay after this one.
  master.failover_started_ms = 0;
  master.promoted.reset();
  master.run_id.clear();
  master.info.clear();
  master.info_received_ms = 0;
  master.info_asked = 0;
  master.last_published_ms = 0;
  master.sdown_since_ms = 0;
  master.odown_since_ms = 0;
  master.role_reported = Role::kMaster;
  master.role_reported_ms = now;
}

void Sentinel::move_master(Master& master, Address to) {
  const Address from = master.address;
  std::vector<Address> replicas;
  for (const auto& [name, replica] : master.replicas) {
    if (!(replica->address == to)) replicas.push_back(replica->address);
  }
  if (!(from == to)) replicas.push_back(from);
  reset(master, /*keep_sentinels=*/true);
  master.address = std::move(to);
  for (const Address& replica : replicas) {
    if (Replica* const added = add_replica(master, replica))
      event(LogLevel::kNotice, "+slave", *added);
  }
  save();
}

void Sentinel::set_down_after(Master& master, int64_t down_after_ms) {
  master.down_after_ms = down_after_ms;
  for (const auto& [name, replica] : master.replicas) replica->down_after_ms = down_after_ms;
  for (const auto& [id, sentinel] : master.sentinels) sentinel->down_after_ms = down_after_ms;
}

const Address& Sentinel::current_address(const Master& master) {
  const bool promoted = master.has(kFailover) && master.promoted != nullptr &&
                        master.failover_state >= FailoverState::kReconfReplicas;
  return promoted ? master.promoted->address : master.address;
}

// ---- Telling

void Sentinel::event(LogLevel level, std::string_view type, Instance& about,
                     const std::string& more) {
  const auto describe = [&](const Instance& instance) {
    return instance.name + ' ' + announced_host(instance.address) + ' ' +
           std::to_string(instance.address.port);
  };
  std::string message = std::string(kind_name(about.kind)) + ' ' + describe(about);
  if (about.kind != Kind::kMaster) message += " @ " + describe(master_of(about));
  event_text(level, type, &about, message + more);
}

void Sentinel::event_text(LogLevel level, std::string_view type, Instance* about,
                          const std::string& message) {
  host_.log(level, std::string(type) + ' ' + message);
  if (level == LogLevel::kDebug) return;
  host_.publish(type, message);
  if (level != LogLevel::kWarning || about == nullptr) return;
  const std::string& script = master_of(*about).notification_script;
  if (!script.empty()) host_.run_script({script, std::string(type), message});
}

void Sentinel::run_reconfig_script(const Master& master, bool is_leader, const Address& from,
                                   const Address& to) {
  if (master.reconfig_script.empty()) return;
  host_.run_script({master.reconfig_script, master.name, is_leader ? "leader" : "observer", "start",
                    announced_host(from), std::to_string(from.port), announced_host(to),
                    std::to_string(to.port)});
}

void Sentinel::adopt_epoch(uint64_t epoch) {
  if (epoch <= current_epoch_) return;
  current_epoch_ = epoch;
  save();
  event_text(LogLevel::kWarning, "+new-epoch", nullptr, std::to_string(epoch));
}

}  // namespace latchkey::sentinel
