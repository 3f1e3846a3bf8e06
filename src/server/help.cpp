#include "server/help.h"

#include <string>

#include "base/text.h"
#include "server/command_table.h"

namespace latchkey::server {

void reply_help(CommandContext& ctx, std::span<const std::string_view> lines) {
  constexpr size_t kLinesAround = 3;
  const Command& container = ctx.command.parent != nullptr ? *ctx.command.parent : ctx.command;
  std::string usage(container.row->name);
  usage += " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:";
  ctx.reply.array(lines.size() + kLinesAround);
  ctx.reply.status(usage);
  for (const std::string_view line : lines) ctx.reply.status(line);
  ctx.reply.status("HELP");
  ctx.reply.status("    Print this help.");
}

}  // namespace latchkey::server
