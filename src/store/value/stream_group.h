// Consumer groups of a stream: how far a group has read, and which entries were delivered to its
// consumers and are not yet acknowledged.
//
// A pending entry has one record, which is in the group's index and in the index of the consumer
// that owns it:
//
//     group   pending: | 1-0 | 2-0 | 3-0 |       consumer a  pending: | 1-0 | 3-0 |
//                         \_____|_____|__________________________________/    |
//                               record 3-0 (delivered when, how often, to a) -+
//
// An entry that was released (XNACK) belongs to nobody until it is delivered again: its owner is a
// record of the group's that is no consumer and has no name. It was delivered at time 0.
//
// Costs: O(log n) to find, add, move or remove one of n records; about 70 bytes a record. Names are
// in byte order. Times are Unix times in milliseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "store/encoding/stream_id.h"
#include "store/encoding/stream_index.h"

namespace latchkey::store {

struct StreamConsumer;

// An entry delivered to a consumer; it need not exist in the stream any more.
struct PendingEntry {
  StreamId id;
  int64_t delivered_ms;
  uint64_t deliveries;  // up to kMaxDeliveries
  StreamConsumer* consumer;

  static constexpr uint64_t kMaxDeliveries = INT64_MAX;
  void count_delivery() { deliveries += deliveries < kMaxDeliveries ? 1 : 0; }
};

struct StreamConsumer {
  static constexpr int64_t kNever = -1;

  std::string name;
  int64_t seen_ms = 0;         // when it last asked for entries
  int64_t active_ms = kNever;  // when it last received entries
  StreamIndex<PendingEntry> pending;
};

class StreamGroup {
 public:
  // The number of entries read is not known.
  static constexpr int64_t kUnknownReads = -1;
  using Consumers = std::map<std::string, std::unique_ptr<StreamConsumer>, std::less<>>;

  StreamGroup(StreamId delivered, int64_t reads) : last_delivered(delivered), entries_read(reads) {}
  ~StreamGroup();
  StreamGroup(const StreamGroup& other);
  StreamGroup& operator=(const StreamGroup&) = delete;

  StreamId last_delivered;
  // How many entries up to last_delivered were ever added; Stream::lag() uses it.
  int64_t entries_read;

  // --- Consumers --------------------------------------------------------------------------------

  const Consumers& consumers() const { return consumers_; }
  // Null when there is no consumer of that name.
  StreamConsumer* find_consumer(std::string_view name) const;
  // REQUIRES: there is no consumer of that name.
  StreamConsumer& add_consumer(std::string_view name, int64_t now_ms);
  // Removes the consumer and its pending entries; returns how many these were, zero when there is
  // no such consumer. O(its pending entries * log n).
  size_t erase_consumer(std::string_view name);

  // --- Pending entries --------------------------------------------------------------------------

  const StreamIndex<PendingEntry>& pending() const { return pending_; }
  // REQUIRES: the id is not pending.
  PendingEntry& add_pending(StreamId id, StreamConsumer& consumer, int64_t delivered_ms,
                            uint64_t deliveries);
  // Makes `consumer`, which may be the present owner, the owner of the record.
  void move_pending(PendingEntry& entry, StreamConsumer& consumer);
  // False when the id is not pending.
  bool erase_pending(StreamId id);

  // --- Released entries -------------------------------------------------------------------------

  // Takes the entry from its owner; it is the last of the released entries then.
  void release_pending(PendingEntry& entry, uint64_t deliveries);
  // Adds a released entry, the last one. REQUIRES: the id is not pending.
  void add_released(StreamId id, uint64_t deliveries);
  bool is_released(const PendingEntry& entry) const { return entry.consumer == released_.get(); }
  size_t released() const { return released_ == nullptr ? 0 : released_->pending.size(); }
  // In the order in which they were released. O(n log n).
  std::vector<PendingEntry*> released_in_order() const;

  // Bytes held, this object included.
  size_t memory_usage() const;

 private:
  // Remembers that the id was released last.
  void note_release(StreamId id);

  Consumers consumers_;
  StreamIndex<PendingEntry> pending_;
  // Owns the released entries; null before the first one.
  std::unique_ptr<StreamConsumer> released_;
  // Their ids as they were released, the last time that an id stands there counting; with ids among
  // them that have an owner again or are gone, at most about as many as there are released ones.
  std::vector<StreamId> release_order_;
};

}  // namespace latchkey::store
