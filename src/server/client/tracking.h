// Client-side caching: tells clients that something they have read, or any key with a prefix that
// they named, has changed, so that they forget what they remember of it.
//
// A client is told in one of two ways. By default the keys of the read-only commands it runs are
// remembered, and the first change of each is told, once, to all who have read it; with OPTIN and
// OPTOUT the client says which commands count. In broadcast mode nothing is remembered: the client
// is told at the end of each turn of the loop of all keys with its prefixes that have changed in
// it. Keys are names, whatever the database. A message goes behind the reply (and behind whatever
// else there is to say) of a client that is being served just now.
//
// Who speaks RESP2 hears of it through another connection: one that speaks RESP3, or one that has
// subscribed to anything, which receives a message of the channel __redis__:invalidate.
//
// The table of keys that were read holds at most tracking-table-max-keys; when it holds more, keys
// chosen by chance are given up between commands: their readers are told that they have changed.
//
// Listens to effects only while a client tracks; with the last of them the table goes. Costs for
// each change a hash lookup, and one for each length of prefixes that anybody named; O(keys)
// for a command that is remembered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "resp/output_buffer.h"
#include "server/command/command_context.h"
#include "server/command/key_spec.h"
#include "server/command/keyspace_events.h"

namespace latchkey::server {

class Client;
class Server;

struct TrackingOptions {
  // Of the client that is told in place of this one; 0: this one is told itself.
  uint64_t redirect = 0;
  bool broadcast = false;
  // Commands count that follow CLIENT CACHING YES / those that do not follow CLIENT CACHING NO.
  bool opt_in = false;
  bool opt_out = false;
  // Not told of what it changes itself.
  bool no_loop = false;
};

// Of a client that tracks.
struct TrackingState {
  TrackingOptions options;
  // The client that was to be told was gone when there was something to tell.
  bool redirect_broken = false;
  // Of broadcast mode; no one begins another, but the empty one may stand with others.
  std::set<std::string> prefixes;
};

class Tracking final : public KeyspaceEventListener {
 public:
  explicit Tracking(Server& server);

  // The client is told from now on, with these options in place of those it had; prefixes are added
  // to those it has. In broadcast mode no prefix means every key. Whether options and prefixes make
  // sense together has been checked.
  void start(Client& client, const TrackingOptions& options,
             std::span<const std::string_view> prefixes);
  // Of no effect on a client that does not track.
  void stop(Client& client);

  // The client has read what a command names, be it by a script or a transaction.
  // REQUIRES: the client tracks.
  void remember(Client& reader, const Command& command, Arguments args);

  // When the table holds too much (kStateTrackingFull): gives up a hundred keys, and more each time
  // until that is enough.
  void give_up_some();

  // Whether keys have changed that clients in broadcast mode have not been told of; tells them.
  bool any_to_broadcast() const { return !touched_.empty(); }
  void broadcast();

  // --- Figures ----------------------------------------------------------------------------------
  size_t clients() const { return clients_; }
  // Keys in the table, and how many readers all of them have together.
  size_t keys() const { return readers_.size(); }
  size_t items() const { return items_; }
  size_t prefixes() const { return prefixes_.size(); }
  // Bytes of memory that the eviction cycle under way has taken to tell of its keys. To evict for
  // these would bring more to tell, without an end.
  size_t memory_taken_by_evictions() const { return memory_taken_by_evictions_; }
  // Bytes that the client's prefixes take, about.
  static size_t memory_of(const Client& client);

  // KeyspaceEventListener
  void key_changed(store::Keyspace& keyspace, std::string_view key, EventClass event_class,
                   std::string_view event) override;
  void keyspace_clearing(store::Keyspace&) override {}
  void keyspaces_swapping(store::Keyspace&, store::Keyspace&) override {}
  void dataset_flushed() override;

  // As long as it lives keys are evicted in one cycle.
  class EvictionCycle {
   public:
    explicit EvictionCycle(Tracking& tracking) : tracking_(tracking) {}
    ~EvictionCycle() { tracking_.memory_taken_by_evictions_ = 0; }
    EvictionCycle(const EvictionCycle&) = delete;
    EvictionCycle& operator=(const EvictionCycle&) = delete;

   private:
    Tracking& tracking_;
  };

 private:
  using ClientIds = std::vector<uint64_t>;  // in order
  struct Hash {
    using is_transparent = void;
    const base::HashSecret* secret;
    size_t operator()(std::string_view name) const { return secret->hash(name); }
  };
  using Readers = std::unordered_map<std::string, ClientIds, Hash, std::equal_to<>>;
  // Keys that have changed, with the client that changed it last, or 0.
  using ChangedKeys = std::map<std::string, uint64_t, std::less<>>;
  struct Prefix {
    std::set<uint64_t> listeners;  // client ids
    ChangedKeys changed;
  };
  using Prefixes = std::map<std::string, Prefix, std::less<>>;
  class Message;

  void add_sink(std::string_view key, uint64_t client_id);
  void add_prefix(Client& client, std::string_view name);
  void remove_prefix(Client& client, const std::string& name);
  void forget_table();
  bool is_full() const;
  // Sets kStateTrackingFull as it is.
  void update_limit();
  Readers::iterator random_key();
  void tell_of_change(std::string_view key, EventClass event_class, std::string_view event);
  // Takes the key out of the table and tells its readers; but not `spared` if it wants no loop.
  void invalidate(Readers::iterator key, const Client* spared);
  void note_for_broadcast(std::string_view key, uint64_t changed_by);
  void broadcast_to(Client& listener, const ChangedKeys& changed, const Message& all);
  void tell(Client& reader, const Message& message);
  void tell_redirect_broken(Client& reader);
  // Where messages to the client go that come behind all others; null when it may get no more.
  resp::OutputBuffer* way_to(Client& client);

  Server& server_;
  size_t clients_ = 0;
  Readers readers_;
  size_t items_ = 0;
  int attempts_ = 0;  // to get within the limit
  size_t memory_taken_by_evictions_ = 0;
  Prefixes prefixes_;
  std::map<size_t, size_t> prefix_lengths_;  // how many prefixes there are of each length
  std::vector<Prefixes::iterator> touched_;  // those with changed keys
  std::vector<KeyReference> found_;          // kept from one command to the next
};

}  // namespace latchkey::server
