#include "server/server.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/time_units.h"
#include "server/acl/access_control.h"
#include "server/client/blocking.h"
#include "server/client/flush_waits.h"
#include "server/client/monitors.h"
#include "server/client/notifications.h"
#include "server/client/pause.h"
#include "server/client/pubsub.h"
#include "server/client/request_pump.h"
#include "server/client/tracking.h"
#include "server/command/dispatcher.h"
#include "server/command/watch.h"
#include "server/config/live_settings.h"
#include "server/expiry.h"
#include "server/memory_limit.h"
#include "server/modification_clock.h"
#include "server/observe/info.h"
#include "server/observe/large_calls.h"
#include "server/process/crash_report.h"
#include "server/process/listeners.h"
#include "server/process/process.h"
#include "server/process/secure_transport.h"
#include "server/process/shutdown.h"
#include "server/tasks.h"

namespace latchkey::server {

namespace {

constexpr size_t kIdDigits = 40;  // of the run id
// Rates are sampled about ten times a second; timers may come a little early.
constexpr int64_t kSampleIntervalUs = 95'000;

}  // namespace

Server::Server(base::Clock& clock, Config& config, base::Logger& log, net::Loop* loop)
    : clock_(clock),
      config_(config),
      log_(log),
      loop_(loop),
      random_source_(config.values().random_seed),
      propagation_([this](bool wanted) {
        environment_.name_expired_elements = wanted || events_.wants_subkeys();
      }),
      expiry_(std::make_unique<Expiry>(*this)),
      memory_limit_(std::make_unique<MemoryLimit>(*this)),
      modification_clock_(std::make_unique<ModificationClock>(*this)),
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
      tasks_(std::make_unique<Tasks>(*this)),
      secure_transport_(std::make_unique<SecureTransport>(*this)),
      listeners_(std::make_unique<Listeners>(*this)),
      start_monotonic_us_(clock.monotonic_us()),
      run_id_(random_source_.hex(kIdDigits)),
      info_(std::make_unique<InfoSections>()),
      shutdown_(std::make_unique<Shutdown>(*this)) {
  const std::string& hash_seed = settings().hash_seed;
  environment_.secret =
      hash_seed.empty() ? random_source_.hash_secret() : base::HashSecret(base::digest(hash_seed));
  environment_.random = random_source_.commands();
  environment_.reclaimer.prepare_thread([cpus = settings().bio_cpulist] { pin_to_cpus(cpus); });
  environment_.expiry_observer = expiry_.get();
  stats_.on_errors_overflow = [this](Stats::ErrorCounts errors) {
    drop_error_counts(std::move(errors));
  };
  stats_.bounds_script_errors = edition().is_valkey_since({8, 0});
  set_state(kStateEmulating, edition().emulates());
  refresh_clock();
  const int databases =
      settings().cluster_enabled ? settings().cluster_databases : settings().databases;
  for (int i = 0; i < databases; ++i) {
    databases_.push_back(std::make_unique<store::Keyspace>(i, environment_));
  }
  add_standard_sections(*info_, *this);
  register_live_settings(*this);
  apply_settings();
  startup_memory_ = used_memory();
  config_.on_every_change([this] { apply_settings(); });
  config_.on_change({"maxmemory", "maxmemory-policy"}, [this] { memory_limit_->make_room_soon(); });
  config_.on_change({"random-seed"}, [this] {
    random_source_.reseed(settings().random_seed);
    environment_.random = random_source_.commands();
  });
  config_.on_change({"requirepass"}, [this] { access_->password_changed(); });
  if (loop_ == nullptr) return;
  tick_timer_ = std::make_unique<net::Timer>(*loop_, [this] { tick(); });
  start_ticking();
  wake_timer_ = std::make_unique<net::Timer>(*loop_, [this] { wake(); });
}

Server::~Server() {
  stop_listening();
  tasks_->finish();
  clients_.for_each([](Client& client) { client.close(); });
  clients_.free_removed();
  release_output();
}

void Server::apply_settings() {
  const ConfigValues& values = settings();
  const bool lfu = values.maxmemory_policy == MaxmemoryPolicy::kAllkeysLfu ||
                   values.maxmemory_policy == MaxmemoryPolicy::kVolatileLfu;
  environment_.use_lfu = lfu;
  modification_clock_->follow_policy();
  environment_.lfu_log_factor = values.lfu_log_factor;
  environment_.lfu_decay_minutes = values.lfu_decay_time;
  environment_.limits = {
      .hash_max_listpack_entries = values.hash_max_listpack_entries,
      .hash_max_listpack_value = values.hash_max_listpack_value,
      .hash_min_template_entries = values.hash_min_template_entries,
      .hash_max_template_entries = values.hash_max_template_entries,
      .hash_rdb_load_min_template_entries = values.hash_rdb_load_min_template_entries,
      .hash_rdb_load_max_template_entries = values.hash_rdb_load_max_template_entries,
      .set_max_intset_entries = values.set_max_intset_entries,
      .set_max_listpack_entries = values.set_max_listpack_entries,
      .set_max_listpack_value = values.set_max_listpack_value,
      .zset_max_listpack_entries = values.zset_max_listpack_entries,
      .zset_max_listpack_value = values.zset_max_listpack_value,
      .list_max_listpack_size = values.list_max_listpack_size,
      .list_compress_depth = values.list_compress_depth,
      .stream_node_max_bytes = values.stream_node_max_bytes,
      .stream_node_max_entries = static_cast<size_t>(values.stream_node_max_entries),
      .stream_idmp_duration_s = static_cast<uint32_t>(values.stream_idmp_duration),
      .stream_idmp_maxsize = static_cast<uint32_t>(values.stream_idmp_maxsize),
      .quicklist_packed_threshold = debug_settings_.quicklist_packed_threshold,
  };
  set_state(kStateMemoryLimit, values.maxmemory != 0);
  set_state(kStateImporting, values.import_mode);
  slow_log_.configure(
      {.least_amount = values.slowlog_log_slower_than,
       .most_entries = static_cast<size_t>(values.slowlog_max_len),
       .most_words = static_cast<size_t>(values.slowlog_entry_max_argc),
       .most_word_bytes = static_cast<size_t>(values.slowlog_entry_max_string_len)});
  dispatcher_->meters().large_calls().configure(
      {.least_amount = values.commandlog_request_larger_than,
       .most_entries = static_cast<size_t>(values.commandlog_large_request_max_len)},
      {.least_amount = values.commandlog_reply_larger_than,
       .most_entries = static_cast<size_t>(values.commandlog_large_reply_max_len)});
  latency_monitor_.set_threshold_ms(values.latency_monitor_threshold);
  set_state(kStateClusterAudit,
            values.cluster_compatibility_sample_ratio > 0 && !values.cluster_enabled);
  cluster_audit_.end();
  dispatcher_->meters().update_threshold();
  update_role();
}

store::Environment::Expired Server::expired_key_policy() const {
  using Expired = store::Environment::Expired;
  // The master says when keys go; its requests find what has expired here but not yet there.
  if ((state_ & (kStateLoading | kStateApplyingMaster)) != 0) return Expired::kShow;
  if (expiry_ != nullptr && expiry_->shows_expired()) return Expired::kShow;
  constexpr uint32_t kKeepsExpired = kStatePaused | kStateReplica | kStateImporting;
  if ((state_ & kKeepsExpired) == 0) return Expired::kRemove;
  const bool imports = (state_ & kStateImporting) != 0 && !is_replica();
  return imports && serves_import_source_ ? Expired::kShow : Expired::kHide;
}

void Server::set_role(bool replica, bool link_up) {
  const bool changed = replica != is_replica();
  link_up_ = link_up;
  set_state(kStateReplica, replica);
  update_role();
  if (!changed) return;
  hooks_.role_changed.run();
}

void Server::update_role() {
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

void Server::count_own_memory(size_t start) {
  memory_.count_own(start, [this] { return environment_.reclaimer.freed_bytes(); });
  startup_memory_ = start;
}

void Server::refresh_clock() {
  enter();
  machine_us_ = machine_epoch_us_ + clock_.monotonic_us();
  const int64_t wall_us = clock_.wall_us();
  now_us_ = data_clock_.is_wall() ? wall_us : data_clock_.wall_us();
  environment_.now_ms = now_us_ / base::kUsPerMs;
  environment_.access_clock =
      static_cast<uint32_t>(environment_.now_ms / base::kMsPerSecond) & store::Entry::kMaxAccess;
  const int64_t ahead_us = wall_us - machine_us_;
  if (std::abs(ahead_us - machine_clock_ahead_us_) >= kMinStepMs * base::kUsPerMs) [[unlikely]]
    machine_clock_was_set(ahead_us);
}

void Server::machine_clock_was_set(int64_t ahead_us) {
  const int64_t step_us = ahead_us - std::exchange(machine_clock_ahead_us_, ahead_us);
  if (data_clock_.is_wall()) move_deadlines_back(-step_us / base::kUsPerMs);
}

void Server::move_deadlines_back(int64_t by_ms) {
  clients_.clock_went_back(by_ms);
  blocking_->clock_went_back(by_ms);
  pauses_->clock_went_back(by_ms);
  hooks_.clock_went_back.run(by_ms);
}

void Server::pack_collections(size_t least) {
  if (environment_.changed.size() < least || tasks_->any()) return;
  store::Keyspace::pack_changed(environment_);
}

bool Server::listen() {
  if (!secure_transport_->configure()) {
    log_.warning("Failed to configure TLS. Check logs for more info.");
    return false;
  }
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
  if (before_wait_ == nullptr) {
    // There may be thousands of spaces, of which few have done anything in a turn.
    const auto when = (state_ & kStateSpace) != 0 ? net::BeforeWait::When::kAsked
                                                  : net::BeforeWait::When::kEachTurn;
    before_wait_ = std::make_unique<net::BeforeWait>(
        *loop_, [this] { end_turn(); }, when);
    before_wait_->ask();
  }
  const auto interval_ms = static_cast<uint64_t>(1000 / std::max(settings().hz, 1));
  tick_timer_->start(interval_ms, interval_ms);
}

void Server::pause_ticking() {
  ticking_paused_ = true;
  if (tick_timer_ != nullptr) tick_timer_->stop();
  // A space without clients has nothing to do at the end of a turn, and there may be thousands.
  if ((state_ & kStateSpace) != 0 && clients_.size() == 0) before_wait_.reset();
}

// The phases of the end of a turn, in their order. Commands have run.
void Server::end_turn() {
  memory_.bill();
  expiry_->turn_ended();
  stats_.most_commands_in_turn =
      std::max(stats_.most_commands_in_turn, stats_.commands_processed - commands_before_turn_);
  commands_before_turn_ = stats_.commands_processed;
  // 1. Clients that wait for keys: of those that have gone by themselves, and of what was changed
  // by none of a client's requests.
  if (blocking_->any_ready()) blocking_->serve();
  do {
    // 2. Requests of clients whose waits have ended.
    clients_.run_scheduled();
    // 3. Messages to clients that track prefixes.
    if (tracking_->any_to_broadcast()) tracking_->broadcast();
    // 4. The append-only file, replicas, other nodes.
    for (const auto& task : turn_end_tasks_) {
      if (task) task();
    }
    // 5. What clients are sent leaves.
    release_output();
    // Ends of waits that steps 4 and 5 bring are served in this turn too.
  } while (clients_.any_scheduled());
  // 6. Clients that hold too much memory, or have gone.
  client_eviction_.enforce();
  clients_.free_removed();
}

void Server::hold_output() {
  if (holds_output_ || loop_ == nullptr) return;
  holds_output_ = true;
  loop_->hold_output();
}

void Server::release_output() {
  if (!std::exchange(holds_output_, false)) return;
  loop_->release_output();
}

void Server::tick() {
  const uint64_t started = base::CycleClock::ticks();
  refresh_clock();
  if (loop_ == nullptr) {
    tasks_->resume_ready();
    expiry_->work();
  }
  pack_collections(1);
  pauses_->tick();
  clients_.end_waits();
  sample_rates();
  environment_.field_names.drop_unused(/*all=*/false);
  memory_.tick();
  stats_.note_memory(used_memory(), clock_.wall_us() / base::kUsPerSecond);
  clients_.check_some();
  expiry_->rescan();
  if ((state_ & kStateTrackingFull) != 0) tracking_->drop_some();
  hooks_.tick.run();
  end_turn();
  stats_.cron_ticks += base::CycleClock::ticks() - started;
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
  const ReplicationFigures replication = figures_.replication();
  stats_.replication_input_rate.sample(monotonic_us, replication.bytes_received);
  stats_.replication_output_rate.sample(monotonic_us, replication.bytes_sent);
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

size_t Server::key_count() const {
  size_t keys = 0;
  for (const auto& database : databases_) keys += database->size();
  return keys;
}

void Server::reset_stats() {
  hooks_.stats_reset.run();
  cluster_audit_.reset();
  environment_.reclaimer.free_container(stats_.reset());
  commands_before_turn_ = 0;
  commands_.reset_stats();
  environment_.figures = {};
  environment_.reclaimer.reset_freed();
  if (loop_ == nullptr) return;
  loop_->counters() = {};
  if (loop_->threaded_io() != nullptr) loop_->threaded_io()->reset_figures();
}

void Server::drop_error_counts(Stats::ErrorCounts errors) {
  std::string codes;
  for (const auto& [code, count] : errors) codes.append(codes.empty() ? "" : ", ").append(code);
  log_.warning(
      "Errorstats stopped adding new errors because the number of errors reached the limit, may be "
      "misuse of lua "
      "error_reply, please check INFO ERRORSTATS, this can be re-enabled via CONFIG RESETSTAT.");
  log_.warning("Current errors code list: " + codes);
  environment_.reclaimer.free_container(std::move(errors));
}

void Server::wake_at(int64_t time_ms) {
  if (loop_ == nullptr || (wake_time_ms_ != 0 && wake_time_ms_ <= time_ms)) return;
  wake_time_ms_ = time_ms;
  if (data_clock_.is_wall()) {
    wake_timer_->start(static_cast<uint64_t>(std::max<int64_t>(time_ms - now_ms(), 0)));
    return;
  }
  constexpr int64_t kMaxTime = base::SettableClock::kMaxUs / base::kUsPerMs;
  const auto real_us = data_clock_.real_us_until(std::min(time_ms, kMaxTime) * base::kUsPerMs);
  if (real_us) {
    wake_timer_->start(static_cast<uint64_t>((*real_us + base::kUsPerMs - 1) / base::kUsPerMs));
  } else {
    wake_timer_->stop();  // data_clock_moved() looks again
  }
}

void Server::data_clock_moved() {
  const int64_t before_ms = now_ms();
  refresh_clock();
  if (now_ms() < before_ms) move_deadlines_back(before_ms - now_ms());
  if (loop_ != nullptr) wake();
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
  if (stop_action_) return stop_action_();
  if (loop_ != nullptr) loop_->stop();
}

}  // namespace latchkey::server
