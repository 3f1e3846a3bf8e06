// Arrays in RDB. How Redis 8.8 saves its arrays is not documented, so they are saved as the value
// of a module (persist/rdb/rdb_modules.h) with a name of our own, "lk-array-": a server that does
// not know it says so by that name instead of reading something else, and tools that know modules
// can skip it. Its parts:
//
//     the number of elements, the cursor
//     for each element, by ascending index: the index, its text
//
// A rewritten append-only file has arrays as requests (ARMSET, ARSEEK), which Redis 8.8 reads.
#pragma once

#include "persist/rdb/rdb_values.h"

namespace latchkey::persist {

// The id of the module "lk-array-", with the version of its data, 0: nine letters of six bits.
inline constexpr uint64_t kArrayModule = 0x964F9AAEB6B2F800;

// As ModuleType::write and ModuleType::read. Indexes that do not ascend are refused.
void write_array(RdbWriter& writer, const store::Value& value);
ReadResult read_array(RdbReader& reader, store::Environment& environment, unsigned version,
                      LoadedValue* loaded);

}  // namespace latchkey::persist
