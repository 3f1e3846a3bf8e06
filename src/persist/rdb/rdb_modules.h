// Values of types that the reference has as modules, in RDB: the module's id, then parts that each
// begin with a ModuleOpcode (module_parts.h), then kEnd. The types that are known are rows of one
// table; data of others is refused by the module's name, and skipped by the check tool.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "persist/rdb/rdb_values.h"

namespace latchkey::persist {

// One type. The upper 54 bits of an id are nine letters, the type's name, six bits each; the lower
// ten are the version of its data.
struct ModuleType {
  // With the version that is written.
  uint64_t id;
  store::Type type;
  // Writes the parts between the id and kEnd. REQUIRES: the value has that type.
  void (*write)(RdbWriter& writer, const store::Value& value);
  // Reads the parts up to kEnd, which may be of any version.
  ReadResult (*read)(RdbReader& reader, store::Environment& environment, unsigned version,
                     LoadedValue* loaded);
};

// All that are known.
std::span<const ModuleType> module_types();
// Null when there is no such type.
const ModuleType* module_type(store::Type type);
// By the name in an id, whatever its version.
const ModuleType* module_type_of_id(uint64_t id);

// The nine letters of the name in an id.
std::string module_name(uint64_t id);

// Writes a value, the id and kEnd included. REQUIRES: its type is in the table.
void write_module_value(RdbWriter& writer, const store::Entry& entry);

// Reads what follows the id, kEnd included.
ReadResult read_module_value(RdbReader& reader, store::Environment& environment, uint64_t id,
                             const ModuleType& type, LoadedValue* loaded);

// Skips a module's data up to its end. False when it has no end.
bool skip_module_data(RdbReader& reader);

}  // namespace latchkey::persist
