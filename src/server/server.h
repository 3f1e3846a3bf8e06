// One server: its databases, clients, commands, configuration and clock, composed. There are no
// globals: several servers can live in one process, and one can run on a virtual clock without any
// socket.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "base/clock.h"
#include "base/cycle_clock.h"
#include "base/log.h"
#include "base/settable_clock.h"
#include "base/text/collation.h"
#include "base/time_units.h"
#include "net/loop.h"
#include "server/client/client_eviction.h"
#include "server/client/client_registry.h"
#include "server/command/cluster_audit.h"
#include "server/command/command_table.h"
#include "server/command/debug_subcommand.h"
#include "server/command/keyspace_events.h"
#include "server/command/propagation.h"
#include "server/config/config.h"
#include "server/config/debug_settings.h"
#include "server/layers.h"
#include "server/observe/command_log.h"
#include "server/observe/latency_monitor.h"
#include "server/observe/layer_figures.h"
#include "server/observe/memory.h"
#include "server/observe/stats.h"
#include "server/random_source.h"
#include "server/replication_history.h"
#include "server/server_hooks.h"
#include "server/server_state.h"
#include "store/keyspace.h"

namespace latchkey::server {

namespace acl {
class AccessControl;
}
class Blocking;
class CallListener;
class CrashReporter;
class Dispatcher;
class Expiry;
class FaultInjector;
class FlushWaits;
class FunctionLibraries;
class InfoSections;
class Listeners;
class LockClaims;
class MemoryLimit;
class ModificationClock;
class Monitors;
class Notifications;
class PauseControl;
class PubSub;
class RequestPump;
class SecureTransport;
class Shutdown;
class SlotGate;
class SpaceGate;
class Tasks;
class Tracking;
class WatchRegistry;

// The steps of the end of a turn that layers above the server take (Server::on_turn_end), in the
// order in which they are taken. What was acknowledged is written before replicas and other nodes
// hear of it, and before any reply leaves.
enum class TurnEnd : uint8_t { kAppendOnlyFile, kReplicas, kClusterBus };

// The part of persistence that fails while writes are refused. The error is that of the first one.
enum class DiskError : uint8_t { kSnapshot, kAppendOnlyFile };

class Server {
 public:
  // All must outlive the server. Without a loop there are no connections and nothing happens by
  // itself: call tick().
  Server(base::Clock& clock, Config& config, base::Logger& log, net::Loop* loop);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Opens the listening sockets; to be called when the server is composed. False, with the reasons
  // logged, when a required one cannot be had.
  bool listen();
  void stop_listening();
  // TLS, for clients, and for connections to other servers.
  SecureTransport& secure_transport() { return *secure_transport_; }
  Listeners& listeners() { return *listeners_; }
  const Listeners& listeners() const { return *listeners_; }

  // The machine's time: for timeouts of connections, replication, the cluster and files, and for
  // measurements.
  base::Clock& clock() { return clock_; }
  // The time of data and commands: deadlines, TIME, stream ids, idle times, timeouts of commands
  // that wait, times in logs that clients read. The same as the machine's until CLOCK moves it;
  // code that moves it must call data_clock_moved().
  base::SettableClock& data_clock() { return data_clock_; }
  void data_clock_moved();
  Config& config() { return config_; }
  const ConfigValues& settings() const { return config_.values(); }
  // The release that it emulates.
  const Edition& edition() const { return settings().edition; }
  // Whether it is a Sentinel: it has no dataset, and a layer above gives it other commands.
  bool is_sentinel() const { return settings().sentinel_mode; }
  base::Logger& log() { return log_; }
  // Where files that must outlive the process are written and read.
  base::FileSystem& files() { return config_.files(); }
  net::Loop* loop() { return loop_; }
  base::BufferPool& buffer_pool() { return loop_ != nullptr ? loop_->buffer_pool() : buffer_pool_; }

