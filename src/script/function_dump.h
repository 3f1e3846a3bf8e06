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

#include "server/function_libraries.h"

namespace latchkey::script {

std::string dump_functions(const server::FunctionLibraries& libraries, bool compress);

// False with the error in *error when `dump` is malformed. The codes are not checked.
bool read_function_dump(std::string_view dump, bool skip_checksum, std::vector<std::string>* codes,
                        std::string* error);

}  // namespace latchkey::script
