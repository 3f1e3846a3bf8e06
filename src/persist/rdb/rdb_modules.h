// Data of modules in RDB files. This server has no modules: their names are used in messages, and
// the check tool skips their data. Vector sets and arrays, which are modules' values in files, are
// read all the same (persist/rdb/rdb_vector_set.h, persist/rdb/rdb_array.h).
#pragma once

#include <cstdint>
#include <string>

#include "persist/rdb/rdb_primitives.h"

namespace latchkey::persist {

// The nine letters of the name, from the upper 54 bits of a module's id; the rest of the id is the
// version of its data.
std::string module_name(uint64_t id);

// Skips a module's data up to its end. False when it has no end.
bool skip_module_data(RdbReader& reader);

}  // namespace latchkey::persist
