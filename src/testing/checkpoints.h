// CHECKPOINT: states of the server to which it can be rolled back, nested like the savepoints of
// SQL.
//
// Creating a checkpoint copies nothing of the dataset. Each database gets an undo log
// (store/undo_log.h), which keeps what keys were before they change for the first time. What else
// belongs to a checkpoint takes part in it (testing/checkpoint_participant.h).
//
// Rolling back changes the dataset as commands would: clients that watch, track or wait for keys
// are told, and replicas and the append-only file get requests that amount to it, in one unit.
//
// Checkpoints are dropped when the server gets another dataset: when it becomes a replica, and when
// a dataset is loaded in place of the old one.
//
// Costs: create O(databases), roll back O(keys changed since), drop O(keys changed since). With
// readers of the replication stream, a database that was flushed costs O(its keys) to roll back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "testing/checkpoint_participant.h"

namespace latchkey::server {
class Server;
}
namespace latchkey::store {
class Entry;
class Keyspace;
class UndoLog;
}  // namespace latchkey::store

namespace latchkey::testing {

class Checkpoints {
 public:
  static constexpr size_t kMaxCheckpoints = 1000;
  static constexpr size_t kMaxNameBytes = 128;

  // With the standard participants. REQUIRES: the server's other layers are there.
  explicit Checkpoints(server::Server& server);
  ~Checkpoints();
  Checkpoints(const Checkpoints&) = delete;
  Checkpoints& operator=(const Checkpoints&) = delete;

  size_t size() const { return stack_.size(); }
  bool contains(std::string_view name) const;
  // Of the newest one. REQUIRES: size() > 0.
  const std::string& newest() const;
  // A name that no checkpoint has: "checkpoint-1".
  std::string unused_name();

  // REQUIRES: the name is not taken, size() < kMaxCheckpoints.
  void create(std::string name);
  // The error of CHECKPOINT ROLLBACK, from its code on; empty: it may run. It may not where keys
  // that came with slots from other nodes would be lost, also where a slot had gone there since.
  // REQUIRES: contains(name).
  std::string_view rollback_error(std::string_view name) const;
  // Brings the server back to what it was, and drops the checkpoints created later. REQUIRES:
  // contains(name), rollback_error(name) is empty.
  void rollback(std::string_view name);
  // Drops it and those created later. What they kept goes to the one before. REQUIRES:
  // contains(name).
  void drop(std::string_view name);

  // `keys`: how many changed between this checkpoint and the next one, or now. `bytes`: what is
  // kept of them.
  struct Description {
    std::string_view name;
    int64_t created_ms;  // Unix time
    size_t keys;
    size_t bytes;
  };
  // The oldest first.
  std::vector<Description> list() const;
  Description total() const;

 private:
  struct Checkpoint;

  size_t index_of(std::string_view name) const;
  // Merges the newest checkpoint into the one before, or drops it if it is the only one.
  void merge_newest();
  void drop_all(std::string_view reason);

  // Undoes SWAPDBs.
  void restore_order();
  void restore_database(store::Keyspace& database, store::UndoLog& log);
  // Keys that are put back, and those that do not exist any more, whose entry is null.
  struct Restored {
    std::string key;
    const store::Entry* entry;
  };
  void propagate_keys(int database, const std::vector<Restored>& keys);
  void propagate_key(int database, std::string_view key, const store::Entry* entry);
  void propagate_contents(const store::Keyspace& database);

  server::Server& server_;
  std::vector<std::unique_ptr<CheckpointParticipant>> participants_;
  std::vector<std::unique_ptr<Checkpoint>> stack_;  // the oldest first
  uint64_t named_ = 0;
};

}  // namespace latchkey::testing
