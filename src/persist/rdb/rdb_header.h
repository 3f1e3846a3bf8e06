// The first nine bytes of an RDB file: "REDIS" and its version as four digits, or "VALKEY" and
// three.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/result.h"
#include "persist/rdb/rdb_primitives.h"

namespace latchkey::persist {

// Earlier versions have no checksum at the end.
inline constexpr int kFirstRdbVersionWithChecksum = 5;

// As many bytes as begins_like_rdb() looks at.
inline constexpr size_t kRdbSignatureBytes = 6;
// Whether a file that begins with these bytes, at least so many, is meant to be an RDB file.
bool begins_like_rdb(std::string_view first_bytes);

// Tells the reader the version. Fails when the bytes end (the error is empty), or when they are not
// the header of a version that can be read (the error says so). newest: the last of Redis's
// versions that is accepted; any_later: later, unknown versions are accepted too.
base::Result<> read_rdb_header(RdbReader& reader, int newest = kNewestRdbVersion,
                               bool any_later = false);

}  // namespace latchkey::persist
