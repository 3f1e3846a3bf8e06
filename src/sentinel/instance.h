// What a Sentinel knows of a server: of a master that it watches, of that master's replicas, and of
// the other Sentinels that watch the same master.
//
// Times are Unix time in milliseconds; 0 means never.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/text/text.h"
#include "sentinel/address.h"
#include "sentinel/info_reply.h"
#include "sentinel/link.h"

namespace latchkey::sentinel {

using Role = InfoReply::Role;

enum class Kind : uint8_t { kMaster, kReplica, kSentinel };
// "master", "slave" or "sentinel".
std::string_view kind_name(Kind kind);

// In the order in which `flags` names them, the kind between the second and the third, and
// "disconnected" behind that.
enum InstanceFlag : uint32_t {
  kSdown = 1u << 0,             // this Sentinel finds it down
  kOdown = 1u << 1,             // so do as many as the quorum says
  kMasterDown = 1u << 2,        // of a Sentinel: it finds the master down
  kFailover = 1u << 3,          // of a master: this Sentinel fails it over
  kPromoted = 1u << 4,          // of a replica: chosen to be the next master
  kReconfSent = 1u << 5,        // of a replica: told to follow the next master
  kReconfInProgress = 1u << 6,  // it says that it does
  kReconfDone = 1u << 7,        // and that it is in step with it
  kForced = 1u << 8,            // of a master: somebody asked for the failover
  kScriptKillSent = 1u << 9,    // a script that keeps it busy was to be killed
  kRebooting = 1u << 10,        // of a master: another process answers, which is still loading
  kCoordinated = 1u << 11,      // of a master: it hands over to the replica by itself
};

struct Master;

struct Instance {
  Instance(Kind the_kind, std::string the_name, Address the_address, int64_t now_ms)
      : kind(the_kind),
        name(std::move(the_name)),
        address(std::move(the_address)),
        link(std::make_shared<Link>(now_ms)),
        role_reported(the_kind == Kind::kMaster ? Role::kMaster : Role::kReplica),
        role_reported_ms(now_ms) {}
  virtual ~Instance() = default;
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  bool has(uint32_t flag) const { return (flags & flag) != 0; }
  void set(uint32_t flag, bool on) { flags = on ? flags | flag : flags & ~flag; }

  const Kind kind;
  // A master's as configured, a replica's "address:port", a Sentinel's id.
  std::string name;
  std::string run_id;  // of a Sentinel: its id; empty: not known yet
  Address address;
  uint32_t flags = 0;  // InstanceFlag bits
  std::shared_ptr<Link> link;
  int64_t down_after_ms = 0;
  int64_t sdown_since_ms = 0;
  int64_t odown_since_ms = 0;
  int64_t last_published_ms = 0;  // a hello through this instance

  // Of masters and replicas.
  int64_t info_received_ms = 0;
  uint64_t info_asked = 0;  // Link::generation() of the connection on which INFO waits for a reply
  std::string info;         // the last reply
  Role role_reported;
  int64_t role_reported_ms;  // since when
};

struct Replica final : Instance {
  Replica(std::string the_name, Address the_address, Master& of, int64_t now_ms);

  Master& master;
  int64_t master_link_down_ms = 0;  // for how long
  bool master_link_up = false;
  std::string master_host;  // whom it follows, as it says; empty: unknown
  int master_port = 0;
  int64_t master_changed_ms = 0;
  int64_t reconf_sent_ms = 0;
  int priority = 100;
  uint64_t replication_offset = 0;
  bool announced = true;
};

struct PeerSentinel final : Instance {
  PeerSentinel(std::string id, Address the_address, Master& of, int64_t now_ms);

  Master& master;
  int64_t last_hello_ms = 0;
  int64_t master_down_reply_ms = 0;  // when it was last heard whether the master is down
  // Whom it has voted for; empty: nobody that is known.
  std::string leader;
  uint64_t leader_epoch = 0;
};

// Where a failover stands.
enum class FailoverState : uint8_t {
  kNone,
  kWaitStart,      // until this Sentinel is elected
  kSelectReplica,  // one is to be chosen
  kSendReplicaOfNoOne,
  kWaitPromotion,   // until it says that it is a master
  kReconfReplicas,  // the others are told to follow it
  kUpdateConfig,    // it takes the place of the old master
};
std::string_view failover_state_name(FailoverState state);

struct Master final : Instance {
  // Names of commands, in any case.
  struct IgnoringCase {
    bool operator()(const std::string& left, const std::string& right) const {
      return base::lower_case(left) < base::lower_case(right);
    }
  };

  Master(std::string the_name, Address the_address, int64_t now_ms)
      : Instance(Kind::kMaster, std::move(the_name), std::move(the_address), now_ms) {}

  std::map<std::string, std::shared_ptr<Replica>> replicas;        // by name
  std::map<std::string, std::shared_ptr<PeerSentinel>> sentinels;  // by id

  // Configuration.
  unsigned quorum = 1;
  int parallel_syncs = 1;
  int64_t failover_timeout_ms = 0;
  int64_t reboot_down_after_ms = 0;  // 0: a master that loads is never down
  std::string auth_user;
  std::string auth_pass;
  std::string notification_script;
  std::string reconfig_script;
  std::map<std::string, std::string, IgnoringCase> renamed_commands;

  // Which change of its address this Sentinel knows; whom this Sentinel has voted for, and in which
  // epoch.
  uint64_t config_epoch = 0;
  std::string leader;
  uint64_t leader_epoch = 0;

  FailoverState failover_state = FailoverState::kNone;
  int64_t failover_state_changed_ms = 0;
  // When a failover was begun, by this Sentinel or by one that it has voted for.
  int64_t failover_started_ms = 0;
  int64_t failover_delay_logged_ms = 0;  // failover_started_ms when the delay was logged
  uint64_t failover_epoch = 0;
  std::shared_ptr<Replica> promoted;
  int64_t rebooted_ms = 0;
  bool knows_failover = false;  // the command FAILOVER, as its INFO tells
};

inline Replica::Replica(std::string the_name, Address the_address, Master& of, int64_t now_ms)
    : Instance(Kind::kReplica, std::move(the_name), std::move(the_address), now_ms), master(of) {
  down_after_ms = of.down_after_ms;
  master_changed_ms = now_ms;
}

inline PeerSentinel::PeerSentinel(std::string id, Address the_address, Master& of, int64_t now_ms)
    : Instance(Kind::kSentinel, std::move(id), std::move(the_address), now_ms), master(of) {
  run_id = name;
  down_after_ms = of.down_after_ms;
  last_hello_ms = now_ms;
}

// The master that the instance is, or belongs to.
Master& master_of(Instance& instance);

// The word by which the instance knows a command: rename-command holds for masters and replicas.
// `name` must stay.
std::string_view command_of(Instance& instance, std::string_view name);

}  // namespace latchkey::sentinel
