// One database: keys, their values and their deadlines.
//
// Keys expire lazily: find() removes a key past its deadline and does not return it; and actively:
// expire_due() removes the rest within a tick or two of their deadlines. Values whose elements have
// deadlines are in a second index by the earliest of them, which expire_due() processes as well;
// until then the value itself hides expired elements.
//
// Every change of a key goes through Keyspace and a KeyRef: find() returns the key's place in the
// table, which the following operations use without another lookup. A KeyRef is valid until another
// key of the same keyspace is inserted or erased. Operations that move the entry update the KeyRef
// they were given. Keyspace sends no notifications of changes; handlers send them through
// server::KeyspaceEvents. Expiry is the exception, because no command asked for it: Keyspace
// reports it to the ExpiryObserver.
//
// Not thread-safe. All costs O(1) expected unless stated.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/digest/hash.h"
#include "base/random.h"
#include "store/deadline_wheel.h"
#include "store/entry.h"
#include "store/hash_table.h"
#include "store/hidden_slots.h"
#include "store/key_sizes.h"
#include "store/prefetched_walk.h"
#include "store/reclaimer.h"
#include "store/value/field_names.h"
#include "store/value_limits.h"

namespace latchkey::store {

class Keyspace;
class SeriesIndex;
class SlotIndex;
class UndoLog;

// A value that may have been changed since find_for_write() or set_value(): its size must be
// counted again, and it may be small enough to be packed.
struct ChangedValue {
  Keyspace* keyspace;
  uint64_t hash;  // of its key
  Entry* entry;
  Value* value;  // null: the value was removed
};

// Is notified of expired keys before they are removed. Must not touch the keyspace.
class ExpiryObserver {
 public:
  virtual ~ExpiryObserver() = default;
  virtual void key_expiring(Keyspace& keyspace, std::string_view key) = 0;
  // Elements of the key's value have been removed; if `last`, the key will be removed too. `names`:
  // the elements' names, if Environment::name_expired_elements is set.
  virtual void elements_expired(Keyspace& keyspace, std::string_view key,
                                std::span<const std::string> names, bool last) = 0;
};

// Is notified of new keys, of counted lookups that miss, and of keys whose value is replaced by one
// of another type. Must not touch the keyspace.
class KeyObserver {
 public:
  virtual ~KeyObserver() = default;
  virtual void key_added(Keyspace& keyspace, std::string_view key) = 0;
  virtual void key_missed(Keyspace& keyspace, std::string_view key) = 0;
  virtual void type_changed(Keyspace& keyspace, std::string_view key) = 0;
};

// Is notified of changes of keys that were taken as locks (Keyspace::mark_lock), before each. Must
// not touch the keyspace. Other keys cost a test of a bit.
class LockObserver {
 public:
  virtual ~LockObserver() = default;
  // The key becomes, or stays, a string. `deadline_ms`: Unix time, or -1.
  virtual void lock_set(Keyspace& keyspace, const Entry& entry, std::string_view value,
                        int64_t deadline_ms) = 0;
  // Its value becomes one of another kind, or is changed in place.
  virtual void lock_changed(Keyspace& keyspace, const Entry& entry) = 0;
  virtual void lock_deadline_set(Keyspace& keyspace, const Entry& entry, int64_t deadline_ms) = 0;
  virtual void lock_expiring(Keyspace& keyspace, const Entry& entry) = 0;
  // It is deleted or evicted, or goes to another name or database.
  virtual void lock_removed(Keyspace& keyspace, const Entry& entry) = 0;
  // All keys of the database go.
  virtual void locks_cleared(Keyspace& keyspace) = 0;
  virtual void locks_swapped(Keyspace& first, Keyspace& second) = 0;
};

// What has been counted since the start of the server or its last CONFIG RESETSTAT.
struct KeyspaceFigures {
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t expired_keys = 0;
  uint64_t expired_elements = 0;  // elements with deadlines of their own, such as hash fields
  // Those of the expired ones that expire_due() has found, not a lookup.
  uint64_t found_expired_keys = 0;
  uint64_t found_expired_elements = 0;
};

// State shared by all databases of a server.
struct Environment {
  base::HashSecret secret;
  base::Random random{0};
  Reclaimer reclaimer;
  ExpiryObserver* expiry_observer = nullptr;  // may be null, as the other two
  KeyObserver* key_observer = nullptr;
  LockObserver* lock_observer = nullptr;

