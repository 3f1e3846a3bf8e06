// KeyspaceEvents: the changes of keys. A handler reports each change once; listeners (WATCH,
// blocked clients, notifications, tracking, locks) react to it.
//
// A handler that changes a key calls changed() (or removed(), moved_away(), ...) after the change,
// and nothing else. Without listeners that costs a counter.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/assert.h"

namespace latchkey::store {
class Keyspace;
}

namespace latchkey::server {

// Classes of keyspace events; the values are the bits of notify-keyspace-events.
enum class EventClass : uint32_t {
  kGeneric = 1u << 2,
  kString = 1u << 3,
  kList = 1u << 4,
  kSet = 1u << 5,
  kHash = 1u << 6,
  kSortedSet = 1u << 7,
  kExpired = 1u << 8,
  kEvicted = 1u << 9,
  kStream = 1u << 10,
  kKeyMiss = 1u << 11,
  kModule = 1u << 12,
  kNewKey = 1u << 13,
  kOverwritten = 1u << 14,
  kTypeChanged = 1u << 15,
  kArray = 1u << 16,
};

class KeyspaceEventListener {
 public:
  virtual ~KeyspaceEventListener() = default;
  // `key` of `keyspace` has been changed, made or removed; `event` is the event's name ("set",
  // "expired").
  virtual void key_changed(store::Keyspace& keyspace, std::string_view key, EventClass event_class,
                           std::string_view event) = 0;
  // Every key of the database is about to go.
  virtual void keyspace_clearing(store::Keyspace& keyspace) = 0;
  // The contents of two databases are about to be exchanged.
  virtual void keyspaces_swapping(store::Keyspace& first, store::Keyspace& second) = 0;
  // A database or all of them have been emptied on request, or for another dataset, whether or not
  // there were keys.
  virtual void dataset_flushed() {}
};

// Hears which elements of a key's value an event is about, where handlers name them: the fields of
// hashes.
class SubkeyListener {
 public:
  virtual ~SubkeyListener() = default;
  // `subkeys`: at least one.
  virtual void subkeys_changed(store::Keyspace& keyspace, std::string_view key,
                               EventClass event_class, std::string_view event,
                               std::span<const std::string_view> subkeys) = 0;
};

// Whether an event is about what a key has beside its value (a stream's groups and counters). For
// WATCH and for client-side caching the key has not changed then.
bool is_beside_value(EventClass event_class, std::string_view event);

class KeyspaceEvents {
 public:
  // Changes since the server started; grows by one for every change a command made. What "dirty" is
  // in INFO follows from it.
  uint64_t total() const { return total_; }

  // Inlined in each handler: a change that nobody listens for costs an addition and a test.
  [[gnu::always_inline]] void changed(store::Keyspace& keyspace, std::string_view key,
                                      EventClass event_class, std::string_view event) {
    ++total_;
    if (!listeners_.empty()) notify(keyspace, key, event_class, event);
  }
  void removed(store::Keyspace& keyspace, std::string_view key) {
    changed(keyspace, key, EventClass::kGeneric, "del");
  }
  // A key that another node of the cluster has from now on. It counts as changed for clients that
  // watch it or have read it, but there is no notification of a deletion.
  void moved_away(store::Keyspace& keyspace, std::string_view key) {
    changed(keyspace, key, EventClass::kGeneric, "");
  }
  // An event without a change of the dataset that must be saved (an expired key's removal counts
  // where it is propagated).
  void happened(store::Keyspace& keyspace, std::string_view key, EventClass event_class,
                std::string_view event) {
    if (!listeners_.empty()) notify(keyspace, key, event_class, event);
  }
  // Whether anybody asks for the names of changed elements; handlers need not collect them
  // otherwise.
  bool wants_subkeys() const { return subkey_listener_ != nullptr; }
  // To be called behind changed() or happened() of the same event. Nothing happens without subkeys.
  void subkeys_changed(store::Keyspace& keyspace, std::string_view key, EventClass event_class,
                       std::string_view event, std::span<const std::string_view> subkeys) {
    if (subkey_listener_ != nullptr && !subkeys.empty())
      subkey_listener_->subkeys_changed(keyspace, key, event_class, event, subkeys);
  }
  // To be called before the fact.
  void clearing(store::Keyspace& keyspace);
  void swapping(store::Keyspace& first, store::Keyspace& second);
  // To be called once for each request that empties, behind clearing().
  void flushed();
  // Changes beyond the one that changed() counts.
  void count(uint64_t changes) { total_ += changes; }

  // Listeners hear of changes in the order in which they were added. Each costs every change a
  // call, so a listener that needs no events should be removed. REQUIRES: no listener is being
  // called.
  void add(KeyspaceEventListener& listener) {
    LK_ASSERT(!notifying_);
    listeners_.push_back(&listener);
  }
  void remove(KeyspaceEventListener& listener) {
    LK_ASSERT(!notifying_);
    std::erase(listeners_, &listener);
  }
  // There is one at most; null takes it away.
  void set_subkey_listener(SubkeyListener* listener) { subkey_listener_ = listener; }

 private:
  void notify(store::Keyspace& keyspace, std::string_view key, EventClass event_class,
              std::string_view event);
  template <typename Call>
  void for_each_listener(Call&& call);

  uint64_t total_ = 0;
  std::vector<KeyspaceEventListener*> listeners_;
  bool notifying_ = false;  // the listeners are being called
  SubkeyListener* subkey_listener_ = nullptr;
};

}  // namespace latchkey::server
