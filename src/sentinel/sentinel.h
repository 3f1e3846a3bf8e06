// One Sentinel: the masters that it monitors, their replicas, and the other Sentinels that monitor
// them. With the other Sentinels it elects a leader, which promotes a replica in place of a master
// that is down.
//
// The algorithm is described at
// https://redis.io/docs/latest/operate/oss_and_stack/management/sentinel/. Its parts share this
// class and reach each other only through it:
//
//     Probes           connections, PING, INFO and hello messages to every instance
//     Discovery        what INFO and hello messages say: replicas, Sentinels, new configurations
//     FailureDetector  instances that are down for this Sentinel (SDOWN), or its quorum (ODOWN)
//     Election         votes, one per epoch, and the elected Sentinel
//     Failover         the state machine of a failover, and the replicas that may be promoted
//
// Everything happens at tick() or when a reply or a message comes. It knows no sockets, no clock
// and no file: see Host. Several live side by side in one process. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "sentinel/discovery.h"
#include "sentinel/election.h"
#include "sentinel/failover.h"
#include "sentinel/failure_detector.h"
#include "sentinel/host.h"
#include "sentinel/instance.h"
#include "sentinel/probes.h"
#include "sentinel/settings.h"

namespace latchkey::sentinel {

class Sentinel {
 public:
  using Masters = std::map<std::string, std::shared_ptr<Master>>;

  explicit Sentinel(Host& host);
  Sentinel(const Sentinel&) = delete;
  Sentinel& operator=(const Sentinel&) = delete;

  // Does what is due. To be called 10 to 20 times a second, at times that are not the same for all
  // Sentinels.
  void tick();
  // The milliseconds until the next call.
  uint64_t next_tick_ms() { return kShortestTickMs + host_.random_below(kShortestTickMs); }

  Host& host() { return host_; }
  int64_t now_ms() { return host_.now_ms(); }
  Settings& settings() { return settings_; }
  Periods& periods() { return periods_; }
  const std::string& id() const { return id_; }
  void set_id(std::string id) { id_ = std::move(id); }
  uint64_t current_epoch() const { return current_epoch_; }
  void set_current_epoch(uint64_t epoch) { current_epoch_ = epoch; }
  unsigned simulated_failures() const { return simulated_failures_; }
  void simulate_failures(unsigned bits) { simulated_failures_ = bits; }

  // Tilt mode, for Periods::tilt after tilt_since_ms(): a tick came much later than it should have,
  // or time went back, so this Sentinel does not trust its clock and finds no instance down.
  bool in_tilt() const { return tilt_since_ms_ != 0; }
  int64_t tilt_since_ms() const { return tilt_since_ms_; }
  uint64_t tilts() const { return tilts_; }

  Probes& probes() { return probes_; }
  Discovery& discovery() { return discovery_; }
  Election& election() { return election_; }
  FailureDetector& failure_detector() { return failure_detector_; }
  Failover& failover() { return failover_; }

  // --- Instances --------------------------------------------------------------------------------

  const Masters& masters() const { return masters_; }
  // Null when there is none.
  Master* find_master(std::string_view name) const;
  Master* find_master_at(std::string_view host, int port) const;
  // The address for a name or an IP address. Empty `ip`: it could not be resolved, or may not be.
  Address make_address(const std::string& host, int port);

  // Watches one more master. REQUIRES: there is none of that name.
  Master& add_master(const std::string& name, const Address& address, unsigned quorum);
  void remove_master(const std::string& name) { masters_.erase(name); }
  // Null when the replica is there already.
  Replica* add_replica(Master& master, const Address& address);
  // REQUIRES: there is none of that id.
  PeerSentinel& add_sentinel(Master& master, const std::string& id, const Address& address);
  // Forgets the replicas and the state of the master, and, unless told otherwise, the Sentinels.
  void reset(Master& master, bool keep_sentinels);
  // Changes the address of the master. Its former address becomes a replica, and the other replicas
  // stay.
  void move_master(Master& master, Address to);
  // down-after-milliseconds is a setting of a master that holds for all that belong to it.
  void set_down_after(Master& master, int64_t down_after_ms);

  // The address of the master that clients and other Sentinels get: that of the promoted replica
  // from its promotion on.
  static const Address& current_address(const Master& master);
  // The host of an address that clients and other Sentinels get; the name if it could not be
  // resolved.
  const std::string& announced_host(const Address& address) const {
    return settings_.announce_hostnames || address.ip.empty() ? address.hostname : address.ip;
  }

  // --- Events -----------------------------------------------------------------------------------

  // Logs an event, publishes it, and runs the master's notification script if it is a warning. The
  // message is about an instance, followed by `more`:
  //
  //     master <name> <ip> <port>
  //     <kind> <name> <ip> <port> @ <master's name> <ip> <port>
  void event(base::LogLevel level, std::string_view type, Instance& about,
             const std::string& more = {});
  // The same with any text; `about` may be null.
  void event_text(base::LogLevel level, std::string_view type, Instance* about,
                  const std::string& message);
  // Runs the master's client-reconfig-script with its new address. `is_leader`: this Sentinel has
  // failed it over.
  void run_reconfig_script(const Master& master, bool is_leader, const Address& from,
                           const Address& to);

  // Writes the configuration file. To be called before a message that depends on it is sent. False,
  // with the reason logged, on failure.
  bool save() { return host_.save(); }
  // Takes over a greater epoch that another Sentinel has, and writes the file.
  void adopt_epoch(uint64_t epoch);

 private:
  static constexpr uint64_t kShortestTickMs = 50;

  void check_tilt();
  void handle(Instance& instance);
  void handle_master(Master& master);

  Host& host_;
  std::string id_;
  uint64_t current_epoch_ = 0;
  Settings settings_;
  Periods periods_;
  unsigned simulated_failures_ = 0;
  int64_t tilt_since_ms_ = 0;
  uint64_t tilts_ = 0;
  int64_t last_tick_ms_;
  Masters masters_;
  Probes probes_;
  Discovery discovery_;
  FailureDetector failure_detector_;
  Election election_;
  Failover failover_;
};

}  // namespace latchkey::sentinel
