#include "server/server.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "server/acl/access_control.h"
#include "server/blocking.h"
#include "server/crash_report.h"
#include "server/dispatcher.h"
#include "server/flush_waits.h"
#include "server/info.h"
#include "server/listeners.h"
#include "server/live_settings.h"
#include "server/monitors.h"
#include "server/notifications.h"
#include "server/pause.h"
#include "server/pubsub.h"
#include "server/request_pump.h"
#include "server/shutdown.h"
#include "server/tracking.h"
#include "server/watch.h"

namespace latchkey::server {

namespace {

constexpr size_t kIdDigits = 40;  // of the run id
// Rates are sampled about ten times a second; timers may come a little early.
constexpr int64_t kSampleIntervalUs = 95'000;
// More of them are freed in the background.
constexpr size_t kMostErrorCodesFreedAtOnce = 64;
// Active expiry: how often it looks, how long it pauses while there is more to do, how many entries
// it looks at between two glances at the clock, and how long it may stay: long enough for half a
// million keys a second, and longer when keys have been waiting.
constexpr uint64_t kExpiryIntervalMs = 20;
constexpr uint64_t kExpiryPauseMs = 1;
constexpr size_t kExpiryStep = 32;
constexpr int64_t kExpiryBudgetUs = 250;
constexpr int64_t kLateExpiryBudgetUs = 1000;
constexpr int64_t kLateExpiryUs = 60'000;

// No count of effects.
constexpr uint64_t kNothingSeen = UINT64_MAX;

// Evictions between two glances at the clock.
constexpr size_t kEvictionsPerGlance = 16;

// How long evicting may hold up a command: the tenacity is 0 to 100, from not at all to until it is
// done.
int64_t eviction_budget_us(int tenacity) {
  constexpr int kLinear = 10;
  constexpr int kMost = 100;
  constexpr int64_t kStepUs = 50;
  constexpr double kGrowth = 1.15;
  if (tenacity >= kMost) return INT64_MAX;
  if (tenacity <= kLinear) return kStepUs * tenacity;
  return static_cast<int64_t>(static_cast<double>(kStepUs * kLinear) *
                              std::pow(kGrowth, tenacity - kLinear));
}

struct EvictionRule {
  store::EvictionOrder order;
  bool volatile_only;
};

EvictionRule eviction_rule(MaxmemoryPolicy policy) {
  using store::EvictionOrder;
  switch (policy) {
    case MaxmemoryPolicy::kVolatileLru:
      return {EvictionOrder::kIdlest, true};
    case MaxmemoryPolicy::kVolatileLfu:
      return {EvictionOrder::kLeastFrequent, true};
    case MaxmemoryPolicy::kVolatileRandom:
      return {EvictionOrder::kRandom, true};
    case MaxmemoryPolicy::kVolatileTtl:
      return {EvictionOrder::kNearestDeadline, true};
    case MaxmemoryPolicy::kAllkeysLru:
      return {EvictionOrder::kIdlest, false};
    case MaxmemoryPolicy::kAllkeysLfu:
      return {EvictionOrder::kLeastFrequent, false};
    case MaxmemoryPolicy::kAllkeysRandom:
    case MaxmemoryPolicy::kNoeviction:
      break;
  }
  return {EvictionOrder::kRandom, false};
}

uint64_t seed_from_system() {
  uint64_t seed;
  base::random_secret(&seed, sizeof(seed));
  return seed;
}

}  // namespace

// Turns the store's word that a key's time has come into an effect like any other.
class Server::ExpiryNotifier final : public store::ExpiryObserver {
 public:
  explicit ExpiryNotifier(Server& server) : server_(server), effects_(server.effects_) {}
  void key_expiring(store::Keyspace& keyspace, std::string_view key) override {
    server_.propagate_removal(keyspace, key, server_.settings().lazyfree_lazy_expire);
    effects_.happened(keyspace, key, EventClass::kExpired, "expired");
  }
  // Only hashes have elements with deadlines.
  void elements_expired(store::Keyspace& keyspace, std::string_view key,
                        std::span<const std::string> names, bool last) override {
    for (const std::string& field : names)
      server_.propagation().add(keyspace.index(), {"HDEL", key, field});
    effects_.happened(keyspace, key, EventClass::kHash, "hexpired");
    if (last) effects_.happened(keyspace, key, EventClass::kGeneric, "del");
  }

