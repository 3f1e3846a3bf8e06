#include "server/command/help.h"

#include <string>

#include "base/text/up_to_nul.h"
#include "server/command/command_table.h"

namespace latchkey::server {

namespace {

const char* container_name(const CommandContext& ctx) {
  const Command& container = ctx.command.parent != nullptr ? *ctx.command.parent : ctx.command;
  return container.row->name;
}

}  // namespace

void reply_help(CommandContext& ctx, std::span<const std::string_view> lines) {
  constexpr size_t kLinesAround = 3;
  std::string usage(container_name(ctx));
  usage += " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:";
  ctx.reply.array(lines.size() + kLinesAround);
  ctx.reply.status(usage);
  for (const std::string_view line : lines) ctx.reply.status(line);
  ctx.reply.status("HELP");
  ctx.reply.status("    Print this help.");
}

void wrong_subcommand(CommandContext& ctx) {
  // As the reference's, what is shown ends at a NUL.
  constexpr size_t kMaxShownBytes = 128;
  const std::string_view word = ctx.args[1];
  std::string error = "ERR unknown subcommand or wrong number of arguments for '";
  error.append(base::up_to_nul(word.substr(0, kMaxShownBytes)));
  error.append("'. Try ").append(container_name(ctx)).append(" HELP.");
  ctx.reply.error(error);
}

}  // namespace latchkey::server
