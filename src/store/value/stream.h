// A stream: entries of fields and values in order of their ids, appended at the end; and consumer
// groups that read it (store/value/stream_group.h).
//
// Entries stand in nodes (store/encoding/stream_node.h) of up to stream-node-max-entries entries or
// stream-node-max-bytes bytes, and the nodes in an index by their first id. Deleted entries keep
// their place until the last of their node goes; nodes are never joined.
//
// A stream remembers its last id, how many entries were ever added and the highest id that was
// deleted, so that groups can be told how far behind they are.
//
// Costs, of n nodes: appending O(fields), finding an entry O(log n + entries of a node), walking
// O(elements passed), trimming O(nodes removed).
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
#include "store/value_limits.h"

namespace latchkey::store {

// What becomes of an entry, and of what groups know of it, when it is deleted: it goes and what is
// pending stays (kKeep), that goes as well (kDelete), or the entry goes only if every group has
// been given it and none has it pending (kAcknowledged).
enum class StreamReferences : uint8_t { kKeep, kDelete, kAcknowledged };

// What is left of a stream: its newest entries (kMaxLength), or those from an id on (kMinId).
struct StreamTrim {
  enum class By : uint8_t { kMaxLength, kMinId } by = By::kMaxLength;
  uint64_t max_length = 0;
  StreamId min_id;
  // Only whole nodes go, and no more entries than `limit` unless that is zero.
  bool approximate = false;
  uint64_t limit = 0;
  // Of no effect where there are no groups.
  StreamReferences references = StreamReferences::kKeep;
};

// Both included.
struct StreamRange {
  StreamId first;
  StreamId last = StreamId::max();
};

// An entry that is walked over; valid until the stream is changed.
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
  // Of the oldest entry; zero when there is none.
  StreamId first_id() const { return first_id_; }
  StreamId last_id() const { return last_id_; }
  StreamId max_deleted_id() const { return max_deleted_id_; }
  uint64_t entries_added() const { return entries_added_; }
  void set_last_id(StreamId id) { last_id_ = id; }
  void set_max_deleted_id(StreamId id) { max_deleted_id_ = id; }
  void set_entries_added(uint64_t count) { entries_added_ = count; }

  // --- Entries ----------------------------------------------------------------------------------

  // The id of an entry that is added at that time; none when the last possible one is taken.
  std::optional<StreamId> new_id(int64_t now_ms) const;
  // The next id of that millisecond; none when there is none above the last.
  std::optional<StreamId> new_id_of(uint64_t ms) const;
  // REQUIRES: the id is above last_id(), and StreamNode::can_hold(fields).
  void append(StreamId id, StreamFields fields, const ValueLimits& limits);
  // False when there is no such entry.
  bool erase(StreamId id);
  // Removes the oldest entries; tells how many.
  size_t trim(const StreamTrim& trim);

  bool contains(StreamId id) const;
  // The newest entry's id; zero when there is none.
  StreamId last_entry_id() const;
  // Calls fn(const StreamEntry&) for the entries of a range, from its last to its first when
  // `reverse`, until it returns false. fn must not change the entries.
  template <typename Fn>
  void for_each(const StreamRange& range, bool reverse, Fn&& fn) const {
    reverse ? walk_backward(range, fn) : walk_forward(range, fn);
  }

  // Calls fn(const StreamNode&) for all, in order.
  template <typename Fn>
  void for_each_node(Fn&& fn) const {
    nodes_.for_each([&](const StreamNode* node) { fn(*node); });
  }
  // Takes a node in behind those that are there, as a file or another server's dump holds it; the
  // ids and counters that follow from it are set by the caller. False when its bytes are none, or
  // its entries not above those before.
  bool adopt(StreamId first, std::span<const char> bytes);

  // --- Groups -----------------------------------------------------------------------------------

  size_t group_count() const { return groups_ == nullptr ? 0 : groups_->size(); }
  // Null when there is none of that name.
  StreamGroup* find_group(std::string_view name) const;
  // REQUIRES: there is none of that name.
  StreamGroup& add_group(std::string_view name, StreamId last_delivered, int64_t entries_read);
  bool erase_group(std::string_view name);
  // Calls fn(std::string_view name, StreamGroup&) in order of names.
  template <typename Fn>
  void for_each_group(Fn&& fn) const {
    if (groups_ == nullptr) return;
    for (const auto& [name, group] : *groups_) fn(std::string_view(name), *group);
  }
  // Whether the entry is pending in a group, or one has not been given it yet. O(groups * log n).
  bool is_referenced(StreamId id) const;
  // Makes the id no longer pending anywhere; tells in how many groups it was. O(groups * log n).
  size_t erase_references(StreamId id);
  // Says that the group has been given the entry of that id, which is above its last.
  void advance(StreamGroup& group, StreamId id) const;
  // How many entries there are that the group has not been given; none when that is not known.
  std::optional<int64_t> lag(const StreamGroup& group) const;
  // How many entries were ever added up to that id; none when it cannot be told.
  std::optional<int64_t> count_ever_added_to(StreamId id) const;

  // Value
  std::string_view encoding_name() const override { return "stream"; }
  size_t free_effort() const override;
  size_t element_count() const override { return size(); }
  size_t memory_usage() const override;
  Value* clone() const override { return new Stream(*this); }

 private:
  using Nodes = StreamIndex<StreamNode>;

  template <typename Fn>
  void walk_forward(const StreamRange& range, Fn&& fn) const;
  template <typename Fn>
  void walk_backward(const StreamRange& range, Fn&& fn) const;
  StreamNode& node_for_append(StreamId id, StreamFields fields, const ValueLimits& limits);
  // The entry of that id that is not deleted, and its node's place.
  StreamNode::Entry find(StreamId id, Nodes::Position* node) const;
  Nodes::Position destroy(Nodes::Position node);
  // Removes entries of one node as trim() says, seeing to what groups know of each.
  void trim_with_references(StreamNode& node, const StreamTrim& trim);
  void find_first_id();
  // Whether entries from that id on may have been deleted.
  bool may_lack_entries_from(StreamId id) const;

  Nodes nodes_;
  size_t length_ = 0;
  uint64_t entries_added_ = 0;
  StreamId first_id_;
  StreamId last_id_;
  StreamId max_deleted_id_;
  std::unique_ptr<Groups> groups_;  // made with the first group
};

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
