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
// A group that is read with CLAIM has an index of the records by delivery too (delivery_order()).
//
// Costs: O(log n) to find, add, assign or remove one of n records, in each index that has it; about
// 70 bytes a record, and 8 to 11 more with delivery_order(). Names are in byte order. Times are
// Unix times in milliseconds.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/encoding/stream_id.h"
#include "store/encoding/stream_index.h"

namespace latchkey::store {

struct StreamConsumer;

// An entry delivered to a consumer; it need not exist in the stream any more. Its group alone
// changes who owns it and when it was delivered.
class PendingEntry {
 public:
  static constexpr uint64_t kMaxDeliveries = INT64_MAX;

  const StreamId id;
  uint64_t deliveries;  // up to kMaxDeliveries

  const StreamConsumer& consumer() const { return *consumer_; }
  int64_t delivered_ms() const { return std::max<int64_t>(time_, 0); }
  void count_delivery() { deliveries += deliveries < kMaxDeliveries ? 1 : 0; }

  // Its place in the order of delivery.
  struct Turn {
    int64_t time;
    StreamId id;
    auto operator<=>(const Turn&) const = default;
  };
  Turn turn() const { return {time_, id}; }

 private:
  friend class StreamGroup;
  PendingEntry(StreamId entry_id, int64_t time, uint64_t delivered, StreamConsumer& owner)
      : id(entry_id), deliveries(delivered), time_(time), consumer_(&owner) {}

  // When it was delivered. Of released entries it is negative, and higher the later they were
  // released.
  int64_t time_;
  StreamConsumer* consumer_;
};

// The order of delivery: released entries as they were released, then the others by when they were
// delivered, those of the same time by their ids.
struct ByTurn {
  using Key = PendingEntry::Turn;
  static Key key(const PendingEntry& entry) { return entry.turn(); }
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
  using DeliveryOrder = StreamIndex<PendingEntry, ByTurn>;

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
  // A negative time counts as 0. REQUIRES: the id is not pending.
  PendingEntry& add_pending(StreamId id, StreamConsumer& consumer, int64_t delivered_ms,
                            uint64_t deliveries);
  // Makes `consumer`, which may be the present owner, the owner of the record, delivered at that
  // time. A negative time counts as 0.
  void assign_pending(PendingEntry& entry, StreamConsumer& consumer, int64_t delivered_ms);
  // False when the id is not pending.
  bool erase_pending(StreamId id);

  // --- Released entries -------------------------------------------------------------------------

  // Takes the entry from its owner; it is the last of the released entries then.
  void release_pending(PendingEntry& entry, uint64_t deliveries);
  // Adds a released entry, the last one. REQUIRES: the id is not pending.
  void add_released(StreamId id, uint64_t deliveries);
  bool is_released(const PendingEntry& entry) const { return entry.consumer_ == released_.get(); }
  size_t released() const { return released_ == nullptr ? 0 : released_->pending.size(); }
  // In the order in which they were released. O(n log n).
  std::vector<PendingEntry*> released_in_order() const;

  // --- The order of delivery --------------------------------------------------------------------

  // All pending entries in the order of delivery, except those that were passed over. Valid until
  // the next change of a pending entry.
  //
  // The first call builds it: O(n log n), later ones O(1). From then on each change of a pending
  // entry keeps it up, until the group drops it: when nothing is pending, or after
  // kChangesUnasked changes for each pending entry without a call.
  const DeliveryOrder& delivery_order();
  // Leaves an entry out of the order until it is assigned or released again, because the stream
  // does not have it; returns the position behind it. REQUIRES: it is a position in the order.
  DeliveryOrder::Position pass_over(DeliveryOrder::Position position);
  // Frees the order. The next one has those again that were passed over.
  void drop_delivery_order() { order_ = nullptr; }

  // --- Waiting for deliveries --------------------------------------------------------------------

  // No entry is pending that the stream has.
  static constexpr int64_t kNoDelivery = std::numeric_limits<int64_t>::max();

  // A client waits (XREADGROUP ... CLAIM) for the entry that has been pending longest, which was
  // delivered at `delivered_ms` (kNoDelivery: none is pending). A delivery before that time, such
  // as any delivery where none is pending, sets take_awaited_delivery().
  void await_delivery_before(int64_t delivered_ms) {
    awaited_before_ms_ = std::max(awaited_before_ms_, delivered_ms);
  }
  // Returns whether there was such a delivery since the last call. Clients that wait on call
  // await_delivery_before() again.
  bool take_awaited_delivery() { return std::exchange(has_awaited_delivery_, false); }

  // Bytes held, this object included.
  size_t memory_usage() const;

 private:
  static constexpr size_t kChangesUnasked = 16;
  static constexpr int64_t kNobodyWaits = std::numeric_limits<int64_t>::min();

  PendingEntry& add(StreamId id, StreamConsumer& owner, int64_t time, uint64_t deliveries);
  // Changes the owner and the time of a record.
  void assign(PendingEntry& entry, StreamConsumer& owner, int64_t time);
  // Removes the record from all indexes but its owner's, and frees it.
  void destroy(PendingEntry* entry);
  StreamConsumer& released_or_new();
  void leave_order(const PendingEntry& entry);
  // An entry was delivered then.
  void delivered(int64_t time);
  // Counts a change that the order has followed, and drops the order if that is no longer worth it.
  void order_followed();

  Consumers consumers_;
  StreamIndex<PendingEntry> pending_;
  // Owns the released entries; null before the first one.
  std::unique_ptr<StreamConsumer> released_;
  // The time of the entry that is released next.
  int64_t next_release_ = std::numeric_limits<int64_t>::min();
  std::unique_ptr<DeliveryOrder> order_;  // null when nobody wants it
  size_t changes_unasked_ = 0;            // since the last call of delivery_order()
  int64_t awaited_before_ms_ = kNobodyWaits;
  bool has_awaited_delivery_ = false;
};

}  // namespace latchkey::store
