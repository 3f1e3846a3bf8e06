#include "replication/replica_role.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/assert.h"
#include "base/time_units.h"
#include "replication/channel_forms.h"
#include "replication/connection_source.h"
#include "replication/failover.h"
#include "replication/master_session.h"
#include "replication/pause_point.h"
#include "replication/replication.h"
#include "replication/stream_replay.h"
#include "server/client/blocking.h"
#include "server/client/client.h"
#include "server/client/flush_waits.h"
#include "server/command/slot_gate.h"
#include "server/server.h"
#include "server/tasks.h"

namespace latchkey::replication {

using server::Client;

namespace {

// How often the master is shown that the replica is alive while it loads.
constexpr int64_t kNewlineIntervalMs = 1000;
// A master that breaks off every full resynchronisation is not asked for the next one sooner.
constexpr int64_t kMinBetweenAttemptsMs = 20;
constexpr char kConnecting[] = "Connecting to MASTER ";
constexpr char kReconnecting[] = "Reconnecting to MASTER ";

// Masters of Valkey 9 know the nodes of their cluster by it.
std::string announced_node_id(server::Server& server) {
  const server::SlotGate* const gate = server.slot_gate();
  const bool tells = gate != nullptr && server.edition().is_valkey_since({9, 0});
  return tells ? gate->node_id() : std::string();
}

}  // namespace

// A dataset that is being installed.
struct ReplicaRole::Installation {
  // From the master's announcement.
  std::string id;
  int64_t offset;
  DatasetShape shape;
  bool by_channel;
  int database;  // selected in the stream there, if the dataset does not tell
  // Where the dataset is: in a file, or read from the connection.
  std::unique_ptr<DatasetReceiver> file;
  std::unique_ptr<ConnectionSource> source;
  bool cancelled = false;
};

ReplicaRole::ReplicaRole(server::Server& server, Replication& replication)
    : server_(server),
      replication_(replication),
      installer_(server, [this] { may_resume_ = false; }),
      local_expiry_(server) {
  if (!active()) return;
  server_.set_role(/*replica=*/true, /*link_up=*/false);
  server_.log().set_role('S');
}

ReplicaRole::~ReplicaRole() = default;

const std::string& ReplicaRole::host() const {
  return server_.settings().replicaof_host;
}

int ReplicaRole::port() const {
  return server_.settings().replicaof_port;
}

ReplicaRole::State ReplicaRole::state() const {
  if (!active()) return State::kNone;
  if (session_ != nullptr) return State::kConnected;
  if (carrier() == nullptr) return installation_ != nullptr ? State::kSync : State::kConnect;
  switch (carrier()->stage()) {
    case MasterConnection::Stage::kConnecting:
      return State::kConnecting;
    case MasterConnection::Stage::kHandshake:
      return State::kHandshake;
    case MasterConnection::Stage::kAwaitsDataset:
    case MasterConnection::Stage::kReceives:
    case MasterConnection::Stage::kLoads:
    case MasterConnection::Stage::kStreams:
    case MasterConnection::Stage::kOver:
      break;
  }
  return State::kSync;
}

std::string_view name_of(ReplicaRole::State state) {
  switch (state) {
    case ReplicaRole::State::kNone:
      return "none";
    case ReplicaRole::State::kConnect:
      return "connect";
    case ReplicaRole::State::kConnecting:
      return "connecting";
    case ReplicaRole::State::kHandshake:
      return "handshake";
    case ReplicaRole::State::kSync:
      return "sync";
    case ReplicaRole::State::kConnected:
      break;
  }
  return "connected";
}

int64_t ReplicaRole::silent_ms() const {
  return server_.machine_ms() - (session_ != nullptr ? session_->last_io_ms() : down_since_ms_);
}

int64_t ReplicaRole::disconnected_ms() const {
  return disconnected_before_ms_ +
         (down_since_ms_ != 0 ? server_.machine_ms() - down_since_ms_ : 0);
}

int ReplicaRole::stream_database() const {
  return session_ != nullptr ? session_->client().database : stream_database_;
}

void ReplicaRole::replicate_from(const std::string& host, int port) {
  const bool was_master = !active();
  end_session();
  drop_link();
  server::ConfigValues& values = server_.config().mutable_values();
  values.replicaof_host = host;
  values.replicaof_port = port;
  // Valkey's clients wait on until it is certain that there is another master.
  if (!as_valkey() || !replication_.failover().in_progress()) end_waits();
  if (server_.flush_waits() != nullptr) server_.flush_waits()->answer_all();
  if (was_master) become_replica();
  attempts_ = 0;
  attempts_in_all_ = 0;
  dataset_broke_ = false;
  // While an installation is being cancelled, the dataset that it leaves, and with it the position
  // to resume from, is not known: a later tick connects.
  if (installation_ == nullptr) connect(kConnecting);
}

bool ReplicaRole::as_valkey() const {
  return server_.edition().is_valkey_since({9, 1});
}

void ReplicaRole::end_waits() {
  if (as_valkey()) server_.blocking().send_to_master();
  server_.clients().end_waits_for_role();
}

void ReplicaRole::become_replica() {
  server_.log().set_role('S');
  server_.log().notice(
      "Before turning into a replica, using my own master parameters to synthesize a cached "
      "master: I may be able to synchronize with the new master with just a partial transfer.");
  may_resume_ = true;
  stream_database_ = std::max(replication_.selected_database(), 0);
  down_since_ms_ = 0;
  replication_.stop_own_stream();
  server_.set_role(/*replica=*/true, /*link_up=*/false);
}

void ReplicaRole::give_up_dataset() {
  if (session_ == nullptr) drop_link();
}

void ReplicaRole::promote() {
  end_session();
  if (std::exchange(may_resume_, false))
    server_.log().notice("Discarding previously cached master state.");
  drop_link();
  server::ConfigValues& values = server_.config().mutable_values();
  values.replicaof_host.clear();
  values.replicaof_port = 0;
  server_.log().set_role('M');
  replication_.resume_own_stream();
  server_.set_role(/*replica=*/false, /*link_up=*/false);
}

void ReplicaRole::resume_at(int database) {
  may_resume_ = true;
  stream_database_ = database;
}

void ReplicaRole::connect(const char* how, const char* why) {
  base::Logger& log = server_.log();
  log.notice(how + host() + ":" + std::to_string(port()) + why);
  log.notice("MASTER <-> REPLICA sync started");
  ++attempts_;
  ++attempts_in_all_;
  connect_began_ms_ = server_.machine_ms();
  // make_unique() cannot access the private base.
  link_.reset(new MasterConnection(server_, *this, host(), port(), introduction()));
}

void ReplicaRole::retire(std::unique_ptr<MasterConnection> connection) {
  if (connection == nullptr) return;
  received_by_former_ += connection->bytes_received();
  connection->abandon();
  retired_.push_back(std::move(connection));
}

void ReplicaRole::drop_link() {
  if (installation_ != nullptr) {
    installation_->cancelled = true;
    if (installation_->source != nullptr) installation_->source->cut(ECONNRESET);
  }
  awaits_stream_ = false;
  retire(std::move(channel_));
  retire(std::move(link_));
}

void ReplicaRole::try_again() {
  drop_link();
  const bool due = server_.machine_ms() - connect_began_ms_ >= kMinBetweenAttemptsMs;
  if (due && active() && !server_.stop_requested()) connect(kReconnecting, " after failure");
}

// Valkey 9 writes deadlines of hash fields only to replicas that announce such a version; for
// others the child that writes the dataset fails in the middle. Redis replies an error to the
// announcement, which does no harm, but it is left out unless it is needed.
std::string ReplicaRole::announced_version() const {
  if (server_.edition().is_valkey()) return server_.edition().version();
  return dataset_broke_ ? "9.0.0" : "";
}

Introduction ReplicaRole::introduction() const {
  const server::ConfigValues& settings = server_.settings();
  const int own_port = settings.tls_replication ? settings.tls_port : settings.port;
  Introduction introduction{
      .user = settings.masteruser,
      .password = settings.masterauth,
      .port = settings.replica_announce_port != 0 ? settings.replica_announce_port : own_port,
      .ip = settings.replica_announce_ip,
      .resume = std::nullopt,
      .version = announced_version(),
      .cluster_node_id = announced_node_id(server_),
      .offers_rdb_channel = settings.repl_rdb_channel && knows_rdb_channel(server_.edition()),
      .offers_dual_channel = settings.repl_rdb_channel && knows_dual_channel(server_.edition()),
      .main_client_id = {},
      .is_dual_channel = false,
      .requests_failover = replication_.failover().in_progress(),
  };
  if (may_resume_)
    introduction.resume = {server_.replication_id(), server_.replication_offset() + 1};
  return introduction;
}

void ReplicaRole::failed(MasterConnection& which, bool in_transfer) {
  if (!which.id().empty()) dataset_broke_ = true;
  if (installation_ == nullptr) return in_transfer ? try_again() : drop_link();
  if (installation_->by_channel && &which == link_.get()) return lose_stream();
  // The dataset is complete; only the connection is lost.
  if (installation_->file != nullptr)
    return retire(std::move(&which == link_.get() ? link_ : channel_));
  drop_link();
}

void ReplicaRole::lose_stream() {
  server_.log().notice("Aborting rdb channel sync while loading the RDB");
  if (installation_->file != nullptr) {
    server_.log().notice("After loading RDB, replica will try psync with master");
  } else {
    // Without the stream after it the rest of the dataset is useless.
    installation_->source->cut(ECONNRESET);
  }
  retire(std::move(link_));
}

void ReplicaRole::declined() {
  drop_link();
  replication_.failover().abort("Failover target rejected psync request");
}

void ReplicaRole::rdb_channel_offered(const std::string& main_client_id) {
  replication_.failover().accepted();
  pause_if_asked(server_, server::ReplicationPause::kBeforeRdbChannel);
  Introduction channel = introduction();
  channel.resume.reset();
  channel.offers_rdb_channel = channel.offers_dual_channel = false;
  channel.main_client_id = main_client_id;
  channel.is_dual_channel = main_client_id.empty();
  buffer_full_ = false;
  buffer_peak_ = 0;
  retire(std::move(channel_));
  channel_.reset(new MasterConnection(server_, *this, host(), port(), std::move(channel)));
}

void ReplicaRole::end_offset_received(MasterConnection& which) {
  pause_if_asked(server_, server::ReplicationPause::kAfterFork);
  if (&which == channel_.get() && link_ != nullptr && link_->waits_for_channel())
    return link_->join(which);
  drop_link();
}

void ReplicaRole::stream_joined() {
  if (!awaits_stream_)
    return server_.log().notice("The stream comes while the RDB channel brings the dataset.");
  server_.log().notice("Dual channel replication: Psync established after rdb load");
  if (link_->id() != server_.replication_id()) replication_.rename(link_->id());
  attach(stream_database_, /*has_kept=*/false);
  session_->acknowledge();
}

size_t ReplicaRole::full_sync_buffer() const {
  if (replay_ != nullptr) return replay_->bytes_left();
  return link_ != nullptr ? link_->kept_bytes() : 0;
}

void ReplicaRole::stream_kept() {
  const server::ConfigValues& settings = server_.settings();
  buffer_peak_ = std::max(buffer_peak_, full_sync_buffer());
  auto limit = static_cast<uint64_t>(settings.replica_full_sync_buffer_limit);
  if (limit == 0)
    limit = settings.client_output_buffer_limit[server::kBufferReplica].hard_limit_bytes;
  if (limit == 0 || full_sync_buffer() < limit || buffer_full_) return;
  buffer_full_ = true;
  link_->connection()->pause_reading();
  const std::string bytes = "(" + std::to_string(limit) + " bytes)";
  std::string what = "Replication buffer limit has been reached " + bytes;
  if (channel_ != nullptr && channel_->is_dual_channel()) {
    // In the words of the release.
    what = server_.edition().is_valkey_since({9, 1})
               ? "Replication buffer limit reached " + bytes + ", stopping buffering"
               : "Replication buffer limit reached, stopping buffering " + bytes;
  }
  server_.log().notice(what + ": what follows waits with the master.");
}

void ReplicaRole::continues(const std::string& id) {
  replication_.failover().accepted();
  if (id != server_.replication_id()) replication_.rename(id);
  server_.log().notice("MASTER <-> REPLICA sync: Master accepted a Partial Resynchronization.");
  attach(stream_database_, /*has_kept=*/false);
}

void ReplicaRole::attach(int database, bool has_kept) {
  net::Connection* connection = link_->release();
  drop_link();
  Client& client = server_.clients().add(connection);
  client.set(server::kClientMaster | server::kClientDenyBlocking);
  client.database = database < server_.database_count() ? database : 0;
  auto session = std::make_unique<MasterSession>(
      client, replication_, [this](MasterSession& closing) { session_closed(closing); });
  session_ = session.get();
  client.master = std::move(session);
  may_resume_ = false;
  down_since_ms_ = 0;
  if (disconnected_since_ms_ != 0)
    disconnected_before_ms_ += server_.machine_ms() - std::exchange(disconnected_since_ms_, 0);
  server_.set_role(/*replica=*/true, /*link_up=*/true);
  if (connection == nullptr) return;
  connection->set_handler(client);
  if (has_kept) return begin_replay(client);
  connection->use_io_thread(true);
  connection->resume_reading();
  server_.clients().schedule_resume(client);
}

void ReplicaRole::begin_replay(Client& client) {
  replay_ = std::make_unique<StreamReplay>(
      server_, client, [this] { retired_replays_.push_back(std::move(replay_)); });
}

void ReplicaRole::end_session() {
  if (session_ == nullptr) return;
  leaving_ = true;
  session_->client().close();
  leaving_ = false;
}

void ReplicaRole::session_closed(MasterSession& session) {
  base::Logger& log = server_.log();
  log.notice("Connection with master lost.");
  received_by_former_ += session.bytes_received();
  stream_database_ = session.client().database;
  may_resume_ = session.is_in_sync() && session.counts();
  session_ = nullptr;
  if (replay_ != nullptr) {
    log.notice("Master client was freed while streaming replication buffer into the db");
    replay_->cancel();
    retired_replays_.push_back(std::move(replay_));
  }
  if (may_resume_) log.notice("Caching the disconnected master state.");
  down_since_ms_ = server_.machine_ms();
  disconnected_since_ms_ = down_since_ms_;
  attempts_ = 0;
  server_.set_role(/*replica=*/true, /*link_up=*/false);
  if (leaving_ || server_.stop_requested()) return;
  connect(kReconnecting);
}

void ReplicaRole::begin_dataset(const DatasetShape& shape, bool to_disk) {
  const std::string where = to_disk ? "to disk" : "to parser";
  server_.log().notice("MASTER <-> REPLICA sync: receiving " +
                       (shape.has_mark() ? "streamed RDB from master with EOF "
                                         : std::to_string(shape.size) + " bytes from master ") +
                       where);
}

MasterConnection::Reception ReplicaRole::dataset_announced(MasterConnection& which,
                                                           const DatasetShape& shape) {
  replication_.failover().accepted();
  const bool to_disk = which.connection() == nullptr || !installer_.wants_socket();
  begin_dataset(shape, to_disk);
  if (!to_disk) {
    auto installation = std::make_shared<Installation>(
        Installation{which.id(), which.offset(), shape, channel_ != nullptr, which.database(),
                     nullptr, std::make_unique<ConnectionSource>(server_, which, shape)});
    begin_installation(std::move(installation));
    return {.receiver = nullptr, .stays = true};
  }
  const std::string name = "temp-" + std::to_string(server_.machine_ms() / base::kMsPerSecond) +
                           "." + std::to_string(getpid()) + ".rdb";
  return {DatasetReceiver::create(shape, server_.config().directory().path_of(name), server_.log(),
                                  server_.files(), server_.clock())};
}

void ReplicaRole::dataset_received(std::unique_ptr<DatasetReceiver> receiver) {
  if (carrier()->connection() != nullptr) carrier()->connection()->pause_reading();
  const DatasetShape shape = receiver->shape();
  begin_installation(std::make_shared<Installation>(
      Installation{carrier()->id(), carrier()->offset(), shape, channel_ != nullptr,
                   carrier()->database(), std::move(receiver), nullptr}));
}

void ReplicaRole::dataset_input_arrived() {
  if (installation_ != nullptr && installation_->source != nullptr)
    installation_->source->input_arrived();
}

void ReplicaRole::begin_installation(std::shared_ptr<Installation> installation) {
  LK_ASSERT(installation_ == nullptr);
  installation_ = installation;
  server_.tasks().start([this, installation] {
    server::Tasks& tasks = server_.tasks();
    while (tasks.any() && !tasks.finishing() && !installation->cancelled) tasks.yield();
    DatasetInstaller::Result result;
    if (!installation->cancelled && !tasks.finishing()) result = install(*installation);
    installation_.reset();
    installed(*installation, result);
  });
}

DatasetInstaller::Result ReplicaRole::install(Installation& installation) {
  server_.refresh_clock();
  // The replicas' datasets will differ from the new one.
  if (installation.file != nullptr ||
      server_.settings().repl_diskless_load != server::ReplDisklessLoad::kSwapdb)
    replication_.disconnect_replicas();
  if (installation.file != nullptr) return installer_.install(*installation.file);
  return installer_.install(*installation.source, installation.shape.size,
                            server_.history().covers(installation.id, installation.offset));
}

void ReplicaRole::installed(const Installation& installation,
                            const DatasetInstaller::Result& result) {
  // The dataset of a cancelled installation may have been loaded, but its position is not taken.
  if (result.dataset_lost || (result.ok && installation.cancelled)) {
    may_resume_ = false;
    replication_.begin_at({}, server_.replication_offset());
  }
  if (installation.cancelled) return;
  if (!result.ok) {
    const bool broke = installation.source != nullptr && installation.source->broke();
    return broke ? try_again() : drop_link();
  }
  const bool counts = installation.offset >= 0;
  // In Valkey's form the master may have got another id since.
  const bool has_joined = installation.by_channel && link_ != nullptr && !link_->id().empty();
  replication_.begin_at(has_joined ? link_->id() : installation.id,
                        counts ? installation.offset : server_.replication_offset());
  server_.log().notice("MASTER <-> REPLICA sync: Finished with success");
  if (server::SlotGate* const gate = server_.slot_gate(); gate != nullptr)
    gate->adopt_slots(result.slots);
  const int database = result.place ? result.place->database : installation.database;
  if (link_ == nullptr || link_->ended()) {
    if (counts) resume_at(database);
    return drop_link();
  }
  if (link_->stage() == MasterConnection::Stage::kHandshake) {
    // Lost before it joins, the stream is requested from here on.
    resume_at(database);
    awaits_stream_ = true;
    return retire(std::move(channel_));
  }
  attach(database, installation.by_channel);
  session_->set_counts(counts);
  if (counts) session_->acknowledge();
}

void ReplicaRole::tick() {
  retired_.clear();
  retired_replays_.clear();
  local_expiry_.tick();
  go_on_after_script();
  if (!active() || (server_.state() & server::kStateLoading) != 0) return;
  const int64_t now_ms = server_.machine_ms();
  if (now_ms - second_began_ms_ < base::kMsPerSecond) return;
  second_began_ms_ = now_ms;
  every_second();
}

void ReplicaRole::go_on_after_script() {
  if (session_ == nullptr || replay_ != nullptr) return;
  Client& client = session_->client();
  if (client.connection() != nullptr && client.connection()->input_size() > 0)
    server_.clients().schedule_resume(client);
}

void ReplicaRole::keep_alive() {
  if (installation_ != nullptr && installation_->source != nullptr) {
    const int64_t since_ms = installation_->source->waiting_since_ms();
    if (since_ms != 0 && timed_out(since_ms)) installation_->source->cut(ETIMEDOUT);
  }
  const int64_t now_ms = server_.machine_ms();
  if (carrier() == nullptr || now_ms - newline_sent_ms_ < kNewlineIntervalMs) return;
  newline_sent_ms_ = now_ms;
  carrier()->send_newline();
}

bool ReplicaRole::timed_out(int64_t since_ms) const {
  return server_.machine_ms() - since_ms > server_.settings().repl_timeout * base::kMsPerSecond;
}

void ReplicaRole::every_second() {
  base::Logger& log = server_.log();
  if (session_ != nullptr && timed_out(session_->last_io_ms())) {
    log.warning("MASTER timeout: no data nor PING received...");
    session_->client().close();
    return;
  }
  if (carrier() != nullptr && timed_out(carrier()->last_io_ms())) {
    log.warning(carrier()->syncs()
                    ? "Timeout receiving bulk data from MASTER... If the problem "
                      "persists try to set the 'repl-timeout' parameter in redis.conf "
                      "to a larger value."
                    : "Timeout connecting to the MASTER...");
    drop_link();
  }
  if (session_ != nullptr && session_->counts()) session_->acknowledge();
  if (session_ == nullptr && link_ == nullptr && installation_ == nullptr) connect(kConnecting);
}

uint64_t ReplicaRole::bytes_received() const {
  return received_by_former_ + (link_ != nullptr ? link_->bytes_received() : 0) +
         (channel_ != nullptr ? channel_->bytes_received() : 0) +
         (session_ != nullptr ? session_->bytes_received() : 0);
}

}  // namespace latchkey::replication
