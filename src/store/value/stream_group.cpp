#include "store/value/stream_group.h"

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

size_t StreamGroup::memory_usage() const {
  size_t bytes = sizeof(*this) + pending_.memory_usage() + pending_.size() * sizeof(PendingEntry);
  for (const auto& [name, consumer] : consumers_) {
    bytes +=
        kMapNodeBytes + 2 * name.size() + sizeof(StreamConsumer) + consumer->pending.memory_usage();
  }
  return bytes;
}

}  // namespace latchkey::store