  // Time and access. The server sets `now_ms` and `access_clock` once per batch of commands, so
  // that time does not change during a command, a transaction or a script.
  int64_t now_ms = 0;         // Unix time
  uint32_t access_clock = 0;  // the access field of an entry used under LRU
  bool use_lfu = false;       // entries count accesses instead
  bool use_lrm = false;       // entries are used when they are changed, not when they are looked up
  bool freeze_access = false;  // for clients in NO-TOUCH mode
  // kRemove: normal. kHide: expired keys are invisible but stay (writes are paused). kShow: expired
  // keys are visible (loading).
  enum class Expired : uint8_t { kRemove, kHide, kShow } expired = Expired::kRemove;
  int lfu_log_factor = 10;
  int lfu_decay_minutes = 1;
  KeyspaceFigures figures;

  // Values.
  ValueLimits limits;
  FieldNameSets field_names;
  // The values changed since pack_changed(), and how many are worth the call although they may soon
  // be changed again.
  std::vector<ChangedValue> changed;
  size_t many_changed = 1024;
  // Whether values add the names of the elements they expire to expired_names, for the observer.
  bool name_expired_elements = false;
  std::vector<std::string> expired_names;
  uint64_t vector_sets_made = 0;  // the number that the next vector set gets
  uint64_t series_numbered = 0;   // the number that the last time series got
};

// The access field of an entry that is used at this time, and of a new entry.
uint32_t touched_access(const Environment& environment, uint32_t access, base::Random& random);
uint32_t initial_access(const Environment& environment);
// Seconds since an entry was used; under LRU.
uint32_t idle_seconds(const Environment& environment, uint32_t access);
// The LFU counter after decay, 0 .. 255.
uint8_t lfu_counter(const Environment& environment, uint32_t access);

class KeyRef {
 public:
  KeyRef() = default;
  explicit operator bool() const { return slot_ != nullptr; }
  Entry* operator->() const { return *slot_; }
  Entry& operator*() const { return **slot_; }
  std::string_view key() const { return key_; }
  // Of the key, under Environment::secret.
  uint64_t hash() const { return hash_; }

 private:
  friend class Keyspace;
  KeyRef(std::string_view key, uint64_t hash, Entry** slot) : key_(key), hash_(hash), slot_(slot) {}

  std::string_view key_;
  uint64_t hash_ = 0;
  Entry** slot_ = nullptr;  // null: no such key
};

// An entry outside of any keyspace, while it moves from one to another.
class DetachedEntry {
 public:
  DetachedEntry() = default;
  DetachedEntry(DetachedEntry&& other) noexcept
      : entry_(std::exchange(other.entry_, nullptr)), deadline_ms_(other.deadline_ms_) {}
  DetachedEntry& operator=(DetachedEntry&& other) noexcept {
    std::swap(entry_, other.entry_);
    deadline_ms_ = other.deadline_ms_;
    return *this;
  }
  ~DetachedEntry();
  const Entry& operator*() const { return *entry_; }
  const Entry* operator->() const { return entry_; }
  int64_t deadline_ms() const { return deadline_ms_; }

 private:
  friend class Keyspace;
  explicit DetachedEntry(Entry* entry, int64_t deadline_ms)
      : entry_(entry), deadline_ms_(deadline_ms) {}
  Entry* entry_ = nullptr;
  int64_t deadline_ms_ = -1;
};

class Keyspace {
 public:
  static constexpr int64_t kNoDeadline = -1;
  // For `deadline_ms` parameters: leave the deadline as it is.
  static constexpr int64_t kKeepDeadline = -2;

