// A stream: entries of fields and values in order of their ids, appended at the end; and consumer
// groups that read it (store/value/stream_group.h).
//
// Entries are in nodes (store/encoding/stream_node.h) of up to stream-node-max-entries entries or
// stream-node-max-bytes bytes, and the nodes in an index by their first id. Deleted entries keep
// their place until the last entry of their node is deleted; nodes are never merged.
//
// A stream remembers its last id, how many entries were ever added and the highest deleted id, from
// which lag() computes how far behind a group is.
//
// It also remembers requests of producers that name them (store/value/stream_producers.h).
//
// Costs, with n nodes: appending O(fields), finding an entry O(log n + entries of a node), or with
// a StreamFinder the entries since the last one; walking O(elements passed), trimming O(nodes
// removed).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "store/encoding/stream_id.h"
#include "store/encoding/stream_index.h"
#include "store/encoding/stream_node.h"
#include "store/entry.h"
#include "store/value/stream_group.h"
#include "store/value/stream_producers.h"
#include "store/value_limits.h"

namespace latchkey::store {

// How the deletion of an entry treats references to it in groups: it keeps pending records (kKeep),
// deletes them too (kDelete), or deletes the entry only if every group has read it and none has it
// pending (kAcknowledged).
enum class StreamReferences : uint8_t { kKeep, kDelete, kAcknowledged };

// What trim() keeps: the newest entries (kMaxLength), or those from an id on (kMinId).
struct StreamTrim {
  enum class By : uint8_t { kMaxLength, kMinId } by = By::kMaxLength;
  uint64_t max_length = 0;
  StreamId min_id;
  // Removes only whole nodes, and no more entries than `limit` unless that is zero.
  bool approximate = false;
  uint64_t limit = 0;
  // Has no effect if there are no groups.
  StreamReferences references = StreamReferences::kKeep;
};

// Both ends are included.
struct StreamRange {
  StreamId first;
  StreamId last = StreamId::max();
};

// An entry during a walk; valid until the stream is changed.
class StreamEntry {
 public:
  StreamEntry(const StreamNode& node, const StreamNode::Entry& entry)
      : node_(node), entry_(entry) {}
  StreamId id() const { return entry_.id; }
  size_t fields() const { return entry_.fields; }
  // Calls fn(field, value), both Listpack::Element.
  template <typename Fn>
  void for_each_field(Fn&& fn) const {
    node_.for_each_field(entry_, fn);
  }

 private:
  const StreamNode& node_;
  const StreamNode::Entry& entry_;
};

class Stream final : public Value {
 public:
  static constexpr Type kType = Type::kStream;
  using Groups = std::map<std::string, std::unique_ptr<StreamGroup>, std::less<>>;

  Stream() = default;
  ~Stream() override;
  Stream(const Stream& other);
  Stream& operator=(const Stream&) = delete;

  size_t size() const { return length_; }
  size_t nodes() const { return nodes_.size(); }
  // The id of the oldest entry; zero when there is none.
  StreamId first_id() const { return first_id_; }
  StreamId last_id() const { return last_id_; }
  StreamId max_deleted_id() const { return max_deleted_id_; }
  uint64_t entries_added() const { return entries_added_; }
  // O(1); for a lower id than before, O(n) of the pending entries of groups read with CLAIM.
  void set_last_id(StreamId id);
  void set_max_deleted_id(StreamId id) { max_deleted_id_ = id; }
  void set_entries_added(uint64_t count) { entries_added_ = count; }

  // --- Entries ----------------------------------------------------------------------------------

  // The id for an entry added at that time; nothing when the highest possible id is taken.
  std::optional<StreamId> new_id(int64_t now_ms) const;
  // The next id within that millisecond; nothing when there is none above the last id.
  std::optional<StreamId> new_id_of(uint64_t ms) const;
  // REQUIRES: the id is above last_id(), and StreamNode::can_hold(fields).
  void append(StreamId id, StreamFields fields, const ValueLimits& limits);
  // False when there is no such entry.
  bool erase(StreamId id);
  // Removes the oldest entries; returns how many.
  size_t trim(const StreamTrim& trim);

