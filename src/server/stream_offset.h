// Offsets of a replication stream that others name: a master, a file.
#pragma once

#include <cstdint>

namespace latchkey::server {

// No stream comes to such numbers. Who counts on from here cannot overflow what is signed, in as
// many years as there are.
inline constexpr int64_t kHighestStreamOffset = int64_t{1} << 62;

// Whether a stream may go on from there.
constexpr bool is_stream_offset(int64_t offset) {
  return offset >= 0 && offset <= kHighestStreamOffset;
}

}  // namespace latchkey::server
