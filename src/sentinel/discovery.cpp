#include "sentinel/discovery.h"

#include <algorithm>

#include "base/time_units.h"
#include "sentinel/sentinel.h"

namespace latchkey::sentinel {

using base::LogLevel;

// ---- INFO

void Discovery::process_info(Instance& instance, const std::string& text) {
  const InfoReply info = parse_info(text);
  instance.info = text;
  note_process(instance, info.run_id);
  // An INFO without a role changes nothing.
  if (!info.role) return;
  instance.info_received_ms = sentinel_.now_ms();
  if (instance.kind == Kind::kMaster && *info.role == Role::kMaster)
    note_replicas(static_cast<Master&>(instance), info);
  if (instance.kind == Kind::kReplica) note_replica(static_cast<Replica&>(instance), info);
  note_role(instance, *info.role);
  if (sentinel_.in_tilt() || instance.kind != Kind::kReplica) return;
  auto& replica = static_cast<Replica&>(instance);
  reconfigure(replica);
  follow_reconfiguration(replica);
}

void Discovery::note_process(Instance& instance, const std::string& run_id) {
  if (run_id.empty() || run_id == instance.run_id) return;
  if (!instance.run_id.empty()) {
    if (instance.kind == Kind::kMaster) {
      auto& master = static_cast<Master&>(instance);
      if (master.reboot_down_after_ms > 0) {
        master.set(kRebooting, true);
        master.rebooted_ms = sentinel_.now_ms();
      }
    }
    sentinel_.event(LogLevel::kNotice, "+reboot", instance);
  }
  instance.run_id = run_id;
}

void Discovery::note_replicas(Master& master, const InfoReply& info) {
  master.knows_failover = info.has_failover_state;
  bool found = false;
  for (const InfoReply::Replica& said : info.replicas) {
    const Address address = sentinel_.make_address(said.host, said.port);
    if (address.ip.empty()) continue;
    Replica* const replica = sentinel_.add_replica(master, address);
    if (replica == nullptr) continue;
    sentinel_.event(LogLevel::kNotice, "+slave", *replica);
    found = true;
  }
  if (found) sentinel_.save();
}

void Discovery::note_replica(Replica& replica, const InfoReply& info) {
  replica.master_link_down_ms = info.master_link_down_s.value_or(0) * base::kMsPerSecond;
  const std::string host = info.master_host.value_or(replica.master_host);
  const int port = info.master_port.value_or(replica.master_port);
  if (host != replica.master_host || port != replica.master_port) {
    replica.master_host = host;
    replica.master_port = port;
    replica.master_changed_ms = sentinel_.now_ms();
  }
  replica.master_link_up = info.master_link_up.value_or(replica.master_link_up);
  replica.priority = info.priority.value_or(replica.priority);
  replica.replication_offset = info.replication_offset.value_or(replica.replication_offset);
  replica.announced = info.announced.value_or(replica.announced);
}

void Discovery::note_role(Instance& instance, Role role) {
  if (role == instance.role_reported) return;
  instance.role_reported = role;
  instance.role_reported_ms = sentinel_.now_ms();
  if (role == Role::kReplica && instance.kind == Kind::kReplica)
    static_cast<Replica&>(instance).master_changed_ms = instance.role_reported_ms;
  const bool as_known = (instance.kind == Kind::kMaster) == (role == Role::kMaster);
  sentinel_.event(
      LogLevel::kVerbose, as_known ? "+role-change" : "-role-change", instance,
      std::string(" new reported role is ") + (role == Role::kMaster ? "master" : "slave"));
}

bool Discovery::is_sane(const Master& master) {
  return master.role_reported == Role::kMaster && !master.has(kSdown | kOdown) &&
         sentinel_.now_ms() - master.info_received_ms < sentinel_.periods().info * 2;
}

bool Discovery::was_up_for(const Instance& instance, int64_t period_ms) {
  const int64_t down_ms = std::max(instance.sdown_since_ms, instance.odown_since_ms);
  return down_ms == 0 || sentinel_.now_ms() - down_ms > period_ms;
}

bool Discovery::follows(const Replica& replica, const Address& address) const {
  if (address.is_at(replica.master_host, replica.master_port)) return true;
  if (replica.master_port != address.port || is_ip(replica.master_host)) return false;
  return sentinel_.make_address(replica.master_host, replica.master_port) == address;
}

void Discovery::reconfigure(Replica& replica) {
  Master& master = replica.master;
  const int64_t now = sentinel_.now_ms();
  const auto send = [&](std::string_view event) {
    if (!replica.link->is_connected()) return;
    sentinel_.probes().send_replicaof(replica, &master.address);
    sentinel_.event(LogLevel::kNotice, event, replica);
  };
  if (replica.role_reported == Role::kMaster) {
    if (replica.has(kPromoted) && master.has(kFailover) &&
        master.failover_state == FailoverState::kWaitPromotion) {
      return sentinel_.failover().promoted(master, replica);
    }
    // There may be a newer configuration, of which hello messages would tell by then.
    const int64_t wait_ms = sentinel_.periods().publish * 4;
    if (!replica.has(kPromoted) && is_sane(master) && was_up_for(replica, wait_ms) &&
        now - replica.role_reported_ms > wait_ms) {
      send("+convert-to-slave");
    }
    return;
  }
  if (replica.has(kPromoted | kReconfSent | kReconfInProgress | kReconfDone) ||
      replica.master_host.empty() || follows(replica, master.address)) {
    return;
  }
  const int64_t wait_ms = master.failover_timeout_ms;
  if (is_sane(master) && was_up_for(replica, wait_ms) && now - replica.master_changed_ms > wait_ms)
    send("+fix-slave-config");
}

void Discovery::follow_reconfiguration(Replica& replica) {
  const Master& master = replica.master;
  if (replica.role_reported != Role::kReplica || master.promoted == nullptr) return;
  if (replica.has(kReconfSent) && follows(replica, master.promoted->address)) {
    replica.set(kReconfSent, false);
    replica.set(kReconfInProgress, true);
    sentinel_.event(LogLevel::kNotice, "+slave-reconf-inprog", replica);
  }
  if (replica.has(kReconfInProgress) && replica.master_link_up) {
    replica.set(kReconfInProgress, false);
    replica.set(kReconfDone, true);
    sentinel_.event(LogLevel::kNotice, "+slave-reconf-done", replica);
  }
}

// ---- Hello messages

void Discovery::process_hello(std::string_view text) {
  const auto hello = parse_hello(text);
  if (!hello || hello->id == sentinel_.id()) return;
  Master* const master = sentinel_.find_master(hello->master_name);
  if (master == nullptr) return;
  PeerSentinel* const from = note_sentinel(*master, *hello);
  if (from == nullptr) return;
  from->last_hello_ms = sentinel_.now_ms();
  sentinel_.adopt_epoch(hello->current_epoch);
  if (hello->master_config_epoch > master->config_epoch)
    adopt_configuration(*master, *from, *hello);
}

PeerSentinel* Discovery::note_sentinel(Master& master, const Hello& hello) {
  const Address address = sentinel_.make_address(hello.ip, hello.port);
  const auto known = master.sentinels.find(hello.id);
  const bool is_known = known != master.sentinels.end();
  if (is_known && known->second->address == address) return known->second.get();
  if (address.ip.empty()) return nullptr;
  if (is_known) {
    PeerSentinel& sentinel = *known->second;
    sentinel_.event(LogLevel::kNotice, "+sentinel-address-switch", master,
                    " ip " + hello.ip + " port " + std::to_string(hello.port) + " for " + hello.id);
    sentinel.address = address;
    share_address(sentinel);
    sentinel_.save();
    return &sentinel;
  }
  forget_sentinel_at(master, address);
  PeerSentinel& sentinel = sentinel_.add_sentinel(master, hello.id, address);
  sentinel_.event(LogLevel::kNotice, "+sentinel", sentinel);
  sentinel_.save();
  sentinel_.probes().reconnect(sentinel);
  return &sentinel;
}

void Discovery::forget_sentinel_at(Master& master, const Address& address) {
  const auto other =
      std::find_if(master.sentinels.begin(), master.sentinels.end(),
                   [&](const auto& entry) { return entry.second->address == address; });
  if (other == master.sentinels.end()) return;
  const auto gone = other->second;
  sentinel_.event(LogLevel::kNotice, "+sentinel-invalid-addr", *gone);
  for (const auto& [name, any_master] : sentinel_.masters())
    any_master->sentinels.erase(gone->name);
}

void Discovery::share_address(const PeerSentinel& sentinel) {
  sentinel.link->close();
  for (const auto& [name, master] : sentinel_.masters()) {
    const auto found = master->sentinels.find(sentinel.name);
    if (found == master->sentinels.end()) continue;
    found->second->address = sentinel.address;
    found->second->link->close();
  }
}

void Discovery::adopt_configuration(Master& master, PeerSentinel& from, const Hello& hello) {
  const Address address = sentinel_.make_address(hello.master_host, hello.master_port);
  if (address.ip.empty()) return;
  // A failover of this Sentinel's own that began before the other one has been overtaken: to go on
  // with it would give one epoch two addresses.
  const bool overtaken = master.has(kFailover) && master.failover_epoch < hello.master_config_epoch;
  master.config_epoch = hello.master_config_epoch;
  if (master.address == address && !overtaken) {
    sentinel_.save();
    return;
  }
  const Address old = Sentinel::current_address(master);
  sentinel_.event(LogLevel::kWarning, "+config-update-from", from);
  if (!(old == address)) {
    sentinel_.failover().announce_switch(master, old, address);
    sentinel_.run_reconfig_script(master, /*is_leader=*/false, old, address);
  }
  sentinel_.move_master(master, address);
}

}  // namespace latchkey::sentinel
