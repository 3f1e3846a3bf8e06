// Serving replicas: the stream of effects as bytes with numbers, who follows it, and how far each
// is.
//
// The stream is written while there is a backlog, which comes with the first replica and goes
// repl-backlog-ttl after the last one has left. Until the end of the turn what happens is
// collected; then it goes to the backlog and to every replica in one piece, as a shared blob when
// it is long. A replica that comes anew gets the dataset first (FullSync), one that comes back the
// bytes it has missed, if the backlog still holds them.
//
// Costs nothing without a backlog; else a copy of each effect into the backlog and, where it is
// short, one for each replica.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "replication/backlog.h"
#include "replication/replica.h"
#include "replication/snapshot_maker.h"
#include "server/command_context.h"
#include "server/propagation.h"
#include "server/replication_figures.h"
#include "server/server.h"

namespace latchkey::replication {

class FullSync;
class Migration;
class ReplicaWaits;

class Replication final : public server::EffectReader {
 public:
  Replication(server::Server& server, std::unique_ptr<SnapshotMaker> snapshots);
  ~Replication() override;
  Replication(const Replication&) = delete;
  Replication& operator=(const Replication&) = delete;

  server::Server& server() const { return server_; }

  // --- Replicas
  // -----------------------------------------------------------------------------------

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
  // REPLCONF ACK.
  void acknowledge(Replica& replica, uint64_t offset, uint64_t fsynced_offset);
  // Online replicas that have acknowledged this much.
  size_t count_acknowledged(uint64_t offset) const;
  // And have it in their append-only files.
  size_t count_fsynced(uint64_t offset) const;
  // Asks all replicas how far they are, at the end of the turn.
  void ask_for_acknowledgements() { ask_ = true; }

  // --- The stream
  // ---------------------------------------------------------------------------------

  // The number of its last byte.
  uint64_t offset() const { return static_cast<uint64_t>(server_.replication_offset()); }
  const Backlog* backlog() const { return backlog_.get(); }
  // The database that whoever follows has selected by now, or -1.
  int selected_database() const { return encoder_.database(); }
  // The next effect is preceded by a SELECT, for whoever begins here.
  void select_anew() { encoder_.forget_database(); }
  // Gives to the backlog and the replicas what has happened in this turn so far.
  void hand_on();

  // `fn(true)` is called when it begins to count bytes (Server::replication_offset), `fn(false)`
  // when it ends to, so that others may.
  void on_counting(std::function<void(bool)> fn) { counting_ = std::move(fn); }

  // `fn` is called when replicas have said how far they are.
  void on_acknowledged(std::function<void()> fn) { acknowledged_ = std::move(fn); }

  // WAIT.
  ReplicaWaits& waits() { return *waits_; }

  Migration& migration() { return *migration_; }

  // --- For FullSync
  // -------------------------------------------------------------------------------

  // It has the dataset, up to a mark at its end if `waits_for_ack`.
  void put_online(Replica& replica, bool waits_for_ack);

  // --- Figures
  // ------------------------------------------------------------------------------------

  server::ReplicationFigures figures() const;
  void count_full_sync() { ++full_syncs_; }
  void count_refused_partial_sync() { ++refused_partial_syncs_; }

  // server::EffectReader
  void effects_happened(std::span<const server::Effect> unit) override;

 private:
  void join(Replica& replica);
  void leave(Replica& replica);
  void make_backlog();
  void free_backlog();
  void end_turn();
  void tick();
  // While a script that takes long runs.
  bool in_nested_turn() const;
  void every_second();
  void ping_replicas();
  void drop_silent_replicas();
  void count_good_replicas();
  // Whether one that is online has not acknowledged all that was written.
  bool any_lags() const;
  void log_lags() const;

  server::Server& server_;
  server::EffectEncoder encoder_{server::kEffectForReplicas};
  std::function<void(bool)> counting_;
  std::function<void()> acknowledged_;
  std::string turn_;  // what has happened and is not handed on yet
  std::unique_ptr<Backlog> backlog_;
  std::vector<Replica*> replicas_;
  std::unique_ptr<FullSync> full_sync_;
  std::unique_ptr<ReplicaWaits> waits_;
  std::unique_ptr<Migration> migration_;
  bool ask_ = false;
  bool acks_came_ = false;
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
