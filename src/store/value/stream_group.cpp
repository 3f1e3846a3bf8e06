#include "store/value/stream_group.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace latchkey::store {

namespace {

// Size of a std::map node: the pair, three pointers and a colour.
constexpr size_t kMapNodeBytes = sizeof(StreamGroup::Consumers::value_type) + 4 * sizeof(void*);

}  // namespace

StreamGroup::~StreamGroup() {
  pending_.for_each([](PendingEntry* entry) { delete entry; });
}

StreamGroup::StreamGroup(const StreamGroup& other)
    : last_delivered(other.last_delivered), entries_read(other.entries_read) {
  for (const auto& [name, consumer] : other.consumers_) {
    StreamConsumer& copy = add_consumer(name, consumer->seen_ms);
    copy.active_ms = consumer->active_ms;
    consumer->pending.for_each([&](const PendingEntry* entry) {
      add_pending(entry->id, copy, entry->delivered_ms, entry->deliveries);
    });
  }
  for (const PendingEntry* entry : other.released_in_order())
    add_released(entry->id, entry->deliveries);
}

StreamConsumer* StreamGroup::find_consumer(std::string_view name) const {
  const auto found = consumers_.find(name);
  return found == consumers_.end() ? nullptr : found->second.get();
}

StreamConsumer& StreamGroup::add_consumer(std::string_view name, int64_t now_ms) {
  auto consumer = std::make_unique<StreamConsumer>();
  consumer->name = name;
  consumer->seen_ms = now_ms;
  return *consumers_.emplace(name, std::move(consumer)).first->second;
}

size_t StreamGroup::erase_consumer(std::string_view name) {
  const auto found = consumers_.find(name);
  if (found == consumers_.end()) return 0;
  const size_t pending = found->second->pending.size();
  found->second->pending.for_each([&](PendingEntry* entry) {
    pending_.erase(entry);
    delete entry;
  });
  consumers_.erase(found);
  return pending;
}

PendingEntry& StreamGroup::add_pending(StreamId id, StreamConsumer& consumer, int64_t delivered_ms,
                                       uint64_t deliveries) {
  auto* entry = new PendingEntry{id, delivered_ms, deliveries, &consumer};
  pending_.insert(entry);
  consumer.pending.insert(entry);
  return *entry;
}

void StreamGroup::move_pending(PendingEntry& entry, StreamConsumer& consumer) {
  if (entry.consumer == &consumer) return;
  entry.consumer->pending.erase(&entry);
  entry.consumer = &consumer;
  consumer.pending.insert(&entry);
}

bool StreamGroup::erase_pending(StreamId id) {
  PendingEntry* entry = pending_.find(id);
  if (entry == nullptr) return false;
  entry->consumer->pending.erase(entry);
  pending_.erase(entry);
  delete entry;
  return true;
}

void StreamGroup::note_release(StreamId id) {
  constexpr size_t kFew = 16;
  release_order_.push_back(id);
  if (release_order_.size() < kFew || release_order_.size() / 2 < released()) return;
  std::vector<StreamId> order;
  for (const PendingEntry* entry : released_in_order()) order.push_back(entry->id);
  release_order_ = std::move(order);
}

void StreamGroup::release_pending(PendingEntry& entry, uint64_t deliveries) {
  if (released_ == nullptr) released_ = std::make_unique<StreamConsumer>();
  move_pending(entry, *released_);
  entry.delivered_ms = 0;
  entry.deliveries = deliveries;
  note_release(entry.id);
}

void StreamGroup::add_released(StreamId id, uint64_t deliveries) {
  if (released_ == nullptr) released_ = std::make_unique<StreamConsumer>();
  add_pending(id, *released_, 0, deliveries);
  note_release(id);
}

std::vector<PendingEntry*> StreamGroup::released_in_order() const {
  std::vector<PendingEntry*> entries;
  if (released() == 0) return entries;
  std::unordered_set<const PendingEntry*> seen;
  for (size_t i = release_order_.size(); i-- > 0;) {
    PendingEntry* entry = released_->pending.find(release_order_[i]);
    if (entry != nullptr && seen.insert(entry).second) entries.push_back(entry);
  }
  std::reverse(entries.begin(), entries.end());
  return entries;
}

size_t StreamGroup::memory_usage() const {
  size_t bytes = sizeof(*this) + pending_.memory_usage() + pending_.size() * sizeof(PendingEntry);
  if (released_ != nullptr) {
    bytes += sizeof(StreamConsumer) + released_->pending.memory_usage() +
             release_order_.capacity() * sizeof(StreamId);
  }
  for (const auto& [name, consumer] : consumers_) {
    bytes +=
        kMapNodeBytes + 2 * name.size() + sizeof(StreamConsumer) + consumer->pending.memory_usage();
  }
  return bytes;
}

}  // namespace latchkey::store
