#include "persist/aof/aof_dataset.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "base/text/number.h"
#include "base/time_units.h"
#include "persist/aof/append_only_file.h"
#include "persist/aof/request_writer.h"
#include "persist/rdb/dump_payload.h"
#include "server/function_libraries.h"
#include "server/server.h"
#include "store/value/array.h"
#include "store/value/hash.h"
#include "store/value/list.h"
#include "store/value/set.h"
#include "store/value/sorted_set.h"
#include "store/value/stream.h"
#include "store/value/view.h"

namespace latchkey::persist {

namespace {

using store::Entry;
using store::StreamId;
using store::View;

constexpr size_t kMaxElements = 64;

std::string text_of(StreamId id) {
  return std::to_string(id.ms) + "-" + std::to_string(id.sequence);
}

// Splits a collection into requests: `command key`, then up to 64 elements of `words_each` words.
class Batches {
 public:
  Batches(RequestWriter& writer, std::string_view command, std::string_view key, size_t elements,
          size_t words_each)
      : writer_(writer), command_(command), key_(key), left_(elements), words_each_(words_each) {}

  // Callers must call this before the words of each element.
  void next() {
    if (in_batch_ == 0) {
      in_batch_ = std::min(left_, kMaxElements);
      left_ -= in_batch_;
      writer_.begin(2 + in_batch_ * words_each_);
      writer_.word(command_);
      writer_.word(key_);
    }
    --in_batch_;
  }

