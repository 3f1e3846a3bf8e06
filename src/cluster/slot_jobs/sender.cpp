#include "cluster/slot_jobs/sender.h"

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/text/text.h"
#include "base/time_units.h"
#include "base/timeout.h"
#include "cluster/slot_jobs/job.h"
#include "cluster/slot_keys.h"
#include "cluster/slot_migration/slot_snapshot.h"
#include "persist/background_child.h"
#include "persist/persistence.h"
#include "replication/socket_sink.h"
#include "resp/request_encoder.h"
#include "resp/take_line.h"
#include "server/client/client.h"
#include "server/client/node_link.h"
#include "server/server.h"
#include "server/tasks.h"

namespace latchkey::cluster {

using replication::ChildPipe;

namespace {

constexpr char kConnectionLost[] =
    "Connection lost to target. Check CLUSTER GETSLOTMIGRATIONS on the target node for more "
    "information.";
constexpr size_t kMaxLine = 64 * 1024;
constexpr size_t kMaxRequest = 1024;

// Stands for the connection to the target in CLIENT LIST; what is said goes another way.
class ExportLink final : public server::NodeLink {
 public:
  explicit ExportLink(JobSender& sender) : sender_(sender) {}
  void closing() override { sender_.killed(); }
  bool gets_stream() const override { return false; }
  bool is_snapshot_channel() const override { return false; }
  bool exports() const override { return true; }

