// Serving replicas: who follows the replication stream, and how far each is.
//
// The stream (Stream) comes with the first replica and goes repl-backlog-ttl after the last one has
// left. What has happened in a turn goes to every replica at its end. A replica that comes anew
// gets the dataset first (FullSync), one that comes back the bytes it has missed, if the backlog
// still holds them. A replica that has the dataset come by an RDB channel (Replica) gets the stream
// meanwhile, so that nothing is held for it here.
//
// A server that follows a master itself (ReplicaRole) hands the master's stream on to its own
// replicas.
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
#include "server/command/command_context.h"
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
  // What is known of a client as a replica; made when it is asked for first.
  Replica& replica_of(server::Client& client);
  // Those that have asked for synchronization, in the order in which they came.
  const std::vector<Replica*>& replicas() const { return replicas_; }
  // The client follows from now on. Its reply and what it is to be sent are in its output, or come
  // later.
  // From the bytes behind `offset` of the history `id`, if they are there. False when the whole
  // dataset is needed; nothing has happened then.
  bool continue_from(Replica& replica, std::string_view id, int64_t offset);
  void synchronize(Replica& replica);
  // Whether that is to be done by an RDB channel, and the beginning of it.
  bool may_use_rdb_channel(const Replica& replica) const;
  void await_rdb_channel(Replica& replica);
  // The two connections of one replica, by each other; null when there is none.
  Replica* main_of(const Replica& channel) const;
  Replica* channel_of(const Replica& main) const;
  // Without counting a replica that has two connections twice.
  size_t count_connected() const;
  // REPLCONF ACK.
  void acknowledge(Replica& replica, uint64_t offset, uint64_t fsynced_offset);
  // Online replicas that have acknowledged this much.
  size_t count_acknowledged(uint64_t offset) const;
  // And have it in their append-only files.
  size_t count_fsynced(uint64_t offset) const;
  // Asks all replicas how far they are, at the end of the turn.
  void ask_for_acknowledgements() { ask_ = true; }

  // --- The stream -------------------------------------------------------------------------------
  // The number of its last byte.
  uint64_t offset() const { return stream_.offset(); }
  Stream& stream() { return stream_; }
  const Stream& stream() const { return stream_; }
  // The database that whoever follows has selected by now, or -1.
  int selected_database() const;
  // Gives to the backlog and the replicas what has happened in this turn so far.
  void feed_replicas();

  // `fn` is called when replicas have said how far they are.
  void on_acknowledged(std::function<void()> fn) { acknowledged_ = std::move(fn); }

  // How far the append-only file is safe on disk, told by `fn`; -1 when there is none.
  void on_synced_offset(std::function<int64_t()> fn) { synced_offset_ = std::move(fn); }
  int64_t synced_offset() const { return synced_offset_ ? synced_offset_() : -1; }

  // WAIT.
  ReplicaWaits& waits() { return *waits_; }

  Migration& migration() { return *migration_; }

  Failover& failover() { return *failover_; }
  const Failover& failover() const { return *failover_; }

  // --- For ReplicaRole
  // ---------------------------------------------------------------------------- From here on the
  // stream is a master's. Where this one has come to is where the other may go on.
  void stop_own_stream();
  // Those who follow have the master's bytes up to here, and go on with what happens here, under
  // another name: they have to ask anew.
  void resume_own_stream();
  // The dataset is the master's at this place, and replicas need it too. Without a name nobody can
  // go on from there.
  void begin_at(std::string_view id, int64_t offset);
  // The master's history has taken another name. Replicas have to ask anew.
  void rename(std::string_view id);
  void disconnect_replicas();
  ReplicaRole& replica_role() { return *replica_role_; }
  const ReplicaRole& replica_role() const { return *replica_role_; }

  // A dataset loaded at start was saved at that place, without what was `dropped` (Stream::resume).
  void resume_from(const server::StreamPlace& place,
                   const std::vector<std::pair<int, std::string>>& dropped = {});

  // --- For FullSync -----------------------------------------------------------------------------
  // It has the dataset, up to a mark at its end if `waits_for_ack`.
  void put_online(Replica& replica, bool waits_for_ack);
  // A snapshot at `offset` begins for the RDB channel: the stream goes to its other connection.
  // False when that has gone.
  bool begin_streaming(const Replica& channel, uint64_t offset);
  // The dataset has been sent by the RDB channel.
  void delivered(Replica& channel);

  // --- Figures ----------------------------------------------------------------------------------
  server::ReplicationFigures figures() const;
  void count_full_sync() { ++full_syncs_; }
  void count_refused_partial_sync() { ++refused_partial_syncs_; }

 private:
  // False with the reason in the log.
  bool can_continue(const Replica& replica, std::string_view id, int64_t offset) const;
  void join(Replica& replica);
  void leave(Replica& replica);
  void note_error(Replica& replica, std::string_view text);
  int64_t silent_seconds(Replica& replica) const;
  void free_backlog();
  std::optional<server::StreamPlace> place() const;
  void end_turn();
  // Replicas that have loaded what came by their RDB channels.
  void put_loaded_online();
  void tick();
  // While a script that takes long runs.
  void every_second();
  void ping_replicas();
  void drop_silent_replicas();
  void count_good_replicas();

  server::Server& server_;
  Stream stream_;
  std::function<void()> acknowledged_;
  std::function<int64_t()> synced_offset_;
  std::vector<Replica*> replicas_;
  std::unique_ptr<FullSync> full_sync_;
  std::unique_ptr<ReplicaWaits> waits_;
  std::unique_ptr<Migration> migration_;
  std::unique_ptr<Failover> failover_;
  std::unique_ptr<ReplicaRole> replica_role_;
  bool ask_ = false;
  bool acks_came_ = false;
  bool loaded_came_ = false;
  bool held_is_due_ = false;  // for a replica that has acknowledged the end of its dataset
  int64_t second_began_ms_ = 0;
  int64_t pinged_ms_ = 0;
  int64_t alone_since_ms_ = 0;
  uint64_t full_syncs_ = 0;
  uint64_t partial_syncs_ = 0;
  uint64_t refused_partial_syncs_ = 0;
  uint64_t bytes_sent_to_former_ = 0;
};

}  // namespace latchkey::replication
