#include "store/value/stream_group.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace latchkey::store {

namespace {

// Size of a std::map node: the pair, three pointers and a colour.
constexpr size_t kConsumerNodeBytes =
    sizeof(StreamGroup::Consumers::value_type) + 4 * sizeof(void*);

bool is_earlier(const PendingEntry* a, const PendingEntry* b) {
  return a->turn() < b->turn();
}

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
      add_pending(entry->id, copy, entry->delivered_ms(), entry->deliveries);
    });
  }
  for (const PendingEntry* entry : other.released_in_order())
    add_released(entry->id, entry->deliveries);
  // The copy may take the place of the other one.
  awaited_before_ms_ = other.awaited_before_ms_;
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
  found->second->pending.for_each([&](PendingEntry* entry) { destroy(entry); });
  consumers_.erase(found);
  return pending;
}

// --- Pending entries ----------------------------------------------------------------------------

PendingEntry& StreamGroup::add(StreamId id, StreamConsumer& owner, int64_t time,
                               uint64_t deliveries) {
  auto* entry = new PendingEntry(id, time, deliveries, owner);
  pending_.insert(entry);
  owner.pending.insert(entry);
  if (order_ != nullptr) order_->insert(entry);
  order_followed();
  delivered(time);
  return *entry;
}

void StreamGroup::assign(PendingEntry& entry, StreamConsumer& owner, int64_t time) {
  if (entry.consumer_ != &owner) {
    entry.consumer_->pending.erase(&entry);
    entry.consumer_ = &owner;
    owner.pending.insert(&entry);
  }
  leave_order(entry);
  entry.time_ = time;
  if (order_ != nullptr) order_->insert(&entry);
  order_followed();
  delivered(time);
}

void StreamGroup::destroy(PendingEntry* entry) {
  leave_order(*entry);
  pending_.erase(entry);
  delete entry;
  order_followed();
}

PendingEntry& StreamGroup::add_pending(StreamId id, StreamConsumer& consumer, int64_t delivered_ms,
                                       uint64_t deliveries) {
  return add(id, consumer, std::max<int64_t>(delivered_ms, 0), deliveries);
}

void StreamGroup::assign_pending(PendingEntry& entry, StreamConsumer& consumer,
                                 int64_t delivered_ms) {
  assign(entry, consumer, std::max<int64_t>(delivered_ms, 0));
}

bool StreamGroup::erase_pending(StreamId id) {
  PendingEntry* entry = pending_.find(id);
  if (entry == nullptr) return false;
  entry->consumer_->pending.erase(entry);
  destroy(entry);
  return true;
}

// --- Released entries ---------------------------------------------------------------------------

StreamConsumer& StreamGroup::released_or_new() {
  if (released_ == nullptr) released_ = std::make_unique<StreamConsumer>();
  return *released_;
}

void StreamGroup::release_pending(PendingEntry& entry, uint64_t deliveries) {
  assign(entry, released_or_new(), next_release_++);
  entry.deliveries = deliveries;
}

void StreamGroup::add_released(StreamId id, uint64_t deliveries) {
  add(id, released_or_new(), next_release_++, deliveries);
}

std::vector<PendingEntry*> StreamGroup::released_in_order() const {
  std::vector<PendingEntry*> entries;
  if (released() == 0) return entries;
  entries.reserve(released());
  released_->pending.for_each([&](PendingEntry* entry) { entries.push_back(entry); });
  std::sort(entries.begin(), entries.end(), is_earlier);
  return entries;
}

// --- The order of delivery ----------------------------------------------------------------------

const StreamGroup::DeliveryOrder& StreamGroup::delivery_order() {
  changes_unasked_ = 0;
  if (order_ == nullptr) {
    std::vector<std::pair<PendingEntry::Turn, PendingEntry*>> entries;
    entries.reserve(pending_.size());
    pending_.for_each([&](PendingEntry* entry) { entries.emplace_back(entry->turn(), entry); });
    std::sort(entries.begin(), entries.end());
    order_ = std::make_unique<DeliveryOrder>();
    for (const auto& [turn, entry] : entries) order_->insert(entry);
  }
  LK_ASSERT(order_->size() <= pending_.size());
  return *order_;
}

StreamGroup::DeliveryOrder::Position StreamGroup::pass_over(DeliveryOrder::Position position) {
  return order_->erase(position);
}

void StreamGroup::leave_order(const PendingEntry& entry) {
  if (order_ == nullptr) return;
  const DeliveryOrder::Position position = order_->not_before(entry.turn());
  // An entry that was passed over is not there.
  if (position && *position == &entry) order_->erase(position);
}

void StreamGroup::order_followed() {
  if (order_ != nullptr && ++changes_unasked_ > kChangesUnasked * pending_.size())
    drop_delivery_order();
}

void StreamGroup::delivered(int64_t time) {
  if (time >= awaited_before_ms_) return;
  awaited_before_ms_ = kNobodyWaits;
  has_awaited_delivery_ = true;
}

size_t StreamGroup::memory_usage() const {
  size_t bytes = sizeof(*this) + pending_.memory_usage() + pending_.size() * sizeof(PendingEntry);
  if (released_ != nullptr) bytes += sizeof(StreamConsumer) + released_->pending.memory_usage();
  if (order_ != nullptr) bytes += sizeof(DeliveryOrder) + order_->memory_usage();
  for (const auto& [name, consumer] : consumers_) {
    bytes += kConsumerNodeBytes + 2 * name.size() + sizeof(StreamConsumer) +
             consumer->pending.memory_usage();
  }
  return bytes;
}

}  // namespace latchkey::store
