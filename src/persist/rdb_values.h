// Values as RDB holds them, behind the byte that tells how (rdb_format.h).
//
// Small values are copied as they stand in memory. What is read is checked whole before it is used,
// so that no bytes from outside can be more than refused: sizes, structure, order and that nothing
// is there twice.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "persist/rdb_primitives.h"
#include "store/entry.h"
#include "store/keyspace.h"

namespace latchkey::persist {

// How write_value() lays the value out. O(1).
RdbType rdb_type_of(const store::Entry& entry);

// Writes the entry's value without its type. Failure shows in the writer's sink.
void write_value(RdbWriter& writer, const store::Entry& entry);

struct LoadedValue {
  store::Type type = store::Type::kString;
  // Null for strings.
  std::unique_ptr<store::Value> value;
  // A string's bytes, which last until the reader is used again.
  std::string_view text;
};

enum class ReadResult : uint8_t {
  kDone,
  kEmpty,   // a collection without elements, which no key may hold
  kFailed,  // the reader's error() tells why
};

// Reads a value of that type. Its encoding is what the environment's limits ask for, as far as the
// reference converts on loading; the environment must outlive the value.
ReadResult read_value(RdbReader& reader, uint8_t type, store::Environment& environment,
                      LoadedValue* loaded);

// Makes the key hold what was read, which is taken over, with that deadline (Unix time in
// milliseconds, or Keyspace::kNoDeadline).
void put_value(store::Keyspace& db, store::KeyRef& ref, LoadedValue& loaded, int64_t deadline_ms);

// The access field of a key that was last used so many seconds ago, or, under LFU, whose counter is
// this.
uint32_t idle_access(const store::Environment& environment, uint64_t seconds);
uint32_t frequency_access(const store::Environment& environment, uint8_t counter);

}  // namespace latchkey::persist
