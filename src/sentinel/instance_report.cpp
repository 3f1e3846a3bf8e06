#include "sentinel/instance_report.h"

#include <string_view>

#include "sentinel/sentinel.h"

namespace latchkey::sentinel {

std::string flag_names(const Instance& instance) {
  std::string names;
  const auto add = [&](bool said, std::string_view name) {
    if (said) names.append(names.empty() ? "" : ",").append(name);
  };
  add(instance.has(kSdown), "s_down");
  add(instance.has(kOdown), "o_down");
  add(true, kind_name(instance.kind));
  add(!instance.link->is_connected(), "disconnected");
  add(instance.has(kMasterDown), "master_down");
  add(instance.has(kFailover), "failover_in_progress");
  add(instance.has(kPromoted), "promoted");
  add(instance.has(kReconfSent), "reconf_sent");
  add(instance.has(kReconfInProgress), "reconf_inprog");
  add(instance.has(kReconfDone), "reconf_done");
  add(instance.has(kForced), "force_failover");
  add(instance.has(kScriptKillSent), "script_kill_sent");
  add(instance.has(kRebooting), "master_reboot");
  add(instance.has(kCoordinated), "coordinated_failover");
  return names;
}

namespace {

// Writes a map whose size is known at its end.
class Fields {
 public:
  explicit Fields(resp::ReplyBuilder* reply) : reply_(*reply), later_(reply->later()) {}
  ~Fields() { reply_.map_later(later_, count_); }
  Fields(const Fields&) = delete;
  Fields& operator=(const Fields&) = delete;

  void add(std::string_view name, std::string_view value) {
    reply_.bulk(name);
    reply_.bulk(value);
    ++count_;
  }
  template <std::integral Integer>
  void add(std::string_view name, Integer value) {
    add(name, std::string_view(std::to_string(value)));
  }

 private:
  resp::ReplyBuilder& reply_;
  resp::ReplyBuilder::Later later_;
  size_t count_ = 0;
};

void add_master(const Master& master, Fields* fields) {
  fields->add("config-epoch", master.config_epoch);
  fields->add("num-slaves", master.replicas.size());
  fields->add("num-other-sentinels", master.sentinels.size());
  fields->add("quorum", master.quorum);
  fields->add("failover-timeout", master.failover_timeout_ms);
  fields->add("parallel-syncs", master.parallel_syncs);
  if (!master.notification_script.empty())
    fields->add("notification-script", master.notification_script);
  if (!master.reconfig_script.empty())
    fields->add("client-reconfig-script", master.reconfig_script);
}

void add_replica(const Replica& replica, Fields* fields) {
  fields->add("master-link-down-time", replica.master_link_down_ms);
  fields->add("master-link-status", replica.master_link_up ? "ok" : "err");
  fields->add("master-host", replica.master_host.empty() ? "?" : replica.master_host);
  fields->add("master-port", replica.master_port);
  fields->add("slave-priority", replica.priority);
  fields->add("slave-repl-offset", replica.replication_offset);
  fields->add("replica-announced", replica.announced ? 1 : 0);
}

void add_sentinel(const PeerSentinel& sentinel, int64_t now_ms, Fields* fields) {
  fields->add("last-hello-message", now_ms - sentinel.last_hello_ms);
  fields->add("voted-leader", sentinel.leader.empty() ? "?" : sentinel.leader);
  fields->add("voted-leader-epoch", sentinel.leader_epoch);
}

}  // namespace

void reply_instance(Sentinel& sentinel, Instance& instance, resp::ReplyBuilder* reply) {
  const int64_t now = sentinel.now_ms();
  const Link& link = *instance.link;
  Fields fields(reply);
  fields.add("name", instance.name);
  fields.add("ip", sentinel.announced_host(instance.address));
  fields.add("port", instance.address.port);
  fields.add("runid", instance.run_id);
  fields.add("flags", flag_names(instance));
  fields.add("link-pending-commands", link.pending());
  fields.add("link-refcount", instance.link.use_count());
  if (instance.kind == Kind::kMaster && instance.has(kFailover))
    fields.add("failover-state",
               failover_state_name(static_cast<const Master&>(instance).failover_state));
  fields.add("last-ping-sent",
             link.unanswered_ping_ms != 0 ? now - link.unanswered_ping_ms : int64_t{0});
  fields.add("last-ok-ping-reply", now - link.last_available_ms);
  fields.add("last-ping-reply", now - link.last_pong_ms);
  if (instance.has(kSdown)) fields.add("s-down-time", now - instance.sdown_since_ms);
  if (instance.has(kOdown)) fields.add("o-down-time", now - instance.odown_since_ms);
  fields.add("down-after-milliseconds", instance.down_after_ms);
  if (instance.kind == Kind::kSentinel)
    return add_sentinel(static_cast<const PeerSentinel&>(instance), now, &fields);
  fields.add("info-refresh",
             instance.info_received_ms != 0 ? now - instance.info_received_ms : int64_t{0});
  fields.add("role-reported", instance.role_reported == Role::kMaster ? "master" : "slave");
  fields.add("role-reported-time", now - instance.role_reported_ms);
  if (instance.kind == Kind::kMaster)
    return add_master(static_cast<const Master&>(instance), &fields);
  add_replica(static_cast<const Replica&>(instance), &fields);
}

}  // namespace latchkey::sentinel
