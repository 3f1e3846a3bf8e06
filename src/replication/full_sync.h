// Full resynchronisations: a snapshot of the dataset, sent to all replicas that wait for one. The
// stream from the snapshot on is held for them.
//
// Through a pipe (repl-diskless-sync, to replicas that know the EOF mark): a child writes, the
// server copies to all connections as fast as the slowest takes it, and the mark follows when all
// was read and the child has succeeded. Such a snapshot begins repl-diskless-sync-delay after the
// first replica has asked, so that more replicas can share it; later ones wait for the next. On
// disk: the child writes the dump file, replicas that come meanwhile share it, and each reads it at
// its own pace.
//
// RDB channels always get the dataset through a pipe, and nothing is held: their replicas get the
// stream by their main connections. Those of Valkey's form hold the stream until the main
// connection asks for it; the child writes to their sockets by itself, unless they are encrypted.
//
// At most ChildPipe::kMaxPending bytes of the dataset wait in a replica's output.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "net/loop.h"
#include "replication/child_pipe.h"
#include "replication/replica.h"
#include "replication/snapshot_maker.h"

namespace latchkey::server {
class Server;
}

namespace latchkey::replication {

class Replication;

class FullSync {
 public:
  FullSync(server::Server& server, Replication& replication,
           std::unique_ptr<SnapshotMaker> snapshots);
  ~FullSync();
  FullSync(const FullSync&) = delete;
  FullSync& operator=(const FullSync&) = delete;

  // Queues a replica of `replication` for a full resynchronisation.
  void enqueue(Replica& replica);
  // The replica has left, or is about to.
  void forget(Replica& replica);
  // Begins snapshots that are due. To be called at every tick, but not while a script runs: the
  // dataset then has half of its changes, which the stream sends as a whole.
  void begin_due();
  // Sends what can be sent. To be called at the end of each turn.
  void send_pending();

 private:
  // A file that is being sent to one replica.
  struct File {
    int descriptor;
    uint64_t left;
  };

  std::vector<Replica*> in_state(ReplicaState state, bool through_pipe) const;
  bool wants_pipe(const Replica& replica) const;
  // Begins a snapshot for a replica that waits, and for those that can share it.
  void begin_for(const Replica& first);
  bool begin_file(const std::vector<Replica*>& group, const SnapshotPlace& place);
  bool begin_pipe(const std::vector<Replica*>& group, const SnapshotPlace& place);
  bool begin_sockets(const std::vector<Replica*>& group, const SnapshotPlace& place);
  bool open_pipe(const SnapshotPlace& place);
  // Valkey's form of the RDB channel: where the dataset ends in the stream.
  void send_end_offset(Replica& channel, const SnapshotPlace& place);
  void begin_replicating(Replica& replica, uint64_t offset);
  // Lets the replica share the file that is being written, if there is one for it.
  bool join_file(Replica& replica);
  void file_done(bool ok);
  void remove_sync_file();
  void send_file(Replica& replica);
  // False when the file is finished, or the connection is closed.
  bool send_some(Replica& replica);
  void finish_file(Replica& replica);
  void drop_file(const Replica& replica);
  void take_from_pipe();
  void pipe_done(bool ok);
  void finish_pipe(Replica& replica);
  void continue_soon();
  void send(Replica& replica, std::string_view bytes);

  server::Server& server_;
  Replication& replication_;
  std::unique_ptr<SnapshotMaker> snapshots_;
  // Keeps the loop from waiting while there is more to send than fits into one turn.
  std::unique_ptr<net::Timer> again_;
  std::unordered_map<const Replica*, File> files_;
  bool file_begun_ = false;  // by this object, and not done yet

  std::unique_ptr<ChildPipe> pipe_;  // until all was read
  bool pipe_begun_ = false;  // the child that writes to it, or to sockets, has not ended yet
  std::string mark_;
};

}  // namespace latchkey::replication
