// A replica, as its master sees it: its announcements, its progress, and the stream held for it
// until it has the dataset, or that is sent to it later on purpose.
//
//     announced -> waits for start -> waits for end -> receives -> online
//                  waits for channel -> streams -> online
//
// A replica with an RDB channel has two connections, each with a Replica of its own. The main one
// waits for the channel, gets the stream while the channel gets the dataset, and is online when the
// replica says that it has loaded it. The channel takes the first line's states up to kDelivered,
// and is closed then.
//
// In Valkey's form of the channel the main connection stays announced, and asks for the stream when
// the channel has been told where its dataset ends in it. Until then the channel holds the stream
// from there on, so that the backlog keeps it, even when the replica has loaded the dataset and
// closed its end.
//
// From the moment of its snapshot on (waits for end) it follows the stream: writes are held for it,
// and sent when it has the dataset. A partial resynchronisation goes from announced directly to
// online.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "base/time_units.h"
#include "resp/output_buffer.h"
#include "server/client/client.h"
#include "server/client/replica_link.h"

namespace latchkey::replication {

class Backlog;

enum class ReplicaState : uint8_t {
  kAnnounced,        // has sent REPLCONF; not a replica yet
  kWaitsForChannel,  // waits for its RDB channel to get the dataset
  kWaitsForStart,    // waits for a snapshot to begin
  kWaitsForEnd,      // the snapshot is being made; sent meanwhile if it goes through a pipe
  kReceives,         // the file is being sent
  kStreams,          // gets the stream, while its RDB channel gets the dataset
  kDelivered,        // an RDB channel to which everything was sent
  kOnline,
};

class Replica final : public server::ReplicaLink {
 public:
  // `on_closing` is called when the client closes.
  using OnClosing = std::function<void(Replica&)>;
  // Called with an error, without its dash, that the replica would read as part of the stream.
  using OnError = std::function<void(Replica&, std::string_view text)>;
  Replica(server::Client& client, OnClosing on_closing, OnError on_error);

  server::Client& client;

  // --- Announced by REPLCONF --------------------------------------------------------------------
  int listening_port = 0;
  std::string announced_ip;
  std::string cluster_node_id;     // empty: not told
  bool knows_eof = false;          // accepts a dataset of unknown size, with a mark at its end
  bool knows_psync2 = false;       // understands replication ids in +CONTINUE
  bool announced_version = false;  // REPLCONF VERSION: it is a Valkey of 8.0 or later
  bool rdb_only = false;           // wants the dataset, but not the stream
  bool wants_no_keys = false;
  bool wants_no_functions = false;
  bool knows_rdb_channel = false;
  bool knows_dual_channel = false;  // Valkey's form of the RDB channel
  bool follows_clock = false;       // understands REPLCONF CLOCK (clock_sync.h)
  bool rdb_channel = false;         // is an RDB channel
  // Of an RDB channel: the id of the replica's main client; in Valkey's form 0 until that one
  // joins.
  uint64_t main_client_id = 0;
  bool dual_channel = false;  // is an RDB channel of Valkey's form
  // Of a main connection in Valkey's form: whether it was told to open a channel, and the channel's
  // id.
  bool was_offered_channel = false;
  uint64_t channel_client_id = 0;

  // Whether both can share a snapshot.
  bool wants_same(const Replica& other) const {
    return wants_no_keys == other.wants_no_keys && wants_no_functions == other.wants_no_functions &&
           rdb_channel == other.rdb_channel && dual_channel == other.dual_channel;
  }

