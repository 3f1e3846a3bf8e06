#include "cluster/slot_migration/exporter.h"

#include <utility>

#include "base/time_units.h"
#include "base/timeout.h"
#include "cluster/slot_keys.h"
#include "cluster/slot_migration/slot_snapshot.h"
#include "persist/background_child.h"
#include "persist/persistence.h"
#include "replication/socket_sink.h"
#include "resp/request_encoder.h"
#include "server/client/client.h"
#include "server/server.h"
#include "server/tasks.h"

namespace latchkey::cluster {

using server::Client;

Exporter::Exporter(server::Server& server, Host& host, SlotTask& task, Client& main)
    : server_(server),
      host_(host),
      task_(task),
      main_(&main),
      entered_ms_(server.machine_ms()),
      last_contact_ms_(server.machine_ms()),
      taken_ms_(server.machine_ms()) {
  task_.state = TaskState::kWaitRdbchannel;
}

Exporter::~Exporter() {
  stop();
}

void Exporter::enter(TaskState state) {
  task_.state = state;
  entered_ms_ = server_.machine_ms();
  if (host_.fails_at("migrate-main-channel", name_of(state)))
    return fail("Main channel - Failed on purpose");
  if (host_.fails_at("migrate-rdb-channel", name_of(state)))
    fail("RDB channel - Failed on purpose");
}

void Exporter::fail(const std::string& error) {
  if (over_) return;
  stop();
  host_.export_failed(error);
}

void Exporter::stop() {
  if (std::exchange(over_, true)) return;
  stream_.reset();
  if (paused_ms_ != 0) {
    task_.write_pause_ms = server_.machine_ms() - paused_ms_;
    pause_.reset();
  }
  if (child_runs_) server_.layer<persist::Persistence>().child().kill();
  if (Client* const client = std::exchange(snapshot_, nullptr)) client->close();
  if (Client* const client = std::exchange(main_, nullptr)) client->close();
}

void Exporter::closing(const Client& client) {
  if (&client == main_) {
    main_ = nullptr;
    // The other node has all it needs, and closes the connection when it takes the slots over.
    // Until the bus brings the new owner, or the timeout, writes stay paused here.
    if (task_.state == TaskState::kHandoff) return;
    return fail(snapshot_ == nullptr ? "Main and RDB channel clients are disconnected."
                                     : "Main channel - Connection lost");
  }
  if (&client != snapshot_) return;
  snapshot_ = nullptr;
  // The other node closes it when it has the snapshot; the exit status of the child says whether it
  // has.
  if (task_.state == TaskState::kWaitBgsaveStart) fail("RDB channel - Connection lost");
}

// --- The snapshot --------------------------------------------------------------------------------

bool Exporter::attach(Client& snapshot) {
  if (over_ || task_.state != TaskState::kWaitRdbchannel) return false;
  if (host_.fails_at("migrate-main-channel", name_of(task_.state))) {
    fail("Main channel - Failed on purpose");
    return false;
  }
  snapshot_ = &snapshot;
  task_.snapshot = SnapshotState::kRdbchannelTransfer;
  enter(TaskState::kWaitBgsaveStart);
  return !over_;
}

void Exporter::start_snapshot() {
  persist::BackgroundChild& child = server_.layer<persist::Persistence>().child();
  if (child.running() || server_.tasks().any() || snapshot_->pending_output() > 0) return;
  // The child writes to the socket; nothing else is sent there.
  const int descriptor = snapshot_->connection()->descriptor();
  const size_t keys = keys_in_slots(server_, task_.slots);
  const auto work = [this](persist::ChildProgress& progress) {
    replication::SocketSink sink(snapshot_->connection()->descriptor(),
                                 base::poll_timeout_ms(server_.settings().repl_timeout),
                                 snapshot_->connection()->layer());
    return send_slots(write_slot_snapshot, sink, server_, task_.slots, progress);
  };
  const auto ended = [host = &host_, id = task_.id](const persist::ChildEnd& end) {
    host->snapshot_sent(id, end.done);
  };
  const base::Result<> started = child.start({.kind = persist::ChildKind::kRdbToSocket,
                                              .keys_total = keys,
                                              .work = work,
                                              .ended = ended,
                                              .keep_open = {descriptor}});
  if (!started) return fail("RDB channel - Failed to start the snapshot: " + started.error());
  server_.log().notice("Slot migration snapshot started by pid " + std::to_string(child.pid()) +
                       " to the destination's socket");
  child_runs_ = true;
  stream_ = std::make_unique<SlotStream>(
      server_, task_.slots,
      [this](int database, std::string_view request) { send_stream(database, request); },
      [this] { crossed_ = true; });
  enter(TaskState::kSendBulkAndStream);
}

void Exporter::snapshot_ended(bool done) {
  // A former attempt's child has ended: this one starts its own only then.
  if (!std::exchange(child_runs_, false) || over_) return;
  if (!done) return fail("RDB channel - Failed to send slots snapshot");
  task_.snapshot = SnapshotState::kCompleted;
  last_contact_ms_ = server_.machine_ms();
  server_.log().notice("Streamed slots snapshot transfer succeeded");
  enter(TaskState::kSendStream);
}

// --- The stream ----------------------------------------------------------------------------------

// Called while a request is propagated: failing is left to work().
void Exporter::send_stream(int database, std::string_view request) {
  if (main_ == nullptr || over_) return;
  // The other node begins with the first database, the only one that Redis has.
  if (database != server::kAnyDatabase && std::exchange(stream_database_, database) != database) {
    const std::string select = resp::encode_request({"SELECT", std::to_string(database)});
    main_->out().append(select);
    sent_ += select.size();
  }
  main_->out().append(request);
  main_->flush_soon();
  sent_ += request.size();
}

void Exporter::acknowledged(std::string_view state, uint64_t offset) {
  last_contact_ms_ = server_.machine_ms();
  applied_ = offset;
  caught_up_ = state == name_of(TaskState::kWaitStreamEof);
}

void Exporter::prepare_handoff() {
  const uint64_t most = server_.settings().cluster_slot_migration_handoff_max_lag_bytes;
  const uint64_t lag = sent_ > applied_ ? sent_ - applied_ : 0;
  if (!caught_up_ || lag > most) return;
  if (host_.fails_at("migrate-main-channel", name_of(TaskState::kHandoffPrep))) return;
  server_.log().notice("The applied offset lag " + std::to_string(lag) +
                       " is less than the threshold " + std::to_string(most) +
                       ", pausing writes for slot handoff");
  paused_ms_ = server_.machine_ms();
  pause_.emplace(server_.pauses());
  enter(TaskState::kHandoffPrep);
}

void Exporter::end_stream() {
  // A script that is in the middle may still write.
  if (server_.tasks().any() || (server_.state() & server::kStateBusy) != 0) return;
  if (main_->pending_output() > 0) return;
  server_.log().notice(
      "Slot migration command stream drained, sending STREAM-EOF to the destination");
  enter(TaskState::kHandoff);
  if (over_) return;
  main_->out().append(resp::encode_request({"CLUSTER", "SYNCSLOTS", "STREAM-EOF"}));
  main_->flush_soon();
}

void Exporter::work() {
  if (over_) return;
  if (crossed_) return host_.export_canceled("A write of keys in several slots (cross slot)");
  check_times();
  if (over_) return;
  if (task_.state == TaskState::kWaitBgsaveStart) {
    start_snapshot();
  } else if (task_.state == TaskState::kSendStream) {
    prepare_handoff();
  } else if (task_.state == TaskState::kHandoffPrep) {
    end_stream();
  }
}

// Whether bytes have been waiting for the socket for repl-timeout.
bool Exporter::is_stuck() {
  const int64_t now_ms = server_.machine_ms();
  const net::Connection* const connection = main_->connection();
  const uint64_t taken = connection != nullptr ? connection->bytes_sent() : 0;
  if (main_->pending_output() == 0 || std::exchange(taken_, taken) != taken) taken_ms_ = now_ms;
  return now_ms - taken_ms_ > server_.settings().repl_timeout * base::kMsPerSecond;
}

void Exporter::check_times() {
  const server::ConfigValues& settings = server_.settings();
  const int64_t now_ms = server_.machine_ms();
  const int64_t timeout_ms = settings.repl_timeout * base::kMsPerSecond;
  switch (task_.state) {
    case TaskState::kWaitRdbchannel:
    case TaskState::kWaitBgsaveStart:
      if (now_ms - entered_ms_ > timeout_ms) fail("RDB channel - Connection timeout");
      return;
    case TaskState::kSendBulkAndStream:
      if (is_stuck()) fail("Main channel - Connection timeout");
      return;
    case TaskState::kSendStream:
      if (is_stuck() || now_ms - last_contact_ms_ > timeout_ms)
        return fail("Main channel - Connection timeout");
      if (now_ms - entered_ms_ > settings.cluster_slot_migration_sync_buffer_drain_timeout)
        fail("Sync buffer drain timeout");
      return;
    case TaskState::kHandoffPrep:
    case TaskState::kHandoff:
      if (now_ms - paused_ms_ >= settings.cluster_slot_migration_write_pause_timeout)
        fail("Server paused timeout");
      return;
    default:
      return;
  }
}

size_t Exporter::output_memory() const {
  return main_ != nullptr && main_->connection() != nullptr ? main_->connection()->output_memory()
                                                            : 0;
}

}  // namespace latchkey::cluster
