#include <array>
#include <cerrno>
#include <cstdio>
#include <string>
#include <utility>

#include "base/prefetch.h"
#include "base/time_units.h"
#include "persist/rdb/rdb_file.h"
#include "persist/rdb/rdb_primitives.h"
#include "persist/rdb/rdb_values.h"
#include "persist/rdb_slot_import.h"
#include "server/command/slot_gate.h"
#include "server/function_libraries.h"
#include "server/server.h"

namespace latchkey::persist {

namespace {

using server::MaxmemoryPolicy;
using store::Entry;
using store::Keyspace;

// The part of a key's access field that is saved.
enum class AccessKept : uint8_t { kNone, kIdle, kFrequency };

AccessKept access_kept(MaxmemoryPolicy policy) {
  switch (policy) {
    case MaxmemoryPolicy::kVolatileLru:
    case MaxmemoryPolicy::kVolatileLrm:
    case MaxmemoryPolicy::kAllkeysLrm:
    case MaxmemoryPolicy::kAllkeysLru:
      return AccessKept::kIdle;
    case MaxmemoryPolicy::kVolatileLfu:
    case MaxmemoryPolicy::kAllkeysLfu:
      return AccessKept::kFrequency;
    default:
      return AccessKept::kNone;
  }
}

void write_header(RdbWriter& writer) {
  char header[16];
  const int size = std::snprintf(header, sizeof header,
                                 writer.version() == kValkeyRdbVersion ? "VALKEY%03d" : "REDIS%04d",
                                 writer.version());
  writer.raw(header, static_cast<size_t>(size));
}

void write_aux(RdbWriter& writer, std::string_view name, std::string_view value) {
  writer.opcode(RdbOpcode::kAux);
  writer.string(name);
  writer.string(value);
}

void write_aux_fields(RdbWriter& writer, server::Server& server, const WriteOptions& options) {
  const server::Edition& edition = server.edition();
  write_aux(writer, edition.is_valkey() ? "valkey-ver" : "redis-ver", edition.version());
  write_aux(writer, "redis-bits", "64");
  write_aux(writer, "ctime", std::to_string(server.now_ms() / base::kMsPerSecond));
  write_aux(writer, "used-mem", std::to_string(server.used_memory()));
  for (const auto& [name, value] : options.aux) write_aux(writer, name, value);
  write_aux(writer, "aof-base", options.is_aof_preamble ? "1" : "0");
  if (const server::SlotGate* const gate = server.slot_gate(); gate != nullptr) {
    const server::DatasetSlots slots = gate->slots_in_dataset();
    if (!slots.moves.empty()) write_aux(writer, kSlotMovesField, slots.moves);
    if (writer.version() == kValkeyRdbVersion) {
      for (const server::SlotImport& import : slots.imports) write_slot_import(writer, import);
    }
  }
}

void write_functions(RdbWriter& writer, server::Server& server) {
  if (server.functions() == nullptr) return;
  server.functions()->for_each_code([&](std::string_view code) {
    writer.opcode(RdbOpcode::kFunction);
    writer.string(code);
  });
}

void write_access(RdbWriter& writer, const Entry& entry, AccessKept kept,
                  const store::Environment& environment) {
  if (kept == AccessKept::kIdle) {
    writer.opcode(RdbOpcode::kIdle);
    writer.length((environment.access_clock - entry.access()) & Entry::kMaxAccess);
  } else if (kept == AccessKept::kFrequency) {
    writer.opcode(RdbOpcode::kFrequency);
    writer.byte(store::lfu_counter(environment, entry.access()));
  }
}

void write_entry(RdbWriter& writer, const Entry& entry, AccessKept kept,
                 const store::Environment& environment) {
  if (entry.has_deadline()) {
    writer.opcode(RdbOpcode::kDeadlineMs);
    writer.milliseconds(entry.deadline_ms());
  }
  write_access(writer, entry, kept, environment);
  writer.type(rdb_type_of(entry, writer.version()));
  writer.string(entry.key());
  write_value(writer, entry);
}

class DatasetWriter {
 public:
  DatasetWriter(RdbWriter& writer, server::Server& server, const WriteOptions& options)
      : writer_(writer),
        environment_(server.environment()),
        options_(options),
        kept_(access_kept(server.settings().maxmemory_policy)) {}

  void write(const Keyspace& keyspace) {
    if (keyspace.empty()) return;
    writer_.opcode(RdbOpcode::kSelectDb);
    writer_.length(static_cast<uint64_t>(keyspace.index()));
    writer_.opcode(RdbOpcode::kResizeDb);
    writer_.length(keyspace.size());
    writer_.length(keyspace.volatile_size());
    // Entries lie scattered in memory, so each is prefetched while others are written.
    std::array<const Entry*, kAhead> coming{};
    size_t next = 0;
    const auto take_turn = [&](const Entry* entry) {
      const Entry* due = std::exchange(coming[next], entry);
      next = (next + 1) % kAhead;
      if (due != nullptr) write(*due);
    };
    keyspace.table().for_each([&](const Entry* entry) {
      if (keyspace.is_leaving(*entry)) {
        ++skipped_;
        return;
      }
      base::prefetch(entry);
      base::prefetch(reinterpret_cast<const char*>(entry) + kCacheLine);
      take_turn(entry);
    });
    for (size_t i = 0; i < kAhead; ++i) take_turn(nullptr);
  }

  void tell(WriteOptions::Tally* tally) const {
    if (tally != nullptr) *tally = {keys_, skipped_};
  }

 private:
  static constexpr size_t kAhead = 16;
  static constexpr size_t kCacheLine = 64;

  void write(const Entry& entry) {
    if (!writer_.ok()) return;
    write_entry(writer_, entry, kept_, environment_);
    ++keys_;
    if (options_.after_key && !options_.after_key(keys_)) writer_.sink().fail(ECANCELED);
  }

  RdbWriter& writer_;
  const store::Environment& environment_;
  const WriteOptions& options_;
  AccessKept kept_;
  uint64_t keys_ = 0;
  uint64_t skipped_ = 0;
};

}  // namespace

WriteOptions write_options(server::Server& server) {
  WriteOptions options;
  options.compress = server.settings().rdbcompression;
  options.checksum = server.settings().rdbchecksum;
  return options;
}

bool write_dataset(ByteSink& sink, server::Server& server, const WriteOptions& options) {
  if (options.checksum) sink.enable_checksum();
  const int version = options.version != 0 ? options.version : server.edition().rdb_version();
  RdbWriter writer(sink, options.compress, version);
  write_header(writer);
  write_aux_fields(writer, server, options);
  if (options.with_functions) write_functions(writer, server);
  DatasetWriter databases(writer, server, options);
  for (int i = 0; options.with_keys && i < server.database_count(); ++i)
    databases.write(server.database(i));
  databases.tell(options.tally);
  writer.opcode(RdbOpcode::kEnd);
  const uint64_t checksum = sink.checksum();
  writer.raw(&checksum, sizeof checksum);
  return sink.flush();
}

}  // namespace latchkey::persist