  CommandTable& commands() { return commands_; }
  acl::AccessControl& access() { return *access_; }
  Dispatcher& dispatcher() { return *dispatcher_; }
  RequestPump& pump() { return *pump_; }
  Tasks& tasks() { return *tasks_; }
  ClientRegistry& clients() { return clients_; }
  ClientEviction& client_eviction() { return client_eviction_; }
  KeyspaceEvents& events() { return events_; }
  Propagation& propagation() { return propagation_; }
  WatchRegistry& watches() { return *watches_; }
  PauseControl& pauses() { return *pauses_; }
  Expiry& expiry() { return *expiry_; }
  MemoryLimit& memory_limit() { return *memory_limit_; }
  // Null without a loop: nobody can wait then.
  FlushWaits* flush_waits() { return flush_waits_.get(); }
  PubSub& pubsub() { return *pubsub_; }
  Tracking& tracking() { return *tracking_; }
  Blocking& blocking() { return *blocking_; }
  Monitors& monitors() { return *monitors_; }
  CommandLog& slow_log() { return slow_log_; }
  LatencyMonitor& latency_monitor() { return latency_monitor_; }
  Stats& stats() { return stats_; }
  const base::CycleClock& cycle_clock() const { return cycle_clock_; }

  RandomSource& random_source() { return random_source_; }
  store::Environment& environment() { return environment_; }
  int database_count() const { return static_cast<int>(databases_.size()); }
  // REQUIRES: 0 <= index < database_count().
  store::Keyspace& database(int index) { return *databases_[static_cast<size_t>(index)]; }
  std::span<const std::unique_ptr<store::Keyspace>> databases() { return databases_; }
  // Of all databases, expired and hidden keys included. O(databases).
  size_t key_count() const;

  // Layers above, by their types (server/layers.h): layer<replication::Replication>().
  template <typename Layer>
  void add_layer(std::shared_ptr<Layer> layer) {
    layers_.add(std::move(layer));
  }
  template <typename Layer>
  void remove_layer() {
    layers_.remove<Layer>();
  }
  // Null where there is none.
  template <typename Layer>
  Layer* find_layer() const {
    return layers_.find<Layer>();
  }
  // REQUIRES: there is one.
  template <typename Layer>
  Layer& layer() const {
    Layer* const found = layers_.find<Layer>();
    LK_ASSERT(found != nullptr);
    return *found;
  }

  // Null where there are no scripts. Must live as long as it is set.
  FunctionLibraries* functions() { return functions_; }
  void set_functions(FunctionLibraries* functions) { functions_ = functions; }
  // Commands are refused with this error while a script runs for too long, until it is set empty.
  // The text must live as long.
  void set_busy(std::string_view error) {
    busy_error_ = error;
    set_state(kStateBusy, !error.empty());
  }
  std::string_view busy_error() const { return busy_error_; }

  // Interfaces that layers above implement, which must live as long as they are set. Null until
  // then.

  // Called before requests that may move their client to another server of the process.
  SpaceGate* space_gate() { return space_gate_; }
  void set_space_gate(SpaceGate* gate) { space_gate_ = gate; }
  // Called before requests run, in a node of a cluster. Setting it makes the server a node.
  SlotGate* slot_gate() { return slot_gate_; }
  void set_slot_gate(SlotGate* gate) {
    slot_gate_ = gate;
    set_state(kStateCluster, gate != nullptr);
  }
  bool in_cluster() const { return (state_ & kStateCluster) != 0; }
  ClusterAudit& cluster_audit() { return cluster_audit_; }

  // Notified of calls while kStateRecorded is set.
  CallListener& call_listener() { return *call_listener_; }
  void set_call_listener(CallListener* listener) { call_listener_ = listener; }
  // Called for faults while kStateFaults is set.
  FaultInjector& fault_injector() { return *fault_injector_; }
  void set_fault_injector(FaultInjector* injector) { fault_injector_ = injector; }
  // Commands report locks to it while it is set.
  LockClaims* lock_claims() { return lock_claims_; }
  void set_lock_claims(LockClaims* claims) { lock_claims_ = claims; }

