#include "store/undo_log.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace latchkey::store {

namespace {

// Entries from which the size of a cleared database is estimated.
constexpr size_t kSampledEntries = 64;

}  // namespace

UndoLog::UndoLog(Environment& environment, int database, UndoLog* below)
    : environment_(environment), database_(database), below_(below), saved_(environment.secret) {}

UndoLog::~UndoLog() {
  reset();
}

void UndoLog::reset() {
  free_saved();
  if (cleared_ != nullptr) cleared_->clear(/*lazily=*/true);
  cleared_.reset();
  touched_ = {};
  searched_in_vain_ = {};
}

void UndoLog::free_saved() {
  saved_bytes_ = 0;
  if (saved_.empty()) return;
  Keyspace::Table saved = std::exchange(saved_, Keyspace::Table(environment_.secret));
  if (saved.size() > Reclaimer::kMaxFreedAtOnce)
    return Keyspace::free_in_background(environment_.reclaimer, std::move(saved));
  saved.for_each([&](Entry* entry) { Keyspace::dispose(environment_, entry, /*lazily=*/true); });
}

size_t UndoLog::memory_usage() const {
  size_t bytes = sizeof(UndoLog) + saved_bytes_ + saved_.memory_usage();
  if (cleared_ == nullptr || cleared_->empty()) return bytes;
  bytes += cleared_->table().memory_usage();
  size_t sampled = 0;
  size_t sampled_bytes = 0;
  // Entries that were inserted into a hash table are spread at random, so the first ones will do.
  uint64_t cursor = 0;
  do {
    cursor = cleared_->scan(cursor, [&](const Entry& entry) {
      ++sampled;
      sampled_bytes += entry.memory_usage();
    });
  } while (cursor != 0 && sampled < kSampledEntries);
  return bytes + sampled_bytes * cleared_->size() / std::max<size_t>(sampled, 1);
}

void UndoLog::keep(Entry* entry, uint64_t hash) {
  for (const Touched& touched : touched_) {
    if (touched.used && touched.hash == hash) entry->set_access(touched.access);
  }
  saved_bytes_ += entry->memory_usage();
  saved_.insert(entry, hash);
  searched_in_vain_ = {};
}

void UndoLog::note_access(uint64_t hash, uint32_t access) {
  for (const Touched& touched : touched_) {
    // The first access since the checkpoint is the one to restore.
    if (touched.used && touched.hash == hash) return;
  }
  touched_[next_touched_] = {hash, access, true};
  next_touched_ = (next_touched_ + 1) % kTouchedKeys;
}

void UndoLog::absorb(UndoLog& newer) {
  LK_ASSERT(newer.below_ == this);
  // What changed after the older log took the whole database will never be needed.
  if (cleared_ != nullptr) return newer.reset();
  // Of a key that both have kept this log has the older state, which is the one that counts.
  Keyspace::Table added = std::move(newer.saved_);
  newer.saved_ = Keyspace::Table(environment_.secret);
  searched_in_vain_ = {};
  const bool added_wins = added.size() > saved_.size();
  if (added_wins) {
    std::swap(saved_, added);
    std::swap(saved_bytes_, newer.saved_bytes_);
  }
  added.for_each([&](Entry* entry) {
    const uint64_t hash = saved_.hash(entry->key());
    if (Entry** slot = saved_.find(entry->key(), hash); slot != nullptr) {
      if (added_wins) std::swap(*slot, entry);
      saved_bytes_ += added_wins ? (*slot)->memory_usage() - entry->memory_usage() : 0;
      return Keyspace::dispose(environment_, entry, /*lazily=*/true);
    }
    saved_bytes_ += entry->memory_usage();
    saved_.insert(entry, hash);
  });
  added.clear();
  cleared_ = std::move(newer.cleared_);
  newer.reset();
}

// --- What a keyspace keeps before a change -------------------------------------------------------

bool Keyspace::must_keep_logged(std::string_view key, uint64_t hash) const {
  return undo_log_->wants(key, hash);
}

KeyRef Keyspace::find_before_change(std::string_view key, uint64_t hash, uint8_t how,
                                    bool changes_in_place) {
  KeyRef ref = find_hashed(key, hash, how | kNoTouch);
  if (!ref) return ref;
  if (undo_log_->wants(key, hash)) {
    if (changes_in_place && !ref->is_string()) {
      keep_copy(*ref, hash);
    } else {
      undo_log_->note_access(hash, ref->access());
    }
  }
  if ((how & kNoTouch) == 0) touch(*ref);
  if (changes_in_place && !ref->is_string()) prepare_change(ref);
  return ref;
}

