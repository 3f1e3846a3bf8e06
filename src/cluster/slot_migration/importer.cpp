#include "cluster/slot_migration/importer.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/text/text.h"
#include "base/time_units.h"
#include "replication/pause_point.h"
#include "resp/take_line.h"
#include "server/server.h"

namespace latchkey::cluster {

using base::equal_ignoring_case;

namespace {

// Bytes that are run in a turn of the loop while they are run slowly on purpose (key-load-delay).
constexpr size_t kSlowPiece = 16 * 1024;
constexpr uint64_t kAcknowledgeEvery = 512 * 1024;
constexpr int64_t kAcknowledgeIntervalMs = 1000;
constexpr size_t kMaxLine = 64 * 1024;

}  // namespace

Importer::Importer(server::Server& server, Host& host, server::Client& client, SlotTask& task,
                   Origin origin)
    : server_(server),
      host_(host),
      task_(task),
      origin_(std::move(origin)),
      runner_(server, client, task.slots),
      main_reader_(server),
      snapshot_reader_(server),
      timer_(*server.loop(), [this] { apply_more(); }) {
  task_.state = TaskState::kConnecting;
  main_ = std::make_unique<NodeChannel>(server_, static_cast<NodeChannel::Owner&>(*this),
                                        origin_.host, origin_.port);
}

void Importer::stop() {
  over_ = true;
  timer_.stop();
  if (main_ != nullptr) main_->close();
  if (snapshot_ != nullptr) snapshot_->close();
}

// --- Handshakes ----------------------------------------------------------------------------------

void Importer::enter(TaskState state) {
  task_.state = state;
  if (host_.fails_at("import-main-channel", name_of(state))) fail_main("Failed on purpose");
}

void Importer::enter(SnapshotState state) {
  task_.snapshot = state;
  if (host_.fails_at("import-rdb-channel", name_of(state))) fail_snapshot("Failed on purpose");
}

void Importer::channel_connected(NodeChannel& channel) {
  if (over_) return;
  const bool main = is_main(channel);
  // An attempt to connect that failed is reported in the state `connecting`.
  main ? enter(TaskState::kConnecting) : enter(SnapshotState::kConnecting);
  if (over_) return;
  channel.send({"AUTH", "internal connection", origin_.secret});
  main ? enter(TaskState::kAuthReply) : enter(SnapshotState::kAuthReply);
}

bool Importer::awaits_reply(const NodeChannel& channel) const {
  if (is_main(channel)) return task_.state < TaskState::kAccumulateBuffer;
  return task_.snapshot < SnapshotState::kRdbchannelTransfer;
}

size_t Importer::channel_input(NodeChannel& channel, std::span<char> bytes) {
  size_t used = 0;
  while (!over_ && awaits_reply(channel)) {
    std::string_view rest(bytes.data() + used, bytes.size() - used);
    const std::optional<std::string_view> line = resp::take_line(&rest);
    if (!line) {
      if (rest.size() > kMaxLine) fail(channel, "The reply is no line of any sensible length");
      break;
    }
    used = bytes.size() - rest.size();
    if (!line->empty()) read_reply(channel, *line);
  }
  if (over_) return bytes.size();
  if (awaits_reply(channel)) return used;
  if (is_main(channel) && task_.state == TaskState::kAccumulateBuffer) {
    keep(bytes.size() - used);
    return used;
  }
  return used + apply(channel, bytes.subspan(used));
}

void Importer::read_reply(NodeChannel& channel, std::string_view line) {
  is_main(channel) ? read_main_reply(line) : read_snapshot_reply(line);
}

void Importer::read_main_reply(std::string_view line) {
  base::Logger& log = server_.log();
  switch (task_.state) {
    case TaskState::kAuthReply:
      if (line != "+OK") return fail_main("AUTH was refused: " + std::string(line));
      main_->send({"CLUSTER", "SYNCSLOTS", "CONF", "NODE-ID", origin_.node_id});
      return enter(TaskState::kHandshakeReply);
    case TaskState::kHandshakeReply: {
      if (line != "+OK") return fail_main("SYNCSLOTS CONF was refused: " + std::string(line));
      std::vector<std::string> words = {"CLUSTER", "SYNCSLOTS", "SYNC", task_.id};
      task_.slots.for_each_run([&](int first, int last) {
        words.push_back(std::to_string(first));
        words.push_back(std::to_string(last));
      });
      const std::vector<std::string_view> views(words.begin(), words.end());
      main_->send(views);
      return enter(TaskState::kSyncslotsReply);
    }
    case TaskState::kSyncslotsReply:
      if (line.starts_with("-NOTREADY")) {
        log.notice("Source node replied to SYNCSLOTS SYNC with -NOTREADY, will retry later...");
        stop();
        return host_.import_refused_for_now();
      }
      if (line != "+RDBCHANNELSYNCSLOTS")
        return fail_main("SYNCSLOTS SYNC was refused: " + std::string(line));
      enter(TaskState::kAccumulateBuffer);
      return over_ ? void() : open_snapshot_channel();
    default:
      return fail_main("Unexpected reply: " + std::string(line));
  }
}

void Importer::open_snapshot_channel() {
  task_.snapshot = SnapshotState::kConnecting;
  snapshot_ = std::make_unique<NodeChannel>(server_, static_cast<NodeChannel::Owner&>(*this),
                                            origin_.host, origin_.port);
}

void Importer::read_snapshot_reply(std::string_view line) {
  if (task_.snapshot == SnapshotState::kAuthReply) {
    if (line != "+OK") return fail_snapshot("AUTH was refused: " + std::string(line));
    snapshot_->send({"CLUSTER", "SYNCSLOTS", "RDBCHANNEL", task_.id});
    return enter(SnapshotState::kRdbchannelReply);
  }
  if (line != "+SLOTSSNAPSHOT")
    return fail_snapshot("SYNCSLOTS RDBCHANNEL was refused: " + std::string(line));
  enter(SnapshotState::kRdbchannelTransfer);
}

// --- What the source sends -----------------------------------------------------------------------

void Importer::keep(size_t bytes) {
  most_buffered_ = std::max(most_buffered_, bytes);
  const server::ConfigValues& settings = server_.settings();
  const auto own = static_cast<uint64_t>(settings.replica_full_sync_buffer_limit);
  const uint64_t most =
      own != 0 ? own : settings.client_output_buffer_limit[server::kBufferReplica].hard_limit_bytes;
  if (most == 0 || bytes < most) return;
  if (!std::exchange(logged_full_, true)) {
    server_.log().notice(
        "Slots sync buffer limit has been reached; the rest stays with the source node until the "
        "snapshot is here.");
  }
  main_->pause_reading();
}

size_t Importer::apply(NodeChannel& channel, std::span<char> bytes) {
  StreamReader& reader = is_main(channel) ? main_reader_ : snapshot_reader_;
  // Unlike a JobReceiver it waits while clients are paused: SlotMigration::check_pauses() cancels
  // the task at the next tick, and says which pause it was.
  if (reader.must_wait() || (server_.state() & server::kStatePaused) != 0) {
    timer_.start(StreamReader::kRetryMs);
    return 0;
  }
  const bool slowly = is_main(channel) && server_.settings().key_load_delay > 0;
  const auto snapshot_is_done = [&] {
    return !is_main(channel) && task_.snapshot == SnapshotState::kCompleted;
  };
  const StreamReader::Progress progress =
      reader.read(bytes, slowly ? kSlowPiece : StreamReader::kPiece,
                  [&](std::span<const std::string_view> words, size_t size) {
                    if (!words.empty()) run(channel, words, size);
                    return !over_ && !snapshot_is_done();
                  });
  if (!progress.error.empty()) fail(channel, std::string(progress.error));
  if (over_ || snapshot_is_done()) return bytes.size();
  if (is_main(channel)) most_buffered_ = std::max(most_buffered_, bytes.size() - progress.used);
  progress.is_far_ahead ? channel.pause_reading() : channel.resume_reading();
  if (is_main(channel) && !progress.has_more && task_.state == TaskState::kStreamingBuffer) {
    server_.log().notice(
        "Successfully streamed accumulated buffer for the import task, applied "
        "offset: " +
        std::to_string(applied_));
    enter(TaskState::kWaitStreamEof);
    if (!over_) acknowledge();
    return progress.used;
  }
  const int64_t delay_ms =
      slowly ? std::max<int64_t>(server_.settings().key_load_delay / base::kUsPerMs, 1) : 0;
  if (progress.has_more) timer_.start(static_cast<uint64_t>(delay_ms));
  return progress.used;
}

void Importer::run(NodeChannel& channel, std::span<const std::string_view> words, size_t size) {
  if (run_protocol(channel, words)) return;
  if (over_) return;
  if (const base::Result<> ran = runner_.run(words); !ran) return fail(channel, ran.error());
  if (!is_main(channel)) return;
  applied_ += size;
  if (applied_ - acknowledged_ >= kAcknowledgeEvery) acknowledge();
}

bool Importer::run_protocol(NodeChannel& channel, std::span<const std::string_view> words) {
  if (words.size() < 3 || !equal_ignoring_case(words[0], "cluster") ||
      !equal_ignoring_case(words[1], "syncslots"))
    return false;
  const std::string_view what = words[2];
  if (equal_ignoring_case(what, "conf")) return true;
  if (!is_main(channel) && equal_ignoring_case(what, "snapshot-eof")) {
    snapshot_ended();
  } else if (is_main(channel) && equal_ignoring_case(what, "stream-eof") &&
             task_.state == TaskState::kWaitStreamEof) {
    server_.log().notice("CLUSTER SYNCSLOTS STREAM-EOF received when waiting for STREAM-EOF");
    stop();
    task_.state = TaskState::kTakeover;
    host_.import_ready();
  } else if (is_main(channel) && equal_ignoring_case(what, "stream-eof") &&
             task_.state == TaskState::kStreamingBuffer) {
    // All of the stream has been applied: it ended within what was kept.
    task_.state = TaskState::kWaitStreamEof;
    return run_protocol(channel, words);
  } else {
    fail(channel, "Unexpected CLUSTER SYNCSLOTS " + std::string(what));
  }
  return true;
}

void Importer::snapshot_ended() {
  server_.log().notice("RDB channel snapshot transfer completed for the import task.");
  task_.snapshot = SnapshotState::kCompleted;
  snapshot_->close();
  runner_.begin_stream();
  server_.log().notice("Starting to stream accumulated buffer for the import task (" +
                       std::to_string(main_->kept_bytes()) + " bytes)");
  enter(TaskState::kStreamingBuffer);
  if (!over_) timer_.start(0);
}

void Importer::apply_more() {
  server_.refresh_clock();
  if (over_) return;
  if (task_.state == TaskState::kStreamingBuffer) {
    replication::pause_if_asked(server_, server::ReplicationPause::kOnStreaming);
    // Nothing may have been kept.
    if (main_->kept_bytes() == 0) {
      apply(*main_, {});
      return;
    }
  }
  if (task_.state >= TaskState::kStreamingBuffer) return main_->offer();
  if (snapshot_ != nullptr) snapshot_->offer();
}

void Importer::acknowledge() {
  acknowledged_ = applied_;
  acknowledged_ms_ = server_.machine_ms();
  main_->send({"CLUSTER", "SYNCSLOTS", "ACK", name_of(task_.state), std::to_string(applied_)});
}

// --- The end -------------------------------------------------------------------------------------

bool Importer::timed_out(const NodeChannel& channel) const {
  return server_.machine_ms() - channel.last_input_ms() >
         int64_t{server_.settings().repl_timeout} * base::kMsPerSecond;
}

void Importer::tick() {
  if (over_) return;
  if (task_.state >= TaskState::kStreamingBuffer &&
      server_.machine_ms() - acknowledged_ms_ >= kAcknowledgeIntervalMs)
    acknowledge();
  // While the snapshot is under way, or what was kept is being applied, the stream may be silent.
  const bool main_speaks =
      task_.state < TaskState::kAccumulateBuffer || task_.state == TaskState::kWaitStreamEof;
  if (main_speaks && main_->kept_bytes() == 0 && timed_out(*main_))
    return fail_main("Connection timeout");
  if (task_.state == TaskState::kAccumulateBuffer && snapshot_ != nullptr &&
      snapshot_->kept_bytes() < StreamReader::kPiece && timed_out(*snapshot_))
    fail_snapshot("Connection timeout");
}

void Importer::channel_lost(NodeChannel& channel, const std::string& reason) {
  if (!over_) fail(channel, channel.was_connected() ? reason : "Failed to connect: " + reason);
}

void Importer::fail(const NodeChannel& channel, const std::string& what) {
  is_main(channel) ? fail_main(what) : fail_snapshot(what);
}

void Importer::fail_main(const std::string& what) {
  end("Main channel - " + what);
}

void Importer::fail_snapshot(const std::string& what) {
  end("RDB channel - " + what);
}

void Importer::end(const std::string& error) {
  if (over_) return;
  stop();
  host_.import_failed(error);
}

}  // namespace latchkey::cluster
