// Writes and reads values in RDB, without the type byte that precedes them (rdb_format.h).
//
// Small values are copied in their in-memory encoding. Everything that is read is validated before
// use, so that untrusted bytes can at most be refused: sizes, structure, order and uniqueness.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "persist/rdb/rdb_primitives.h"
#include "store/entry.h"
#include "store/keyspace.h"

namespace latchkey::persist {

// The layout in which write_value() writes the value. O(1).
RdbType rdb_type_of(const store::Entry& entry, int version = kRdbVersion);

// Writes the entry's value without its type. Errors are in the writer's sink.
void write_value(RdbWriter& writer, const store::Entry& entry);

struct LoadedValue {
  store::Type type = store::Type::kString;
  // Null for strings.
  std::unique_ptr<store::Value> value;
  // A string's bytes, valid until the reader is used again; those of a large one are the blob's.
  std::string_view text;
  base::BlobRef blob;
};

enum class ReadResult : uint8_t {
  kDone,
  kEmpty,   // a collection without elements, which no key may have
  kFailed,  // see the reader's error()
};

// Reads a value of that type. Converts it to the encoding that the environment's limits require, in
// the cases in which the reference converts on loading; the environment must outlive the value.
ReadResult read_value(RdbReader& reader, uint8_t type, store::Environment& environment,
                      LoadedValue* loaded);

// Sets the key to the loaded value, which is moved, with that deadline (Unix time in milliseconds,
// or Keyspace::kNoDeadline).
void put_value(store::Keyspace& db, store::KeyRef& ref, LoadedValue& loaded, int64_t deadline_ms);

// The access field of a key that was last used `seconds` ago (LRU), and of a key with that LFU
// counter.
uint32_t idle_access(const store::Environment& environment, uint64_t seconds);
uint32_t frequency_access(const store::Environment& environment, uint8_t counter);

}  // namespace latchkey::persist
