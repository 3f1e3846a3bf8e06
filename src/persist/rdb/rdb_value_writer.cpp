#include <algorithm>
#include <array>
#include <cstring>

#include "persist/rdb/rdb_modules.h"
#include "persist/rdb/rdb_values.h"
#include "store/value/hash.h"
#include "store/value/list.h"
#include "store/value/set.h"
#include "store/value/sorted_set.h"
#include "store/value/stream.h"
#include "store/value/view.h"

namespace latchkey::persist {

namespace {

using store::Entry;
using store::Hash;
using store::List;
using store::Set;
using store::SortedSet;
using store::Stream;
using store::StreamConsumer;
using store::StreamGroup;
using store::StreamId;
using store::StreamNode;
using store::View;

// What a version has no listpacks for is written element by element.
bool has_listpacks(const RdbWriter& writer) {
  return writer.version() >= kRdbVersionOfListpacks;
}

RdbType type_of(const Set& set, int version) {
  if (set.is_intset()) return RdbType::kSetIntset;
  const bool as_listpack =
      set.listpack_or_null() != nullptr && version >= kRdbVersionOfSetListpacks;
  return as_listpack ? RdbType::kSetListpack : RdbType::kSet;
}

RdbType type_of(const SortedSet& set, int version) {
  return set.is_listpack() && version >= kRdbVersionOfListpacks ? RdbType::kZsetListpack
                                                                : RdbType::kZset2;
}

RdbType type_of(const Hash& hash, int version) {
  if (version < kRdbVersionOfListpacks) return RdbType::kHash;
  if (version == kValkeyRdbVersion) {
    if (hash.first_deadline_ms() != Hash::kNoDeadline) return RdbType::kHashMetadataPreGa;
    // Valkey has no listpacks with room for deadlines.
    if (hash.is_prepared()) return RdbType::kHash;
  }
  if (hash.listpack_or_null() != nullptr)
    return hash.is_prepared() ? RdbType::kHashListpackEx : RdbType::kHashListpack;
  return hash.first_deadline_ms() == Hash::kNoDeadline ? RdbType::kHash : RdbType::kHashMetadata;
}

// --- By type ------------------------------------------------------------------------------------

void write_string(RdbWriter& writer, const Entry& entry) {
  if (entry.is_integer()) return writer.integer(entry.integer());
  writer.string(entry.text());
}

void write_elements(RdbWriter& writer, const List& list) {
  writer.length(list.size());
  char scratch[store::Listpack::kScratch];
  for (auto at = list.at(0); at; at = list.next(at)) writer.string(list.get(at).text(scratch));
  list.recompress();
}

void write_list(RdbWriter& writer, const List& list) {
  if (!has_listpacks(writer)) return write_elements(writer, list);
  if (!list.is_quicklist()) {
    writer.length(1);
    writer.length(static_cast<uint64_t>(NodeContainer::kPacked));
    return writer.blob(list.listpack().bytes());
  }
  const store::Quicklist& chain = list.quicklist();
  writer.length(chain.nodes());
  for (const auto* node = chain.first_node(); node != nullptr; node = node->next) {
    writer.length(
        static_cast<uint64_t>(node->is_plain ? NodeContainer::kPlain : NodeContainer::kPacked));
    if (node->is_compressed()) {
      writer.compressed_string(node->compressed, node->full_size);
    } else if (node->is_plain) {
      writer.string(node->plain);
    } else {
      writer.blob(node->pack.bytes());
    }
  }
}

void write_set(RdbWriter& writer, const Set& set) {
  if (const store::Intset* integers = set.intset_or_null()) return writer.blob(integers->bytes());
  if (type_of(set, writer.version()) == RdbType::kSetListpack)
    return writer.blob(set.listpack_or_null()->bytes());
  writer.length(set.size());
  set.for_each([&](std::string_view member) { writer.string(member); });
}

void write_sorted_set(RdbWriter& writer, const SortedSet& set) {
  if (type_of(set, writer.version()) == RdbType::kZsetListpack)
    return writer.blob(set.listpack().bytes());
  writer.length(set.size());
  // In descending order, because the loading server then adds each member in front of the others.
  set.for_each({0, set.size()}, true, [&](std::string_view member, double score) {
    writer.string(member);
    writer.binary_double(score);
  });
}

// A field's deadline is written as the distance from the earliest deadline plus one; 0 means none.
void write_hash_with_deadlines(RdbWriter& writer, const Hash& hash) {
  const int64_t first = hash.first_deadline_ms();
  writer.milliseconds(first);
  writer.length(hash.size());
  hash.for_each_stored([&](std::string_view field, std::string_view value, int64_t deadline_ms) {
    const bool has_deadline = deadline_ms != Hash::kNoDeadline;
    writer.length(has_deadline ? static_cast<uint64_t>(deadline_ms - first + 1) : 0);
    writer.string(field);
    writer.string(value);
  });
}

void write_valkey_hash(RdbWriter& writer, const Hash& hash) {
  writer.length(hash.size());
  hash.for_each_stored([&](std::string_view field, std::string_view value, int64_t deadline_ms) {
    writer.string(field);
    writer.string(value);
    writer.milliseconds(deadline_ms != Hash::kNoDeadline ? deadline_ms : -1);
  });
}

void write_hash(RdbWriter& writer, const Hash& hash) {
  switch (type_of(hash, writer.version())) {
    case RdbType::kHashListpackEx:
      writer.milliseconds(std::max(hash.first_deadline_ms(), int64_t{0}));
      return writer.blob(hash.listpack_or_null()->bytes());
    case RdbType::kHashListpack:
      return writer.blob(hash.listpack_or_null()->bytes());
    case RdbType::kHashMetadata:
      return write_hash_with_deadlines(writer, hash);
    case RdbType::kHashMetadataPreGa:
      return write_valkey_hash(writer, hash);
    default:
      writer.length(hash.size());
      hash.for_each_stored([&](std::string_view field, std::string_view value, int64_t) {
        writer.string(field);
        writer.string(value);
      });
  }
}

// --- Streams ------------------------------------------------------------------------------------

// An id as 16 bytes whose byte order is the order of ids.
std::array<char, 16> id_bytes(StreamId id) {
  std::array<char, 16> bytes;
  const uint64_t big_endian[] = {__builtin_bswap64(id.ms), __builtin_bswap64(id.sequence)};
  std::memcpy(bytes.data(), big_endian, sizeof big_endian);
  return bytes;
}

void write_id(RdbWriter& writer, StreamId id) {
  writer.length(id.ms);
  writer.length(id.sequence);
}

void write_raw_id(RdbWriter& writer, StreamId id) {
  const auto bytes = id_bytes(id);
  writer.raw(bytes.data(), bytes.size());
}

// `released`: entries that are saved as this consumer's too.
void write_consumer(RdbWriter& writer, const StreamConsumer& consumer,
                    std::span<store::PendingEntry* const> released = {}) {
  writer.string(consumer.name);
  writer.milliseconds(consumer.seen_ms);
  if (writer.version() >= kRdbVersionOfSetListpacks) writer.milliseconds(consumer.active_ms);
  writer.length(consumer.pending.size() + released.size());
  consumer.pending.for_each(
      [&](const store::PendingEntry* entry) { write_raw_id(writer, entry->id); });
  for (const store::PendingEntry* entry : released) write_raw_id(writer, entry->id);
}

// Servers before Redis 8.8 load no pending entries without an owner, and how it saves them is not
// documented. So released entries are those of a consumer without a name, in the order of their
// release: what XPENDING shows of them is the same everywhere.
void write_consumers(RdbWriter& writer, const StreamGroup& group) {
  const std::vector<store::PendingEntry*> released = group.released_in_order();
  const bool adds_nameless = !released.empty() && group.find_consumer("") == nullptr;
  writer.length(group.consumers().size() + (adds_nameless ? 1 : 0));
  if (adds_nameless) write_consumer(writer, StreamConsumer(), released);
  for (const auto& [name, consumer] : group.consumers()) {
    name.empty() ? write_consumer(writer, *consumer, released) : write_consumer(writer, *consumer);
  }
}

void write_group(RdbWriter& writer, std::string_view name, const StreamGroup& group) {
  writer.string(name);
  write_id(writer, group.last_delivered);
  // kUnknownReads becomes the highest uint64_t.
  if (writer.version() >= kRdbVersionOfListpacks)
    writer.length(static_cast<uint64_t>(group.entries_read));
  writer.length(group.pending().size());
  group.pending().for_each([&](const store::PendingEntry* entry) {
    write_raw_id(writer, entry->id);
    writer.milliseconds(entry->delivered_ms());
    writer.length(entry->deliveries);
  });
  write_consumers(writer, group);
}

bool has_producers(const Stream& stream) {
  return stream.producers() != nullptr && !stream.producers()->is_plain();
}

void write_producers(RdbWriter& writer, const store::StreamProducers& producers) {
  writer.length(producers.duration_s());
  writer.length(producers.most_each());
  writer.length(producers.producers());
  producers.for_each(
      [&](std::string_view name, size_t requests) {
        writer.string(name);
        writer.length(requests);
      },
      [&](std::string_view request, StreamId id) {
        writer.string(request);
        write_id(writer, id);
      });
  writer.length(producers.added());
  writer.length(producers.repeated());
}

RdbType type_of(const Stream& stream, int version) {
  if (version < kRdbVersionOfListpacks) return RdbType::kStreamListpacks;
  if (version < kRdbVersionOfSetListpacks) return RdbType::kStreamListpacks2;
  return has_producers(stream) ? RdbType::kStreamListpacks4 : RdbType::kStreamListpacks3;
}

void write_stream(RdbWriter& writer, const Stream& stream) {
  writer.length(stream.nodes());
  stream.for_each_node([&](const StreamNode& node) {
    const auto id = id_bytes(node.id);
    writer.blob(id);
    writer.blob(node.pack().bytes());
  });
  writer.length(stream.size());
  write_id(writer, stream.last_id());
  if (writer.version() >= kRdbVersionOfListpacks) {
    write_id(writer, stream.first_id());
    write_id(writer, stream.max_deleted_id());
    writer.length(stream.entries_added());
  }
  writer.length(stream.group_count());
  stream.for_each_group(
      [&](std::string_view name, const StreamGroup& group) { write_group(writer, name, group); });
  if (type_of(stream, writer.version()) == RdbType::kStreamListpacks4)
    write_producers(writer, *stream.producers());
}

}  // namespace

RdbType rdb_type_of(const Entry& entry, int version) {
  switch (entry.type()) {
    case store::Type::kString:
      return RdbType::kString;
    case store::Type::kList:
      return version < kRdbVersionOfListpacks ? RdbType::kList : RdbType::kListQuicklist2;
    case store::Type::kSet:
      return type_of(*View<Set>(entry), version);
    case store::Type::kSortedSet:
      return type_of(*View<SortedSet>(entry), version);
    case store::Type::kHash:
      return type_of(*View<Hash>(entry), version);
    case store::Type::kStream:
      return type_of(*View<Stream>(entry), version);
    case store::Type::kVectorSet:
    case store::Type::kArray:
    case store::Type::kJson:
    case store::Type::kTimeSeries:
    case store::Type::kBloomFilter:
    case store::Type::kCuckooFilter:
    case store::Type::kCountMinSketch:
    case store::Type::kTopK:
    case store::Type::kTDigest:
      return RdbType::kModule2;
  }
  return RdbType::kString;
}

void write_value(RdbWriter& writer, const Entry& entry) {
  switch (entry.type()) {
    case store::Type::kString:
      return write_string(writer, entry);
    case store::Type::kList:
      return write_list(writer, *View<List>(entry));
    case store::Type::kSet:
      return write_set(writer, *View<Set>(entry));
    case store::Type::kSortedSet:
      return write_sorted_set(writer, *View<SortedSet>(entry));
    case store::Type::kHash:
      return write_hash(writer, *View<Hash>(entry));
    case store::Type::kStream:
      return write_stream(writer, *View<Stream>(entry));
    case store::Type::kVectorSet:
    case store::Type::kArray:
    case store::Type::kJson:
    case store::Type::kTimeSeries:
    case store::Type::kBloomFilter:
    case store::Type::kCuckooFilter:
    case store::Type::kCountMinSketch:
    case store::Type::kTopK:
    case store::Type::kTDigest:
      return write_module_value(writer, entry);
  }
}

}  // namespace latchkey::persist
