#include "persist/rdb/rdb_stream_reader.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "store/value/stream.h"

namespace latchkey::persist {

namespace {

using store::Stream;
using store::StreamConsumer;
using store::StreamGroup;
using store::StreamId;
using store::StreamNode;

constexpr size_t kRawIdSize = 16;

StreamId id_of(const char* bytes) {
  uint64_t big_endian[2];
  std::memcpy(big_endian, bytes, sizeof big_endian);
  return {__builtin_bswap64(big_endian[0]), __builtin_bswap64(big_endian[1])};
}

bool read_id(RdbReader& reader, StreamId* id) {
  return reader.length(&id->ms) && reader.length(&id->sequence);
}

bool read_raw_id(RdbReader& reader, StreamId* id) {
  char bytes[kRawIdSize];
  if (!reader.raw(bytes, sizeof bytes)) return false;
  *id = id_of(bytes);
  return true;
}

// Reads a time; times before the epoch, which no server writes, become `earliest`.
bool read_time(RdbReader& reader, int64_t earliest, int64_t* ms) {
  if (!reader.milliseconds(ms)) return false;
  *ms = std::max(*ms, earliest);
  return true;
}

// Reads a counter; impossible values below `least` become `least`.
bool read_counter(RdbReader& reader, int64_t least, int64_t* count) {
  uint64_t told;
  if (!reader.length(&told)) return false;
  *count = std::max(static_cast<int64_t>(told), least);
  return true;
}

// A record of a group's list of pending entries, which does not name the consumer.
struct PendingRecord {
  StreamId id;
  int64_t delivered_ms;
  uint64_t deliveries;
  bool is_owned = false;
};
using PendingRecords = std::vector<PendingRecord>;

bool read_nodes(RdbReader& reader, Stream& stream) {
  uint64_t nodes;
  if (!reader.length(&nodes)) return false;
  for (; nodes > 0; --nodes) {
    std::string_view bytes;
    if (!reader.string(&bytes)) return false;
    if (bytes.size() != kRawIdSize)
      return reader.fail("Stream node key entry is not the size of a stream ID");
    const StreamId id = id_of(bytes.data());
    if (!reader.string(&bytes)) return false;
    if (!stream.adopt(id, bytes)) return reader.fail("Stream listpack integrity check failed.");
  }
  return true;
}

StreamId last_of_nodes(const Stream& stream) {
  StreamId last;
  stream.for_each_node([&](const StreamNode& node) { last = node.last().id; });
  return last;
}

// Reads the fields after the nodes: the stream's length, ids and counters.
bool read_figures(RdbReader& reader, RdbType type, Stream& stream) {
  uint64_t length;
  StreamId last_id;
  if (!reader.length(&length) || !read_id(reader, &last_id)) return false;
  if (length != stream.size()) return reader.fail("Stream length inconsistent with its entries");
  if (last_id < last_of_nodes(stream))
    return reader.fail("Stream last id is below that of an entry");
  stream.set_last_id(last_id);
  stream.set_entries_added(length);
  if (type == RdbType::kStreamListpacks) return true;
  StreamId first_id;
  StreamId max_deleted_id;
  int64_t entries_added;
  if (!read_id(reader, &first_id) || !read_id(reader, &max_deleted_id) ||
      !read_counter(reader, static_cast<int64_t>(length), &entries_added))
    return false;
  stream.set_max_deleted_id(max_deleted_id);
  stream.set_entries_added(static_cast<uint64_t>(entries_added));
  return true;
}

bool read_pending(RdbReader& reader, PendingRecords* records) {
  uint64_t count;
  if (!reader.length(&count)) return false;
  for (; count > 0; --count) {
    PendingRecord record;
    if (!read_raw_id(reader, &record.id) || !read_time(reader, 0, &record.delivered_ms) ||
        !reader.length(&record.deliveries))
      return false;
    records->push_back(record);
  }
  const auto by_id = [](const PendingRecord& a, const PendingRecord& b) { return a.id < b.id; };
  std::sort(records->begin(), records->end(), by_id);
  const auto same_id = [](const PendingRecord& a, const PendingRecord& b) { return a.id == b.id; };
  if (std::adjacent_find(records->begin(), records->end(), same_id) != records->end())
    return reader.fail("Duplicated global PEL entry loading stream consumer group");
  return true;
}

// Assigns a pending entry of the group to the consumer.
bool own(RdbReader& reader, PendingRecords& records, StreamId id, StreamGroup& group,
         StreamConsumer& consumer) {
  const auto record =
      std::lower_bound(records.begin(), records.end(), id,
                       [](const PendingRecord& left, StreamId right) { return left.id < right; });
  if (record == records.end() || record->id != id)
    return reader.fail("Consumer entry not found in group global PEL");
  if (record->is_owned)
    return reader.fail("Duplicated consumer PEL entry loading a stream consumer group");
  record->is_owned = true;
  // Released entries are saved as those of a consumer without a name (rdb_value_writer.cpp).
  if (consumer.name.empty() && record->delivered_ms == 0) {
    group.add_released(id, record->deliveries);
  } else {
    group.add_pending(id, consumer, record->delivered_ms, record->deliveries);
  }
  return true;
}

bool read_consumer(RdbReader& reader, RdbType type, PendingRecords& records, StreamGroup& group) {
  std::string_view name;
  if (!reader.string(&name)) return false;
  if (group.find_consumer(name) != nullptr)
    return reader.fail("Duplicate stream consumer detected");
  StreamConsumer& consumer = group.add_consumer(name, 0);
  if (!read_time(reader, 0, &consumer.seen_ms)) return false;
  consumer.active_ms = consumer.seen_ms;
  if (type >= RdbType::kStreamListpacks3 &&
      !read_time(reader, StreamConsumer::kNever, &consumer.active_ms))
    return false;
  uint64_t pending;
  if (!reader.length(&pending)) return false;
  for (; pending > 0; --pending) {
    StreamId id;
    if (!read_raw_id(reader, &id) || !own(reader, records, id, group, consumer)) return false;
  }
  if (consumer.name.empty() && consumer.seen_ms == 0 && consumer.pending.empty())
    group.erase_consumer("");
  return true;
}

bool read_group(RdbReader& reader, RdbType type, Stream& stream) {
  std::string_view text;
  if (!reader.string(&text)) return false;
  const std::string name(text);
  StreamId delivered;
  if (!read_id(reader, &delivered)) return false;
  if (stream.find_group(name) != nullptr)
    return reader.fail("Duplicated consumer group name loading stream");
  StreamGroup& group = stream.add_group(name, delivered, StreamGroup::kUnknownReads);
  if (type == RdbType::kStreamListpacks) {
    group.entries_read = stream.count_ever_added_to(delivered).value_or(StreamGroup::kUnknownReads);
  } else if (!read_counter(reader, StreamGroup::kUnknownReads, &group.entries_read)) {
    return false;
  }

  PendingRecords records;
  uint64_t consumers;
  if (!read_pending(reader, &records) || !reader.length(&consumers)) return false;
  for (; consumers > 0; --consumers) {
    if (!read_consumer(reader, type, records, group)) return false;
  }
  const bool are_owned =
      std::all_of(records.begin(), records.end(), [](const auto& r) { return r.is_owned; });
  return are_owned || reader.fail("NACK entry without consumer");
}

// Reads the requests of one producer.
bool read_requests(RdbReader& reader, store::StreamProducers& producers) {
  std::string_view text;
  uint64_t count;
  if (!reader.string(&text)) return false;
  const std::string producer(text);
  if (producers.has_producer(producer)) return reader.fail("Stream IDMP producer is there twice");
  if (!reader.length(&count)) return false;
  if (count > producers.most_each()) return reader.fail("Stream IDMP producer has too many IIDs");
  for (; count > 0; --count) {
    StreamId id;
    if (!reader.string(&text)) return false;
    const std::string request(text);
    if (!read_id(reader, &id)) return false;
    producers.restore(producer, request, id);
  }
  return true;
}

bool read_producers(RdbReader& reader, Stream& stream) {
  uint64_t duration_s;
  uint64_t most_each;
  uint64_t count;
  uint64_t added;
  uint64_t repeated;
  if (!reader.length(&duration_s) || !reader.length(&most_each) || !reader.length(&count))
    return false;
  if (duration_s == 0 || duration_s > store::StreamProducers::kLongestDurationS || most_each == 0 ||
      most_each > store::StreamProducers::kMaxIdsPerProducer)
    return reader.fail("Stream IDMP limits are out of range");
  store::StreamProducers& producers = stream.producers_or_new();
  producers.set_limits(static_cast<uint32_t>(duration_s), static_cast<uint32_t>(most_each));
  for (; count > 0; --count) {
    if (!read_requests(reader, producers)) return false;
  }
  if (!reader.length(&added) || !reader.length(&repeated)) return false;
  producers.set_counts(added, repeated);
  return true;
}

}  // namespace

ReadResult read_stream(RdbReader& reader, RdbType type, store::Environment&, LoadedValue* loaded) {
  auto stream = std::make_unique<Stream>();
  uint64_t groups;
  if (!read_nodes(reader, *stream) || !read_figures(reader, type, *stream) ||
      !reader.length(&groups))
    return ReadResult::kFailed;
  for (; groups > 0; --groups) {
    if (!read_group(reader, type, *stream)) return ReadResult::kFailed;
  }
  if (type == RdbType::kStreamListpacks4 && !read_producers(reader, *stream))
    return ReadResult::kFailed;
  loaded->type = Stream::kType;
  loaded->value = std::move(stream);
  return ReadResult::kDone;
}

}  // namespace latchkey::persist
