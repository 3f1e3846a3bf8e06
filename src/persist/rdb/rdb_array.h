// Arrays in RDB. How Redis 8.8 saves its arrays is not documented, so they are saved as the value
// of a module with a name of our own, "lk-array-": a server that does not know it says so by that
// name instead of reading something else, and tools that know modules can skip it. Behind the
// module's id come parts that each begin with a ModuleOpcode:
//
//     the number of elements, the cursor
//     for each element, by ascending index: the index, its text
//     kEnd
//
// A rewritten append-only file has arrays as requests (ARMSET, ARSEEK), which Redis 8.8 reads.
#pragma once

#include "persist/rdb/rdb_values.h"

namespace latchkey::store {
class Array;
}

namespace latchkey::persist {

// The id of the module "lk-array-", with the version of its data, 0: nine letters of six bits.
inline constexpr uint64_t kArrayModule = 0x964F9AAEB6B2F800;

// Writes the value, the module's id included.
void write_array(RdbWriter& writer, const store::Array& array);

// Reads what follows the module's id. Refuses indexes that do not ascend.
ReadResult read_array(RdbReader& reader, LoadedValue* loaded);

}  // namespace latchkey::persist
