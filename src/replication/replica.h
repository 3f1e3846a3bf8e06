// One replica, as its master sees it: what it has said of itself, how far it is, and what is kept
// for it until it has the dataset.
//
//     announced -> waits for start -> waits for end -> receives -> online
//                  waits for channel -> streams -> online
//
// A replica that has the dataset come by an RDB channel has two connections, each of which is one
// of these. The one that it came by waits for the other, gets the stream while the dataset goes
// there, and is online when the replica says that it has loaded it. The channel follows the first
// line as far as "delivered", and is closed then.
//
// From the moment of its snapshot on (waits for end) it follows the stream: what happens is held
// for it, and sent when it has the dataset. A partial resynchronisation leads from announced to
// online at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "resp/output_buffer.h"
#include "server/client/client.h"
#include "server/client/replica_link.h"

namespace latchkey::replication {

class Backlog;

enum class ReplicaState : uint8_t {
  kAnnounced,        // has sent REPLCONF, and is no replica yet
  kWaitsForChannel,  // its RDB channel is still to get the dataset
  kWaitsForStart,    // a snapshot is still to be begun for it
  kWaitsForEnd,      // the snapshot is being made; sent meanwhile if it goes through a pipe
  kReceives,         // the file is being sent
  kStreams,          // gets the stream, but not the dataset, which goes by its channel
  kDelivered,        // of an RDB channel: all is sent
  kOnline,
};

class Replica final : public server::ReplicaLink {
 public:
  // `on_closing` is told when the client closes.
  using OnClosing = std::function<void(Replica&)>;
  // Told of an error that the replica would read instead of the stream, without its dash.
  using OnError = std::function<void(Replica&, std::string_view text)>;
  Replica(server::Client& client, OnClosing on_closing, OnError on_error);

  server::Client& client;

  // --- Announced by REPLCONF --------------------------------------------------------------------
  int listening_port = 0;
  std::string announced_ip;
  bool knows_eof = false;     // can read a dataset of unknown size, with a mark at its end
  bool knows_psync2 = false;  // is told replication ids
  bool rdb_only = false;      // wants the dataset, and not what follows
  bool wants_no_keys = false;
  bool wants_no_functions = false;
  bool knows_rdb_channel = false;
  bool rdb_channel = false;     // is one
  uint64_t main_client_id = 0;  // of an RDB channel: the client it belongs to

  // Whether both get the same dataset in the same way.
  bool wants_same(const Replica& other) const {
    return wants_no_keys == other.wants_no_keys && wants_no_functions == other.wants_no_functions &&
           rdb_channel == other.rdb_channel;
  }

  // --- How far it is ----------------------------------------------------------------------------
  ReplicaState state = ReplicaState::kAnnounced;
  bool used_psync = false;  // else it knows nothing of offsets and acknowledgements
  bool through_pipe = false;
  // Online, but what is held is not to be sent before it has acknowledged: it finds the mark at the
  // end of the dataset only when nothing follows.
  bool waits_for_ack = false;
  // While it streams: has acknowledged, and so has the dataset.
  bool has_loaded = false;
  int64_t asked_ms = 0;       // Unix time
  uint64_t start_offset = 0;  // of its snapshot
  uint64_t acked_offset = 0;
  uint64_t fsynced_offset = 0;  // of what is safe in its append-only file
  int64_t acked_ms = 0;         // Unix time

  // Whether what happens is for it: it is held or sent.
  bool follows_stream() const { return state >= ReplicaState::kWaitsForEnd && !rdb_only; }
  bool gets_stream() const {
    return state == ReplicaState::kStreams || (state == ReplicaState::kOnline && !waits_for_ack);
  }
  // Adds what has happened: the bytes of the backlog from that number on.
  void add_to_stream(const Backlog& backlog, uint64_t first);
  // Puts what is held into the client's output.
  void release_held();
  // Makes what is held the same as for the other. REQUIRES: nothing is held.
  void hold_as(const Replica& other) { held_.append(other.held_); }

  // "ip:port", with what it has announced, as logs and figures name it.
  std::string ip() const;
  std::string name() const;
  bool is_at(std::string_view host, int port) const {
    return port == listening_port && ip() == host;
  }
  // "wait_bgsave", "send_bulk", "send_bulk_and_stream" or "online".
  std::string_view state_name() const;
  int64_t lag_seconds(int64_t now_ms) const { return (now_ms - acked_ms) / 1000; }
  // For how long nothing has left for it though something waits. To be asked now and then.
  int64_t stuck_seconds(int64_t now_ms);
  // That have left for it since it asked for synchronization.
  uint64_t bytes_sent() const;
  void count_bytes_from_now();

  // ReplicaLink
  void closing() override { on_closing_(*this); }
  size_t held_bytes() const override { return held_.size(); }
  bool is_rdb_channel() const override { return rdb_channel; }
  void failed(std::string_view text) override { on_error_(*this, text); }
  // Frees what waits for it.
  void drop_output();
  // What waits for it alone, as memory: without what it shares with the backlog.
  size_t pending_memory() const;

 private:
  OnClosing on_closing_;
  OnError on_error_;
  resp::OutputBuffer held_;
  uint64_t sent_before_ = 0;
  uint64_t sent_last_ = 0;    // when stuck_seconds() was asked last
  int64_t sent_last_ms_ = 0;  // when that was seen to grow, or nothing was waiting
};

}  // namespace latchkey::replication
