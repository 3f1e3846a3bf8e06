// What a database was when a checkpoint was created, as far as it has changed since: an undo log.
//
// A new log is empty, however large the database is. Keyspace asks it before the first change of a
// key, and the log keeps what the key was:
//
//     - an entry that is replaced or removed is moved into the log, not copied;
//     - an entry that is changed in place, or moves to another key, is copied (the bytes of large
//       strings are shared instead);
//     - for a key that did not exist the log keeps an entry without a value, marked as absent, as
//       long as the key exists.
//
// A database that is cleared moves into the log as a whole, and what happens to the new one need
// not be kept. SWAPDB exchanges the logs of two databases together with their contents, so a log
// remembers the number that its database had.
//
// Logs are stacked: the newest one of a database is the only one that is written to. absorb() adds
// a newer log to the one below it, which then holds what the database was at the older checkpoint.
// So undoing several checkpoints changes each key once.
//
// Costs: a lookup in a hash table for each write while there is a log, and one insertion for each
// key that is kept; nothing without a log but the test of a pointer. Not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "store/keyspace.h"

namespace latchkey::store {

class UndoLog {
 public:
  // `database`: the number of the database now. `below`: the log that it has had so far, or null.
  UndoLog(Environment& environment, int database, UndoLog* below);
  // Frees what was kept; large amounts in the background. REQUIRES: it is no keyspace's log.
  ~UndoLog();
  UndoLog(const UndoLog&) = delete;
  UndoLog& operator=(const UndoLog&) = delete;

  int database() const { return database_; }
  UndoLog* below() const { return below_; }

  // Whether the whole database has been moved here.
  bool holds_contents() const { return cleared_ != nullptr; }
  // Keys that are kept, those of a cleared database included.
  size_t keys() const { return saved_.size() + (cleared_ != nullptr ? cleared_->size() : 0); }
  // Bytes held. Of a cleared database an estimate from some of its entries.
  size_t memory_usage() const;

  // Whether what the key is now must be kept before it changes.
  bool wants(std::string_view key, uint64_t hash) {
    if (cleared_ != nullptr) return false;
    if (saved_.find(key, hash) == nullptr) return true;
    // The key is about to change, or to be there again.
    searched_in_vain_ = {};
    return false;
  }

  // Adds what the newer log holds. REQUIRES: newer.below() is this log. Costs O(keys) of the
  // smaller of the two.
  void absorb(UndoLog& newer);
  // Forgets everything, as if the checkpoint was created now.
  void reset();

  // A cleared database, which the caller owns from now on; null when it was not cleared.
  std::unique_ptr<Keyspace> take_contents() { return std::move(cleared_); }

  // Puts every key back into `keyspace` and forgets it here. Calls fn(key, existed, entry): whether
  // the key existed until now, and its entry, or null when the key does not exist any more. The
  // database must have no log, and fn must not change anything in it.
  template <typename Fn>
  void restore_keys(Keyspace& keyspace, Fn&& fn) {
    Keyspace::Table saved = std::move(saved_);
    saved_ = Keyspace::Table(environment_.secret);
    saved_bytes_ = 0;
    saved.for_each([&](Entry* entry) {
      const std::string key(entry->key());
      bool existed = false;
      const Entry* restored = keyspace.put_back(entry, &existed);
      fn(std::string_view(key), existed, restored);
    });
    saved.clear();
  }

 private:
  friend class Keyspace;

  // Access fields that keys had before a command touched them, until the command changes them: so
  // many of a command's keys are remembered.
  static constexpr size_t kTouchedKeys = 4;
  struct Touched {
    uint64_t hash = 0;
    uint32_t access = 0;
    bool used = false;
  };

  // Takes ownership of the entry. REQUIRES: wants() its key.
  void keep(Entry* entry, uint64_t hash);
  void note_access(uint64_t hash, uint32_t access);
  void free_saved();

  Environment& environment_;
  int database_;
  UndoLog* below_;
  Keyspace::Table saved_;
  size_t saved_bytes_ = 0;
  std::unique_ptr<Keyspace> cleared_;
  std::array<Touched, kTouchedKeys> touched_{};
  size_t next_touched_ = 0;
  // Whether Keyspace::random_unkept_entry() has found that there is no such entry, and no key has
  // changed since: among all, and among those with a deadline.
  std::array<bool, 2> searched_in_vain_{};
};

}  // namespace latchkey::store