 private:
  Server& server_;
  Effects& effects_;
};

Server::Server(base::Clock& clock, Config& config, base::Logger& log, net::Loop* loop)
    : clock_(clock),
      config_(config),
      log_(log),
      loop_(loop),
      propagation_([this](bool wanted) { environment_.name_expired_elements = wanted; }),
      expiry_notifier_(std::make_unique<ExpiryNotifier>(*this)),
      access_(std::make_unique<acl::AccessControl>(*this)),
      client_eviction_(*this),
      clients_(*this),
      watches_(std::make_unique<WatchRegistry>(*this)),
      pauses_(std::make_unique<PauseControl>(*this)),
      flush_waits_(loop != nullptr ? std::make_unique<FlushWaits>(*this) : nullptr),
      pubsub_(std::make_unique<PubSub>(*this)),
      tracking_(std::make_unique<Tracking>(*this)),
      notifications_(std::make_unique<Notifications>(*this)),
      blocking_(std::make_unique<Blocking>(*this)),
      monitors_(std::make_unique<Monitors>(*this)),
      dispatcher_(std::make_unique<Dispatcher>(*this)),
      pump_(std::make_unique<RequestPump>(*this)),
      listeners_(std::make_unique<Listeners>(*this)),
      start_wall_us_(clock.wall_us()),
      start_monotonic_us_(clock.monotonic_us()),
      run_id_(base::random_hex(kIdDigits)),
      info_(std::make_unique<InfoSections>()),
      shutdown_(std::make_unique<Shutdown>(*this)) {
  environment_.random = base::Random(seed_from_system());
  environment_.expiry_observer = expiry_notifier_.get();
  stats_.on_errors_overflow = [this](Stats::ErrorCounts errors) {
    drop_error_counts(std::move(errors));
  };
  refresh_clock();
  for (int i = 0; i < settings().databases; ++i) {
    databases_.push_back(std::make_unique<store::Keyspace>(i, environment_));
  }
  add_standard_sections(*info_, *this);
  register_live_settings(*this);
  apply_settings();
  startup_memory_ = used_memory();
  config_.on_change({"maxmemory", "maxmemory-policy", "lfu-log-factor", "lfu-decay-time"},
                    [this](std::string*) {
                      apply_settings();
                      // Not in the middle of a transaction.
                      if (eviction_timer_ != nullptr) {
                        eviction_timer_->start(0);
                      } else {
                        make_room();
                      }
                      return true;
                    });
  config_.on_change(
      {"hash-max-listpack-entries", "hash-max-listpack-value", "set-max-intset-entries",
       "set-max-listpack-entries", "set-max-listpack-value", "zset-max-listpack-entries",
       "zset-max-listpack-value", "list-max-listpack-size", "list-compress-depth",
       "stream-node-max-bytes", "stream-node-max-entries", "min-replicas-to-write",
       "min-replicas-max-lag", "slowlog-log-slower-than", "slowlog-max-len",
       "cluster-compatibility-sample-ratio", "latency-monitor-threshold", "replica-read-only",
       "replica-serve-stale-data"},
      [this](std::string*) {
        apply_settings();
        return true;
      });
  config_.on_change({"requirepass"}, [this](std::string*) {
    access_->password_changed();
    return true;
  });
  if (loop_ == nullptr) return;
  loop_->on_before_wait([this] { before_wait(); });
  tick_timer_ = std::make_unique<net::Timer>(*loop_, [this] { tick(); });
  start_ticking();
  wake_timer_ = std::make_unique<net::Timer>(*loop_, [this] { wake(); });
  eviction_timer_ = std::make_unique<net::Timer>(*loop_, [this] {
    refresh_clock();
    make_room();
  });
  expiry_timer_ = std::make_unique<net::Timer>(*loop_, [this] { expire_on_timer(); });
}

Server::~Server() {
  stop_listening();
  clients_.for_each([](Client& client) { client.close(); });
  clients_.free_removed();
  if (loop_ != nullptr) loop_->on_before_wait(nullptr);
}

void Server::apply_settings() {
  const ConfigValues& values = settings();
  const bool lfu = values.maxmemory_policy == MaxmemoryPolicy::kAllkeysLfu ||
                   values.maxmemory_policy == MaxmemoryPolicy::kVolatileLfu;
  environment_.use_lfu = lfu;
  environment_.lfu_log_factor = values.lfu_log_factor;
  environment_.lfu_decay_minutes = values.lfu_decay_time;
  environment_.limits = {
      .hash_max_listpack_entries = values.hash_max_listpack_entries,
      .hash_max_listpack_value = values.hash_max_listpack_value,
      .set_max_intset_entries = values.set_max_intset_entries,
      .set_max_listpack_entries = values.set_max_listpack_entries,
      .set_max_listpack_value = values.set_max_listpack_value,
      .zset_max_listpack_entries = values.zset_max_listpack_entries,
      .zset_max_listpack_value = values.zset_max_listpack_value,
      .list_max_listpack_size = values.list_max_listpack_size,
      .list_compress_depth = values.list_compress_depth,
      .stream_node_max_bytes = values.stream_node_max_bytes,
      .stream_node_max_entries = static_cast<size_t>(values.stream_node_max_entries),
      .quicklist_packed_threshold = debug_settings_.quicklist_packed_threshold,
  };
  set_state(kStateMemoryLimit, values.maxmemory != 0);
  slow_log_.configure({.slower_than_us = values.slowlog_log_slower_than,
                       .most_entries = static_cast<size_t>(values.slowlog_max_len)});
  latency_monitor_.set_threshold_ms(values.latency_monitor_threshold);
  set_state(kStateClusterAudit,
            values.cluster_compatibility_sample_ratio > 0 && !values.cluster_enabled);
  cluster_audit_.end();
  dispatcher_->choose_noted_calls();
  settle_role();
}

store::Environment::Expired Server::treatment_of_expired() const {
  using Expired = store::Environment::Expired;
  // The master says when keys go; its requests find what has expired here but not yet there.
  if ((state_ & (kStateLoading | kStateFollowing)) != 0) return Expired::kShow;
  return (state_ & (kStatePaused | kStateReplica)) != 0 ? Expired::kHide : Expired::kRemove;
}

void Server::set_role(bool replica, bool link_up) {
  const bool changed = replica != is_replica();
  link_up_ = link_up;
  set_state(kStateReplica, replica);
  settle_role();
  if (!changed) return;
  for (const auto& task : role_tasks_) task();
}

void Server::settle_role() {
  const ConfigValues& values = settings();
  set_state(kStateReadOnly, is_replica() && values.replica_read_only);
  set_state(kStateStale, is_replica() && !link_up_ && !values.replica_serve_stale_data);
  set_good_replicas(good_replicas_);
}

void Server::set_good_replicas(size_t count) {
  good_replicas_ = count;
  const ConfigValues& values = settings();
  const bool wanted =
      !is_replica() && values.min_replicas_to_write > 0 && values.min_replicas_max_lag > 0;
  set_state(kStateFewReplicas, wanted && count < static_cast<size_t>(values.min_replicas_to_write));
}

bool Server::set_collation(const std::string& locale) {
  auto collation = base::Collation::named(locale);
  if (!collation) return false;
  collation_ = std::move(*collation);
  return true;
}

void Server::refresh_clock() {
  now_us_ = clock_.wall_us();
  environment_.now_ms = now_us_ / 1000;
  environment_.access_clock =
      static_cast<uint32_t>(environment_.now_ms / 1000) & store::Entry::kMaxAccess;
}

bool Server::listen() {
  if (!listeners_->open()) return false;
  startup_memory_ = used_memory();
  return true;
}

void Server::stop_listening() {
  listeners_->close();
}

void Server::start_ticking() {
  ticking_paused_ = false;
  if (tick_timer_ == nullptr) return;
  const auto interval_ms = static_cast<uint64_t>(1000 / std::max(settings().hz, 1));
  tick_timer_->start(interval_ms, interval_ms);
}

void Server::pause_ticking() {
  ticking_paused_ = true;
  if (tick_timer_ != nullptr) tick_timer_->stop();
}

void Server::expire_on_timer() {
  refresh_clock();
  const bool done = expire_some();
  expiring_ = any_deadlines();
  // A backlog is worked off between other work.
  if (expiring_) expiry_timer_->start(done ? kExpiryIntervalMs : kExpiryPauseMs);
}

bool Server::any_deadlines() const {
  return std::any_of(databases_.begin(), databases_.end(),
                     [](const auto& database) { return database->has_deadlines(); });
}

void Server::watch_for_deadlines() {
  // A server without deadlines sleeps.
  if (expiring_ || loop_ == nullptr || effects_seen_ == effects_.total()) return;
  effects_seen_ = effects_.total();
  if (!any_deadlines()) return;
  expiring_ = true;
  expiry_timer_->start(kExpiryIntervalMs);
}

void Server::before_wait() {
  watch_for_deadlines();
  stats_.most_commands_in_turn =
      std::max(stats_.most_commands_in_turn, stats_.commands_processed - commands_before_turn_);
  commands_before_turn_ = stats_.commands_processed;
  // Keys that have gone by themselves, and what was changed by none of a client's requests.
  if (blocking_->any_ready() && (loop_ == nullptr || !loop_->nested())) blocking_->serve();
  // Ends of waits that the end of a turn brings are served in it too.
  do {
    clients_.run_scheduled();
    if (tracking_->any_to_broadcast()) tracking_->broadcast();
    for (const auto& task : turn_end_tasks_) task();
    if (loop_ != nullptr && loop_->holds_output()) loop_->release_output();
  } while (clients_.any_scheduled());
  // In a nested turn somebody up the stack may still hold a client.
  if (loop_ != nullptr && loop_->nested()) return;
  client_eviction_.enforce();
  clients_.free_removed();
}

bool Server::expire_some() {
  // Time stands still for a script that runs, and what is being loaded is not all there yet.
  if (!active_expiry_ || (state_ & (kStateBusy | kStateLoading)) != 0) return true;
  const LatencyTimer timer(*this, "expire-cycle");
  const uint64_t started = base::CycleClock::ticks();
  const bool done = expire_within_budget();
  stats_.expiry_ticks += base::CycleClock::ticks() - started;
  if (!done) ++stats_.expiry_cap_reached;
  return done;
}

bool Server::expire_within_budget() {
  const int64_t started_us = clock_.monotonic_us();
  const bool late = started_us - expiry_caught_up_us_ > kLateExpiryUs;
  const int64_t until_us = started_us + (late ? kLateExpiryBudgetUs : kExpiryBudgetUs);
  // Databases take turns, so that none waits for another's backlog.
  for (int done_in_a_row = 0; done_in_a_row < database_count();) {
    const bool done = database(next_database_to_expire_).expire_due(kExpiryStep);
    next_database_to_expire_ = (next_database_to_expire_ + 1) % database_count();
    if (done) {
      ++done_in_a_row;
      continue;
    }
    done_in_a_row = 0;
    if (clock_.monotonic_us() > until_us) return false;
  }
  expiry_caught_up_us_ = started_us;
  return true;
}

void Server::tick() {
  const uint64_t started = base::CycleClock::ticks();
  refresh_clock();
  if (loop_ == nullptr) expire_some();
  pauses_->tick();
  clients_.end_waits();
  sample_rates();
  memory_.refresh();
  stats_.peak_memory = std::max<uint64_t>(stats_.peak_memory, used_memory());
  clients_.look_after_some();
  // Deadlines come not by commands only: a dataset may have been loaded.
  effects_seen_ = kNothingSeen;
  if ((state_ & kStateTrackingFull) != 0) tracking_->give_up_some();
  for (const auto& task : tick_tasks_) task();
  before_wait();
  stats_.cron_ticks += base::CycleClock::ticks() - started;
}

void Server::propagate_removal(const store::Keyspace& keyspace, std::string_view key, bool lazily) {
  propagation_.add(keyspace.index(), {lazily ? "UNLINK" : "DEL", key},
                   kEffectForAll | kEffectStandsAlone);
}

size_t Server::memory_not_counted() const {
  return replication_figures().pending_memory + persistence_figures().aof.buffer_memory;
}

bool Server::is_over_memory_limit() const {
  const size_t limit = settings().maxmemory;
  const size_t used = used_memory();
  if (used <= limit) return false;
  const size_t ignored = memory_not_counted() + tracking_->memory_taken_by_evictions();
  return used - std::min(used, ignored) > limit;
}

bool Server::make_room() {
  const ConfigValues& values = settings();
  // While clients are paused the dataset stands still; while it is loaded it is not all there.
  const bool may_evict = (state_ & (kStateLoading | kStatePaused)) == 0;
  const bool left_to_master = is_replica() && values.replica_ignore_maxmemory;
  bool fits = values.maxmemory == 0 || !may_evict || left_to_master || !is_over_memory_limit();
  if (!fits) {
    await_freeing();
    fits = !is_over_memory_limit();
  }
  if (fits) {
    note_excess(false);
    return true;
  }
  if (values.maxmemory_policy == MaxmemoryPolicy::kNoeviction) return false;
  const LatencyTimer timer(*this, "eviction-cycle");
  const int64_t started_us = clock_.monotonic_us();
  const int64_t budget_us = eviction_budget_us(values.maxmemory_eviction_tenacity);
  const Tracking::EvictionCycle cycle(*tracking_);
  for (size_t evicted = 1; is_over_memory_limit(); ++evicted) {
    if (!evict_one()) {
      note_excess(true);
      return false;
    }
    if (evicted % kEvictionsPerGlance != 0) continue;
    await_freeing();
    if (clock_.monotonic_us() - started_us < budget_us) continue;
    note_excess(true);
    if (eviction_timer_ != nullptr) eviction_timer_->start(0);
    return true;
  }
  note_excess(false);
  return true;
}

void Server::await_freeing() {
  store::Reclaimer& reclaimer = environment_.reclaimer;
  reclaimer.drain();
  // What other threads free is seen only then.
  if (std::exchange(freed_jobs_, reclaimer.jobs()) != reclaimer.jobs()) memory_.refresh();
}

bool Server::evict_one() {
  const ConfigValues& values = settings();
  const EvictionRule rule = eviction_rule(values.maxmemory_policy);
  const auto victim = evictor_.choose(databases_, rule.order, rule.volatile_only,
                                      static_cast<size_t>(std::max(values.maxmemory_samples, 1)));
  if (victim.keyspace == nullptr) return false;
  store::KeyRef ref = victim.keyspace->find(victim.key, store::Keyspace::kPeek);
  {
    const LatencyTimer timer(*this, "eviction-del");
    victim.keyspace->erase(ref, values.lazyfree_lazy_eviction);
    if (!values.lazyfree_lazy_eviction) await_freeing();
  }
  ++stats_.evicted_keys;
  propagate_removal(*victim.keyspace, victim.key, values.lazyfree_lazy_eviction);
  effects_.happened(*victim.keyspace, victim.key, EventClass::kEvicted, "evicted");
  return true;
}

void Server::note_excess(bool over_limit) {
  const int64_t monotonic_us = clock_.monotonic_us();
  if (over_limit) {
    if (excess_since_us_ < 0) excess_since_us_ = monotonic_us;
  } else if (excess_since_us_ >= 0) {
    stats_.eviction_exceeded_us += static_cast<uint64_t>(monotonic_us - excess_since_us_);
    excess_since_us_ = -1;
  }
}

int64_t Server::current_excess_us() const {
  return excess_since_us_ < 0 ? 0 : clock_.monotonic_us() - excess_since_us_;
}

void Server::sample_rates() {
  const int64_t monotonic_us = clock_.monotonic_us();
  if (monotonic_us - sampled_us_ < kSampleIntervalUs) return;
  sampled_us_ = monotonic_us;
  stats_.commands_rate.sample(monotonic_us, stats_.commands_processed);
  if (loop_ == nullptr) return;
  const net::Loop::Counters& counters = loop_->counters();
  stats_.input_rate.sample(monotonic_us, counters.bytes_read);
  stats_.output_rate.sample(monotonic_us, counters.bytes_written);
  stats_.turns_rate.sample(monotonic_us, counters.cycles);
  stats_.turn_duration.sample(static_cast<uint64_t>(cycle_clock_.to_us(counters.busy_ticks)),
                              counters.cycles);
}

void Server::set_disk_error(DiskError error, std::string text) {
  disk_errors_[static_cast<size_t>(error)] = std::move(text);
  set_state(kStateDiskError, std::any_of(disk_errors_.begin(), disk_errors_.end(),
                                         [](const std::string& each) { return !each.empty(); }));
}

std::string_view Server::disk_error() const {
  return *std::find_if(disk_errors_.begin(), disk_errors_.end(),
                       [](const std::string& each) { return !each.empty(); });
}

void Server::reset_stats() {
  for (const auto& task : reset_tasks_) task();
  cluster_audit_.reset();
  free_error_counts(stats_.reset());
  commands_before_turn_ = 0;
  commands_.reset_stats();
  environment_.hits = 0;
  environment_.misses = 0;
  environment_.expired_keys = 0;
  environment_.expired_elements = 0;
  environment_.reclaimer.reset_freed();
  if (loop_ != nullptr) loop_->counters() = {};
}

void Server::drop_error_counts(Stats::ErrorCounts errors) {
  std::string codes;
  for (const auto& [code, count] : errors) codes.append(codes.empty() ? "" : ", ").append(code);
  log_.warning(
      "Errorstats stopped adding new errors because the number of errors reached the limit, may be "
      "misuse of lua "
      "error_reply, please check INFO ERRORSTATS, this can be re-enabled via CONFIG RESETSTAT.");
  log_.warning("Current errors code list: " + codes);
  free_error_counts(std::move(errors));
}

void Server::free_error_counts(Stats::ErrorCounts errors) {
  const size_t count = errors.size();
  if (count <= kMostErrorCodesFreedAtOnce) return;
  environment_.reclaimer.free_later(
      count, [gone = std::make_shared<Stats::ErrorCounts>(std::move(errors))] { gone->clear(); });
}

void Server::wake_at(int64_t time_ms) {
  if (loop_ == nullptr || (wake_time_ms_ != 0 && wake_time_ms_ <= time_ms)) return;
  wake_time_ms_ = time_ms;
  wake_timer_->start(static_cast<uint64_t>(std::max<int64_t>(time_ms - now_ms(), 0)));
}

void Server::wake() {
  wake_time_ms_ = 0;
  refresh_clock();
  pauses_->tick();
  clients_.end_waits();
}

void Server::panic(const std::string& message, const char* file, int line) {
  if (crash_reporter_ != nullptr) crash_reporter_->panic(message, file, line);
  base::assertion_failed(message.c_str(), file, line);
}

void Server::request_stop(int exit_code) {
  exit_code_ = exit_code;
  stop_requested_ = true;
  if (loop_ != nullptr) loop_->stop();
}

}  // namespace latchkey::server
