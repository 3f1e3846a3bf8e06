// The first nine bytes of an RDB file: "REDIS" and its version as four digits.
#pragma once

#include <string>

#include "persist/rdb_primitives.h"

namespace latchkey::persist {

// Versions before have no checksum behind their end.
inline constexpr int kFirstRdbVersionWithChecksum = 5;

// False when the bytes end (nothing in `problem`), or when they are no file of a version that can
// be read: then `problem` says so.
bool read_rdb_header(RdbReader& reader, int* version, std::string* problem);

}  // namespace latchkey::persist
