#include "server/command/watch.h"

#include <algorithm>
#include <utility>

#include "server/client/client.h"
#include "server/server.h"
#include "store/keyspace.h"

namespace latchkey::server {

namespace {

// Whether the key is there and past its deadline, without removing it.
bool is_past_deadline(store::Keyspace& keyspace, std::string_view key) {
  const store::Entry* entry = keyspace.table().find_item(key);
  return entry != nullptr && keyspace.is_expired(*entry);
}

}  // namespace

WatchRegistry::WatchRegistry(Server& server)
    : server_(server), by_key_(0, KeyPlaceHash{&server.environment().secret}) {}

void WatchRegistry::watch(Client& client, std::string_view key) {
  ByKey::value_type& watched_key =
      *by_key_.try_emplace(KeyPlace{client.database, std::string(key)}).first;
  Watched& watched = by_client_[client.id];
  if (watches(client, watched, watched_key)) return;
  Watchers& watchers = watched_key.second;
  watched.keys.push_back({&watched_key, watchers.size()});
  watchers.push_back({&client, &watched, watched.keys.size() - 1,
                      is_past_deadline(server_.database(client.database), key)});
  watched.bytes += sizeof(KeyPlace) + key.size() + sizeof(WatchedKey) + sizeof(Watcher);
  if (!std::exchange(listens_, true)) server_.events().add(*this);
}

bool WatchRegistry::watches(const Client& client, const Watched& watched,
                            const ByKey::value_type& key) {
  const Watchers& watchers = key.second;
  if (watched.keys.size() < watchers.size())
    return std::ranges::find(watched.keys, &key, &WatchedKey::key) != watched.keys.end();
  return std::ranges::find(watchers, &client, &Watcher::client) != watchers.end();
}

void WatchRegistry::unwatch_all(Client& client) {
  client.watched_key_changed = false;
  forget(client);
  if (by_client_.empty() && std::exchange(listens_, false)) server_.events().remove(*this);
}

void WatchRegistry::forget(const Client& client) {
  const auto mine = by_client_.find(client.id);
  if (mine == by_client_.end()) return;
  for (const auto& [key, index] : mine->second.keys) {
    Watchers& watchers = key->second;
    // The last one takes the place.
    watchers[index] = watchers.back();
    watchers[index].watched->keys[watchers[index].index].index = index;
    watchers.pop_back();
    if (watchers.empty()) by_key_.erase(by_key_.find(key->first));
  }
  by_client_.erase(mine);
}

void WatchRegistry::note_changes(std::span<Client* const> clients) {
  for (Client* client : clients) {
    client->watched_key_changed = true;
    forget(*client);
  }
}

std::vector<std::string> WatchRegistry::keys_watched_by(const Client& client) const {
  std::vector<std::string> keys;
  if (const auto mine = by_client_.find(client.id); mine != by_client_.end()) {
    for (const WatchedKey& watched : mine->second.keys) keys.push_back(watched.key->first.key);
  }
  return keys;
}

size_t WatchRegistry::watched_by(const Client& client) const {
  const auto mine = by_client_.find(client.id);
  return mine == by_client_.end() ? 0 : mine->second.keys.size();
}

size_t WatchRegistry::memory_of(const Client& client) const {
  const auto mine = by_client_.find(client.id);
  return mine == by_client_.end() ? 0 : mine->second.bytes;
}

bool WatchRegistry::any_expired(const Client& client) const {
  const auto mine = by_client_.find(client.id);
  if (mine == by_client_.end()) return false;
  return std::ranges::any_of(mine->second.keys, [&](const WatchedKey& watched) {
    const auto& [place, watchers] = *watched.key;
    return is_past_deadline(server_.database(place.database), place.key) &&
           !watchers[watched.index].was_expired;
  });
}

void WatchRegistry::key_changed(store::Keyspace& keyspace, std::string_view key,
                                EventClass event_class, std::string_view event) {
  if (is_beside_value(event_class, event)) return;
  const auto it = by_key_.find(KeyPlaceView{keyspace.index(), key});
  if (it == by_key_.end()) return;
  std::vector<Client*> changed;
  for (Watcher& watcher : it->second) {
    if (event_class == EventClass::kExpired && watcher.was_expired) {
      watcher.was_expired = false;
    } else {
      changed.push_back(watcher.client);
    }
  }
  note_changes(changed);
}

void WatchRegistry::keyspace_clearing(store::Keyspace& keyspace) {
  std::vector<Client*> changed;
  for (auto& [place, watchers] : by_key_) {
    if (place.database != keyspace.index() || keyspace.table().find_item(place.key) == nullptr)
      continue;
    for (Watcher& watcher : watchers) {
      if (!watcher.was_expired) changed.push_back(watcher.client);
      watcher.was_expired = false;
    }
  }
  note_changes(changed);
}

void WatchRegistry::keyspaces_swapping(store::Keyspace& first, store::Keyspace& second) {
  std::vector<Client*> changed;
  for (auto& [place, watchers] : by_key_) {
    if (place.database != first.index() && place.database != second.index()) continue;
    store::Keyspace& after = place.database == first.index() ? second : first;
    const bool existed = server_.database(place.database).table().find_item(place.key) != nullptr;
    const bool will_exist = after.table().find_item(place.key) != nullptr;
    const bool will_be_expired = will_exist && is_past_deadline(after, place.key);
    for (Watcher& watcher : watchers) {
      // A key that is past its deadline counts as none, before and after.
      if ((existed && !watcher.was_expired) || (will_exist && !will_be_expired))
        changed.push_back(watcher.client);
      watcher.was_expired = will_be_expired;
    }
  }
  note_changes(changed);
}

}  // namespace latchkey::server
