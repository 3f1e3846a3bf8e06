// What FUNCTION DUMP gives and FUNCTION RESTORE takes: libraries as in an RDB file, and what they
// are good for (persist/dump_payload.h).
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

// False with the error in *error when it is no such dump. Nothing of the codes is looked at.
bool read_function_dump(std::string_view dump, bool skip_checksum, std::vector<std::string>* codes,
                        std::string* error);

}  // namespace latchkey::script