  enum Find : uint8_t {
    kTouch = 0,
    kNoTouch = 1,
    kNoStats = 2,
    kPeek = kNoTouch | kNoStats,
    kEvenExpired = 4,  // finds expired keys that were not removed yet
  };

  Keyspace(int index, Environment& environment);
  ~Keyspace();
  Keyspace(const Keyspace&) = delete;
  Keyspace& operator=(const Keyspace&) = delete;

  // The database's number; SWAPDB exchanges the contents, not the numbers.
  int index() const { return index_; }
  size_t size() const { return table_.size(); }
  bool empty() const { return table_.empty(); }
  size_t volatile_size() const { return deadlines_ == nullptr ? 0 : deadlines_->size(); }
  // Number of values that have elements with deadlines.
  size_t volatile_elements_size() const {
    return element_deadlines_ == nullptr ? 0 : element_deadlines_->size();
  }
  bool has_deadlines() const { return volatile_size() != 0 || volatile_elements_size() != 0; }
  // Mean time to live of keys that have a deadline, in milliseconds; 0 when there are none.
  int64_t mean_ttl_ms() const;
  Environment& environment() { return environment_; }

  // --- Looking up -------------------------------------------------------------------------------

  // Three steps that prefetch what a lookup will read; other work should lie between them.
  uint64_t prefetch_bucket(std::string_view key) const {
    const uint64_t hash = table_.hash(key);
    table_.prefetch_bucket(hash);
    return hash;
  }
  void prefetch_entry(uint64_t hash) const { table_.prefetch_item(hash); }
  void prefetch_chained_entry(uint64_t hash) const { table_.prefetch_chained_item(hash); }

  // Fourth step: prefetches and returns the value if it has an object; null if it is a string or
  // packed, or if there is no such key. Does not count a hit or a miss, nor mark the entry as used.
  const Value* prefetch_value(std::string_view key, uint64_t hash) {
    Entry** slot = table_.find(key, hash);
    if (slot == nullptr || (*slot)->is_string()) return nullptr;
    if ((*slot)->is_packed()) return nullptr;
    const Value* value = (*slot)->value();
    base::prefetch(value);
    return value;
  }

  // For commands that read: counts a hit or a miss and marks the entry as used, unless `how` says
  // otherwise.
  KeyRef find(std::string_view key, uint8_t how = kTouch) {
    return find_hashed(key, table_.hash(key), how);
  }
  // Like find(), with the hash that prefetch_bucket() returned.
  KeyRef find_hashed(std::string_view key, uint64_t hash, uint8_t how = kTouch) {
    Entry** slot = table_.find(key, hash);
    if (slot != nullptr && (*slot)->has_deadline() && (how & kEvenExpired) == 0)
      slot = unless_expired(slot, hash);
    if (slot == nullptr) {
      if ((how & kNoStats) == 0) count_miss(key);
      return {key, hash, nullptr};
    }
    if ((how & kNoStats) == 0) ++environment_.figures.hits;
    if ((how & kNoTouch) == 0) touch(**slot);
    return {key, hash, slot};
  }
  // For commands that change a collection in place: marks the entry as used, keeps a copy of the
  // collection where a checkpoint needs it, and gives one that is packed an object. Strings change
  // only through the operations below.
  KeyRef find_for_write(std::string_view key, uint8_t how = kNoStats) {
    if (undo_log_ != nullptr) [[unlikely]]
      return find_before_change(key, table_.hash(key), how, /*changes_in_place=*/true);
    const KeyRef ref = find(key, how);
    if (ref && !ref->is_string()) prepare_change(ref);
    return ref;
  }
  // For commands that change the key only through the operations below: they replace or remove the
  // value, change a string, or set the deadline. A collection is not copied.
  KeyRef find_to_replace(std::string_view key, uint8_t how = kNoStats) {
    return find_hashed_to_replace(key, table_.hash(key), how);
  }
  // Like find_to_replace(), with the hash that prefetch_bucket() returned.
  KeyRef find_hashed_to_replace(std::string_view key, uint64_t hash, uint8_t how = kNoStats) {
    if (undo_log_ != nullptr) [[unlikely]]
      return find_before_change(key, hash, how, /*changes_in_place=*/false);
    return find_hashed(key, hash, how);
  }

