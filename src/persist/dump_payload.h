// What DUMP gives and RESTORE takes: a value as in an RDB file, and what it is good for.
//
//     +------+-------+-------------+----------+
//     | type | value | RDB version | checksum |
//     +------+-------+-------------+----------+
//       1              2             8, of all before; 0: none
#pragma once

#include <string>
#include <string_view>

#include "persist/byte_stream.h"
#include "persist/rdb_primitives.h"
#include "persist/rdb_values.h"
#include "store/keyspace.h"

namespace latchkey::persist {

std::string make_dump(const store::Entry& entry, bool compress);

// The parts that other dumps share: adds version and checksum to what has been written to a sink
// whose checksum has been enabled from the start, and flushes it.
void write_dump_footer(ByteSink& sink, RdbWriter& writer);
// What lies before them. REQUIRES: is_intact_dump().
std::string_view dump_body(std::string_view dump);

// Whether the version is one that can be read and the checksum is right, unless that shall not
// matter. O(bytes).
bool is_intact_dump(std::string_view dump, bool skip_checksum);

// Reads the value of a dump that is intact. `room` must live as long as the value is looked at.
// False when it is not exactly one value, or an empty one; `error` says why.
bool read_dump(std::string_view dump, store::Environment& environment, std::string& room,
               LoadedValue* loaded, std::string* error);

}  // namespace latchkey::persist
