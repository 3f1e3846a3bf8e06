// The master's side of replication: the replicas of this server, and how far each is.
//
// The stream (Stream) is opened for the first replica and closed repl-backlog-ttl after the last
// one has left. At the end of each turn its new bytes are sent to every replica. A new replica gets
// the dataset first (FullSync), a returning one the bytes it has missed, if the backlog still has
// them. A replica with an RDB channel (Replica) gets the stream meanwhile, so that nothing is held
// for it here.
//
// A server that is a replica itself (ReplicaRole) relays its master's stream to its own replicas.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "replication/replica.h"
#include "replication/snapshot_maker.h"
#include "replication/stream.h"
#include "server/observe/replication_figures.h"
#include "server/server.h"

namespace latchkey::replication {

class Failover;
class FullSync;
class ReplicaRole;
class Migration;
class ReplicaWaits;

class Replication {
 public:
  Replication(server::Server& server, std::unique_ptr<SnapshotMaker> snapshots);
  ~Replication();
  Replication(const Replication&) = delete;
  Replication& operator=(const Replication&) = delete;

  server::Server& server() const { return server_; }

  // --- Replicas ---------------------------------------------------------------------------------
  // The Replica of a client; created by the first call.
  Replica& replica_of(server::Client& client);
  // Replicas that have asked for synchronization, in the order in which they came.
  const std::vector<Replica*>& replicas() const { return replicas_; }
  // Both make the client a replica; what it is sent is in its output, or follows later.
  // Partial resynchronization with the bytes from number `offset` on of the history `id`. False,
  // with nothing done, when a full resynchronization is needed.
  bool continue_from(Replica& replica, std::string_view id, int64_t offset);
  // Full resynchronization.
  void synchronize(Replica& replica);
  // Whether a full resynchronization may use an RDB channel; starts one that does.
  bool may_use_rdb_channel(const Replica& replica) const;
  void await_rdb_channel(Replica& replica);
  // Valkey's form: whether replicas that know it may use it; replies to one that it is to use it.
  bool may_use_dual_channel() const;
  void offer_channel(Replica& replica);
  // The RDB channel of that id whose main connection has not joined; null without one.
  Replica* waiting_channel(uint64_t client_id) const;
  // The number of such channels to which the dataset is being sent, or was.
  size_t count_waiting_channels() const;
  // The other connection of a replica with an RDB channel; null when there is none.
  Replica* main_of(const Replica& channel) const;
  Replica* channel_of(const Replica& main) const;
  // Counts a replica with two connections once.
  size_t count_connected() const;
  // REPLCONF ACK.
  void acknowledge(Replica& replica, uint64_t offset, uint64_t fsynced_offset);
  // Number of online replicas that have acknowledged `offset`.
  size_t count_acknowledged(uint64_t offset) const;
  // Number of those that have synced it in their append-only files.
  size_t count_fsynced(uint64_t offset) const;
  // Asks all replicas for acknowledgements, at the end of the turn; during a failover when that has
  // ended.
  void request_acknowledgements() { acks_requested_ = true; }

  // --- The stream -------------------------------------------------------------------------------
  // The number of its last byte.
  uint64_t offset() const { return stream_.offset(); }
  Stream& stream() { return stream_; }
  const Stream& stream() const { return stream_; }
  // The database that is selected in the stream, or -1.
  int selected_database() const;
  // Sends the stream of this turn so far to the backlog and the replicas.
  void feed_replicas();

  // `fn` is called when replicas have acknowledged offsets.
  void on_acknowledged(std::function<void()> fn) { acknowledged_ = std::move(fn); }

  // `fn` returns the offset that is synced in the append-only file; -1 without one.
  void on_synced_offset(std::function<int64_t()> fn) { synced_offset_ = std::move(fn); }
  int64_t synced_offset() const { return synced_offset_ ? synced_offset_() : -1; }

  // WAIT.
  ReplicaWaits& waits() { return *waits_; }

  Migration& migration() { return *migration_; }

  Failover& failover() { return *failover_; }
  const Failover& failover() const { return *failover_; }

  // --- For ReplicaRole --------------------------------------------------------------------------
  // From here on the stream is a master's, which may continue it from the present offset.
  void stop_own_stream();
  // The stream is this server's own again, with a new id from the present offset on. Disconnects
  // the replicas: they must ask for it anew.
  void resume_own_stream();
  // The dataset is the master's at this offset; the replicas need it too. With an empty id no
  // replica can continue from there.
  void begin_at(std::string_view id, int64_t offset);
  // The master's history has a new id. The replicas must ask for it anew.
  void rename(std::string_view id);
  void disconnect_replicas();
  ReplicaRole& replica_role() { return *replica_role_; }
  const ReplicaRole& replica_role() const { return *replica_role_; }

