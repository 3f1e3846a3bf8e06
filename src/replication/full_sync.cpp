#include "replication/full_sync.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/time_units.h"
#include "base/timeout.h"
#include "replication/pause_point.h"
#include "replication/replication.h"
#include "replication/sync_file.h"
#include "server/server.h"

namespace latchkey::replication {

using base::LogLevel;

namespace {

constexpr size_t kMarkSize = 40;
constexpr size_t kReadSize = 64 * 1024;
constexpr std::string_view kFailed = "-BGSAVE failed, replication can't continue\r\n";

// Whether the child may write the dataset to the replica's socket: nothing of this process is on
// its way there any more, or has to be encrypted.
bool child_may_write_to(const Replica* replica) {
  const net::Connection* const connection = replica->client.connection();
  return replica->dual_channel && connection != nullptr && connection->layer() == nullptr &&
         connection->pending_output() == 0;
}

}  // namespace

FullSync::FullSync(server::Server& server, Replication& replication,
                   std::unique_ptr<SnapshotMaker> snapshots)
    : server_(server), replication_(replication), snapshots_(std::move(snapshots)) {
  if (server_.loop() != nullptr) again_ = std::make_unique<net::Timer>(*server_.loop(), [] {});
}

FullSync::~FullSync() {
  for (const auto& [replica, file] : files_) close(file.descriptor);
}

std::vector<Replica*> FullSync::in_state(ReplicaState state, bool through_pipe) const {
  std::vector<Replica*> found;
  for (Replica* replica : replication_.replicas()) {
    if (replica->state == state && replica->through_pipe == through_pipe) found.push_back(replica);
  }
  return found;
}

void FullSync::send(Replica& replica, std::string_view bytes) {
  replica.client.out().append(bytes);
  replica.client.flush_soon();
}

void FullSync::enqueue(Replica& replica) {
  replica.state = ReplicaState::kWaitsForStart;
  base::Logger& log = server_.log();
  if (join_file(replica)) {
    log.notice("Waiting for end of BGSAVE for SYNC");
  } else if (file_begun_) {
    log.notice("Can't attach the replica to the current BGSAVE. Waiting for next BGSAVE for SYNC");
  } else if (pipe_begun_) {
    log.notice("Current BGSAVE has socket target. Waiting for next BGSAVE for SYNC");
  } else if (wants_pipe(replica) && server_.settings().repl_diskless_sync_delay > 0) {
    log.notice("Delay next BGSAVE for diskless SYNC");
  } else if (snapshots_->is_busy()) {
    log.notice(
        "No BGSAVE in progress, but another BG operation is active. BGSAVE for replication "
        "delayed");
  } else {
    begin_for(replica);
  }
}

bool FullSync::wants_pipe(const Replica& replica) const {
  // The dump file must not contain only a part of the dataset.
  return replica.rdb_channel ||
         ((server_.settings().repl_diskless_sync || replica.wants_no_keys) && replica.knows_eof);
}

bool FullSync::join_file(Replica& replica) {
  if (!file_begun_) return false;
  const std::vector<Replica*> others = in_state(ReplicaState::kWaitsForEnd, false);
  const auto other = std::find_if(others.begin(), others.end(), [&](const Replica* candidate) {
    return candidate->wants_same(replica) && !candidate->rdb_only;
  });
  if (other == others.end()) return false;
  replication_.feed_replicas();
  replica.hold_as(**other);
  begin_replicating(replica, (*other)->start_offset);
  return true;
}

void FullSync::begin_due() {
  if (snapshots_->is_busy()) return;
  const std::vector<Replica*> waiting = in_state(ReplicaState::kWaitsForStart, false);
  if (waiting.empty()) return;
  const server::ConfigValues& settings = server_.settings();
  const bool all_take_pipe =
      std::all_of(waiting.begin(), waiting.end(),
                  [this](const Replica* replica) { return wants_pipe(*replica); });
  const int64_t delay_ms = settings.repl_diskless_sync_delay * base::kMsPerSecond;
  const bool has_waited = server_.machine_ms() - waiting.front()->asked_ms >= delay_ms;
  const auto enough = static_cast<size_t>(settings.repl_diskless_sync_max_replicas);
  if (all_take_pipe && !has_waited && (enough == 0 || waiting.size() < enough)) return;
  begin_for(*waiting.front());
}

void FullSync::begin_for(const Replica& first) {
  std::vector<Replica*> group = in_state(ReplicaState::kWaitsForStart, false);
  std::erase_if(group, [&](const Replica* replica) { return !replica->wants_same(first); });
  const bool use_pipe = std::all_of(
      group.begin(), group.end(), [this](const Replica* replica) { return wants_pipe(*replica); });
  const char* by_pipe = "replicas sockets";
  if (first.rdb_channel)
    by_pipe =
        first.dual_channel ? "replicas sockets (dual-channel)" : "replicas sockets (rdb-channel)";
  server_.log().logf(LogLevel::kNotice, "Starting BGSAVE for SYNC with target: %s",
                     use_pipe ? by_pipe : "disk");
  // Commands propagated so far are in the snapshot; later ones are preceded by a SELECT.
  replication_.feed_replicas();
  const SnapshotPlace place{
      .replication_id = server_.replication_id(),
      .offset = replication_.offset(),
      .database = std::max(replication_.selected_database(), 0),
      .without_keys = first.wants_no_keys,
      .without_functions = first.wants_no_functions,
  };
  replication_.stream().select_anew();
  if (use_pipe ? begin_pipe(group, place) : begin_file(group, place)) return;
  server_.log().warning("BGSAVE for replication failed");
  for (Replica* replica : group) {
    send(*replica, kFailed);
    replica->client.close_after_reply();
  }
}

void FullSync::begin_replicating(Replica& replica, uint64_t offset) {
  if (replica.dual_channel) {
    replication_.begin_holding(replica);
  } else if (replica.rdb_channel && !replication_.begin_streaming(replica, offset)) {
    return replica.client.close();
  }
  replica.state = ReplicaState::kWaitsForEnd;
  replica.start_offset = offset;
  if (!replica.used_psync) return;
  send(replica, "+FULLRESYNC " + server_.replication_id() + " " + std::to_string(offset) + "\r\n");
}

void FullSync::forget(Replica& replica) {
  drop_file(replica);
  if (replica.state != ReplicaState::kWaitsForEnd) return;
  // The child has the socket too.
  if (replica.written_by_child && replica.client.connection() != nullptr)
    shutdown(replica.client.connection()->descriptor(), SHUT_RDWR);
  const bool through_pipe = replica.through_pipe;
  if (!(through_pipe ? pipe_begun_ : file_begun_)) return;
  if (!in_state(ReplicaState::kWaitsForEnd, through_pipe).empty()) return;
  // A dump file is useful when there are save points.
  if (!through_pipe && !server_.settings().save.empty()) return;
  if (through_pipe)
    server_.log().notice("Diskless rdb transfer, last replica dropped, killing fork child.");
  if (replica.rdb_channel)
    server_.log().warning(std::string(replica.dual_channel ? "Background RDB transfer error"
                                                           : "Background transfer error") +
                          ": nobody is left to receive it");
  snapshots_->abandon();
}

bool FullSync::begin_file(const std::vector<Replica*>& group, const SnapshotPlace& place) {
  if (!snapshots_->begin_file(place, [this](bool ok) { file_done(ok); })) return false;
  file_begun_ = true;
  for (Replica* replica : group) begin_replicating(*replica, place.offset);
  return true;
}

void FullSync::file_done(bool ok) {
  file_begun_ = false;
  for (Replica* replica : in_state(ReplicaState::kWaitsForEnd, false)) {
    if (!ok) {
      server_.log().warning("SYNC failed. BGSAVE child returned an error");
      replica->client.close();
      continue;
    }
    const int descriptor = open(snapshots_->path().c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status {};
    if (descriptor < 0 || fstat(descriptor, &status) != 0) {
      server_.log().warning("SYNC failed. Can't open/stat DB after BGSAVE: " +
                            std::string(strerror(errno)));
      if (descriptor >= 0) close(descriptor);
      replica->client.close();
      continue;
    }
    const auto size = static_cast<uint64_t>(status.st_size);
    files_[replica] = {descriptor, size};
    replica->state = ReplicaState::kReceives;
    send(*replica, "$" + std::to_string(size) + "\r\n");
  }
  if (ok) remove_sync_file();
}

// The replicas that receive the file have it open already, so it is removed at once and cannot be
// mistaken for a later snapshot.
void FullSync::remove_sync_file() {
  if (!removes_sync_files(server_.settings())) return;
  server_.log().notice(
      "Removing the RDB file used to feed replicas in a persistence-less instance");
  server_.files().remove(snapshots_->path());
}

void FullSync::send_file(Replica& replica) {
  for (size_t sent = 0; send_some(replica); sent += kReadSize) {
    if (sent < ChildPipe::kMaxPerTurn) continue;
    continue_soon();
    return;
  }
  // The loop sends the held output later, without calling this object.
  if (server_.loop() != nullptr && server_.loop()->holds_output()) continue_soon();
}

bool FullSync::send_some(Replica& replica) {
  File& file = files_[&replica];
  server::Client& client = replica.client;
  if (client.pending_output() > ChildPipe::kMaxPending) return false;
  const auto wanted = static_cast<size_t>(std::min<uint64_t>(kReadSize, file.left));
  resp::OutputBuffer& out = client.out();
  const ssize_t count = read(file.descriptor, out.reserve(kReadSize), wanted);
  if (count <= 0) {
    server_.log().warning("Read error sending DB to replica: " +
                          std::string(count == 0 ? "premature EOF" : strerror(errno)));
    client.close();
    return false;
  }
  out.commit(static_cast<size_t>(count));
  file.left -= static_cast<uint64_t>(count);
  if (file.left == 0) {
    finish_file(replica);
    return false;
  }
  // A failed connection closes the client, which removes the file from files_.
  if (client.connection() != nullptr) client.connection()->flush();
  return files_.contains(&replica);
}

void FullSync::finish_file(Replica& replica) {
  drop_file(replica);
  replication_.put_online(replica, /*waits_for_ack=*/false);
}

void FullSync::drop_file(const Replica& replica) {
  const auto found = files_.find(&replica);
  if (found == files_.end()) return;
  close(found->second.descriptor);
  files_.erase(found);
}

void FullSync::send_pending() {
  if (!files_.empty()) {
    for (Replica* replica : in_state(ReplicaState::kReceives, false)) {
      if (files_.contains(replica)) send_file(*replica);
    }
  }
  if (pipe_ != nullptr) take_from_pipe();
}

void FullSync::continue_soon() {
  if (again_ != nullptr) again_->start(0);
}

bool FullSync::begin_pipe(const std::vector<Replica*>& group, const SnapshotPlace& place) {
  mark_ = server_.random_source().hex(kMarkSize);
  // Those of Valkey's form hear of it before the child writes to them.
  for (Replica* replica : group) {
    if (!replica->dual_channel) continue;
    replica->through_pipe = true;
    begin_replicating(*replica, place.offset);
    send_end_offset(*replica, place);
  }
  const bool by_child = std::all_of(group.begin(), group.end(), child_may_write_to);
  if (!(by_child ? begin_sockets(group, place) : open_pipe(place))) return false;
  pipe_begun_ = true;
  pause_if_asked(server_, server::ReplicationPause::kAfterFork);
  for (Replica* replica : group) {
    replica->written_by_child = by_child;
    replica->through_pipe = true;
    if (!replica->dual_channel) begin_replicating(*replica, place.offset);
    if (by_child || replica->client.has(server::kClientClosing)) continue;
    send(*replica, "$EOF:" + mark_ + "\r\n");
  }
  return true;
}

bool FullSync::begin_sockets(const std::vector<Replica*>& group, const SnapshotPlace& place) {
  SnapshotMaker::Receivers receivers{
      .sockets = {},
      .mark = mark_,
      .timeout_ms = base::poll_timeout_ms(server_.settings().repl_timeout)};
  for (const Replica* replica : group)
    receivers.sockets.push_back(replica->client.connection()->descriptor());
  return snapshots_->begin_sockets(place, std::move(receivers), [this](bool ok) { pipe_done(ok); });
}

bool FullSync::open_pipe(const SnapshotPlace& place) {
  std::unique_ptr<ChildPipe> pipe = ChildPipe::open(server_.loop());
  if (pipe == nullptr) {
    server_.log().warning("Can't create a pipe for the RDB transfer: " +
                          std::string(strerror(errno)));
    return false;
  }
  if (!snapshots_->begin_pipe(place, pipe->child_end(), [this](bool ok) { pipe_done(ok); }))
    return false;
  pipe->close_child_end();
  pipe_ = std::move(pipe);
  return true;
}

void FullSync::send_end_offset(Replica& channel, const SnapshotPlace& place) {
  send(channel, "$ENDOFF:" + std::to_string(place.offset) + " " + place.replication_id + " " +
                    std::to_string(place.database) + " " + std::to_string(channel.client.id) +
                    "\r\n");
  if (channel.client.connection() != nullptr) channel.client.connection()->flush();
}

void FullSync::take_from_pipe() {
  const auto is_full = [this] {
    return std::ranges::any_of(in_state(ReplicaState::kWaitsForEnd, true), [](const auto* replica) {
      return replica->client.pending_output() > ChildPipe::kMaxPending;
    });
  };
  const auto take = [this](std::string_view bytes) {
    for (Replica* replica : in_state(ReplicaState::kWaitsForEnd, true)) {
      server::Client& client = replica->client;
      client.out().append(bytes);
      if (client.connection() != nullptr) client.connection()->flush();
    }
  };
  if (pipe_->forward(is_full, take)) return;
  server_.log().logf(LogLevel::kNotice,
                     "Diskless rdb transfer, done reading from pipe, %zu replicas still up.",
                     in_state(ReplicaState::kWaitsForEnd, true).size());
  pipe_.reset();
}

void FullSync::pipe_done(bool ok) {
  pipe_begun_ = false;
  pipe_.reset();
  for (Replica* replica : in_state(ReplicaState::kWaitsForEnd, true)) {
    if (ok) {
      finish_pipe(*replica);
      continue;
    }
    server_.log().warning("Closing replica " + replica->name() +
                          ": BGSAVE child returned an error");
    replica->client.close();
  }
}

void FullSync::finish_pipe(Replica& replica) {
  if (!replica.written_by_child) send(replica, mark_);
  server_.log().notice("Streamed RDB transfer with replica " + replica.name() +
                       " succeeded (socket). Waiting for REPLCONF ACK from replica to enable "
                       "streaming");
  if (replica.rdb_channel) return replication_.delivered(replica);
  replication_.put_online(replica, /*waits_for_ack=*/true);
}

}  // namespace latchkey::replication
