// The watch of locks of one server: what commands do to locks, told to the model (lock_model.h).
//
//     SETNX, SET NX, SET IFEQ      LockClaims: taken(), refused(), compared()
//     whatever changes the key     store::LockObserver, for entries that have the bit of locks
//     transactions, scripts        LockClaims: begin_nested(): which reads came before
//     a client that closes         LockClaims::client_gone(), for those that have taken locks
//
// Claims wait in their ring until something else happens to a lock, or somebody asks: model() looks
// at them first. Their entries are where they were, because every change of one is told before it
// happens. Without `lock-watch` the server has no claims and the store no observer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "locks/lock_model.h"
#include "server/command/lock_claims.h"
#include "store/keyspace.h"

namespace latchkey::locks {

class LockWatch final : public server::LockClaims,
                        public server::KeyspaceEventListener,
                        public store::LockObserver,
                        public Clients {
 public:
  // Follows the directives lock-watch, lock-patterns, lock-watch-max-keys, lock-log-max-len and
  // lock-notify as they change.
  explicit LockWatch(server::Server& server);
  ~LockWatch() override;

  bool is_on() const { return on_; }
  // Up to date.
  LockModel& model() {
    catch_up();
    return model_;
  }
  void reset();
  int64_t watching_since_ms() const { return since_ms_; }
  // LockModel::guard() and its reverse. While there are guards all changes of keys are looked at.
  bool guard(int database, std::string_view lock, std::vector<std::string> globs);
  bool unguard(int database, std::string_view lock);
  void unguard_all();

  // Clients
  Party describe(uint64_t id) const override;
  bool is_connected(uint64_t id) const override;
  bool is_still(const Party& party) const override;

  // server::LockClaims
  void transaction_begins(server::Client& client) override;
  void release_failed(server::CommandContext& ctx, std::string_view key) override;
  void counted(server::CommandContext& ctx, const store::KeyRef& ref, std::string_view field,
               int64_t change, int64_t count) override;
  void client_gone(server::Client& client) override;

  // server::KeyspaceEventListener
  void key_changed(store::Keyspace& keyspace, std::string_view key, server::EventClass event_class,
                   std::string_view event) override;
  void keyspace_clearing(store::Keyspace&) override {}
  void keyspaces_swapping(store::Keyspace&, store::Keyspace&) override {}

  // store::LockObserver
  void lock_set(store::Keyspace& keyspace, const store::Entry& entry, std::string_view value,
                int64_t deadline_ms) override;
  void lock_changed(store::Keyspace& keyspace, const store::Entry& entry) override;
  void lock_deadline_set(store::Keyspace& keyspace, const store::Entry& entry,
                         int64_t deadline_ms) override;
  void lock_expiring(store::Keyspace& keyspace, const store::Entry& entry) override;
  void lock_removed(store::Keyspace& keyspace, const store::Entry& entry) override;
  void locks_cleared(store::Keyspace& keyspace) override;
  void locks_swapped(store::Keyspace& first, store::Keyspace& second) override;

 private:
  // Longer keys are not watched.
  static constexpr size_t kLongestKey = 1024;
  // Reads of one transaction or script that are remembered.
  static constexpr size_t kMostReads = 64;

  void apply_settings();
  void publish(const Finding& finding);
  void listen_for_guards();
  // Tells the model of the claims and refusals that have been counted.
  void catch_up();
  void catch_up_with_claims();
  void grow_ring();
  // Who runs the command that runs now, as the cause of what happens to the key.
  Cause cause_of(std::string_view key);
  // The command that runs now, the inner one of a transaction or script; null when none does.
  const server::Command* running() const;
  // A transaction or script looks at a key.
  void note_look(const server::Command& command, std::string_view key);
  // Whether it is one of the server's databases.
  bool is_served(const store::Keyspace& keyspace) const;
  // Counts the script that runs, if it is another one than before.
  void note_script();

  void taken_slowly(server::CommandContext& ctx, const store::Entry& entry,
                    server::LockRecipe recipe) override;
  void refused_slowly(server::CommandContext& ctx, const store::Entry& entry,
                      std::string_view value) override;
  void nested_begins(const server::Command& command, server::Arguments args) override;

  // Of the refusals that are counted, what the model is to be told.
  struct RefusedLock {
    int database = 0;
    std::string key;
    std::string token;
  };

  server::Server& server_;
  LockModel model_;
  bool on_ = false;
  bool listens_ = false;  // to keyspace events
  int64_t since_ms_ = 0;
  size_t most_claims_ = 0;
  uint64_t seen_ = 0;  // claims that the model knows
  RefusedLock refused_lock_;
  uint64_t calls_ = 0;  // transactions and scripts
  uint64_t transaction_ = 0;
  uint64_t script_ = 0;
  std::pair<uint64_t, uint64_t> script_request_;  // client, and how many it had sent before
  std::vector<std::string> reads_;  // keys that the transaction or script has looked at
};

}  // namespace latchkey::locks
