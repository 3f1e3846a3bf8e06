#include "store/value/stream.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/assert.h"

namespace latchkey::store {

Stream::~Stream() {
  nodes_.for_each([](StreamNode* node) { delete node; });
}

Stream::Stream(const Stream& other)
    : Value(),
      length_(other.length_),
      entries_added_(other.entries_added_),
      first_id_(other.first_id_),
      last_id_(other.last_id_),
      max_deleted_id_(other.max_deleted_id_) {
  other.nodes_.for_each([&](const StreamNode* node) { nodes_.insert(new StreamNode(*node)); });
  if (other.producers_ != nullptr)
    producers_ = std::make_unique<StreamProducers>(*other.producers_);
  if (other.groups_ == nullptr) return;
  groups_ = std::make_unique<Groups>();
  for (const auto& [name, group] : *other.groups_)
    groups_->emplace(name, std::make_unique<StreamGroup>(*group));
}

// --- Adding -------------------------------------------------------------------------------------

void Stream::set_last_id(StreamId id) {
  // Entries that groups have passed over may be added again.
  if (id < last_id_)
    for_each_group([](std::string_view, StreamGroup& group) { group.drop_delivery_order(); });
  last_id_ = id;
}

std::optional<StreamId> Stream::new_id(int64_t now_ms) const {
  if (last_id_ == StreamId::max()) return std::nullopt;
  const auto now = static_cast<uint64_t>(now_ms);
  return now > last_id_.ms ? StreamId{now, 0} : last_id_.next();
}

std::optional<StreamId> Stream::new_id_of(uint64_t ms) const {
  if (ms > last_id_.ms) return StreamId{ms, 0};
  if (ms < last_id_.ms || last_id_.sequence == std::numeric_limits<uint64_t>::max())
    return std::nullopt;
  return last_id_.next();
}

StreamNode& Stream::node_for_append(StreamId id, StreamFields fields, const ValueLimits& limits) {
  if (const Nodes::Position last = nodes_.last()) {
    StreamNode& node = **last;
    const size_t most_bytes = limits.stream_node_max_bytes == 0
                                  ? Listpack::kMaxBytes
                                  : std::min(limits.stream_node_max_bytes, Listpack::kMaxBytes);
    const size_t most_entries = limits.stream_node_max_entries;
    const bool full = node.byte_size() + StreamNode::text_size(fields) >= most_bytes ||
                      !StreamNode::can_hold(fields, node.byte_size()) ||
                      (most_entries != 0 && node.count() + node.deleted() >= most_entries);
    if (!full) return node;
  }
  auto* node = new StreamNode(id, fields);
  nodes_.insert(node);
  return *node;
}

void Stream::append(StreamId id, StreamFields fields, const ValueLimits& limits) {
  LK_ASSERT(id > last_id_);
  node_for_append(id, fields, limits).append(id, fields);
  if (length_ == 0) first_id_ = id;
  last_id_ = id;
  ++length_;
  ++entries_added_;
}

bool Stream::adopt(StreamId first, std::span<const char> bytes) {
  if (!StreamNode::is_valid(first, bytes)) return false;
  auto node = std::make_unique<StreamNode>(first, bytes);
  const Nodes::Position last = nodes_.last();
  if (last && (*last)->last().id >= first) return false;
  const bool has_first = length_ == 0 && node->count() != 0;
  length_ += node->count();
  nodes_.insert(node.release());
  if (has_first) {
    first_id_ = first;
    find_first_id();
  }
  return true;
}

// --- Removing -----------------------------------------------------------------------------------

StreamNode::Entry Stream::find(StreamId id, Nodes::Position* node) const {
  *node = nodes_.not_after(id);
  if (!*node) return {};
  for (StreamNode::Entry entry = (**node)->first(); entry && entry.id <= id;
       entry = (**node)->next(entry)) {
    if (entry.id == id && !entry.deleted) return entry;
  }
  return {};
}

bool Stream::contains(StreamId id) const {
  Nodes::Position node;
  return static_cast<bool>(find(id, &node));
}

std::optional<StreamEntry> StreamFinder::find(StreamId id) {
  if (!is_ahead(id)) {
    Stream::Nodes::Position position = stream_.nodes_.not_after(id);
    if (!position) return std::nullopt;
    node_ = *position;
    position.forward();
    next_node_ = position ? *position : nullptr;
    entry_ = node_->first();
  }
  while (entry_ && entry_.id < id) entry_ = node_->next(entry_);
  if (!entry_ || entry_.id != id || entry_.deleted) return std::nullopt;
  return StreamEntry(*node_, entry_);
}

Stream::Nodes::Position Stream::destroy(Nodes::Position node) {
  const StreamNode* gone = *node;
  const Nodes::Position next = nodes_.erase(node);
  delete gone;
  return next;
}

void Stream::find_first_id() {
  StreamRange rest;
  rest.first = std::exchange(first_id_, {});
  for_each(rest, false, [&](const StreamEntry& entry) {
    first_id_ = entry.id();
    return false;
  });
}

bool Stream::erase(StreamId id) {
  Nodes::Position node;
  const StreamNode::Entry entry = find(id, &node);
  if (!entry) return false;
  if ((*node)->count() == 1) {
    destroy(node);
  } else {
    (*node)->erase(entry);
  }
  --length_;
  max_deleted_id_ = std::max(max_deleted_id_, id);
  if (id == first_id_) find_first_id();
  return true;
}

size_t Stream::trim(const StreamTrim& trim) {
  const bool by_length = trim.by == StreamTrim::By::kMaxLength;
  const size_t before = length_;
  for (Nodes::Position position = nodes_.first(); position;) {
    if (by_length && length_ <= trim.max_length) break;
    StreamNode& node = **position;
    const size_t count = node.count();
    if (trim.limit != 0 && before - length_ + count > trim.limit) break;
    const bool whole =
        by_length ? length_ - count >= trim.max_length : node.last().id < trim.min_id;
    // Where references are looked at, each entry is, and approximate is not less than exact.
    if (!whole && trim.approximate && trim.references == StreamReferences::kKeep) break;
    if (trim.references != StreamReferences::kKeep && group_count() != 0) {
      const bool goes_on = trim_with_references(node, trim);
      if (!goes_on && node.count() != 0) break;
      if (node.count() != 0) {
        position.forward();
      } else {
        position = destroy(position);
      }
      continue;
    }
    if (whole) {
      position = destroy(position);
      length_ -= count;
      continue;
    }
    length_ -= node.erase_where([&, left = by_length ? length_ - trim.max_length : size_t{0}](
                                    const StreamNode::Entry& entry) mutable {
      const bool goes = by_length ? left-- > 0 : entry.id < trim.min_id;
      return goes ? StreamNode::Erase::kYes : StreamNode::Erase::kStop;
    });
    break;
  }
  if (length_ != before) find_first_id();
  return before - length_;
}

bool Stream::trim_with_references(StreamNode& node, const StreamTrim& trim) {
  const bool by_length = trim.by == StreamTrim::By::kMaxLength;
  bool goes_on = true;
  node.erase_where([&](const StreamNode::Entry& entry) {
    const bool goes = by_length ? length_ > trim.max_length : entry.id < trim.min_id;
    if (!goes) return StreamNode::Erase::kStop;
    if (trim.references == StreamReferences::kAcknowledged) {
      if (const StreamGroup* const referrer = referrer_of(entry.id); referrer != nullptr) {
        // A group that has yet to read this entry has yet to read all that follow.
        goes_on = referrer->last_delivered >= entry.id;
        return goes_on ? StreamNode::Erase::kNo : StreamNode::Erase::kStop;
      }
    } else {
      erase_references(entry.id);
    }
    --length_;
    return StreamNode::Erase::kYes;
  });
  return goes_on;
}

// --- Asking -------------------------------------------------------------------------------------

StreamId Stream::last_entry_id() const {
  StreamId id;
  for_each({}, true, [&](const StreamEntry& entry) {
    id = entry.id();
    return false;
  });
  return id;
}

size_t Stream::free_effort() const {
  size_t effort = nodes_.size();
  for_each_group(
      [&](std::string_view, const StreamGroup& group) { effort += 1 + group.pending().size(); });
  return effort;
}

size_t Stream::memory_usage() const {
  size_t bytes = sizeof(*this) + nodes_.memory_usage();
  nodes_.for_each([&](const StreamNode* node) { bytes += node->memory_usage(); });
  for_each_group([&](std::string_view name, const StreamGroup& group) {
    bytes += sizeof(Groups::value_type) + name.size() + group.memory_usage();
  });
  if (producers_ != nullptr) bytes += sizeof(StreamProducers) + producers_->memory_usage();
  return bytes;
}

// --- Groups -------------------------------------------------------------------------------------

StreamGroup* Stream::find_group(std::string_view name) const {
  if (groups_ == nullptr) return nullptr;
  const auto found = groups_->find(name);
  return found == groups_->end() ? nullptr : found->second.get();
}

StreamGroup& Stream::add_group(std::string_view name, StreamId last_delivered,
                               int64_t entries_read) {
  if (groups_ == nullptr) groups_ = std::make_unique<Groups>();
  auto group = std::make_unique<StreamGroup>(last_delivered, entries_read);
  return *groups_->emplace(name, std::move(group)).first->second;
}

bool Stream::erase_group(std::string_view name) {
  if (groups_ == nullptr) return false;
  const auto found = groups_->find(name);
  if (found == groups_->end()) return false;
  if (last_referrer_ == found->second.get()) last_referrer_ = nullptr;
  groups_->erase(found);
  return true;
}

const StreamGroup* Stream::referrer_of(StreamId id) const {
  const auto refers = [id](const StreamGroup& group) {
    return group.last_delivered < id || group.pending().find(id) != nullptr;
  };
  if (last_referrer_ != nullptr && refers(*last_referrer_)) return last_referrer_;
  if (groups_ == nullptr) return nullptr;
  for (const auto& [name, group] : *groups_) {
    if (refers(*group)) return last_referrer_ = group.get();
  }
  return nullptr;
}

size_t Stream::erase_references(StreamId id) {
  size_t erased = 0;
  for_each_group([&](std::string_view, StreamGroup& group) {
    if (group.erase_pending(id)) ++erased;
  });
  return erased;
}

bool Stream::may_lack_entries_from(StreamId id) const {
  if (length_ == 0 || max_deleted_id_.is_zero()) return false;
  // Deletions before the first entry leave no hole.
  if (first_id_ > max_deleted_id_) return false;
  return id <= max_deleted_id_;
}

std::optional<int64_t> Stream::count_ever_added_to(StreamId id) const {
  const auto added = static_cast<int64_t>(entries_added_);
  if (added == 0) return 0;
  if (length_ == 0 && id <= last_id_) return added;
  if (!id.is_zero() && id < max_deleted_id_) return std::nullopt;
  if (id == last_id_) return added;
  if (id > last_id_) return std::nullopt;
  // Without deletions after the first entry, only the entries before it are missing.
  if (!max_deleted_id_.is_zero() && max_deleted_id_ >= first_id_) return std::nullopt;
  const auto length = static_cast<int64_t>(length_);
  if (id < first_id_) return added - length;
  if (id == first_id_) return added - length + 1;
  return std::nullopt;
}

void Stream::advance(StreamGroup& group, StreamId id) const {
  if (group.entries_read != StreamGroup::kUnknownReads && group.last_delivered >= first_id_ &&
      !may_lack_entries_from(group.last_delivered)) {
    ++group.entries_read;
  } else if (entries_added_ != 0) {
    group.entries_read = count_ever_added_to(id).value_or(StreamGroup::kUnknownReads);
  }
  group.last_delivered = id;
}

std::optional<int64_t> Stream::lag(const StreamGroup& group, bool counts_trimmed) const {
  const auto added = static_cast<int64_t>(entries_added_);
  if (added == 0 || length_ == 0) return 0;
  const bool knows_reads = group.entries_read != StreamGroup::kUnknownReads &&
                           !may_lack_entries_from(group.last_delivered);
  if (knows_reads && counts_trimmed) return added - group.entries_read;
  // The group has read none of the entries, and none of them was deleted.
  if (group.last_delivered < first_id_ && max_deleted_id_ < first_id_)
    return static_cast<int64_t>(length_);
  if (knows_reads) return added - group.entries_read;
  const std::optional<int64_t> read = count_ever_added_to(group.last_delivered);
  if (!read.has_value()) return std::nullopt;
  return added - *read;
}

}  // namespace latchkey::store
