// Reads an argument that is a database number.
#pragma once

#include <string_view>

#include "server/command/command_context.h"

namespace latchkey::commands {

// False, with the reference's error sent, when the text is no integer or no database has that
// number.
bool read_database_index(server::CommandContext& ctx, std::string_view text, int* index);

}  // namespace latchkey::commands
