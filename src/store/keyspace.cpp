#include "store/keyspace.h"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "base/assert.h"
#include "base/text/number.h"
#include "store/prefetched_walk.h"
#include "store/slot_index.h"
#include "store/time_series/label_index.h"
#include "store/value/view.h"

namespace latchkey::store {

namespace {

// Freeing more elements stops the server for some tenths of a millisecond, so that it is done in
// the background even if it is not asked for.
constexpr size_t kStopThreshold = 4096;
// Due keys of hidden slots are looked at again after this time.
constexpr int64_t kHiddenDelayMs = 1000;

// The allocator's classes: multiples of 16 up to 128, then four to a doubling. Rounding up costs no
// memory, and lets a value be replaced in place by any that falls into the same class.
size_t round_to_class(size_t size) {
  if (size <= 128) return (size + 15) & ~size_t{15};
  const size_t step = std::bit_floor(size - 1) / 4;
  return (size + step - 1) & ~(step - 1);
}

bool parse_integer_value(std::string_view bytes, int64_t* value) {
  return bytes.size() <= base::kMaxInt64Text && base::parse_int64(bytes, value);
}

// What an entry can hold of the value in place of an object; no bytes when that is not possible, or
// when the value is empty, for it is about to get elements or to be removed.
Packed packable(const Value& value) {
  if (value.element_count() == 0) return {};
  const Packed packed = value.packed();
  return packed.bytes.size() <= Entry::kMaxInlineValue ? packed : Packed();
}

}  // namespace

// --- Access clocks ------------------------------------------------------------------------------

namespace {

constexpr uint8_t kInitialFrequency = 5;

uint32_t minutes_clock(const Environment& environment) {
  return static_cast<uint32_t>(environment.now_ms / 60'000) & 0xffff;
}

}  // namespace

uint32_t initial_access(const Environment& environment) {
  if (!environment.use_lfu) return environment.access_clock;
  return (minutes_clock(environment) << 8) | kInitialFrequency;
}

uint32_t idle_seconds(const Environment& environment, uint32_t access) {
  // The access clock wraps around after 194 days. An entry that seems to be idle for more than
  // three quarters of that was used by a clock that has been set back since.
  constexpr uint32_t kLongest = Entry::kMaxAccess / 4 * 3;
  const uint32_t idle = (environment.access_clock - access) & Entry::kMaxAccess;
  return idle > kLongest ? 0 : idle;
}

uint8_t lfu_counter(const Environment& environment, uint32_t access) {
  const uint32_t counter = access & 0xff;
  if (environment.lfu_decay_minutes <= 0) return static_cast<uint8_t>(counter);
  const uint32_t elapsed = (minutes_clock(environment) - (access >> 8)) & 0xffff;
  const uint32_t periods = elapsed / static_cast<uint32_t>(environment.lfu_decay_minutes);
  return static_cast<uint8_t>(counter > periods ? counter - periods : 0);
}

// A Morris counter: it grows with a probability that falls as it grows, so eight bits span millions
// of accesses.
uint32_t touched_access(const Environment& environment, uint32_t access, base::Random& random) {
  uint32_t counter = lfu_counter(environment, access);
  if (counter < 255) {
    const double excess = counter > kInitialFrequency ? counter - kInitialFrequency : 0;
    if (random.unit() < 1.0 / (excess * environment.lfu_log_factor + 1)) ++counter;
  }
  return (minutes_clock(environment) << 8) | counter;
}

// --- Entries ------------------------------------------------------------------------------------

Entry* Keyspace::allocate(std::string_view key, Type type, Entry::Form form, uint8_t flags,
                          size_t inline_size) const {
  const bool long_key = key.size() > UINT16_MAX;
  if (long_key) flags |= Entry::kHasLongKey;
  const size_t offset = Entry::key_offset(flags);
  auto* entry = new (::operator new(round_to_class(offset + key.size() + inline_size))) Entry;
  entry->form_ =
      static_cast<uint8_t>(static_cast<unsigned>(type) << 4 | static_cast<unsigned>(form));
  entry->flags_ = flags;
  entry->short_key_size_ = long_key ? 0 : static_cast<uint16_t>(key.size());
  entry->access_and_size_ = initial_access(environment_) << 8 | static_cast<uint32_t>(inline_size);
  if ((flags & Entry::kHasDeadline) != 0) new (&entry->node()) DeadlineNode;
  if (long_key) {
    const size_t size = key.size();
    std::memcpy(entry->bytes() + offset - sizeof(size), &size, sizeof(size));
  }
  std::copy(key.begin(), key.end(), entry->bytes() + offset);
  return entry;
}

size_t Keyspace::allocated_size(const Entry& entry) {
  return round_to_class(entry.key_offset() + entry.key_size() + entry.inline_size());
}

bool Keyspace::fits_in_place(const Entry& entry, size_t inline_size) {
  const size_t offset = entry.key_offset() + entry.key_size();
  return round_to_class(offset + inline_size) == round_to_class(offset + entry.inline_size());
}

void Keyspace::free_entry(Entry* entry) {
  if (entry->form() == Entry::Form::kBlob) {
    entry->blob()->release();
  } else if (entry->form() == Entry::Form::kValue) {
    delete entry->value();
  }
  ::operator delete(entry, allocated_size(*entry));
}

bool Keyspace::takes_long_to_free(const Entry& entry, size_t threshold) {
  return entry.form() == Entry::Form::kValue && entry.value()->free_effort() > threshold;
}

void Keyspace::dispose(Environment& environment, Entry* entry, bool lazily) {
  if (takes_long_to_free(*entry, lazily ? Reclaimer::kMaxFreedAtOnce : kStopThreshold)) {
    // The figures count only what was freed lazily on request.
    environment.reclaimer.free_later(lazily ? 1 : 0, [entry] { free_entry(entry); });
  } else {
    free_entry(entry);
  }
}

void Keyspace::free_all(Table& table) {
  // An entry is freed some places behind the walk, when its value has come to the cache as well.
  constexpr size_t kBehind = 8;
  Entry* waiting[kBehind] = {};
  size_t place = 0;
  for_each_prefetched(table, [&](Entry* entry) {
    if (!entry->is_string() && !entry->is_packed()) base::prefetch(entry->value());
    Entry* const due = std::exchange(waiting[place], entry);
    place = (place + 1) % kBehind;
    if (due != nullptr) free_entry(due);
  });
  for (Entry* entry : waiting) {
    if (entry != nullptr) free_entry(entry);
  }
  table.clear();
}

void Keyspace::free_in_background(Reclaimer& reclaimer, Table table) {
  const size_t count = table.size();
  reclaimer.free_later(count,
                       [table = std::make_shared<Table>(std::move(table))] { free_all(*table); });
}

Entry* Keyspace::rebuild(Entry& entry, std::string_view key, bool with_deadline) const {
  const bool is_value = entry.form() == Entry::Form::kValue;
  uint8_t flags =
      entry.flags_ & (Entry::kHasPayload | Entry::kChangedInPlace | Entry::kPackedIntset);
  if (is_value) flags = Entry::kHasPayload;
  if (with_deadline) flags |= Entry::kHasDeadline;
  const size_t inline_size = is_value ? 0 : entry.inline_size();
  Entry* rebuilt = allocate(key, entry.type(), entry.form(), flags, inline_size);
  rebuilt->set_access(entry.access());
  if (is_value) {
    rebuilt->set_value(entry.value());
  } else if ((flags & Entry::kHasPayload) != 0) {
    std::memcpy(rebuilt->payload(), entry.payload(), sizeof(void*));
  } else {
    std::memcpy(rebuilt->inline_bytes(), entry.inline_bytes(), inline_size);
  }
  return rebuilt;
}

DetachedEntry::~DetachedEntry() {
  if (entry_ != nullptr) Keyspace::free_entry(entry_);
}

// --- The database -------------------------------------------------------------------------------

Keyspace::Keyspace(int index, Environment& environment)
    : index_(index), environment_(environment), table_(environment.secret) {}

Keyspace::~Keyspace() {
  clear(false);
}

int64_t Keyspace::mean_ttl_ms() const {
  if (volatile_size() == 0) return 0;
  return std::max<int64_t>(deadlines_->mean_deadline_ms() - environment_.now_ms, 0);
}

DeadlineWheel& Keyspace::deadlines() {
  if (deadlines_ == nullptr) deadlines_ = std::make_unique<DeadlineWheel>(environment_.now_ms);
  return *deadlines_;
}

Entry** Keyspace::unless_expired(Entry** slot, uint64_t hash) {
  Entry* entry = *slot;
  if (!is_expired(*entry)) return slot;
  if (environment_.expired == Environment::Expired::kRemove) remove_expired(slot, hash);
  return nullptr;
}

void Keyspace::remove_expired(Entry** slot, uint64_t hash) {
  Entry* entry = *slot;
  ++environment_.figures.expired_keys;
  if (LockObserver* observer = lock_observer(*entry)) [[unlikely]]
    observer->lock_expiring(*this, *entry);
  if (environment_.expiry_observer != nullptr)
    environment_.expiry_observer->key_expiring(*this, entry->key());
  deadlines_->erase(entry->node());
  forget_elements(*entry);
  count_out(*entry);
  table_.erase(slot, hash);
  if (undo_log_ != nullptr) return keep_removed(entry, hash, true);
  dispose(environment_, entry, true);
}

const Entry* Keyspace::random_entry() {
  constexpr int kMaxHidden = 100;
  int hidden = 0;
  int unseen = 0;  // in hidden slots
  while (!table_.empty()) {
    Entry* entry = table_.random(environment_.random);
    if (is_hidden(*entry)) {
      if (++unseen < kMaxHidden) continue;
      return any_visible_entry();
    }
    if (!is_expired(*entry)) return entry;
    if (environment_.expired != Environment::Expired::kHide) {
      find(entry->key(), kPeek);
    } else if (++hidden >= kMaxHidden && volatile_size() == size()) {
      // All keys may be expired.
      return entry;
    }
  }
  return nullptr;
}

void Keyspace::replace(KeyRef& ref, Entry* entry, int64_t deadline_ms) {
  if (ref.slot_ != nullptr) {
    Entry* old = *ref.slot_;
    if (old->is_lock()) [[unlikely]] {
      notify_lock_replaced(*old, *entry, deadline_ms);
      entry->flags_ |= Entry::kLock;
    }
    if (environment_.key_observer != nullptr && old->type() != entry->type())
      environment_.key_observer->type_changed(*this, ref.key_);
    if (old->has_deadline()) deadlines_->erase(old->node());
    forget_elements(*old);
    count_out(*old);
    entry->set_access(old->access());
    *ref.slot_ = entry;
    if (undo_log_ != nullptr) {
      keep_or_dispose(old, ref.hash_, true);
    } else {
      dispose(environment_, old, true);
    }
  } else {
    if (environment_.expired == Environment::Expired::kHide) {
      // The key may exist, hidden because it has expired.
      Entry** hidden = table_.find(ref.key_, ref.hash_);
      if (hidden != nullptr) remove_expired(hidden, ref.hash_);
    }
    if (undo_log_ != nullptr) keep_absence(ref.key_, ref.hash_);
    ref.slot_ = table_.insert(entry, ref.hash_);
    if (environment_.key_observer != nullptr)
      environment_.key_observer->key_added(*this, entry->key());
  }
  if (deadline_ms >= 0) {
    entry->node().deadline_ms = deadline_ms;
    deadlines().insert(entry->node());
  }
  index_elements(*entry);
  count_in(*entry);
  ref.key_ = entry->key();
  if (entry->form() == Entry::Form::kValue) prepare_change(ref);
}

void Keyspace::notify_lock_replaced(const Entry& old, const Entry& entry, int64_t deadline_ms) {
  LockObserver* observer = lock_observer(old);
  if (observer == nullptr) return;
  if (!entry.is_string()) return observer->lock_changed(*this, old);
  char scratch[base::kMaxInt64Text];
  observer->lock_set(*this, old, entry.string(scratch), deadline_ms);
}

void Keyspace::set_string(KeyRef& ref, std::string_view bytes, int64_t deadline_ms) {
  int64_t integer;
  if (parse_integer_value(bytes, &integer)) {
    set_integer(ref, integer, deadline_ms);
  } else {
    set_text(ref, bytes, deadline_ms);
  }
}

void Keyspace::set_text(KeyRef& ref, std::string_view bytes, int64_t deadline_ms) {
  deadline_ms = resolve_deadline(ref, deadline_ms);
  const bool has_deadline = deadline_ms >= 0;
  const uint8_t flags = has_deadline ? Entry::kHasDeadline : 0;
  if (bytes.size() > Entry::kMaxInlineValue)
    return put_blob(ref, base::Blob::create(bytes), deadline_ms);
  if (ref && ref->form() == Entry::Form::kInline && ref->has_deadline() == has_deadline &&
      !must_keep(ref)) {
    Entry& entry = **ref.slot_;
    if (fits_in_place(entry, bytes.size())) {
      if (LockObserver* observer = lock_observer(entry)) [[unlikely]]
        observer->lock_set(*this, entry, bytes, deadline_ms);
      count_resized(entry.text().size(), bytes.size());
      // Not memcpy: `bytes` may be part of the entry.
      if (!bytes.empty()) std::memmove(entry.inline_bytes(), bytes.data(), bytes.size());
      entry.set_inline_size(bytes.size());
      entry.flags_ &= static_cast<uint8_t>(~Entry::kChangedInPlace);
      if (has_deadline) deadlines_->update(entry.node(), deadline_ms);
      return;
    }
  }
  Entry* entry = allocate(ref.key_, Type::kString, Entry::Form::kInline, flags, bytes.size());
  std::copy(bytes.begin(), bytes.end(), entry->inline_bytes());
  replace(ref, entry, deadline_ms);
}

void Keyspace::put_blob(KeyRef& ref, base::Blob* blob, int64_t deadline_ms) {
  const bool has_deadline = deadline_ms >= 0;
  if (ref && ref->is_blob() && ref->has_deadline() == has_deadline && !must_keep(ref)) {
    if (LockObserver* observer = lock_observer(*ref)) [[unlikely]]
      observer->lock_set(*this, *ref, blob->view(), deadline_ms);
    count_resized(ref->blob()->size(), blob->size());
    ref->blob()->release();
    *reinterpret_cast<base::Blob**>(ref->payload()) = blob;
    if (has_deadline) deadlines_->update(ref->node(), deadline_ms);
    return;
  }
  const uint8_t flags = Entry::kHasPayload | (has_deadline ? Entry::kHasDeadline : 0);
  Entry* entry = allocate(ref.key_, Type::kString, Entry::Form::kBlob, flags, 0);
  *reinterpret_cast<base::Blob**>(entry->payload()) = blob;
  replace(ref, entry, deadline_ms);
}

void Keyspace::set_blob(KeyRef& ref, base::Blob* blob, int64_t deadline_ms) {
  if (blob->size() > Entry::kMaxInlineValue)
    return put_blob(ref, blob, resolve_deadline(ref, deadline_ms));
  set_text(ref, blob->view(), deadline_ms);
  (*ref.slot_)->flags_ |= Entry::kChangedInPlace;
  blob->release();
}

void Keyspace::set_integer(KeyRef& ref, int64_t value, int64_t deadline_ms) {
  deadline_ms = resolve_deadline(ref, deadline_ms);
  const bool has_deadline = deadline_ms >= 0;
  if (ref && ref->is_integer() && ref->has_deadline() == has_deadline && !must_keep(ref)) {
    Entry& entry = **ref.slot_;
    if (LockObserver* observer = lock_observer(entry)) [[unlikely]]
      observer->lock_set(*this, entry, std::to_string(value), deadline_ms);
    const size_t old_size = entry.string_size();
    *reinterpret_cast<int64_t*>(entry.payload()) = value;
    count_resized(old_size, entry.string_size());
    if (has_deadline) deadlines_->update(entry.node(), deadline_ms);
    return;
  }
  uint8_t flags = Entry::kHasPayload;
  if (has_deadline) flags |= Entry::kHasDeadline;
  Entry* entry = allocate(ref.key_, Type::kString, Entry::Form::kInteger, flags, 0);
  *reinterpret_cast<int64_t*>(entry->payload()) = value;
  replace(ref, entry, deadline_ms);
}

std::span<char> Keyspace::extend_string(KeyRef& ref, size_t size) {
  LK_ASSERT(!ref || (ref->is_string() && ref->string_size() <= size));
  const bool in_place = ref && !must_keep(ref);
  if (LockObserver* observer = ref ? lock_observer(*ref) : nullptr) [[unlikely]]
    observer->lock_changed(*this, *ref);
  if (in_place && ref->is_blob() && !ref->blob()->shared()) {
    count_resized(ref->blob()->size(), size);
    base::Blob* blob = base::Blob::extend(ref->blob(), size);
    *reinterpret_cast<base::Blob**>((*ref.slot_)->payload()) = blob;
    return {blob->data(), blob->size()};
  }
  if (in_place && ref->form() == Entry::Form::kInline && size <= Entry::kMaxInlineValue &&
      fits_in_place(*ref, size)) {
    Entry& entry = **ref.slot_;
    const size_t old_size = entry.text().size();
    count_resized(old_size, size);
    std::memset(entry.inline_bytes() + old_size, 0, size - old_size);
    entry.set_inline_size(size);
    entry.flags_ |= Entry::kChangedInPlace;
    return {entry.inline_bytes(), size};
  }
  char scratch[base::kMaxInt64Text];
  const std::string_view old = ref ? ref->string(scratch) : std::string_view();
  const int64_t deadline_ms = resolve_deadline(ref, kKeepDeadline);
  uint8_t flags = Entry::kChangedInPlace;
  if (deadline_ms >= 0) flags |= Entry::kHasDeadline;

  char* bytes;
  Entry* entry;
  if (size <= Entry::kMaxInlineValue) {
    entry = allocate(ref.key_, Type::kString, Entry::Form::kInline, flags, size);
    bytes = entry->inline_bytes();
    char* rest = std::copy(old.begin(), old.end(), bytes);
    std::memset(rest, 0, size - old.size());
  } else {
    entry = allocate(ref.key_, Type::kString, Entry::Form::kBlob, flags | Entry::kHasPayload, 0);
    // A new blob gets no spare room, because it may never grow again.
    base::Blob* blob =
        ref ? base::Blob::create_extended(old, size) : base::Blob::create_zeroed(size);
    *reinterpret_cast<base::Blob**>(entry->payload()) = blob;
    bytes = blob->data();
  }
  replace(ref, entry, deadline_ms);
  return {bytes, size};
}

void Keyspace::set_value(KeyRef& ref, Type type, std::unique_ptr<Value> value,
                         int64_t deadline_ms) {
  deadline_ms = resolve_deadline(ref, deadline_ms);
  const Packed packed = packable(*value);
  Entry* entry;
  if (!packed.bytes.empty()) {
    entry = packed_entry(ref.key_, type, packed, deadline_ms >= 0);
  } else {
    uint8_t flags = Entry::kHasPayload;
    if (deadline_ms >= 0) flags |= Entry::kHasDeadline;
    entry = allocate(ref.key_, type, Entry::Form::kValue, flags, 0);
    entry->set_value(value.release());
  }
  replace(ref, entry, deadline_ms);
}

void Keyspace::set_deadline(KeyRef& ref, int64_t deadline_ms) {
  Entry* entry = *ref.slot_;
  const bool wanted = deadline_ms >= 0;
  if (!entry->has_deadline() && !wanted) return;
  keep_before_change(ref);
  if (LockObserver* observer = lock_observer(*entry)) [[unlikely]]
    observer->lock_deadline_set(*this, *entry, deadline_ms);
  if (entry->has_deadline() && wanted) {
    deadlines_->update(entry->node(), deadline_ms);
    return;
  }
  substitute(ref.slot_, rebuild(*entry, entry->key(), wanted), deadline_ms);
  ref.key_ = ref->key();
}

void Keyspace::substitute(Entry** slot, Entry* entry, int64_t deadline_ms) {
  Entry* old = *slot;
  if (old->has_deadline()) deadlines_->erase(old->node());
  entry->flags_ |= old->flags_ & Entry::kLock;
  entry->set_access(old->access());
  *slot = entry;
  if (entry->form() == Entry::Form::kValue && entry->value()->changed_at_ != 0)
    environment_.changed[entry->value()->changed_at_ - 1].entry = entry;
  if (slot_index_ != nullptr) slot_index_->move(*old, *entry);
  if (entry->type() == Type::kTimeSeries) series_index_->move(*old, *entry);
  index_elements(*entry);
  ::operator delete(old, allocated_size(*old));
  if (deadline_ms < 0) return;
  entry->node().deadline_ms = deadline_ms;
  deadlines().insert(entry->node());
}

void Keyspace::erase(KeyRef& ref, bool lazily) {
  if (LockObserver* observer = lock_observer(*ref)) [[unlikely]]
    observer->lock_removed(*this, *ref);
  Entry* entry = table_.erase(ref.slot_, ref.hash_);
  ref.slot_ = nullptr;
  if (entry->has_deadline()) deadlines_->erase(entry->node());
  forget_elements(*entry);
  count_out(*entry);
  if (undo_log_ != nullptr) return keep_removed(entry, ref.hash_, lazily);
  dispose(environment_, entry, lazily);
}

void Keyspace::clear(bool lazily) {
  if (environment_.lock_observer != nullptr) environment_.lock_observer->locks_cleared(*this);
  if (table_.empty() || (undo_log_ != nullptr && keep_contents())) return;
  Table table = take_contents();
  Reclaimer& reclaimer = environment_.reclaimer;
  if (!lazily) return free_all(table);
  if (table.size() > Reclaimer::kMaxFreedAtOnce)
    return free_in_background(reclaimer, std::move(table));
  table.for_each([&](Entry* entry) {
    if (!takes_long_to_free(*entry, Reclaimer::kMaxFreedAtOnce)) reclaimer.count_freed(1);
    dispose(environment_, entry, lazily);
  });
}

void Keyspace::release_contents(Reclaimer& reclaimer) {
  if (table_.empty()) return;
  if (environment_.lock_observer != nullptr) environment_.lock_observer->locks_cleared(*this);
  free_in_background(reclaimer, take_contents());
}

Keyspace::Table Keyspace::take_contents() {
  forget_changed();
  // The wheels hold no memory of their own per entry, so they are simply deleted.
  deadlines_.reset();
  element_deadlines_.reset();
  sizes_.reset();
  series_index_.reset();
  if (slot_index_ != nullptr) slot_index_ = std::make_unique<SlotIndex>(environment_.secret);
  return std::exchange(table_, Table(environment_.secret));
}

DetachedEntry Keyspace::detach(KeyRef& ref) {
  keep_before_change(ref);
  if (LockObserver* observer = lock_observer(*ref)) [[unlikely]]
    observer->lock_removed(*this, *ref);
  Entry* entry = table_.erase(ref.slot_, ref.hash_);
  ref.slot_ = nullptr;
  const int64_t deadline_ms = entry->deadline_ms();
  if (entry->has_deadline()) deadlines_->erase(entry->node());
  forget_elements(*entry);
  count_out(*entry);
  if (undo_log_ != nullptr) forget_absence(entry->key(), ref.hash_);
  return DetachedEntry(entry, deadline_ms);
}

DetachedEntry Keyspace::copy(const KeyRef& ref) const {
  Entry& entry = **ref.slot_;
  Entry* copied = rebuild(entry, entry.key(), entry.has_deadline());
  if (entry.form() == Entry::Form::kBlob) {
    *reinterpret_cast<base::Blob**>(copied->payload()) = base::Blob::create(entry.blob()->view());
  } else if (entry.form() == Entry::Form::kValue) {
    copied->set_value(entry.value()->clone());
  }
  return DetachedEntry(copied, entry.deadline_ms());
}

void Keyspace::attach(KeyRef& ref, DetachedEntry detached) {
  LK_ASSERT(ref.slot_ == nullptr);
  Entry* entry = std::exchange(detached.entry_, nullptr);
  const bool wanted = detached.deadline_ms_ >= 0;
  if (entry->key() != ref.key_ || entry->has_deadline() != wanted) {
    Entry* rebuilt = rebuild(*entry, ref.key_, wanted);
    ::operator delete(entry, allocated_size(*entry));
    entry = rebuilt;
  }
  entry->flags_ &= static_cast<uint8_t>(~Entry::kLock);
  entry->set_access(initial_access(environment_));
  replace(ref, entry, detached.deadline_ms_);
}

void Keyspace::swap(Keyspace& other) {
  swap_contents(other);
  std::swap(undo_log_, other.undo_log_);
}

void Keyspace::swap_contents(Keyspace& other) {
  if (environment_.lock_observer != nullptr)
    environment_.lock_observer->locks_swapped(*this, other);
  for (ChangedValue& changed : environment_.changed) {
    if (changed.keyspace == this) {
      changed.keyspace = &other;
    } else if (changed.keyspace == &other) {
      changed.keyspace = this;
    }
  }
  std::swap(sizes_, other.sizes_);
  std::swap(slot_index_, other.slot_index_);
  std::swap(series_index_, other.series_index_);
  std::swap(table_, other.table_);
  std::swap(deadlines_, other.deadlines_);
  std::swap(element_deadlines_, other.element_deadlines_);
}

bool Keyspace::expire_due(size_t budget) {
  if (environment_.expired != Environment::Expired::kRemove) return true;
  KeyspaceFigures& figures = environment_.figures;
  const uint64_t keys = figures.expired_keys;
  const uint64_t elements = figures.expired_elements;
  const bool no_more_keys = expire_keys(budget);
  const bool no_more_elements = expire_elements(budget);
  figures.found_expired_keys += figures.expired_keys - keys;
  figures.found_expired_elements += figures.expired_elements - elements;
  return no_more_keys && no_more_elements;
}

bool Keyspace::expire_keys(size_t budget) {
  if (deadlines_ == nullptr) return true;
  return deadlines_->advance(environment_.now_ms, budget, [&](DeadlineNode& node) {
    Entry& entry = Entry::of(node);
    if (is_hidden(entry)) return deadlines_->defer(node, environment_.now_ms + kHiddenDelayMs);
    const uint64_t hash = table_.hash(entry.key());
    Entry** slot = table_.find(entry.key(), hash);
    LK_ASSERT(slot != nullptr && *slot == &entry);
    remove_expired(slot, hash);
  });
}

bool Keyspace::first_due(int64_t until_ms, std::vector<Due>* out) {
  if (environment_.expired != Environment::Expired::kRemove) return false;
  const auto add = [&](DeadlineWheel& wheel, DeadlineNode& node, const Entry& entry) {
    // As expire_due() does: the key will not expire.
    const bool hidden = is_hidden(entry);
    if (hidden) {
      wheel.defer(node, until_ms + kHiddenDelayMs);
    } else {
      out->push_back({node.deadline_ms, std::string(entry.key()), &wheel != deadlines_.get()});
    }
    return !hidden;
  };
  const auto key = [&](DeadlineNode& node) { return add(*deadlines_, node, Entry::of(node)); };
  const auto elements = [&](DeadlineNode& node) {
    return add(*element_deadlines_, node, *static_cast<ElementDeadline&>(node).entry);
  };
  const int64_t now_ms = environment_.now_ms;
  const bool any = deadlines_ != nullptr && deadlines_->first_due(now_ms, until_ms, key);
  return (element_deadlines_ != nullptr &&
          element_deadlines_->first_due(now_ms, until_ms, elements)) ||
         any;
}

int64_t Keyspace::expire(const Due& due) {
  const KeyRef ref = find(due.key, kPeek);  // removes a key whose time has come
  if (!due.elements_only) return kNoDeadline;
  const auto elements_due_ms = [](const KeyRef& found) {
    if (!found || found->form() != Entry::Form::kValue) return kNoDeadline;
    const ElementDeadline* node = found->value()->element_deadline();
    const bool indexed = node != nullptr && node->next != nullptr;
    return indexed ? node->deadline_ms : kNoDeadline;
  };
  const int64_t due_ms = elements_due_ms(ref);
  if (due_ms == kNoDeadline || due_ms > environment_.now_ms) return due_ms;
  expire_elements_of(**ref.slot_, SIZE_MAX);
  return elements_due_ms(find(due.key, kPeek));
}

// --- Packed collections -------------------------------------------------------------------------

void Keyspace::unpack(Entry& entry) {
  std::unique_ptr<Value> value = unpacked(environment_, entry.type(), entry.packed());
  value->size_bin_ = KeySizes::bin_of(value->element_count());
  entry.set_form(Entry::Form::kValue);
  entry.set_value(value.release());
}

Entry* Keyspace::packed_entry(std::string_view key, Type type, const Packed& packed,
                              bool with_deadline) const {
  // There is room for the pointer to an object.
  LK_ASSERT(packed.bytes.size() >= sizeof(Value*));
  uint8_t flags = with_deadline ? Entry::kHasDeadline : 0;
  if (packed.is_intset) flags |= Entry::kPackedIntset;
  Entry* entry = allocate(key, type, Entry::Form::kPacked, flags, packed.bytes.size());
  std::copy(packed.bytes.begin(), packed.bytes.end(), entry->inline_bytes());
  return entry;
}

void Keyspace::pack(const ChangedValue& changed) {
  Entry& entry = *changed.entry;
  const Packed packed = packable(*changed.value);
  const size_t size = packed.bytes.size();
  if (size == 0) return;
  if ((entry.flags_ & Entry::kHasPayload) == 0 && fits_in_place(entry, size)) {
    std::copy(packed.bytes.begin(), packed.bytes.end(), entry.inline_bytes());
    entry.set_inline_size(size);
    entry.set_form(Entry::Form::kPacked);
    entry.flags_ &= static_cast<uint8_t>(~Entry::kPackedIntset);
    if (packed.is_intset) entry.flags_ |= Entry::kPackedIntset;
  } else {
    // Who watches a lock knows its entry.
    if (entry.is_lock()) return;
    Entry** slot = table_.find_where(changed.hash, [&](Entry* item) { return item == &entry; });
    substitute(slot, packed_entry(entry.key(), entry.type(), packed, entry.has_deadline()),
               entry.deadline_ms());
  }
  delete changed.value;
}

void Keyspace::pack_changed(Environment& environment) {
  constexpr size_t kMostAtOnce = 4096;
  std::vector<ChangedValue>& all = environment.changed;
  for (size_t left = kMostAtOnce; left > 0 && !all.empty(); --left) {
    const ChangedValue changed = all.back();
    all.pop_back();
    if (changed.value == nullptr) continue;
    changed.value->changed_at_ = 0;
    changed.keyspace->recount(*changed.entry);
    changed.keyspace->pack(changed);
  }
  if (all.empty() && all.capacity() > kMostAtOnce) all = {};
}

// --- Elements with deadlines --------------------------------------------------------------------

bool Keyspace::expire_elements(size_t budget) {
  if (element_deadlines_ == nullptr) return true;
  size_t left = budget;
  return element_deadlines_->advance(environment_.now_ms, budget, [&](DeadlineNode& node) {
    Entry& entry = *static_cast<ElementDeadline&>(node).entry;
    if (is_hidden(entry))
      return element_deadlines_->defer(node, environment_.now_ms + kHiddenDelayMs);
    // A value with more due elements than the budget is put back for another call.
    left -= std::min(left, expire_elements_of(entry, std::max<size_t>(left, 1)));
  });
}

size_t Keyspace::expire_elements_of(Entry& entry, size_t budget) {
  forget_elements(entry);
  KeyRef ref = find(entry.key(), kPeek);
  if (!ref) return 0;  // the key itself had expired
  will_change(ref);
  const size_t removed = entry.value()->expire_elements(budget);
  if (removed > 0) {
    elements_expired(ref);
  } else {
    index_elements(entry);
  }
  return removed;
}

void Keyspace::elements_expired(KeyRef& ref) {
  const bool last = ref->value()->element_count() == 0;
  recount(*ref);
  if (environment_.expiry_observer != nullptr)
    environment_.expiry_observer->elements_expired(*this, ref->key(), environment_.expired_names,
                                                   last);
  environment_.expired_names.clear();
  if (last) {
    erase(ref);
  } else {
    index_elements(ref);
  }
}

void Keyspace::index_elements(Entry& entry) {
  if (entry.form() != Entry::Form::kValue) return;
  ElementDeadline* node = entry.value()->element_deadline();
  if (node == nullptr) return;
  node->entry = &entry;
  const int64_t first_ms = entry.value()->first_deadline_ms();
  const bool indexed = node->next != nullptr;
  if (first_ms < 0) {
    if (indexed) element_deadlines_->erase(*node);
  } else if (indexed) {
    element_deadlines_->update(*node, first_ms);
  } else {
    if (element_deadlines_ == nullptr)
      element_deadlines_ = std::make_unique<DeadlineWheel>(environment_.now_ms);
    node->deadline_ms = first_ms;
    element_deadlines_->insert(*node);
  }
}

void Keyspace::forget_elements(Entry& entry) {
  if (entry.form() != Entry::Form::kValue) return;
  ElementDeadline* node = entry.value()->element_deadline();
  if (node != nullptr && node->next != nullptr) element_deadlines_->erase(*node);
}

}  // namespace latchkey::store
