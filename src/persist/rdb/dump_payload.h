// The format of DUMP and RESTORE: a value as in an RDB file, the RDB version and a checksum.
//
//     +------+-------+-------------+----------+
//     | type | value | RDB version | checksum |
//     +------+-------+-------------+----------+
//       1              2             8, of all before; 0: none
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "persist/rdb/byte_stream.h"
#include "persist/rdb/rdb_primitives.h"
#include "persist/rdb/rdb_values.h"
#include "store/keyspace.h"

namespace latchkey::server {
class Server;
}

namespace latchkey::persist {

// Writes a dump to a sink that nothing was written to, and flushes it. Without `with_links`:
// without what ties the value to other keys.
void write_dump(ByteSink& sink, const store::Entry& entry, bool compress, int version,
                bool with_links = true);
std::string make_dump(const store::Entry& entry, bool compress, int version);

// For other dumps with this format: adds version and checksum to what has been written to a sink
// whose checksum was enabled from the start, and flushes it.
void write_dump_footer(ByteSink& sink, RdbWriter& writer, int version);
// The bytes before version and checksum. REQUIRES: is_intact_dump().
std::string_view dump_body(std::string_view dump);

// The newest of Redis's versions whose dumps the server takes: that of the release which it
// emulates, or any where rdb-version-check is relaxed.
int newest_dump_version(const server::Server& server);
// Whether the version can be read and the checksum is right (or `skip_checksum`). newest: of
// Redis's versions the last that is read. O(bytes).
bool is_intact_dump(std::string_view dump, bool skip_checksum, int newest);

// Reads the value of an intact dump. `room` must live as long as the value is used. Fails when the
// dump is not exactly one value, or an empty collection; the error is that of the RdbReader.
base::Result<> read_dump(std::string_view dump, store::Environment& environment, std::string& room,
                         LoadedValue* loaded);

}  // namespace latchkey::persist