  bool exists(std::string_view key) { return static_cast<bool>(find(key, kPeek)); }

  // A key chosen uniformly among those neither expired nor hidden (nearly so while there are hidden
  // ones); null when there is none. Removes the expired keys that it draws. If they must stay
  // (kHide) and all keys have deadlines, it returns the hundredth expired key.
  const Entry* random_entry();

  // Calls fn(const Entry&) for `count` keys that have a deadline, or all if there are fewer; the
  // next call sees other keys, chosen roughly at random. fn must not change anything.
  template <typename Fn>
  void sample_volatile(size_t count, Fn&& fn) {
    if (volatile_size() == 0) return;
    deadlines_->sample(environment_.random.next(), count, [&](const DeadlineNode& node) {
      fn(Entry::of(const_cast<DeadlineNode&>(node)));
    });
  }

  // Calls fn(const Entry&) for every key that is neither expired nor hidden. O(size).
  template <typename Fn>
  void for_each(Fn&& fn) const {
    for_each_prefetched(table_, [&](Entry* entry) {
      if (!is_expired(*entry) && !is_hidden(*entry)) fn(static_cast<const Entry&>(*entry));
    });
  }
  // One step of SCAN, expired and hidden entries included: see HashTable::scan.
  template <typename Fn>
  uint64_t scan(uint64_t cursor, Fn&& fn) const {
    return table_.scan(cursor, [&](Entry* entry) { fn(static_cast<const Entry&>(*entry)); });
  }
  bool is_expired(const Entry& entry) const {
    return entry.has_deadline() && entry.deadline_ms() <= environment_.now_ms &&
           environment_.expired != Environment::Expired::kShow && !is_hidden(entry);
  }
  // Whether the key is in a hidden slot.
  bool is_hidden(const Entry& entry) const {
    return hidden_slots_ != nullptr && hidden_slots_->hides(entry.key());
  }
  // Whether the key is in a slot that is being deleted.
  bool is_leaving(const Entry& entry) const {
    return hidden_slots_ != nullptr && hidden_slots_->drops(entry.key());
  }
  // Number of keys that are not hidden. O(1), or O(slots) while there are hidden ones.
  size_t visible_size() const;

  // --- Changing ---------------------------------------------------------------------------------

  // A key whose value is replaced keeps its access field, which find() has updated.

  // Sets the key to a string, whatever its type was, in the form that suits `bytes`: integer,
  // inline or blob. `deadline_ms`: Unix time, kNoDeadline or kKeepDeadline. `bytes` may be part of
  // the old value.
  void set_string(KeyRef& ref, std::string_view bytes, int64_t deadline_ms = kNoDeadline);
  // Like set_string(), but never in the form of an integer.
  void set_text(KeyRef& ref, std::string_view bytes, int64_t deadline_ms = kNoDeadline);
  // Sets the key to a string of the blob's bytes, in the form of strings changed in place. Adopts
  // the reference, which must be the only one.
  void set_blob(KeyRef& ref, base::Blob* blob, int64_t deadline_ms = kNoDeadline);
  // Sets the key to the integer `value`.
  void set_integer(KeyRef& ref, int64_t value, int64_t deadline_ms = kKeepDeadline);
  // Extends an existing string (or creates one) to `size` bytes, at least its current size, and
  // returns all its bytes for writing; new ones are zero. The deadline stays.
  std::span<char> extend_string(KeyRef& ref, size_t size);
  // Sets the key to `value`, and takes ownership of it.
  void set_value(KeyRef& ref, Type type, std::unique_ptr<Value> value,
                 int64_t deadline_ms = kNoDeadline);

