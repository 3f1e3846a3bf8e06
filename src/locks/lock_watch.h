// Observes what commands do to the locks of one server, and reports it to LockModel (lock_model.h):
//
//     SETNX, SET NX, SET IFEQ      LockClaims: taken(), refused(), compared()
//     whatever changes the key     store::LockObserver, for entries that have the bit of locks
//     transactions, scripts        LockClaims: begin_nested(): which reads came before
//     a client that closes         LockClaims::client_gone(), for those that have taken locks
//
// Steps (takes, refusals and releases) stay in a ring, and are delivered to the model only when
// something else happens to the lock, or a command asks for the model. Entries of steps that have
// not ended are still in place then, because each change of one is observed before it happens.
// Clients that have disconnected are kept as long as steps of theirs may be in the ring. With
// `lock-notify` each step is delivered at once. Without `lock-watch` the server has no claims and
// the store no observer.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
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
  // The model, when all steps have been delivered to it.
  LockModel& model();
  // Forgets everything, and observes from now on.
  void reset();
  // The locks that are held, for a checkpoint; and, when it has been rolled back to, the watch of
  // those whose keys are there again. What is known of others stays.
  std::vector<HeldLock> held() { return model().held(); }
  void put_back(const std::vector<HeldLock>& locks);
  int64_t watching_since_ms() const { return since_ms_; }
  // LockModel::guard() and its reverse. While there are guards all changes of keys are looked at.
  bool guard(int database, std::string_view lock, std::vector<base::GlobPattern> globs);
  bool unguard(int database, std::string_view lock);
  void unguard_all();

  // A client that waits for a lock, and how: "blpop <key>", "subscribe <channel>".
  struct Waiting {
    PartyRef client;
    std::string how;
  };
  // The clients that wait for a key, or are subscribed to a channel, whose name is or contains that
  // of the lock. Linear in all waits and subscriptions.
  std::vector<Waiting> waiting_for(const Record& record) const;

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
  void made_by_script(server::CommandContext& ctx, const store::KeyRef& ref) override;

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
  static constexpr size_t kMaxReads = 64;

  void apply_settings();
  void publish(const Finding& finding);
  // Listens to keyspace events while there are guards or semaphores.
  void listen();
  // Whether the key is a semaphore; the change was reported to the model then.
  bool count_tokens(store::Keyspace& keyspace, std::string_view key, server::EventClass event_class,
                    std::string_view event, const Cause& cause);
  // Deliver steps of the ring to the model: those of one lock, or all. deliver_pending() delivers
  // those whose numbers are in pending_steps_, in order, and reports that their clients have gone.
  void deliver_steps_of(uint64_t hash, int database, std::string_view key);
  void deliver_steps();
  void deliver_pending();
  void deliver_step(uint64_t number);
  bool is_of(const server::LockStep& step, uint64_t number, int database,
             std::string_view key) const;
  // Whether a step of the key that is there now waits.
  bool waits(uint64_t hash, const store::Entry& entry) const;
  // The newest step of the lock that was not delivered, before that with the number `before`;
  // `before` when there is none.
  uint64_t step_before(uint64_t before, uint64_t hash, int database, std::string_view key) const;
  // The model, when the steps of this lock have been delivered to it and the next event can be.
  LockModel& model_for(const store::Entry& entry, int database);
  LockModel& model_for(uint64_t hash, int database, std::string_view key);
  // The same where it does not depend on a key.
  LockModel& model_now();
  uint64_t first_kept() const { return made_ - std::min<uint64_t>(made_ - seen_, ring_.size()); }
  void add_step_of(server::CommandContext& ctx, const store::KeyRef& ref, server::LockStep step);
  void resize_ring(size_t size);
  void grow_ring();
  uint64_t hash_of(std::string_view key) const;
  // Whether the holder has removed a lock that no other client has touched: then the end stays in
  // the ring as well.
  bool end_step(const store::Entry& entry, int database, const Cause& cause);
  // The client that runs the command that runs now; null when the server acts by itself, or for
  // clients that nobody here knows.
  server::Client* actor() const;
  // Who runs the command that runs now, as the cause of what happens to the key.
  Cause cause_of(std::string_view key);
  // The command that runs now, the inner one of a transaction or script; null when none does.
  const server::Command* running() const;
  // A transaction or script reads a key.
  void note_read(const server::Client& client, const server::Command& command,
                 std::string_view key);
  // Whether it is one of the server's databases.
  bool is_served(const store::Keyspace& keyspace) const;
  // Counts the script that runs, if it is another one than before.
  void note_script();

  void taken_slowly(server::CommandContext& ctx, const store::KeyRef& ref,
                    server::LockRecipe recipe) override;
  void refused_slowly(server::CommandContext& ctx, const store::KeyRef& ref,
                      std::string_view value) override;
  void nested_begins(const server::Command& command, server::Arguments args) override;
  void list_made_slowly(server::CommandContext& ctx, std::string_view key,
                        size_t elements) override;

  // How a lock ended, and what it was, for its key is no more.
  struct End {
    static constexpr size_t kLongest = 48;
    std::array<char, kLongest> key;
    std::array<char, kLongest> token;
    uint8_t key_size = 0;
    uint8_t token_size = 0;
    int64_t deadline_ms = -1;
    Cause cause;
    uint64_t step = 0;
    std::string_view key_text() const { return {key.data(), key_size}; }
    std::string_view token_text() const { return {token.data(), token_size}; }
  };

  // A client that has gone.
  struct GoneClient {
    uint64_t step = 0;  // all of its steps are before
    int64_t time_ms = 0;
    Party party;
  };
  // Keeps the client until its steps were delivered, or overwritten.
  void keep(GoneClient client);

  server::Server& server_;
  LockModel model_;
  bool on_ = false;
  bool listens_ = false;  // to keyspace events
  int64_t since_ms_ = 0;
  bool waits_ = true;  // steps may wait
  size_t most_steps_ = 0;
  uint64_t seen_ = 0;             // the model knows the steps before, and some of those after
  bool delivered_early_ = false;  // the model was told of something before an earlier step
  std::vector<End> ends_;  // of the steps in the ring that have ended; empty while there are none
  std::unordered_map<uint64_t, GoneClient> gone_clients_;  // by client; some may have no steps
  std::vector<uint64_t> pending_steps_;
  std::vector<const GoneClient*> leaving_;         // clients of the steps that are being told
  const server::Command* seen_command_ = nullptr;  // the last that removed a lock
  bool seen_command_deletes_ = false;              // it is one of those by which clients release
  uint32_t calls_ = 0;                             // transactions and scripts
  uint32_t transaction_ = 0;
  uint32_t script_ = 0;
  std::pair<uint64_t, uint64_t> script_request_;  // client, and how many it had sent before
  std::vector<uint64_t> reads_;  // hashes of keys that the transaction or script has looked at
};

}  // namespace latchkey::locks
