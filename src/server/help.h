// The HELP subcommand of containers: usage lines as statuses.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>

#include "server/command_context.h"

namespace latchkey::server {

// Replies with "<CONTAINER> <subcommand> ...", the lines, and HELP itself. By custom a subcommand's
// usage is followed by lines that explain it, indented by four spaces:
//
//     reply_help(ctx, {"ID", "    Return the connection's number.", ...});
void reply_help(CommandContext& ctx, std::span<const std::string_view> lines);
inline void reply_help(CommandContext& ctx, std::initializer_list<std::string_view> lines) {
  reply_help(ctx, std::span(lines.begin(), lines.size()));
}

}  // namespace latchkey::server