  // Unix time in milliseconds, or kNoDeadline.
  void set_deadline(KeyRef& ref, int64_t deadline_ms);
  void set_access(KeyRef& ref, uint32_t access) { ref->set_access(access); }
  // The key is a lock: Environment::lock_observer hears of its changes until it is removed. Returns
  // its entry, which stays where it is until then.
  const Entry* mark_lock(const KeyRef& ref) {
    ref->flags_ |= Entry::kLock;
    return *ref.slot_;
  }

  // Callers must call this after they set, changed or removed deadlines of elements of the value at
  // `ref`.
  void index_elements(const KeyRef& ref) { index_elements(**ref.slot_); }
  // Callers must call this before they change a value in place at a `ref` that find() returned, and
  // get the value again: one that was packed has an object now.
  void will_change(const KeyRef& ref) {
    keep_before_change(ref);
    if (ref->is_packed()) prepare_change(ref);
  }
  // Counts the sizes of the values in Environment::changed again, in all databases that share the
  // environment, and packs those that are small; the latest 4096, if there are more. REQUIRES:
  // nobody has a KeyRef or a pointer to a collection or an entry. Cost: an allocation for each
  // value that has grown, or is new.
  static void pack_changed(Environment& environment);
  // Callers must call this after they removed expired elements of the value at `ref`: notifies the
  // observer, and removes the key if the value is empty; `ref` is empty then.
  void elements_expired(KeyRef& ref);

  // Removes an existing key; `ref` becomes empty. Large values are freed in the background if
  // `lazily`, huge ones always, so that no removal stops the server.
  void erase(KeyRef& ref, bool lazily = true);
  // Removes every key. In the background unless !lazily.
  void clear(bool lazily);

  // Removes an existing key and returns its entry, for attach().
  DetachedEntry detach(KeyRef& ref);
  // A copy of an existing key's value.
  DetachedEntry copy(const KeyRef& ref) const;
  // Inserts `entry` under the key of `ref`, which must be empty, with the entry's deadline. Its
  // access field is that of a new entry.
  void attach(KeyRef& ref, DetachedEntry entry);

  // Empties the database without notifying anybody; `reclaimer`, which may be another server's,
  // frees what was in it on its thread.
  void release_contents(Reclaimer& reclaimer);

  // Exchanges the contents of two databases, and their undo logs.
  void swap(Keyspace& other);

  // Removes keys and elements whose deadline has passed, in about `budget` steps of work; false
  // when there is more to do.
  bool expire_due(size_t budget);

  // A key that expires, or has elements that do, at a time.
  struct Due {
    int64_t deadline_ms;
    std::string key;
    bool elements_only;
  };
  // Appends what is due by `until_ms` in the same tick of 16 ms as the first that is due; in no
  // order. False when nothing is due by then.
  bool first_due(int64_t until_ms, std::vector<Due>* out);
  // Removes the key, or its due elements, if it is still due. Returns when more of its elements are
  // due; kNoDeadline where the key was to expire, or no element of it has a deadline. REQUIRES:
  // due.deadline_ms <= now_ms of the environment.
  int64_t expire(const Due& due);

  // --- Checkpoints (store/undo_log.h) ------------------------------------------------------------

  UndoLog* undo_log() const { return undo_log_; }
  // From now on `log` keeps the state of each key before its first change. Null: nothing is kept.
  // The log must outlive the keyspace, or be removed before.
  void set_undo_log(UndoLog* log) { undo_log_ = log; }
  // Whether the log needs the present state of the key at `ref`. Then the value is not changed in
  // place, and removing the key frees no memory.
  bool must_keep(const KeyRef& ref) const {
    return undo_log_ != nullptr && must_keep_logged(ref.key_, ref.hash_);
  }
  // Whether there are keys that must be kept.
  bool has_keys_to_keep() const;
  // A key, chosen nearly at random, whose removal frees memory at once, because the undo log does
  // not need it; neither expired nor hidden; with a deadline if `volatile_only`. Null when there is
  // none. REQUIRES: has_keys_to_keep(). Costs a few lookups; where hardly a key is of that kind, a
  // search through the keys that have changed since the checkpoint, or through all if these are
  // fewer, but not again while there is none.
  const Entry* random_unkept_entry(bool volatile_only);

