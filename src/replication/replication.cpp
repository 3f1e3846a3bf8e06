#include "replication/replication.h"

#include <algorithm>
#include <utility>

#include "base/text/text.h"
#include "base/time_units.h"
#include "replication/channel_forms.h"
#include "replication/clock_sync.h"
#include "replication/debug_commands.h"
#include "replication/failover.h"
#include "replication/full_sync.h"
#include "replication/info.h"
#include "replication/lags.h"
#include "replication/master_session.h"
#include "replication/migration.h"
#include "replication/replica_role.h"
#include "replication/waits.h"
#include "server/client/client.h"
#include "server/client/client_info.h"
#include "server/client/output_limits.h"
#include "server/client/pause.h"
#include "server/command/dispatcher.h"
#include "server/command/unexpected_errors.h"
#include "server/observe/info.h"
#include "server/process/shutdown.h"
#include "server/server.h"
#include "server/stream_offset.h"
#include "server/tasks.h"

namespace latchkey::replication {

using base::LogLevel;
using server::Client;

namespace {

void use_io_thread(Replica& replica, bool on) {
  net::Connection* const connection = replica.client.connection();
  if (connection != nullptr) connection->use_io_thread(on);
}

}  // namespace

Replication::Replication(server::Server& server, std::unique_ptr<SnapshotMaker> snapshots)
    : server_(server),
      stream_(server, /*relays=*/!server.settings().replicaof_host.empty()),
      full_sync_(std::make_unique<FullSync>(server, *this, std::move(snapshots))),
      waits_(std::make_unique<ReplicaWaits>(*this)),
      migration_(std::make_unique<Migration>()),
      failover_(std::make_unique<Failover>(*this)),
      replica_role_(std::make_unique<ReplicaRole>(server, *this)),
      started_ms_(server.machine_ms()) {
  server_.on_turn_end(server::TurnEnd::kReplicas, [this] { end_turn(); });
  server_.hooks().tick.add([this] { tick(); });
  server_.hooks().clock_went_back.add([this](int64_t by_ms) { clock_went_back(by_ms); });
  server_.shutdown().on_lag_question([this] { return any_lags(*this); });
  server_.shutdown().before_preparations([this] { log_lags(*this); });
  server_.add_debug_subcommands(debug_subcommands());
  server_.figures().replication.set([this] { return figures(); });
  server_.figures().stream_place.set([this] { return place(); });
  server_.info().extend("Replication", [this](server::InfoText& text) { describe(*this, text); });
  server_.hooks().stats_reset.add([this] {
    full_syncs_ = partial_syncs_ = refused_partial_syncs_ = 0;
    bytes_sent_to_former_ = 0;
    for (Replica* replica : replicas_) replica->count_bytes_from_now();
  });
  server_.config().on_change({"min-replicas-to-write", "min-replicas-max-lag"},
                             [this] { count_good_replicas(); });
  server_.config().on_change({"repl-backlog-size"}, [this] { stream_.trim(); });
}

Replication::~Replication() = default;

Replica& Replication::replica_of(Client& client) {
  if (client.replica == nullptr) {
    client.replica = std::make_unique<Replica>(
        client, [this](Replica& replica) { leave(replica); },
        [this](Replica& replica, std::string_view text) { note_error(replica, text); });
  }
  return static_cast<Replica&>(*client.replica);
}

void Replication::join(Replica& replica) {
  replica.client.set(server::kClientReplica);
  replica.asked_ms = server_.machine_ms();
  replica.count_bytes_from_now();
  // What was not looked at while there was none, is over.
  if (replicas_.empty()) pinged_periods_ = periods_of_pings();
  replicas_.push_back(&replica);
  if (replica.client.connection() != nullptr)
    replica.client.connection()->set_nodelay(!server_.settings().repl_disable_tcp_nodelay);
  if (!stream_.is_open()) stream_.begin();
}

void Replication::leave(Replica& replica) {
  if (std::erase(replicas_, &replica) == 0) return;
  server_.log().notice("Connection with replica " +
                       std::string(replica.rdb_channel ? "(rdbchannel) " : "") + replica.name() +
                       " lost.");
  bytes_sent_to_former_ += replica.bytes_sent();
  // Frees its output at once, because from here on eviction counts it; the client itself is freed
  // at the end of the turn.
  if (server_.dispatcher().serving() != &replica.client) replica.drop_output();
  full_sync_->forget(replica);
  stream_.trim();
  no_replicas_since_ms_ = server_.machine_ms();
  count_good_replicas();
}

void Replication::note_error(Replica& replica, std::string_view text) {
  server::note_unexpected_error(replica.client, text, "master", "replica");
  stream_.log_latest();
}

Replica* Replication::main_of(const Replica& channel) const {
  const auto is_main = [&](const Replica* replica) {
    return channel.rdb_channel && replica->client.id == channel.main_client_id;
  };
  const auto found = std::find_if(replicas_.begin(), replicas_.end(), is_main);
  return found == replicas_.end() ? nullptr : *found;
}

Replica* Replication::channel_of(const Replica& main) const {
  const auto is_channel = [&](const Replica* replica) {
    return replica->rdb_channel && replica->main_client_id == main.client.id;
  };
  const auto found = std::find_if(replicas_.begin(), replicas_.end(), is_channel);
  return found == replicas_.end() ? nullptr : *found;
}

size_t Replication::count_connected() const {
  return static_cast<size_t>(
      std::count_if(replicas_.begin(), replicas_.end(),
                    [](const Replica* replica) { return !replica->rdb_channel; }));
}

bool Replication::can_continue(const Replica& replica, std::string_view id, int64_t offset) const {
  base::Logger& log = server_.log();
  const server::ReplicationHistory& history = server_.history();
  if (!history.covers(id, offset)) {
    if (id == "?") {
      log.notice("Full resync requested by replica " + replica.name() +
                 (replica.rdb_channel ? " (rdb-channel)" : ""));
    } else if (history.has_second() && base::equal_ignoring_case(id, history.second_id())) {
      log.notice("Partial resynchronization not accepted: Requested offset for second ID was " +
                 std::to_string(offset) + ", but I can reply up to " +
                 std::to_string(history.second_end()));
    } else {
      log.notice(
          "Partial resynchronization not accepted: Replication ID mismatch (Replica asked "
          "for '" +
          std::string(id) + "', my replication IDs are '" + history.id() + "' and '" +
          history.second_id() + "')");
    }
    return false;
  }
  if (stream_.is_open() && offset >= 0 && stream_.backlog()->reaches(static_cast<uint64_t>(offset)))
    return true;
  log.notice("Unable to partial resync with replica " + replica.name() +
             " for lack of backlog (Replica request was: " + std::to_string(offset) + ").");
  if (offset > server_.replication_offset()) {
    log.warning("Warning: replica " + replica.name() +
                " tried to PSYNC with an offset that is greater than the master replication "
                "offset.");
  }
  return false;
}

bool Replication::continue_from(Replica& replica, std::string_view id, int64_t offset) {
  feed_replicas();
  if (!can_continue(replica, id, offset)) return false;
  const auto from = static_cast<uint64_t>(offset);
  join(replica);
  replica.state = ReplicaState::kOnline;
  replica.acked_ms = server_.machine_ms();
  if (replica.channel_client_id != 0) join_channel(replica);
  propagates_clock_ = propagates_clock_ || !server_.data_clock().is_wall();
  resp::OutputBuffer& out = replica.client.out();
  out.append("+CONTINUE");
  if (replica.knows_psync2) out.append(" " + server_.replication_id());
  out.append("\r\n");
  replica.add_to_stream(*stream_.backlog(), from,
                        from > this->offset() ? int64_t{0} : stream_due_ms());
  ++partial_syncs_;
  server_.log().logf(
      LogLevel::kNotice,
      "Partial resynchronization request from %s accepted. Sending %llu bytes of backlog "
      "starting from offset %llu.",
      replica.name().c_str(), static_cast<unsigned long long>(this->offset() + 1 - from),
      static_cast<unsigned long long>(from));
  count_good_replicas();
  return true;
}

void Replication::synchronize(Replica& replica) {
  ++full_syncs_;
  join(replica);
  // A dataset is sent as fast as the socket takes it, until put_online().
  use_io_thread(replica, false);
  full_sync_->enqueue(replica);
}

bool Replication::may_use_rdb_channel(const Replica& replica) const {
  const server::ConfigValues& settings = server_.settings();
  return replica.knows_rdb_channel && !replica.rdb_channel && settings.repl_rdb_channel &&
         settings.repl_diskless_sync && knows_rdb_channel(server_.edition());
}

bool Replication::may_use_dual_channel() const {
  const server::ConfigValues& settings = server_.settings();
  return settings.repl_rdb_channel && settings.repl_diskless_sync &&
         knows_dual_channel(server_.edition());
}

void Replication::offer_channel(Replica& replica) {
  server_.log().notice("Replica " + replica.name() +
                       " is capable of dual channel synchronization, and partial sync isn't "
                       "possible. Full sync will continue with dedicated RDB channel.");
  replica.was_offered_channel = true;
  replica.channel_client_id = 0;
  replica.client.out().append("+DUALCHANNELSYNC\r\n");
}

Replica* Replication::waiting_channel(uint64_t client_id) const {
  const auto waits = [&](const Replica* replica) {
    return replica->holds_stream && replica->client.id == client_id;
  };
  const auto found = std::find_if(replicas_.begin(), replicas_.end(), waits);
  return found == replicas_.end() ? nullptr : *found;
}

size_t Replication::count_waiting_channels() const {
  return static_cast<size_t>(
      std::count_if(replicas_.begin(), replicas_.end(),
                    [](const Replica* replica) { return replica->holds_stream; }));
}

void Replication::begin_holding(Replica& channel) {
  channel.holds_stream = true;
  server_.log().debug("Add rdb replica " + channel.name() +
                      (stream_.backlog()->size() == 0 ? ", no repl-backlog to track"
                                                      : ", tracking repl-backlog tail"));
}

void Replication::join_channel(Replica& main) {
  Replica* const channel = waiting_channel(std::exchange(main.channel_client_id, 0));
  if (channel == nullptr) return;
  main.state = ReplicaState::kStreams;
  main.has_loaded = false;
  main.start_offset = channel->start_offset;
  channel->main_client_id = main.client.id;
  channel->end_hold();
}

void Replication::drop_abandoned_channels() {
  const int64_t grace_s = server_.debug_settings().rdb_channel_grace_s;
  const std::vector<Replica*> replicas = replicas_;
  for (Replica* replica : replicas) {
    if (!replica->holds_stream || replica->delivered_ms == 0 ||
        server_.machine_ms() - replica->delivered_ms <= grace_s * base::kMsPerSecond)
      continue;
    server_.log().notice(
        "Replica main channel failed to establish PSYNC within the grace period (" +
        std::to_string(grace_s) + " seconds). Freeing RDB channel of replica " + replica->name());
    replica->client.close();
  }
}

void Replication::await_rdb_channel(Replica& replica) {
  server_.log().notice("Replica " + replica.name() +
                       " is capable of rdb channel synchronization, and partial sync isn't "
                       "possible. Full sync will continue with dedicated rdb channel.");
  join(replica);
  replica.state = ReplicaState::kWaitsForChannel;
  replica.client.out().append("+RDBCHANNELSYNC " + std::to_string(replica.client.id) + "\r\n");
}

bool Replication::begin_streaming(const Replica& channel, uint64_t offset) {
  Replica* main = main_of(channel);
  if (main == nullptr || main->state != ReplicaState::kWaitsForChannel) return false;
  server_.log().notice("Starting to deliver RDB and replication stream to replica: " +
                       main->name());
  main->state = ReplicaState::kStreams;
  main->start_offset = offset;
  return true;
}

void Replication::delivered(Replica& channel) {
  // The replica closes the channel, so that no bytes on their way are lost.
  channel.state = ReplicaState::kDelivered;
  channel.delivered_ms = server_.machine_ms();
  if (main_of(channel) == nullptr && !channel.holds_stream) channel.client.close_after_reply();
  channel.client.flush_soon();
}

void Replication::put_online(Replica& replica, bool waits_for_ack) {
  feed_replicas();
  replica.state = ReplicaState::kOnline;
  replica.acked_ms = server_.machine_ms();
  replica.waits_for_ack = waits_for_ack;
  propagates_clock_ = propagates_clock_ || !server_.data_clock().is_wall();
  if (replica.rdb_only) {
    server_.log().notice("RDB transfer completed, rdb only replica (" + replica.name() +
                         ") should be disconnected asap");
    replica.client.close_after_reply();
  } else if (!waits_for_ack) {
    release_held(replica);
  }
  use_io_thread(replica, true);
  replica.client.flush_soon();
  count_good_replicas();
  server_.log().notice("Synchronization with replica " + replica.name() + " succeeded");
}

void Replication::acknowledge(Replica& replica, uint64_t offset, uint64_t fsynced_offset) {
  if (!replica.client.has(server::kClientReplica)) return;
  replica.acked_offset = std::max(replica.acked_offset, offset);
  replica.fsynced_offset = std::max(replica.fsynced_offset, fsynced_offset);
  replica.acked_ms = server_.machine_ms();
  acks_came_ = true;
  if ((server_.state() & server::kStateFewReplicas) != 0) count_good_replicas();
  if (replica.state == ReplicaState::kStreams) replica.has_loaded = loaded_came_ = true;
  if (replica.state != ReplicaState::kOnline || !replica.waits_for_ack) return;
  // The held stream is not part of the reply: it is sent after the request.
  replica.waits_for_ack = false;
  held_is_due_ = true;
}

size_t Replication::count_acknowledged(uint64_t offset) const {
  return static_cast<size_t>(
      std::count_if(replicas_.begin(), replicas_.end(), [&](const Replica* replica) {
        return replica->state == ReplicaState::kOnline && replica->acked_offset >= offset;
      }));
}

size_t Replication::count_fsynced(uint64_t offset) const {
  return static_cast<size_t>(
      std::count_if(replicas_.begin(), replicas_.end(), [&](const Replica* replica) {
        return replica->state == ReplicaState::kOnline && replica->fsynced_offset >= offset;
      }));
}

int Replication::selected_database() const {
  return stream_.relays() ? replica_role_->stream_database() : stream_.selected_database();
}

std::optional<server::StreamPlace> Replication::place() const {
  if (!stream_.is_open() || (stream_.relays() && !replica_role_->knows_place()))
    return std::nullopt;
  return server::StreamPlace{.id = server_.replication_id(),
                             .offset = server_.replication_offset(),
                             .database = std::max(selected_database(), 0)};
}

void Replication::free_backlog() {
  feed_replicas();
  stream_.close();
  server_.history().begin();
  server_.log().logf(LogLevel::kNotice,
                     "Replication backlog freed after %lld seconds without connected replicas.",
                     static_cast<long long>(server_.settings().repl_backlog_ttl));
}

void Replication::stop_own_stream() {
  acks_requested_ = false;
  feed_replicas();
  stream_.begin_relaying();
}

void Replication::resume_own_stream() {
  feed_replicas();
  disconnect_replicas();
  stream_.end_relaying();
  no_replicas_since_ms_ = server_.machine_ms();
}

void Replication::begin_at(std::string_view id, int64_t offset) {
  disconnect_replicas();
  feed_replicas();
  stream_.begin_at(id, offset);
}

void Replication::rename(std::string_view id) {
  feed_replicas();
  server_.history().adopt_branch(id, server_.replication_offset());
  disconnect_replicas();
}

void Replication::disconnect_replicas() {
  const std::vector<Replica*> replicas = replicas_;
  for (Replica* replica : replicas) replica->client.close();
}

void Replication::resume_from(const server::StreamPlace& place,
                              const std::vector<std::pair<int, std::string>>& dropped) {
  // The file's offset may be invalid.
  if (!server::is_stream_offset(place.offset)) return;
  if (replica_role_->active()) {
    stream_.begin_at(place.id, place.offset);
    replica_role_->resume_at(place.database);
    return;
  }
  stream_.resume(place, dropped);
  no_replicas_since_ms_ = server_.machine_ms();
}

void Replication::feed_replicas() {
  stream_.flush([this](uint64_t first) {
    // A replica that exceeds its output limit is removed from replicas_.
    const std::vector<Replica*> replicas = replicas_;
    const int64_t due_ms = replicas.empty() ? 0 : stream_due_ms();
    for (Replica* replica : replicas) {
      if (!replica->follows_stream()) continue;
      if (replica->holds_stream && !std::exchange(replica->has_held_some, true))
        server_.log().debug("Attach replica rdb client " + std::to_string(replica->client.id) +
                            " to the replication stream");
      replica->add_to_stream(*stream_.backlog(), first, due_ms);
      if (replica->gets_stream()) {
        replica->client.flush_soon();
      } else {
        server::enforce_output_limit(replica->client);
      }
    }
  });
}

void Replication::put_loaded_online() {
  const std::vector<Replica*> replicas = replicas_;
  for (Replica* replica : replicas) {
    if (replica->state != ReplicaState::kStreams || !replica->has_loaded) continue;
    put_online(*replica, /*waits_for_ack=*/false);
    if (Replica* channel = channel_of(*replica); channel != nullptr) channel->client.close();
  }
}

bool Replication::replicas_follow_clock() const {
  return std::all_of(replicas_.begin(), replicas_.end(), [](const Replica* replica) {
    return replica->follows_clock || replica->rdb_only;
  });
}

int64_t Replication::stream_due_ms() {
  const int64_t lag_ms = lag_ms_ ? lag_ms_() : 0;
  if (lag_ms == 0) return 0;
  int64_t due_ms = 0;
  if (__builtin_add_overflow(server_.now_ms(), lag_ms, &due_ms)) due_ms = INT64_MAX - 1;
  next_delayed_ms_ = std::min(next_delayed_ms_, due_ms);
  server_.wake_at(next_delayed_ms_);
  return due_ms;
}

void Replication::release_held(Replica& replica) {
  replica.release_held(replica.has_held() ? stream_due_ms() : 0);
}

void Replication::release_delayed(int64_t until_ms) {
  next_delayed_ms_ = INT64_MAX;
  for (Replica* replica : replicas_)
    next_delayed_ms_ = std::min(next_delayed_ms_, replica->release_delayed(until_ms));
  if (next_delayed_ms_ != INT64_MAX) server_.wake_at(next_delayed_ms_);
}

void Replication::send_delayed() {
  if (next_delayed_ms_ == INT64_MAX) return;
  // Asks to be woken anew as well, because the clock may have moved.
  release_delayed(server_.now_ms());
}

void Replication::send_all_delayed() {
  release_delayed(INT64_MAX);
}

void Replication::clock_went_back(int64_t by_ms) {
  for (Replica* replica : replicas_) replica->clock_went_back(by_ms);
  send_delayed();
}

void Replication::write_clock() {
  if (server_.is_replica()) {
    if (replica_role_->session() != nullptr) replica_role_->session()->request_clock();
    return;
  }
  server_.propagation().add(server::kAnyDatabase,
                            {"REPLCONF", "CLOCK", clock_state(server_.data_clock())}, {},
                            server::kPropagateToReplicas);
}

void Replication::end_turn() {
  send_delayed();
  if (!awaits_successor() && std::exchange(acks_requested_, false))
    server_.propagation().add(server::kAnyDatabase, {"REPLCONF", "GETACK", "*"}, {},
                              server::kPropagateToReplicas);
  if (std::exchange(propagates_clock_, false) && !replicas_.empty()) write_clock();
  feed_replicas();
  if (std::exchange(held_is_due_, false)) {
    for (Replica* replica : replicas_) {
      if (!replica->gets_stream() || !replica->has_held()) continue;
      release_held(*replica);
      replica->client.flush_soon();
    }
  }
  if (std::exchange(loaded_came_, false)) put_loaded_online();
  full_sync_->send_pending();
  // The role cannot change while a script runs.
  if (!server_.tasks().any()) failover_->check();
  if (std::exchange(acks_came_, false)) {
    waits_->serve();
    if (acknowledged_) acknowledged_();
    server_.shutdown().check();
  }
}

bool Replication::awaits_successor() const {
  return server_.pauses().pauses_for(server::PauseControl::Reason::kFailover);
}

void Replication::tick() {
  // A running script or a dataset being loaded is not a state to replicate.
  if (server_.tasks().any()) return replica_role_->keep_alive();
  stream_.trim();
  full_sync_->begin_due();
  replica_role_->tick();
  server_.shutdown().check();
  const int64_t now_ms = server_.machine_ms();
  if (now_ms - second_began_ms_ < base::kMsPerSecond) return;
  second_began_ms_ = now_ms;
  every_second();
}

void Replication::every_second() {
  migration_->close_idle(server_.machine_ms());
  drop_silent_replicas();
  drop_abandoned_channels();
  ping_replicas();
  count_good_replicas();
  const int64_t most_alone_ms = server_.settings().repl_backlog_ttl * base::kMsPerSecond;
  if (replicas_.empty() && stream_.is_open() && !stream_.relays() && most_alone_ms != 0 &&
      server_.machine_ms() - no_replicas_since_ms_ > most_alone_ms)
    free_backlog();
}

int64_t Replication::periods_of_pings() const {
  const int64_t period_ms =
      int64_t{server_.settings().repl_ping_replica_period} * base::kMsPerSecond;
  return (server_.machine_ms() - started_ms_) / period_ms;
}

void Replication::ping_replicas() {
  const std::vector<Replica*>& replicas = replicas_;
  // Replicas that wait for their dataset see by newlines that the master is alive.
  for (Replica* replica : replicas) {
    const bool waits = replica->state == ReplicaState::kWaitsForStart ||
                       (replica->state == ReplicaState::kWaitsForEnd && !replica->through_pipe);
    if (!waits) continue;
    replica->client.out().append("\n");
    replica->client.flush_soon();
  }
  // While replicas should catch up, a ping would extend the stream.
  const bool ending = server_.shutdown().deadline_ms() != 0 || awaits_successor();
  if (replicas.empty() || ending || stream_.relays()) return;
  const int64_t periods = periods_of_pings();
  // Fewer than before: the period is longer now.
  if (std::exchange(pinged_periods_, periods) >= periods) return;
  server_.propagation().add(server::kAnyDatabase, {"ping"}, {}, server::kPropagateToReplicas);
}

int64_t Replication::silent_seconds(Replica& replica) const {
  const int64_t now_ms = server_.machine_ms();
  if (replica.state == ReplicaState::kOnline)
    return replica.used_psync ? replica.lag_seconds(now_ms) : 0;
  if (replica.state == ReplicaState::kWaitsForChannel && channel_of(replica) == nullptr)
    return (now_ms - replica.asked_ms) / base::kMsPerSecond;
  return replica.stuck_seconds(now_ms);
}

void Replication::drop_silent_replicas() {
  const int64_t most_silent_s = server_.settings().repl_timeout;
  const std::vector<Replica*> replicas = replicas_;
  for (Replica* replica : replicas) {
    const bool online = replica->state == ReplicaState::kOnline;
    if (silent_seconds(*replica) <= most_silent_s) continue;
    server_.log().warning("Disconnecting timedout replica (" +
                          std::string(online ? "streaming" : "full") +
                          " sync): " + replica->name());
    replica->client.close();
  }
}

void Replication::count_good_replicas() {
  const int64_t most_lag_s = server_.settings().min_replicas_max_lag;
  const auto is_good = [&](const Replica* replica) {
    return replica->state == ReplicaState::kOnline &&
           replica->lag_seconds(server_.machine_ms()) <= most_lag_s;
  };
  server_.set_good_replicas(
      static_cast<size_t>(std::count_if(replicas_.begin(), replicas_.end(), is_good)));
}

server::ReplicationFigures Replication::figures() const {
  server::ReplicationFigures figures{
      .replicas = replicas_.size(),
      .full_syncs = full_syncs_,
      .partial_syncs = partial_syncs_,
      .refused_partial_syncs = refused_partial_syncs_,
      .bytes_received = replica_role_->bytes_received(),
      .bytes_sent = bytes_sent_to_former_,
      .locally_expiring_keys = replica_role_->locally_expiring_keys(),
      .migration_sockets = migration_->kept_connections(),
      .full_sync_buffer = replica_role_->full_sync_buffer(),
  };
  if (const Backlog* backlog = stream_.backlog(); backlog != nullptr) {
    figures.buffers_memory = backlog->memory_usage();
    figures.pending_memory = backlog->excess_memory();
    figures.backlog_memory = figures.buffers_memory - figures.pending_memory;
  }
  for (const Replica* replica : replicas_) {
    figures.bytes_sent += replica->bytes_sent();
    figures.clients_memory += server::memory_usage(replica->client);
    figures.pending_memory += replica->pending_memory();
  }
  return figures;
}

}  // namespace latchkey::replication