  // Continues the stream of a dataset that was saved at `place` and loaded at start without the
  // keys in `dropped` (Stream::resume).
  void resume_from(const server::StreamPlace& place,
                   const std::vector<std::pair<int, std::string>>& dropped = {});

  // --- For FullSync -----------------------------------------------------------------------------
  // The replica has the dataset; `waits_for_ack`: up to a mark at its end.
  void put_online(Replica& replica, bool waits_for_ack);
  // A snapshot at `offset` begins for the RDB channel: starts the stream on the replica's main
  // connection. False when that is closed. In Valkey's form begins to hold it for the channel.
  bool begin_streaming(const Replica& channel, uint64_t offset);
  void begin_holding(Replica& channel);
  // The dataset was sent to the RDB channel.
  void delivered(Replica& channel);

  // --- Time that CLOCK has moved -----------------------------------------------------------------
  // Whether every replica would follow (clock_sync.h).
  bool replicas_follow_clock() const;
  // Writes the clock to the stream at the end of the turn; if this server is a replica, asks its
  // master to write it.
  void propagate_clock() { propagates_clock_ = true; }

  // --- A stream that is sent later: FAULT ... DO REPLICA-LAG ------------------------------------
  // Before a part of the stream is sent to the replicas, `lag_ms` is asked by how many milliseconds
  // of Server::now_ms() later it is to be sent; null: it is sent at once. The order of the stream
  // is kept, and datasets are not delayed.
  void set_lag(std::function<int64_t()> lag_ms) { lag_ms_ = std::move(lag_ms); }
  // When delayed bytes are due next; INT64_MAX where there are none.
  int64_t next_delayed_ms() const { return next_delayed_ms_; }
  // Sends what is due. Called at the end of each turn, too.
  void send_delayed();
  // Sends all delayed bytes at once.
  void send_all_delayed();
  // That clock was set back by so much: what is delayed is sent when it would have been.
  void clock_went_back(int64_t by_ms);

  // --- Figures ----------------------------------------------------------------------------------
  server::ReplicationFigures figures() const;
  void count_refused_partial_sync() { ++refused_partial_syncs_; }

 private:
  // Valkey's form: the main connection of the channel it has named gets the stream.
  void join_channel(Replica& main);
  void drop_abandoned_channels();
  // False with the reason logged.
  bool can_continue(const Replica& replica, std::string_view id, int64_t offset) const;
  void join(Replica& replica);
  void leave(Replica& replica);
  void note_error(Replica& replica, std::string_view text);
  int64_t silent_seconds(Replica& replica) const;
  void free_backlog();
  std::optional<server::StreamPlace> place() const;
  void end_turn();
  // Whether writes are paused until a replica has caught up and replaces this server, be it by
  // FAILOVER or in a cluster: nothing else should extend the stream meanwhile.
  bool awaits_successor() const;
  void write_clock();
  void release_held(Replica& replica);
  void release_delayed(int64_t until_ms);
  // When a part of the stream that is about to be sent is due; 0: at once.
  int64_t stream_due_ms();
  // Makes those replicas online that have loaded the dataset from their RDB channels.
  void put_loaded_online();
  void tick();
  void every_second();
  // Whole periods of pings since the start.
  int64_t periods_of_pings() const;
  void ping_replicas();
  void drop_silent_replicas();
  void count_good_replicas();

  server::Server& server_;
  Stream stream_;
  bool propagates_clock_ = false;
  std::function<int64_t()> lag_ms_;
  int64_t next_delayed_ms_ = INT64_MAX;
  std::function<void()> acknowledged_;
  std::function<int64_t()> synced_offset_;
  std::vector<Replica*> replicas_;
  std::unique_ptr<FullSync> full_sync_;
  std::unique_ptr<ReplicaWaits> waits_;
  std::unique_ptr<Migration> migration_;
  std::unique_ptr<Failover> failover_;
  std::unique_ptr<ReplicaRole> replica_role_;
  bool acks_requested_ = false;
  bool acks_came_ = false;
  bool loaded_came_ = false;
  bool held_is_due_ = false;  // of a replica that has acknowledged the end of its dataset
  int64_t second_began_ms_ = 0;
  // Pings are sent at every period since the start, so that clients of a new cluster do not wait
  // for its replicas longer than in Redis: those without an offset are not named to them.
  int64_t started_ms_;
  int64_t pinged_periods_ = 0;
  int64_t no_replicas_since_ms_ = 0;
  uint64_t full_syncs_ = 0;
  uint64_t partial_syncs_ = 0;
  uint64_t refused_partial_syncs_ = 0;
  uint64_t bytes_sent_to_former_ = 0;
};

}  // namespace latchkey::replication