  // --- Figures ----------------------------------------------------------------------------------

  // update_sizes() updates the sizes of all databases that share the environment. sizes() is null
  // when there never was a key.
  void update_sizes();
  const KeySizes* sizes() const { return sizes_.get(); }

  // Starts to keep an index of the keys by slot. `hidden`: the slots that clients do not see, of
  // all databases of a server; null: there will be none. REQUIRES: empty().
  void index_slots(std::shared_ptr<HiddenSlots> hidden = nullptr);
  // Of the time series; null when there never was one.
  SeriesIndex* series_index() const { return series_index_.get(); }

  // Null unless index_slots() was called.
  const SlotIndex* slot_index() const { return slot_index_.get(); }
  // Null unless index_slots() was given it. Code that changes them must call its update().
  HiddenSlots* hidden_slots() const { return hidden_slots_.get(); }

  struct EntryTraits {
    using Item = Entry;
    static std::string_view key(const Entry* entry) { return entry->key(); }
  };
  using Table = HashTable<EntryTraits>;
  const Table& table() const { return table_; }

 private:
  friend class DetachedEntry;
  friend class UndoLog;

  void touch(Entry& entry) {
    if (environment_.freeze_access) return;
    if (environment_.use_lfu) {
      entry.set_access(touched_access(environment_, entry.access(), environment_.random));
    } else if (entry.access() != environment_.access_clock && !environment_.use_lrm) {
      // An unchanged clock is not written, so that reading does not dirty the line.
      entry.set_access(environment_.access_clock);
    }
  }
  void count_miss(std::string_view key) {
    ++environment_.figures.misses;
    if (environment_.key_observer != nullptr) environment_.key_observer->key_missed(*this, key);
  }
  // The slot, or null when the entry has expired.
  Entry** unless_expired(Entry** slot, uint64_t hash);
  void remove_expired(Entry** slot, uint64_t hash);

  // Allocates an entry with room for what `flags` and the sizes require; sets the key and the
  // initial access field. The entry is in no table.
  Entry* allocate(std::string_view key, Type type, Entry::Form form, uint8_t flags,
                  size_t inline_size) const;
  static size_t allocated_size(const Entry& entry);
  // Whether an inline value of that size fits the same allocation class as the entry's present one.
  static bool fits_in_place(const Entry& entry, size_t inline_size);
  static void free_entry(Entry* entry);
  // Whether freeing the entry frees more than `threshold` elements.
  static bool takes_long_to_free(const Entry& entry, size_t threshold);
  // Like free_entry(), but in the background when the value is large and `lazily`, or huge.
  static void dispose(Environment& environment, Entry* entry, bool lazily);
  // Frees all entries, and the table's memory. O(size).
  static void free_all(Table& table);
  static void free_in_background(Reclaimer& reclaimer, Table table);
  // Leaves the keyspace without keys, in its indexes as well. The caller frees what is returned.
  Table take_contents();
  // Replaces the entry at `ref`, which is disposed of, by `entry`, or inserts `entry` if `ref` is
  // empty; links its deadline.
  void replace(KeyRef& ref, Entry* entry, int64_t deadline_ms);
  // The observer to notify before the entry changes; null unless the key is a lock.
  LockObserver* lock_observer(const Entry& entry) const {
    if (entry.is_lock()) [[unlikely]]
      return environment_.lock_observer;
    return nullptr;
  }
  // Notifies the observer that a lock's entry is replaced by another one.
  void notify_lock_replaced(const Entry& old, const Entry& entry, int64_t deadline_ms);
  // A key that is not in a hidden slot; null when there is none. It may have expired. O(slots).
  const Entry* any_visible_entry() const;
  // Resolves kKeepDeadline to the current deadline.
  static int64_t resolve_deadline(const KeyRef& ref, int64_t deadline_ms) {
    if (deadline_ms != kKeepDeadline) return deadline_ms;
    return ref ? ref->deadline_ms() : kNoDeadline;
  }
  // Sets the key to a string stored in `blob`, and adopts the reference.
  void put_blob(KeyRef& ref, base::Blob* blob, int64_t deadline_ms);
  DeadlineWheel& deadlines();
  void swap_contents(Keyspace& other);