  // The number of replicas that are connected and not too far behind, for min-replicas-to-write.
  void set_good_replicas(size_t count);
  size_t good_replicas() const { return good_replicas_; }

  // ServerState bits.
  uint32_t state() const { return state_; }
  // The address of the bits, for a signal handler.
  const uint32_t* state_bits() const { return &state_; }
  void set_state(uint32_t bit, bool on) {
    state_ = on ? state_ | bit : state_ & ~bit;
    update_expired_policy();
  }
  // Chooses anew what happens to expired keys: to be called when the state or
  // Expiry::shows_expired() has changed.
  void update_expired_policy() { environment_.expired = expired_key_policy(); }

  // Whether the request that is being run comes from an import source (import-mode), which sees
  // expired keys. Returns the former setting.
  bool set_serves_import_source(bool on) {
    const bool before = serves_import_source_;
    serves_import_source_ = on;
    update_expired_policy();
    return before;
  }

  // Called by replication: whether this server follows a master, and the link to it is up.
  void set_role(bool replica, bool link_up);
  bool is_replica() const { return (state_ & kStateReplica) != 0; }

  // Writes (and PING) are refused with this error, until it is set empty.
  void set_disk_error(DiskError error, std::string text);
  // REQUIRES: kStateDiskError.
  std::string_view disk_error() const;

  // The thread works for this server from here on: it is billed for the memory (used_memory()), and
  // its turn ends when the loop's does. Code that calls the server from outside must call this
  // first, mostly by refresh_clock(). Costs two comparisons.
  void enter() {
    memory_.bill();
    if (before_wait_ != nullptr) before_wait_->ask();
  }
  // Enters, and reads the clocks; the time that commands see (environment().now_ms) stands still
  // between calls. Called once per batch.
  void refresh_clock();
  // Packs the collections that commands have changed, if they are at least `least` and no task is
  // in the middle of a command. REQUIRES: nor is the caller, but for a transaction or script
  // between two commands.
  void pack_collections(size_t least);
  void pack_collections() {
    if (environment_.changed.size() >= environment_.many_changed) [[unlikely]]
      pack_collections(environment_.many_changed);
  }
  int64_t now_ms() const { return environment_.now_ms; }
  // The same moment in microseconds.
  int64_t now_us() const { return now_us_; }
  // Of the machine's clock, from which on it counts as set. What is less may be that two clocks are
  // read one after the other, or that one is adjusted slowly.
  static constexpr int64_t kMinStepMs = 50;
  // For intervals, ages and timeouts of the server's own: Unix time when the server was made, and
  // later by what the monotonic clock (clock()) had passed when refresh_clock() was called last. So
  // nothing times out, or lasts for ever, because the machine's clock is set.
  int64_t machine_ms() const { return machine_us_ / base::kUsPerMs; }
  // The Unix time that the machine's clock, as it is set now, would have shown at that
  // machine_ms().
  // Right within kMinStepMs.
  int64_t shown_ms(int64_t machine_ms) const {
    return machine_ms + machine_clock_ahead_us_ / base::kUsPerMs;
  }

  // The server's cron, at most some milliseconds: active expiry, timeouts, figures. Called by the
  // loop's timers; tests on virtual time call it.
  void tick();
  // Checks at that time (Unix time), at the latest, which waits and pauses have ended.
  void wake_at(int64_t time_ms);

  // Begins (anew, as `hz` now says) or stops the calls of tick() by the loop.
  void start_ticking();
  void pause_ticking();
  bool ticking_paused() const { return ticking_paused_; }
  Shutdown& shutdown() { return *shutdown_; }