  // --- Progress ---------------------------------------------------------------------------------
  ReplicaState state = ReplicaState::kAnnounced;
  bool used_psync = false;  // otherwise it sent SYNC, and knows no offsets and acknowledgements
  bool through_pipe = false;
  bool written_by_child = false;  // with through_pipe: the child writes to the socket by itself
  // Online, but the held stream is sent only after an acknowledgement: the replica finds the mark
  // at the end of the dataset only if nothing follows it.
  bool waits_for_ack = false;
  // In kStreams: has acknowledged, so it has loaded the dataset.
  bool has_loaded = false;
  int64_t asked_ms = 0;       // Unix time
  uint64_t start_offset = 0;  // of its snapshot
  // Of an RDB channel of Valkey's form: holds the stream, and has held some of it.
  bool holds_stream = false;
  bool has_held_some = false;
  // It has the dataset, and the main connection has not joined since then; Unix time.
  int64_t delivered_ms = 0;
  uint64_t acked_offset = 0;
  uint64_t fsynced_offset = 0;  // offset that is synced in its append-only file
  int64_t acked_ms = 0;         // of its last acknowledgement or empty request; Unix time

  // Whether writes are held for it or sent to it.
  bool follows_stream() const {
    return state >= ReplicaState::kWaitsForEnd && (!rdb_only || holds_stream);
  }
  // Frees what it holds: its main connection has the stream, or will not want it.
  void end_hold();
  bool gets_stream() const {
    return state == ReplicaState::kStreams || (state == ReplicaState::kOnline && !waits_for_ack);
  }
  // Adds the backlog's bytes from number `first` on. What is not held is sent at `due_ms`
  // (Server::now_ms()), or at once if that is 0; never before what was added earlier.
  void add_to_stream(const Backlog& backlog, uint64_t first, int64_t due_ms);
  // Has the held bytes sent, at `due_ms` in the same way.
  void release_held(int64_t due_ms);
  bool has_held() const { return !held_.empty(); }
  // Moves what is due to the client's output. Returns when the next bytes are due; INT64_MAX where
  // there are none.
  int64_t release_delayed(int64_t now_ms);
  // All of it is due so much earlier.
  void clock_went_back(int64_t by_ms) {
    for (Delayed& delayed : delayed_) delayed.due_ms -= by_ms;
  }
  // Copies the bytes held for `other`. REQUIRES: no bytes are held.
  void hold_as(const Replica& other) { held_.append(other.held_); }

  // "ip:port" with the announced values, as in logs and INFO.
  std::string ip() const;
  std::string name() const;
  bool is_at(std::string_view host, int port) const {
    return port == listening_port && ip() == host;
  }
  // "wait_bgsave", "send_bulk", "send_bulk_and_stream" or "online".
  std::string_view state_name() const;
  int64_t lag_seconds(int64_t now_ms) const { return (now_ms - acked_ms) / base::kMsPerSecond; }
  // Seconds since output was last sent, while some is pending. To be called now and then.
  int64_t stuck_seconds(int64_t now_ms);
  // Bytes sent to it since it asked for synchronization.
  uint64_t bytes_sent() const;
  void count_bytes_from_now();

  // ReplicaLink
  void closing() override { on_closing_(*this); }
  size_t held_bytes() const override;
  bool is_rdb_channel() const override { return rdb_channel && !dual_channel; }
  bool may_be_idle() const override {
    return was_offered_channel && state == ReplicaState::kAnnounced;
  }
  bool survives_end_of_input() override;
  void is_alive() override;
  void failed(std::string_view text) override { on_error_(*this, text); }
  // Frees its pending output and held bytes.
  void drop_output();
  // Pending memory of this replica alone, without blocks shared with the backlog.
  size_t pending_memory() const;

 private:
  // Where bytes go that are to be sent at `due_ms`.
  resp::OutputBuffer& output_at(int64_t due_ms);

  OnClosing on_closing_;
  OnError on_error_;
  resp::OutputBuffer held_;
  // Bytes of the stream that are sent later (Replication::set_lag), by when they are due.
  struct Delayed {
    int64_t due_ms;
    resp::OutputBuffer bytes;
  };
  std::deque<Delayed> delayed_;
  uint64_t sent_before_ = 0;
  uint64_t sent_last_ = 0;    // at the last call of stuck_seconds()
  int64_t sent_last_ms_ = 0;  // when sent_last_ last grew, or no output was pending
};

}  // namespace latchkey::replication