  bool contains(StreamId id) const;
  // The newest entry's id; zero when there is none.
  StreamId last_entry_id() const;
  // Calls fn(const StreamEntry&) for the entries of a range, from its last to its first when
  // `reverse`, until fn returns false. fn must not change the entries.
  template <typename Fn>
  void for_each(const StreamRange& range, bool reverse, Fn&& fn) const {
    reverse ? walk_backward(range, fn) : walk_forward(range, fn);
  }

  // Calls fn(const StreamNode&) for all, in order.
  template <typename Fn>
  void for_each_node(Fn&& fn) const {
    nodes_.for_each([&](const StreamNode* node) { fn(*node); });
  }
  // Appends a node from a file or a dump; the caller sets the last id and the counters. False when
  // the bytes are not a valid node, or its entries are not above those before.
  bool adopt(StreamId first, std::span<const char> bytes);

  // --- Groups -----------------------------------------------------------------------------------

  size_t group_count() const { return groups_ == nullptr ? 0 : groups_->size(); }
  // Null when there is no group of that name.
  StreamGroup* find_group(std::string_view name) const;
  // REQUIRES: there is no group of that name.
  StreamGroup& add_group(std::string_view name, StreamId last_delivered, int64_t entries_read);
  bool erase_group(std::string_view name);
  // Calls fn(std::string_view name, StreamGroup&) in order of names.
  template <typename Fn>
  void for_each_group(Fn&& fn) const {
    if (groups_ == nullptr) return;
    for (const auto& [name, group] : *groups_) fn(std::string_view(name), *group);
  }
  // Whether the entry is pending in a group, or not yet read by a group. O(groups * log n), but
  // O(log n) when the group that the last such question found refers to this entry, too.
  bool is_referenced(StreamId id) const { return referrer_of(id) != nullptr; }
  // Removes the id's pending records; returns in how many groups it was. O(groups * log n).
  size_t erase_references(StreamId id);
  // Records that the group has read the entry with that id, which is above its last id.
  void advance(StreamGroup& group, StreamId id) const;
  // Calls fn(PendingEntry&, const StreamEntry&) for the group's pending entries that the stream
  // still has, in the order of delivery (StreamGroup::delivery_order()), until fn returns false.
  // fn must change neither the stream nor the group. O(log n + entries of a node) each. An entry
  // that was deleted costs that once, when the first call comes to it.
  template <typename Fn>
  void for_each_pending(StreamGroup& group, Fn&& fn) const;
  // How many entries the group has not read; nothing when that is not known. `counts_trimmed`: also
  // those that were trimmed before it came to them (Valkey).
  std::optional<int64_t> lag(const StreamGroup& group, bool counts_trimmed = false) const;
  // How many entries up to that id were ever added; nothing when that is not known.
  std::optional<int64_t> count_ever_added_to(StreamId id) const;

  // --- Producers --------------------------------------------------------------------------------

  // Null as long as they have the default limits and no request was added.
  StreamProducers* producers() const { return producers_.get(); }
  StreamProducers& producers_or_new() {
    if (producers_ == nullptr) producers_ = std::make_unique<StreamProducers>();
    return *producers_;
  }
  // Sets the limits of a stream that has been made just now.
  void begin_with(const ValueLimits& limits) {
    if (limits.stream_idmp_duration_s != StreamProducers::kDefaultDurationS ||
        limits.stream_idmp_maxsize != StreamProducers::kDefaultMostEach)
      producers_or_new().set_limits(limits.stream_idmp_duration_s, limits.stream_idmp_maxsize);
  }

  // Value
  std::string_view encoding_name() const override { return "stream"; }
  size_t free_effort() const override;
  size_t element_count() const override { return size(); }
  size_t memory_usage() const override;
  Value* clone() const override { return new Stream(*this); }

 private:
  friend class StreamFinder;
  using Nodes = StreamIndex<StreamNode>;

