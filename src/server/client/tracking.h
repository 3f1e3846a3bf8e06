// Client-side caching: sends clients invalidations of keys that they have read, or of keys with
// prefixes that they named, so that they drop their cached copies.
//
// There are two modes. By default the keys of a client's read-only commands are remembered in a
// table, and the first change of a key is sent, once, to all clients that have read it; with OPTIN
// and OPTOUT the client says which commands count. In broadcast mode nothing is remembered: at the
// end of each turn of the loop the client is sent all keys with its prefixes that have changed in
// it. Keys are names, whatever the database. A client that is being served receives the message
// after its reply and its other messages.
//
// A RESP2 client receives the messages on another connection (REDIRECT): one that speaks RESP3, or
// one that has any subscription, which receives them as messages of the channel
// __redis__:invalidate.
//
// The table holds at most tracking-table-max-keys keys; when it holds more, random keys are dropped
// between commands, and their readers are sent invalidations.
//
// Registered for keyspace events only while a client tracks; the table is freed with the last of
// them. A change costs a hash lookup, and one more for each distinct length of prefixes; a command
// that is remembered costs O(keys).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/digest/hash.h"
#include "resp/output_buffer.h"
#include "server/command/arguments.h"
#include "server/command/key_spec.h"
#include "server/command/keyspace_events.h"

namespace latchkey::server {

class Client;
class Server;
struct Command;

struct TrackingOptions {
  // Id of the client that receives the messages instead of this one; 0: this one.
  uint64_t redirect = 0;
  bool broadcast = false;
  // opt_in: only commands after CLIENT CACHING YES count. opt_out: those after CLIENT CACHING NO do
  // not.
  bool opt_in = false;
  bool opt_out = false;
  // The client receives no invalidations of its own writes.
  bool no_loop = false;
};

// State of a client that tracks.
struct TrackingState {
  TrackingOptions options;
  // The redirect client was gone when a message was to be sent.
  bool redirect_broken = false;
  // Prefixes of broadcast mode; none is a prefix of another, except that the empty one may be in
  // the set besides others.
  std::set<std::string> prefixes;
};

class Tracking final : public KeyspaceEventListener {
 public:
  explicit Tracking(Server& server);

  // Starts tracking; the options replace the client's previous ones, the prefixes are added to its
  // previous ones. In broadcast mode no prefix means every key. REQUIRES: the combination of
  // options and prefixes has been checked.
  void start(Client& client, const TrackingOptions& options,
             std::span<const std::string_view> prefixes);
  // No effect on a client that does not track.
  void stop(Client& client);

  // Remembers the keys of a command that the client has run, directly or in a script or
  // transaction. REQUIRES: the client tracks.
  void remember(Client& reader, const Command& command, Arguments args);

  // Called when the table is too large (kStateTrackingFull): drops a hundred keys, and more with
  // each call until the table is within the limit.
  void drop_some();

  // Whether there are changed keys to broadcast; broadcasts them.
  bool any_to_broadcast() const { return !touched_.empty(); }
  void broadcast();

  // --- Figures ----------------------------------------------------------------------------------
  size_t clients() const { return clients_; }
  // Number of keys in the table, and the sum of their readers.
  size_t keys() const { return readers_.size(); }
  size_t items() const { return items_; }
  size_t prefixes() const { return prefixes_.size(); }
  // Bytes of memory that the messages about evicted keys have taken in the current eviction cycle.
  // Eviction does not count them: evicting more keys would send more messages, without end.
  size_t memory_taken_by_evictions() const { return memory_taken_by_evictions_; }
  // Bytes that the client's tracking state takes, approximately.
  static size_t memory_of(const Client& client);

  // KeyspaceEventListener
  void key_changed(store::Keyspace& keyspace, std::string_view key, EventClass event_class,
                   std::string_view event) override;
  void keyspace_clearing(store::Keyspace&) override {}
  void keyspaces_swapping(store::Keyspace&, store::Keyspace&) override {}
  void dataset_flushed() override;

  // While it exists, changes do not count as the serving client's own: it is sent invalidations of
  // them even with NOLOOP, because it cannot know what its request changes.
  class [[nodiscard]] UnownedChanges {
   public:
    explicit UnownedChanges(Tracking& tracking) : tracking_(tracking) { tracking_.owned_ = false; }
    ~UnownedChanges() { tracking_.owned_ = true; }
    UnownedChanges(const UnownedChanges&) = delete;
    UnownedChanges& operator=(const UnownedChanges&) = delete;

   private:
    Tracking& tracking_;
  };

  // The scope of one eviction cycle.
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
  using Readers = std::unordered_map<std::string, ClientIds, base::KeyedTextHash, std::equal_to<>>;
  // Keys that have changed, with the id of the client that changed them last, or 0.
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
  // Sets kStateTrackingFull from is_full().
  void update_limit();
  Readers::iterator random_key();
  void invalidate_changed(std::string_view key, EventClass event_class, std::string_view event);
  // Takes the key out of the table and sends its readers an invalidation, except `spared` if it has
  // no_loop.
  void invalidate(Readers::iterator key, const Client* spared);
  void add_to_broadcast(std::string_view key, uint64_t changed_by);
  void broadcast_to(Client& listener, const ChangedKeys& changed, const Message& all);
  void send(Client& reader, const Message& message);
  void send_redirect_broken(Client& reader);
  // The buffer for messages that follow all others to the client; null when its output limit is
  // reached.
  resp::OutputBuffer* open_buffer(Client& client);

  Server& server_;
  size_t clients_ = 0;
  Readers readers_;
  size_t items_ = 0;
  int attempts_ = 0;  // calls of drop_some() since the table was last within the limit
  size_t memory_taken_by_evictions_ = 0;
  bool owned_ = true;  // changes may be the serving client's own
  Prefixes prefixes_;
  std::map<size_t, size_t> prefix_lengths_;  // how many prefixes there are of each length
  std::vector<Prefixes::iterator> touched_;  // prefixes with changed keys
  std::vector<KeyReference> found_;          // reused from one command to the next
};

}  // namespace latchkey::server
