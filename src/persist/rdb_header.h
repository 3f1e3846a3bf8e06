// The first nine bytes of an RDB file: "REDIS" and its version as four digits.
#pragma once

#include <string>

#include "persist/rdb_primitives.h"

namespace latchkey::persist {

// Earlier versions have no checksum at the end.
inline constexpr int kFirstRdbVersionWithChecksum = 5;

// False when the bytes end (`problem` stays empty), or when they are not the header of a version
// that can be read (`problem` says so).
bool read_rdb_header(RdbReader& reader, int* version, std::string* problem);

}  // namespace latchkey::persist