 private:
  JobSender& sender_;
};

}  // namespace

JobSender::JobSender(server::Server& server, Host& host, SlotJob& job, const std::string& address,
                     int port)
    : server_(server), host_(host), job_(job) {
  channel_ = std::make_unique<NodeChannel>(server_, static_cast<NodeChannel::Owner&>(*this),
                                           address, port);
}

void JobSender::enter(JobState state) {
  job_.enter(state, server_.machine_ms(), server_.log());
}

void JobSender::stop() {
  if (std::exchange(over_, true)) return;
  stream_.reset();
  pause_.reset();
  if (child_runs_) server_.layer<persist::Persistence>().child().kill();
  channel_->close();
  if (shown_ != nullptr) std::exchange(shown_, nullptr)->close();
}

void JobSender::killed() {
  shown_ = nullptr;
  if (over_) return;
  channel_->close();
  channel_lost(*channel_, "Client killed");
}

void JobSender::fail(const std::string& message) {
  if (over_) return;
  stop();
  host_.sending_failed(job_, message);
}

void JobSender::channel_lost(NodeChannel&, const std::string& reason) {
  if (over_) return;
  // The target has all it needs, and closes the connection when it takes the slots over.
  if (job_.state == JobState::kFailoverGranted) return;
  if (job_.state == JobState::kConnecting)
    return fail("Unable to connect to target node: " + reason);
  fail(kConnectionLost);
}

// --- The handshake -------------------------------------------------------------------------------

void JobSender::channel_connected(NodeChannel&) {
  if (over_) return;
  shown_ = &server_.clients().add(nullptr);
  shown_->node = std::make_unique<ExportLink>(*this);
  const server::ConfigValues& settings = server_.settings();
  authenticates_ = !settings.masterauth.empty();
  if (!authenticates_) return establish();
  if (settings.masteruser.empty()) {
    channel_->send({"AUTH", settings.masterauth});
  } else {
    channel_->send({"AUTH", settings.masteruser, settings.masterauth});
  }
}

void JobSender::establish() {
  enter(JobState::kSendingEstablish);
  const std::vector<std::string> words = job_.establish_request();
  const std::vector<std::string_view> views(words.begin(), words.end());
  channel_->send(views);
  enter(JobState::kReadingEstablish);
}

void JobSender::read_reply(std::string_view line) {
  if (line != "+OK" && authenticates_)
    return fail("Failed to AUTH to target node: " + std::string(line));
  if (line != "+OK") {
    return fail("Received error during handshake to target: " + std::string(line) + "\r\n");
  }
  if (std::exchange(authenticates_, false)) return establish();
  enter(JobState::kWaitingToSnapshot);
  send_syncslots("ACK");
}

size_t JobSender::channel_input(NodeChannel&, std::span<char> bytes) {
  job_.last_contact_ms = server_.machine_ms();
  size_t used = 0;
  while (!over_ && used < bytes.size()) {
    if (job_.state < JobState::kWaitingToSnapshot) {
      std::string_view rest(bytes.data() + used, bytes.size() - used);
      const std::optional<std::string_view> line = resp::take_line(&rest);
      if (!line && rest.size() > kMaxLine) fail("The target sends no line");
      if (!line) break;
      used = bytes.size() - rest.size();
      read_reply(*line);
      continue;
    }
    words_.clear();
    size_t size = 0;
    // With the limits of clients that are not authenticated: the requests of a target are not
    // longer.
    const auto status = parser_.parse(
        bytes.subspan(used), {.max_bulk_size = kMaxRequest, .authenticated = false}, words_, &size);
    if (status == resp::RequestParser::Status::kIncomplete) break;
    if (status == resp::RequestParser::Status::kError) {
      fail("The target sends what is no request: " + std::string(parser_.error()));
      break;
    }
    used += size;
    if (!words_.empty()) read_request(words_);
  }
  return over_ ? bytes.size() : used;
}

void JobSender::read_request(std::span<const std::string_view> words) {
  const bool known = words.size() == 3 && base::equal_ignoring_case(words[0], "cluster") &&
                     base::equal_ignoring_case(words[1], "syncslots");
  const std::string_view what = known ? words[2] : std::string_view();
  if (base::equal_ignoring_case(what, "ack")) return;
  if (base::equal_ignoring_case(what, "request-pause") && !pause_requested_ &&
      (job_.state == JobState::kReplicating || job_.state == JobState::kSnapshotting)) {
    pause_requested_ = true;
    return pause_writes();
  }
  if (base::equal_ignoring_case(what, "request-failover") &&
      job_.state == JobState::kFailoverPaused) {
    send_syncslots("FAILOVER-GRANTED");
    return enter(JobState::kFailoverGranted);
  }
  fail("The target sends an unexpected request: " + std::string(words[0].substr(0, 64)));
}

// --- The snapshot --------------------------------------------------------------------------------

void JobSender::start_snapshot() {
  persist::BackgroundChild& child = server_.layer<persist::Persistence>().child();
  net::Connection* const connection = channel_->connection();
  if (child.running() || server_.tasks().any() || connection->pending_output() > 0) return;
  if (connection->layer() != nullptr) {
    pipe_ = ChildPipe::open(server_.loop());
    if (pipe_ == nullptr)
      return fail("Failed to start the snapshot: pipe: " + std::string(strerror(errno)));
  }
  const int descriptor = pipe_ != nullptr ? pipe_->child_end() : connection->descriptor();
  const auto work = [this, descriptor](persist::ChildProgress& progress) {
    replication::SocketSink sink(descriptor,
                                 base::poll_timeout_ms(server_.settings().repl_timeout));
    if (!send_slots(write_slot_requests, sink, server_, job_.slots, progress)) return false;
    if (pipe_ != nullptr) ChildPipe::end(descriptor);
    return true;
  };
  const auto ended = [host = &host_, name = job_.name](const persist::ChildEnd& end) {
    host->snapshot_ended(name, end.done, end.copied_bytes);
  };
  const base::Result<> started = child.start({.kind = persist::ChildKind::kRdbToSocket,
                                              .keys_total = keys_in_slots(server_, job_.slots),
                                              .work = work,
                                              .ended = ended,
                                              .keep_open = {descriptor}});
  if (!started) return fail("Failed to start the snapshot: " + started.error());
  server_.log().notice(job_.title() + ": snapshot started by pid " + std::to_string(child.pid()));
  if (pipe_ != nullptr) pipe_->close_child_end();
  child_runs_ = true;
  stream_ = std::make_unique<SlotStream>(
      server_, job_.slots,
      [this](int database, std::string_view request) { forward_write(database, request); },
      [this] { crossed_ = true; });
  enter(JobState::kSnapshotting);
}

void JobSender::forward_snapshot() {
  const auto is_full = [this] {
    const net::Connection* const connection = channel_->connection();
    return connection == nullptr || connection->pending_output() > ChildPipe::kMaxPending;
  };
  pipe_->forward(is_full, [this](std::string_view bytes) {
    channel_->connection()->out().append(bytes);
    channel_->connection()->flush();
  });
}

// The child ends when all that it has written was read.
void JobSender::snapshot_ended(bool done, size_t copied_bytes) {
  if (!std::exchange(child_runs_, false) || over_) return;
  job_.copied_bytes = copied_bytes;
  if (!done) return fail("Failed to send the snapshot of the slots");
  send_syncslots("SNAPSHOT-EOF");
  enter(JobState::kReplicating);
  send(std::exchange(kept_, {}));
  if (pause_requested_) pause_writes();
}

// --- Writes --------------------------------------------------------------------------------------

// Called while a request is propagated: failing is left to work().
void JobSender::forward_write(int database, std::string_view request) {
  if (over_) return;
  std::string bytes;
  if (database != server::kAnyDatabase && std::exchange(stream_database_, database) != database) {
    bytes = resp::encode_request({"SELECT", std::to_string(database)});
  }
  bytes.append(request);
  child_runs_ ? static_cast<void>(kept_.append(bytes)) : send(bytes);
}

void JobSender::send(std::string_view bytes) {
  net::Connection* const connection = channel_->connection();
  if (connection == nullptr || bytes.empty()) return;
  connection->out().append(bytes);
  connection->flush();
  sent_ += bytes.size();
}

void JobSender::send_syncslots(std::string_view what) {
  acknowledged_ms_ = server_.machine_ms();
  send(resp::encode_request({"CLUSTER", "SYNCSLOTS", what}));
}

size_t JobSender::waiting_bytes() const {
  const net::Connection* const connection = channel_->connection();
  // The snapshot is no write.
  return kept_.size() + (connection != nullptr && !child_runs_ ? connection->pending_output() : 0);
}

void JobSender::pause_writes() {
  if (job_.state == JobState::kReplicating) enter(JobState::kWaitingToPause);
  if (job_.state != JobState::kWaitingToPause || !host_.may_pause_writes()) return;
  const int64_t most = server_.settings().slot_migration_max_failover_repl_bytes;
  // A script that is in the middle may still write.
  if (server_.tasks().any() || (server_.state() & server::kStateBusy) != 0) return;
  if (most >= 0 && waiting_bytes() > static_cast<size_t>(most)) return;
  server_.log().notice("Pausing writes (remaining_repl_size is " + std::to_string(waiting_bytes()) +
                       ") to allow slot migration " + job_.name + " to finish");
  paused_ms_ = server_.machine_ms();
  pause_.emplace(server_.pauses());
  send_syncslots("PAUSED");
  enter(JobState::kFailoverPaused);
}

// --- Periodic work -------------------------------------------------------------------------------

void JobSender::check_times() {
  const server::ConfigValues& settings = server_.settings();
  const int64_t now_ms = server_.machine_ms();
  if (now_ms - job_.last_contact_ms > settings.repl_timeout * base::kMsPerSecond)
    return fail("Timed out after too long with no interaction");
  // After the grant the target may need twice the time, to announce itself to all nodes.
  const int64_t timeout_ms =
      settings.cluster_manual_failover_timeout * (job_.state == JobState::kFailoverGranted ? 2 : 1);
  if (paused_ms_ != 0 && now_ms - paused_ms_ > timeout_ms)
    return fail("Unpaused before migration completed");
  const auto& limit = settings.client_output_buffer_limit[server::kBufferReplica];
  if (limit.hard_limit_bytes == 0 || waiting_bytes() <= limit.hard_limit_bytes) return;
  const std::string exceeded =
      "The writes that wait for the target exceed client-output-buffer-limit";
  server_.log().warning(job_.title() + ": " + exceeded);
  // Valkey closes the connection as that of any client.
  fail(server_.edition().is_valkey() ? kConnectionLost : exceeded);
}

void JobSender::work() {
  if (over_) return;
  if (crossed_) return fail("A write of keys in several slots");
  check_times();
  if (over_ || job_.state < JobState::kWaitingToSnapshot) return;
  if (job_.state == JobState::kWaitingToSnapshot) start_snapshot();
  if (!over_ && child_runs_ && pipe_ != nullptr) forward_snapshot();
  if (over_ || child_runs_) return;
  if (pause_requested_) pause_writes();
  if (server_.machine_ms() - acknowledged_ms_ >= kAckIntervalMs) send_syncslots("ACK");
}

}  // namespace latchkey::cluster
