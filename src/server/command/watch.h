// WATCH: the keys that clients watch, and whether one of them has changed before EXEC.
//
// When a watched key has changed, its watchers watch no key any more: their EXEC will fail in any
// case. Listens to keyspace events only while a client watches keys. A change then costs a hash
// lookup, and for a key that is watched O(keys that its watchers watch).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "server/command/keyspace_events.h"
#include "server/key_place.h"

namespace latchkey::server {

class Client;
class Server;

class WatchRegistry final : public KeyspaceEventListener {
 public:
  explicit WatchRegistry(Server& server);

  // The client's transaction fails if the key changes from now on. Watching twice is watching once.
  // O(keys that the client watches) or O(watchers of the key), whichever are fewer.
  void watch(Client& client, std::string_view key);
  void unwatch_all(Client& client);
  // Keys that the client watches, in whatever database.
  std::vector<std::string> keys_watched_by(const Client& client) const;
  // How many they are.
  size_t watched_by(const Client& client) const;
  // Bytes that these take, about.
  size_t memory_of(const Client& client) const;
  size_t watching_clients() const { return by_client_.size(); }
  size_t watched_keys() const { return by_key_.size(); }
  // True when a watched key has expired since it was watched, even if no lookup has removed it.
  bool any_expired(const Client& client) const;

  // KeyspaceEventListener
  void key_changed(store::Keyspace& keyspace, std::string_view key, EventClass event_class,
                   std::string_view event) override;
  void keyspace_clearing(store::Keyspace& keyspace) override;
  void keyspaces_swapping(store::Keyspace& first, store::Keyspace& second) override;

 private:
  struct Watched;
  struct Watcher {
    Client* client;
    Watched* watched;  // by the client
    size_t index;      // in `watched`
    bool was_expired;  // past its deadline already when it was watched: its removal is no change
  };
  using Watchers = std::vector<Watcher>;
  using ByKey = std::unordered_map<KeyPlace, Watchers, KeyPlaceHash, KeyPlaceEqual>;

  struct WatchedKey {
    ByKey::value_type* key;
    size_t index;  // of the client among the key's watchers
  };
  // What a client watches.
  struct Watched {
    std::vector<WatchedKey> keys;
    size_t bytes = 0;
  };

  static bool watches(const Client& client, const Watched& watched, const ByKey::value_type& key);
  // Removes the client's watches; it may be an event that does.
  void forget(const Client& client);
  // Has the transactions of these clients fail. A client may be there more than once.
  void note_changes(std::span<Client* const> clients);

  Server& server_;
  bool listens_ = false;
  ByKey by_key_;
  std::unordered_map<uint64_t, Watched> by_client_;
};

}  // namespace latchkey::server
