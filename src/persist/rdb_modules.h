// What modules leave in RDB files. There are no modules here: it is named in messages, and stepped
// over by the check tool.
#pragma once

#include <cstdint>
#include <string>

#include "persist/rdb_primitives.h"

namespace latchkey::persist {

// The nine letters in the upper 54 bits of a module's id; the rest is its data's version.
std::string module_name(uint64_t id);

// Steps over a module's data up to its end. False when it has none.
bool skip_module_data(RdbReader& reader);

}  // namespace latchkey::persist
