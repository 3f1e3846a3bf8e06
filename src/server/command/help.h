// Replies of container commands: HELP, and the error for an unknown subcommand.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

#include "server/command/command.h"
#include "server/command/command_context.h"

namespace latchkey::server {

// Replies with "<CONTAINER> <subcommand> ...", the lines, and HELP itself. By custom a subcommand's
// usage is followed by lines that explain it, indented by four spaces:
//
//     reply_help(ctx, {"ID", "    Return the connection's number.", ...});
void reply_help(CommandContext& ctx, std::span<const std::string_view> lines);
inline void reply_help(CommandContext& ctx, std::initializer_list<std::string_view> lines) {
  reply_help(ctx, std::span(lines.begin(), lines.size()));
}

// The row of a container's HELP. `acl`: AclCategory bits; `since`: the version that brought it.
constexpr CommandRow help_row(Handler handler, uint32_t acl, Group group, const char* since) {
  return {.name = "HELP",
          .handler = handler,
          .syntax = "",
          .flags = kLoading | kStale,
          .keys = {},
          .acl = acl,
          .group = group,
          .since = since,
          .complexity = "O(1)",
          .summary = "Returns helpful text about the different subcommands."};
}

// "ERR unknown subcommand or wrong number of arguments for 'get'. Try CONFIG HELP.": of a
// subcommand whose arguments are optional, or found to be wrong by its handler.
void wrong_subcommand(CommandContext& ctx);

}  // namespace latchkey::server
