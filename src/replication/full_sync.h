// Full resynchronisations: the dataset as it is at a moment, sent to every replica that waits for
// it, while what happens from that moment on is held for them.
//
// Through a pipe (repl-diskless-sync, to replicas that can read a dataset of unknown size): a child
// writes, the server copies to all connections as fast as the slowest takes it, and a mark follows
// when it has read all and the child has ended well.
// Snapshots of this kind begin repl-diskless-sync-delay after the first has asked, so that others
// may come; later ones wait for the next. On disk: the child writes the dump file, whoever comes
// meanwhile shares it, and each replica reads it at its own pace.
//
// To RDB channels the dataset always goes through a pipe, and nothing is held: their replicas get
// the stream by their other connections.
//
// At most kMaxPending bytes of the dataset wait in a replica's output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "net/descriptor_watcher.h"
#include "net/loop.h"
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

  // The replica, one of those of `replication`, is to get the dataset.
  void ask(Replica& replica);
  // It has gone, or will have when this returns.
  void forget(Replica& replica);
  // Begins what is due. To be called at every tick, but not while a script runs: it has done half
  // of what the stream will tell.
  void begin_due();
  // Moves on what can be sent. To be called at the end of each turn.
  void move_on();

 private:
  static constexpr size_t kMaxPending = 256 * 1024;

  // A file on its way to one replica.
  struct File {
    int descriptor;
    uint64_t left;
  };

  std::vector<Replica*> in_state(ReplicaState state, bool through_pipe) const;
  bool wants_pipe(const Replica& replica) const;
  // A replica that waits, and those that may share its snapshot.
  void begin_for(const Replica& first);
  bool begin_file(const std::vector<Replica*>& group, const SnapshotPlace& place);
  bool begin_pipe(const std::vector<Replica*>& group, const SnapshotPlace& place);
  void begin_replicating(Replica& replica, uint64_t offset);
  // Makes the replica one of those of the file that is being written, if there is one for it.
  bool join_file(Replica& replica);
  void file_done(bool ok);
  void send_file(Replica& replica);
  // False when it is finished, or the connection has gone.
  bool send_some(Replica& replica);
  void finish_file(Replica& replica);
  void drop_file(const Replica& replica);
  // False when there is nothing to be taken now, or no room for it.
  bool take_from_pipe();
  void pipe_done(bool ok);
  void close_pipe();
  void finish_pipe(Replica& replica);
  void go_on_soon();
  void send(Replica& replica, std::string_view bytes);

  server::Server& server_;
  Replication& replication_;
  std::unique_ptr<SnapshotMaker> snapshots_;
  // What keeps the loop from waiting while there is more to send than fits into one turn.
  std::unique_ptr<net::Timer> again_;
  std::unordered_map<const Replica*, File> files_;
  bool file_begun_ = false;  // by this, and not done yet

  int pipe_ = -1;  // its reading end, until all has been read
  std::unique_ptr<net::DescriptorWatcher> pipe_watcher_;
  bool pipe_begun_ = false;  // and the child not ended yet
  std::string mark_;
};

}  // namespace latchkey::replication