 private:
  RequestWriter& writer_;
  std::string_view command_;
  std::string_view key_;
  size_t left_;
  size_t words_each_;
  size_t in_batch_ = 0;
};

void write_list(RequestWriter& writer, std::string_view key, const store::List& list) {
  Batches batches(writer, "RPUSH", key, list.size(), 1);
  char scratch[store::Listpack::kScratch];
  for (auto at = list.at(0); at; at = list.next(at)) {
    batches.next();
    writer.word(list.get(at).text(scratch));
  }
  list.recompress();
}

void write_set(RequestWriter& writer, std::string_view key, const store::Set& set) {
  Batches batches(writer, "SADD", key, set.size(), 1);
  set.for_each([&](std::string_view member) {
    batches.next();
    writer.word(member);
  });
}

void write_sorted_set(RequestWriter& writer, std::string_view key, const store::SortedSet& set) {
  Batches batches(writer, "ZADD", key, set.size(), 2);
  set.for_each([&](std::string_view member, double score) {
    batches.next();
    char digits[base::kMaxDoubleText];
    writer.word(std::string_view(digits, base::format_double(score, digits)));
    writer.word(member);
  });
}

void write_hash(RequestWriter& writer, std::string_view key, const store::Hash& hash) {
  // With deadlines, each field is followed by its own one, so that no field loses its deadline if
  // the file is cut short.
  if (hash.is_prepared()) {
    hash.for_each_stored([&](std::string_view field, std::string_view value, int64_t deadline_ms) {
      writer.request({"HMSET", key, field, value});
      if (deadline_ms == store::Hash::kNoDeadline) return;
      writer.request({"HPEXPIREAT", key, std::to_string(deadline_ms), "FIELDS", "1", field});
    });
    return;
  }
  Batches batches(writer, "HMSET", key, hash.size(), 2);
  hash.for_each_stored([&](std::string_view field, std::string_view value, int64_t) {
    batches.next();
    writer.word(field);
    writer.word(value);
  });
}

// --- Streams -------------------------------------------------------------------------------------

void write_entries(RequestWriter& writer, std::string_view key, const store::Stream& stream) {
  char scratch[store::Listpack::kScratch];
  stream.for_each({}, false, [&](const store::StreamEntry& entry) {
    constexpr size_t kWordsBefore = 3;
    writer.begin(kWordsBefore + 2 * entry.fields());
    writer.word("XADD");
    writer.word(key);
    writer.word(text_of(entry.id()));
    entry.for_each_field([&](const auto& field, const auto& value) {
      writer.word(field.text(scratch));
      writer.word(value.text(scratch));
    });
    return writer.sink().ok();
  });
  // Adding an entry that is trimmed at once creates an empty stream.
  if (stream.size() == 0) writer.request({"XADD", key, "MAXLEN", "0", "0-1", "x", "y"});
}

void write_consumer(RequestWriter& writer, std::string_view key, std::string_view group,
                    const store::StreamConsumer& consumer) {
  if (consumer.pending.size() == 0) {
    writer.request({"XGROUP", "CREATECONSUMER", key, group, consumer.name});
    return;
  }
  consumer.pending.for_each([&](const store::PendingEntry* entry) {
    writer.request({"XCLAIM", key, group, consumer.name, "0", text_of(entry->id), "TIME",
                    std::to_string(entry->delivered_ms()), "RETRYCOUNT",
                    std::to_string(entry->deliveries), "JUSTID", "FORCE"});
  });
}

// Only requests whose entries are still there can be recorded again.
void write_producers(RequestWriter& writer, std::string_view key, const store::Stream& stream) {
  const store::StreamProducers& producers = *stream.producers();
  if (producers.duration_s() != store::StreamProducers::kDefaultDurationS ||
      producers.most_each() != store::StreamProducers::kDefaultMostEach) {
    writer.request({"XCFGSET", key, "IDMP-DURATION", std::to_string(producers.duration_s()),
                    "IDMP-MAXSIZE", std::to_string(producers.most_each())});
  }
  std::string_view producer;
  producers.for_each([&](std::string_view name, size_t) { producer = name; },
                     [&](std::string_view request, StreamId id) {
                       if (!stream.contains(id)) return;
                       writer.request({"XIDMPRECORD", key, producer, request, text_of(id)});
                     });
}

void write_stream(RequestWriter& writer, std::string_view key, const store::Stream& stream) {
  write_entries(writer, key, stream);
  writer.request({"XSETID", key, text_of(stream.last_id()), "ENTRIESADDED",
                  std::to_string(stream.entries_added()), "MAXDELETEDID",
                  text_of(stream.max_deleted_id())});
  stream.for_each_group([&](std::string_view name, const store::StreamGroup& group) {
    writer.request({"XGROUP", "CREATE", key, name, text_of(group.last_delivered), "ENTRIESREAD",
                    std::to_string(group.entries_read)});
    for (const auto& [unused, consumer] : group.consumers())
      write_consumer(writer, key, name, *consumer);
    for (const store::PendingEntry* entry : group.released_in_order()) {
      writer.request({"XNACK", key, name, "FAIL", "IDS", "1", text_of(entry->id), "RETRYCOUNT",
                      std::to_string(entry->deliveries), "FORCE"});
    }
  });
  if (stream.producers() != nullptr) write_producers(writer, key, stream);
}

void write_array_requests(RequestWriter& writer, std::string_view key, const store::Array& array) {
  Batches batches(writer, "ARMSET", key, array.size(), 2);
  char scratch[store::kCellScratch];
  char digits[base::kMaxInt64Text];
  array.for_each(0, store::Array::kLastIndex, [&](uint64_t index, store::ArrayCell value) {
    batches.next();
    writer.word(std::string_view(digits, base::format_uint64(index, digits)));
    writer.word(store::cell::text(value, scratch));
    return writer.sink().ok();
  });
  if (array.cursor() == 0) return;
  writer.request(
      {"ARSEEK", key, std::string_view(digits, base::format_uint64(array.cursor(), digits))});
}

// --- Keys ----------------------------------------------------------------------------------------

void write_string(RequestWriter& writer, const Entry& entry) {
  writer.begin(3);
  writer.word("SET");
  writer.word(entry.key());
  if (entry.is_integer()) return writer.word(entry.integer());
  writer.word(entry.text());
}

void write_entry(RequestWriter& writer, const Entry& entry, int version) {
  switch (entry.type()) {
    case store::Type::kString:
      write_string(writer, entry);
      break;
    case store::Type::kList:
      write_list(writer, entry.key(), *View<store::List>(entry));
      break;
    case store::Type::kSet:
      write_set(writer, entry.key(), *View<store::Set>(entry));
      break;
    case store::Type::kSortedSet:
      write_sorted_set(writer, entry.key(), *View<store::SortedSet>(entry));
      break;
    case store::Type::kHash:
      write_hash(writer, entry.key(), *View<store::Hash>(entry));
      break;
    case store::Type::kStream:
      write_stream(writer, entry.key(), *View<store::Stream>(entry));
      break;
    case store::Type::kArray:
      write_array_requests(writer, entry.key(), *View<store::Array>(entry));
      break;
    case store::Type::kVectorSet:
      // No commands make the same graph, nor the same projection.
    case store::Type::kJson:
    case store::Type::kTimeSeries:
    case store::Type::kBloomFilter:
    case store::Type::kCuckooFilter:
    case store::Type::kCountMinSketch:
    case store::Type::kTopK:
    case store::Type::kTDigest:
      writer.request({"RESTORE", entry.key(), "0", make_dump(entry, false, version)});
      break;
  }
  if (entry.has_deadline())
    writer.request({"PEXPIREAT", entry.key(), std::to_string(entry.deadline_ms())});
}

}  // namespace

void write_key_as_requests(ByteSink& sink, const Entry& entry, int version) {
  RequestWriter writer(sink);
  write_entry(writer, entry, version);
}

bool write_dataset_as_requests(ByteSink& sink, server::Server& server,
                               const AofDatasetOptions& options) {
  if (options.timestamp) sink.write(aof_timestamp(server.now_ms() / base::kMsPerSecond));
  const int version = server.edition().rdb_version();
  RequestWriter writer(sink);
  if (server.functions() != nullptr) {
    server.functions()->for_each_code([&](std::string_view code) {
      writer.request({"FUNCTION", "LOAD", code});
    });
  }
  for (int i = 0; i < server.database_count(); ++i) {
    const store::Keyspace& keyspace = server.database(i);
    if (keyspace.empty()) continue;
    writer.request({"SELECT", std::to_string(i)});
    keyspace.table().for_each([&](const Entry* entry) {
      if (!sink.ok()) return;
      if (keyspace.is_leaving(*entry)) {
        if (options.skipped != nullptr) ++*options.skipped;
        return;
      }
      write_entry(writer, *entry, version);
      if (options.after_key) options.after_key();
    });
  }
  return sink.flush();
}

}  // namespace latchkey::persist