void Keyspace::keep_copy(Entry& entry, uint64_t hash) {
  Entry* copied = rebuild(entry, entry.key(), entry.has_deadline());
  if (entry.form() == Entry::Form::kBlob) {
    entry.blob()->retain();
  } else if (entry.form() == Entry::Form::kValue) {
    copied->set_value(entry.value()->clone_with_links());
  }
  if (entry.has_deadline()) copied->node().deadline_ms = entry.deadline_ms();
  undo_log_->keep(copied, hash);
}

void Keyspace::keep_absence(std::string_view key, uint64_t hash) {
  if (!undo_log_->wants(key, hash)) return;
  Entry* absent = allocate(key, Type::kString, Entry::Form::kInline, Entry::kAbsent, 0);
  undo_log_->keep(absent, hash);
}

void Keyspace::keep_or_dispose(Entry* entry, uint64_t hash, bool lazily) {
  if (!undo_log_->wants(entry->key(), hash)) return dispose(environment_, entry, lazily);
  undo_log_->keep(entry, hash);
}

void Keyspace::keep_removed(Entry* entry, uint64_t hash, bool lazily) {
  if (forget_absence(entry->key(), hash)) return dispose(environment_, entry, lazily);
  keep_or_dispose(entry, hash, lazily);
}

bool Keyspace::forget_absence(std::string_view key, uint64_t hash) {
  // What was kept before the database was cleared is about the contents that it had.
  if (undo_log_->cleared_ != nullptr) return false;
  Entry** slot = undo_log_->saved_.find(key, hash);
  if (slot == nullptr || ((*slot)->flags_ & Entry::kAbsent) == 0) return false;
  Entry* absent = undo_log_->saved_.erase(slot, hash);
  undo_log_->saved_bytes_ -= absent->memory_usage();
  free_entry(absent);
  return true;
}

bool Keyspace::keep_contents() {
  if (undo_log_->cleared_ != nullptr) return false;
  auto cleared = std::make_unique<Keyspace>(index_, environment_);
  if (slot_index_ != nullptr) cleared->index_slots(hidden_slots_);
  swap_contents(*cleared);
  undo_log_->cleared_ = std::move(cleared);
  return true;
}

bool Keyspace::has_keys_to_keep() const {
  return undo_log_ != nullptr && undo_log_->cleared_ == nullptr;
}

const Entry* Keyspace::random_unkept_entry(bool volatile_only) {
  constexpr int kAttempts = 16;
  bool& searched_in_vain = undo_log_->searched_in_vain_[volatile_only ? 1 : 0];
  // A key that is in both has changed since the checkpoint. The log has those too that are gone,
  // the table those that have not changed.
  const Table& sampled = table_.size() < undo_log_->saved_.size() ? table_ : undo_log_->saved_;
  if (searched_in_vain || sampled.empty()) return nullptr;
  const Entry* found = nullptr;
  bool any = false;
  const auto look_at = [&](const Entry* candidate) {
    const uint64_t hash = table_.hash(candidate->key());
    Entry** slot = table_.find(candidate->key(), hash);
    if (slot == nullptr || undo_log_->saved_.find(candidate->key(), hash) == nullptr) return;
    if (volatile_only && !(*slot)->has_deadline()) return;
    any = true;
    if (!is_expired(**slot) && !is_hidden(**slot)) found = *slot;
  };
  for (int i = 0; i < kAttempts && found == nullptr; ++i)
    look_at(sampled.random(environment_.random));
  // There are few or none: all from a random place on, and then all, are looked at.
  for (uint64_t cursor : {environment_.random.next(), uint64_t{0}}) {
    while (found == nullptr) {
      cursor = sampled.scan(cursor, look_at);
      if (cursor == 0) break;
    }
  }
  searched_in_vain = !any;
  return found;
}

const Entry* Keyspace::put_back(Entry* saved, bool* existed) {
  LK_ASSERT(undo_log_ == nullptr);
  const uint64_t hash = table_.hash(saved->key());
  KeyRef ref(saved->key(), hash, table_.find(saved->key(), hash));
  *existed = static_cast<bool>(ref);
  if ((saved->flags_ & Entry::kAbsent) != 0) {
    if (ref) erase(ref);
    free_entry(saved);
    return nullptr;
  }
  // replace() gives the entry the access field of the one that it replaces.
  const uint32_t access = saved->access();
  replace(ref, saved, saved->deadline_ms());
  saved->set_access(access);
  return saved;
}

}  // namespace latchkey::store
