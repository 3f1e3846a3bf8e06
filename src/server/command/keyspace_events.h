// What commands changed, named once by the handler and heard by whoever reacts: WATCH, blocked
// clients, notifications, tracking, persistence, replicas.
//
// A handler that changes a key calls changed() (or removed(), renamed()...) after the change; it
// calls nothing else. Without listeners that costs a counter.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

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

// Is told which elements of a key's value an event is about, where handlers name them: the fields
// of hashes.
class SubkeyListener {
 public:
  virtual ~SubkeyListener() = default;
  // `subkeys`: at least one.
  virtual void subkeys_changed(store::Keyspace& keyspace, std::string_view key,
                               EventClass event_class, std::string_view event,
                               std::span<const std::string_view> subkeys) = 0;
};

// Whether an event is of what stands beside a key's value (a stream's groups and counters), which
// is no change to those who watch or have read the key.
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
    if (!listeners_.empty()) tell(keyspace, key, event_class, event);
  }
  void removed(store::Keyspace& keyspace, std::string_view key) {
    changed(keyspace, key, EventClass::kGeneric, "del");
  }
  // A key that lives on in another node of the cluster: who has read or watches it is told, but
  // nobody is notified of a deletion.
  void moved_away(store::Keyspace& keyspace, std::string_view key) {
    changed(keyspace, key, EventClass::kGeneric, "");
  }
  // An event without a change of the dataset that must be saved (an expired key's removal counts
  // where it is propagated).
  void happened(store::Keyspace& keyspace, std::string_view key, EventClass event_class,
                std::string_view event) {
    if (!listeners_.empty()) tell(keyspace, key, event_class, event);
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

  // Listeners hear of changes in the order in which they were added. One that has nothing to listen
  // for should leave.
  void add(KeyspaceEventListener& listener) { listeners_.push_back(&listener); }
  void remove(KeyspaceEventListener& listener) { std::erase(listeners_, &listener); }
  // There is one at most; null takes it away.
  void set_subkey_listener(SubkeyListener* listener) { subkey_listener_ = listener; }

 private:
  void tell(store::Keyspace& keyspace, std::string_view key, EventClass event_class,
            std::string_view event);

  uint64_t total_ = 0;
  std::vector<KeyspaceEventListener*> listeners_;
  SubkeyListener* subkey_listener_ = nullptr;
};

}  // namespace latchkey::server