  // --- For an undo log; in undo_log.cpp. All REQUIRE undo_log_ -----------------------------------

  bool must_keep_logged(std::string_view key, uint64_t hash) const;
  KeyRef find_before_change(std::string_view key, uint64_t hash, uint8_t how,
                            bool changes_in_place);
  void keep_before_change(const KeyRef& ref) {
    if (must_keep(ref)) [[unlikely]]
      keep_copy(**ref.slot_, ref.hash_);
  }
  // Keeps a copy. REQUIRES: the log needs it.
  void keep_copy(Entry& entry, uint64_t hash);
  // Records that there was no such key, unless the log has something for that key already.
  void keep_absence(std::string_view key, uint64_t hash);
  // Takes an entry that was removed from the table, and replaced by another one.
  void keep_or_dispose(Entry* entry, uint64_t hash, bool lazily);
  // Takes an entry that was removed from the table, which does not have the key any more.
  void keep_removed(Entry* entry, uint64_t hash, bool lazily);
  // The key is removed. If it was created since the checkpoint, it is again as it was then: drops
  // the log's record of its absence, and returns true.
  bool forget_absence(std::string_view key, uint64_t hash);
  // Moves the contents into the log, which leaves the keyspace empty; false when the log has them
  // already.
  bool keep_contents();
  // Inserts an entry that a log had kept, in place of whatever the key is now; null when the key
  // did not exist then. Takes ownership. REQUIRES: no undo log.
  const Entry* put_back(Entry* saved, bool* existed);

  // Update sizes_ and the indexes for an entry that was added, for one that will be removed, and
  // for a string that changed.
  void count_in(Entry& entry);
  void count_out(Entry& entry);
  void count_resized(size_t old_size, size_t new_size);
  void index_series(Entry& entry);
  // Called before the collection at `ref` is changed in place: gives it an object if it is packed,
  // and adds it to Environment::changed.
  void prepare_change(const KeyRef& ref);
  void unpack(Entry& entry);
  // Packs the value if it is small.
  void pack(const ChangedValue& changed);
  Entry* packed_entry(std::string_view key, Type type, const Packed& packed,
                      bool with_deadline) const;
  // Takes this keyspace's values from Environment::changed.
  void forget_changed();
  void recount(const Entry& entry);
  // Puts the same key and value in another form in place of the entry at `slot`, and frees the
  // entry, but not its value.
  void substitute(Entry** slot, Entry* entry, int64_t deadline_ms);
  bool expire_keys(size_t budget);
  bool expire_elements(size_t budget);
  // Removes at most `budget` due elements of the entry's value. Returns how many.
  size_t expire_elements_of(Entry& entry, size_t budget);
  // Links the entry by its value's earliest element deadline, or unlinks it if there is none.
  void index_elements(Entry& entry);
  // Unlinks the entry from the index, if it is there.
  void forget_elements(Entry& entry);
  // A copy of `entry` under another key, with or without room for a deadline; the value is moved,
  // not copied.
  Entry* rebuild(Entry& entry, std::string_view key, bool with_deadline) const;

  int index_;
  Environment& environment_;
  Table table_;
  // Created with the first deadline.
  std::unique_ptr<DeadlineWheel> deadlines_;
  std::unique_ptr<DeadlineWheel> element_deadlines_;
  // Created with the first key.
  std::unique_ptr<KeySizes> sizes_;
  // Created with the first time series.
  std::unique_ptr<SeriesIndex> series_index_;
  // Only for a server that is a cluster node.
  std::unique_ptr<SlotIndex> slot_index_;
  std::shared_ptr<HiddenSlots> hidden_slots_;
  // Of the newest checkpoint; null when there is none.
  UndoLog* undo_log_ = nullptr;
};

}  // namespace latchkey::store
