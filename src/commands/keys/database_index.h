// Reads an argument that is a database number.
#pragma once

#include <string_view>

#include "server/command/command_context.h"

namespace latchkey::commands {

// Whether requests may not name another database because the server is a node of a cluster that has
// only one. Valkey tells it as any number that is out of range.
bool has_one_database_of_cluster(const server::Server& server);

// False, with the reference's error sent, when the text is no integer or no database has that
// number.
bool read_database_index(server::CommandContext& ctx, std::string_view text, int* index);

}  // namespace latchkey::commands