  // Registers what is to be done at a step of a turn's end, when the requests of the turn have run
  // and before the loop waits. Must run no commands.
  void on_turn_end(TurnEnd step, std::function<void()> task) {
    turn_end_tasks_[static_cast<size_t>(step)] = std::move(task);
  }
  // Holds replies until the end of the turn, when the changes that they acknowledge are written.
  // Does nothing without a loop.
  void hold_output();

  // Code that causes one of these events (a flush, another dataset) runs its hook.
  ServerHooks& hooks() { return hooks_; }

  // Stops the loop at the end of the turn; run() then returns with this exit code.
  void request_stop(int exit_code);
  // What request_stop() does instead, in a server that is not the process's only one.
  void set_stop_action(std::function<void()> action) { stop_action_ = std::move(action); }
  bool stop_requested() const { return stop_requested_; }
  int exit_code() const { return exit_code_; }

  int64_t uptime_seconds() const {
    return (clock_.monotonic_us() - start_monotonic_us_) / base::kUsPerSecond;
  }
  const std::string& run_id() const { return run_id_; }
  // The history of this server's dataset, by which its replicas know it.
  ReplicationHistory& history() { return history_; }
  const std::string& replication_id() const { return history_.id(); }
  // The end of the replication stream: in bytes; in requests of the append-only file as long as
  // there is nothing for replicas. WAITAOF compares it with what was synced to disk.
  int64_t replication_offset() const { return replication_offset_; }
  void set_replication_offset(int64_t offset) { replication_offset_ = offset; }
  // From now on used_memory() counts this server instead of the process. `start`: bytes that it has
  // allocated already.
  void count_own_memory(size_t start);
  // Bytes allocated by the process, or by this server alone (count_own_memory): now, and when it
  // had been composed.
  size_t used_memory() const { return memory_.used(); }
  // Brings used_memory() up to date with what background threads have freed. Costs a fraction of a
  // microsecond.
  void measure_memory() { memory_.note_others(); }
  size_t startup_memory() const { return startup_memory_; }

  // The order of texts for SORT ... ALPHA; by bytes until it is set.
  const base::Collation& collation() const { return collation_; }
  // Takes the order of a locale (Collation::named). False when the system does not know it.
  bool set_collation(const std::string& locale);

  // Code that changes them must call apply_settings().
  DebugSettings& debug_settings() { return debug_settings_; }
  // Subcommands of DEBUG from layers above.
  std::span<const DebugSubcommand> debug_subcommands() const { return debug_subcommands_; }
  void add_debug_subcommands(std::span<const DebugSubcommand> subcommands) {
    debug_subcommands_.insert(debug_subcommands_.end(), subcommands.begin(), subcommands.end());
  }
  // Copies the settings, the configuration's and DEBUG's, to the subsystems that keep them in forms
  // of their own.
  void apply_settings();
  // Ends the process with a crash report, after a failure that cannot be corrected.
  [[noreturn]] void panic(const std::string& message, const char* file, int line);
  void set_crash_reporter(CrashReporter* reporter) { crash_reporter_ = reporter; }

  InfoSections& info() { return *info_; }
  LayerFigures& figures() { return figures_; }
  // Frees some of the memory of scripts that have ended; false when there is none left. A few
  // milliseconds at most.
  bool free_script_garbage() { return free_script_garbage_ && free_script_garbage_(); }
  void on_script_garbage(std::function<bool()> free_some) {
    free_script_garbage_ = std::move(free_some);
  }
  // CONFIG RESETSTAT.
  void reset_stats();

 private:
  store::Environment::Expired expired_key_policy() const;
  void update_role();
  void end_turn();
  void release_output();
  void wake();
  // Waits and pauses by the data's clock: it was set back by so much, or forward if negative.
  void move_deadlines_back(int64_t by_ms);
  // The machine's clock has been set, and is ahead of machine_ms() by so much now.
  void machine_clock_was_set(int64_t ahead_us);
  void sample_rates();
  void drop_error_counts(Stats::ErrorCounts errors);

