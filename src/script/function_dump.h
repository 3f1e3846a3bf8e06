// The payload of FUNCTION DUMP and FUNCTION RESTORE: libraries as in an RDB file, with version and
// checksum (persist/rdb/dump_payload.h).
//
//     +--------+------+     +-------------+----------+
//     | opcode | code | ... | RDB version | checksum |
//     +--------+------+     +-------------+----------+
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/function_libraries.h"

namespace latchkey::script {

// version: of the RDB format, for the footer; the libraries are the same in all.
std::string dump_functions(const server::FunctionLibraries& libraries, bool compress, int version);

// The code of each library of `dump`, unchecked. newest: the last version that is read. Fails when
// `dump` is malformed; the error is a reply, from "ERR " on.
base::Result<std::vector<std::string>> read_function_dump(std::string_view dump, bool skip_checksum,
                                                          int newest);

}  // namespace latchkey::script
