// Numbers of scores and of SORT as older releases read them.
#pragma once

#include <string_view>

#include "server/command/command_context.h"
#include "server/server.h"

namespace latchkey::commands {

// Whether this is a number only for releases that read hexadecimal: before Redis 8.0 and
// Valkey 9.1.
inline bool is_old_number(const server::CommandContext& ctx, std::string_view text) {
  return !ctx.server.edition().has({8, 0}, {9, 1}) &&
         text.find_first_of("xX") != std::string_view::npos;
}

}  // namespace latchkey::commands