  base::Clock& clock_;
  base::SettableClock data_clock_{clock_};
  Config& config_;
  base::Logger& log_;
  net::Loop* loop_;
  base::BufferPool buffer_pool_;
  base::CycleClock cycle_clock_;
  RandomSource random_source_;
  store::Environment environment_;
  int64_t now_us_ = 0;
  // What machine_ms() has added to the monotonic time.
  const int64_t machine_epoch_us_ = clock_.wall_us() - clock_.monotonic_us();
  int64_t machine_us_ = 0;
  int64_t machine_clock_ahead_us_ = 0;  // of machine_ms(), within kMinStepMs
  Propagation propagation_;
  std::unique_ptr<Expiry> expiry_;
  std::unique_ptr<MemoryLimit> memory_limit_;
  std::unique_ptr<ModificationClock> modification_clock_;
  std::vector<std::unique_ptr<store::Keyspace>> databases_;
  CommandTable commands_;
  std::unique_ptr<acl::AccessControl> access_;
  KeyspaceEvents events_;
  Stats stats_;
  MemoryMeter memory_;
  ClientEviction client_eviction_;
  ClientRegistry clients_;
  std::unique_ptr<WatchRegistry> watches_;
  std::unique_ptr<PauseControl> pauses_;
  std::unique_ptr<FlushWaits> flush_waits_;
  std::unique_ptr<PubSub> pubsub_;
  std::unique_ptr<Tracking> tracking_;
  std::unique_ptr<Notifications> notifications_;
  std::unique_ptr<Blocking> blocking_;
  std::unique_ptr<Monitors> monitors_;
  CommandLog slow_log_;
  bool serves_import_source_ = false;
  LatencyMonitor latency_monitor_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::unique_ptr<RequestPump> pump_;
  std::unique_ptr<Tasks> tasks_;
  Layers layers_;
  SpaceGate* space_gate_ = nullptr;
  FunctionLibraries* functions_ = nullptr;
  std::string_view busy_error_;
  SlotGate* slot_gate_ = nullptr;
  ClusterAudit cluster_audit_{*this};
  CallListener* call_listener_ = nullptr;
  FaultInjector* fault_injector_ = nullptr;
  LockClaims* lock_claims_ = nullptr;
  std::unique_ptr<SecureTransport> secure_transport_;
  std::unique_ptr<Listeners> listeners_;
  std::unique_ptr<net::BeforeWait> before_wait_;
  std::unique_ptr<net::Timer> tick_timer_;
  std::unique_ptr<net::Timer> wake_timer_;
  int64_t wake_time_ms_ = 0;                             // 0: not set
  std::array<std::function<void()>, 3> turn_end_tasks_;  // by TurnEnd
  ServerHooks hooks_;
  std::array<std::string, 2> disk_errors_;  // by DiskError
  std::vector<DebugSubcommand> debug_subcommands_;
  uint32_t state_ = 0;
  bool ticking_paused_ = false;
  bool holds_output_ = false;
  int64_t sampled_us_ = 0;
  bool stop_requested_ = false;
  std::function<void()> stop_action_;
  int exit_code_ = 0;
  int64_t start_monotonic_us_;
  size_t startup_memory_ = 0;
  uint64_t commands_before_turn_ = 0;
  std::string run_id_;
  ReplicationHistory history_{random_source_};
  int64_t replication_offset_ = 0;
  bool link_up_ = false;
  std::unique_ptr<InfoSections> info_;
  LayerFigures figures_;
  std::function<bool()> free_script_garbage_;
  size_t good_replicas_ = 0;
  std::unique_ptr<Shutdown> shutdown_;
  DebugSettings debug_settings_;
  base::Collation collation_;
  CrashReporter* crash_reporter_ = nullptr;
};

}  // namespace latchkey::server