  template <typename Fn>
  void walk_forward(const StreamRange& range, Fn&& fn) const;
  template <typename Fn>
  void walk_backward(const StreamRange& range, Fn&& fn) const;
  StreamNode& node_for_append(StreamId id, StreamFields fields, const ValueLimits& limits);
  // The entry with that id that is not deleted, and its node's position.
  StreamNode::Entry find(StreamId id, Nodes::Position* node) const;
  Nodes::Position destroy(Nodes::Position node);
  // A group for which is_referenced() is true, or null.
  const StreamGroup* referrer_of(StreamId id) const;
  // Removes entries of one node as trim() does, treating each one's references in groups. Returns
  // whether entries behind them may go, too.
  bool trim_with_references(StreamNode& node, const StreamTrim& trim);
  // Moves first_id_ to the first entry at or after it; to zero when there is none.
  void find_first_id();
  // Whether entries with that id or a higher one may have been deleted.
  bool may_lack_entries_from(StreamId id) const;

  Nodes nodes_;
  size_t length_ = 0;
  uint64_t entries_added_ = 0;
  StreamId first_id_;
  StreamId last_id_;
  StreamId max_deleted_id_;
  std::unique_ptr<Groups> groups_;                      // created with the first group
  mutable const StreamGroup* last_referrer_ = nullptr;  // what referrer_of() found last
  std::unique_ptr<StreamProducers> producers_;
};

// Finds entries of a stream by ids that ascend, as those of pending records do, without walking
// their node from its start each time. Any order of ids is allowed. Invalid once the stream's
// entries are changed; groups may be.
class StreamFinder {
 public:
  explicit StreamFinder(const Stream& stream) : stream_(stream) {}
  StreamFinder(const StreamFinder&) = delete;
  StreamFinder& operator=(const StreamFinder&) = delete;

  // Nothing when there is no such entry. The entry is valid until the next call. O(entries passed),
  // plus O(log n) for another node than the last one's.
  std::optional<StreamEntry> find(StreamId id);

 private:
  // Whether the id, if it exists, is at entry_ or behind it in the same node.
  bool is_ahead(StreamId id) const {
    return entry_ && entry_.id <= id && (next_node_ == nullptr || id < next_node_->id);
  }

  const Stream& stream_;
  const StreamNode* node_ = nullptr;
  const StreamNode* next_node_ = nullptr;  // null: none
  // The first of the node with at least the id that was looked for last; empty: none.
  StreamNode::Entry entry_;
};

template <typename Fn>
void Stream::for_each_pending(StreamGroup& group, Fn&& fn) const {
  StreamFinder entries(*this);
  for (StreamGroup::DeliveryOrder::Position position = group.delivery_order().first(); position;) {
    const std::optional<StreamEntry> entry = entries.find((*position)->id);
    if (!entry) {
      position = group.pass_over(position);
      continue;
    }
    if (!fn(**position, *entry)) return;
    position.forward();
  }
}

template <typename Fn>
void Stream::walk_forward(const StreamRange& range, Fn&& fn) const {
  Nodes::Position position = nodes_.not_after(range.first);
  if (!position) position = nodes_.first();
  for (; position; position.forward()) {
    const StreamNode& node = **position;
    for (StreamNode::Entry entry = node.first(); entry; entry = node.next(entry)) {
      if (entry.id > range.last) return;
      if (entry.deleted || entry.id < range.first) continue;
      if (!fn(StreamEntry(node, entry))) return;
    }
  }
}

template <typename Fn>
void Stream::walk_backward(const StreamRange& range, Fn&& fn) const {
  for (Nodes::Position position = nodes_.not_after(range.last); position; position.backward()) {
    const StreamNode& node = **position;
    for (StreamNode::Entry entry = node.last(); entry; entry = node.previous(entry)) {
      if (entry.id < range.first) return;
      if (entry.deleted || entry.id > range.last) continue;
      if (!fn(StreamEntry(node, entry))) return;
    }
  }
}

}  // namespace latchkey::store
