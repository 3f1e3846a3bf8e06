// INFO.
#include "server/observe/info.h"

#include "commands/groups.h"
#include "server/command/command_context.h"
#include "server/server.h"

namespace latchkey::commands {

using namespace server;

namespace {

void info(CommandContext& ctx) {
  ctx.reply.verbatim("txt", ctx.server.info().text(ctx.args.subspan(1), ctx.server.edition()));
}

constexpr CommandRow kInfoRows[] = {
    {"INFO",
     info,
     "[section...]",
     kLoading | kStale,
     {},
     kAclDangerous,
     Group::kServer,
     "1.0.0",
     "O(1)",
     "Returns information and statistics about the server.",
     {.tips = "nondeterministic_output request_policy:all_shards response_policy:special",
      .history = "7.0.0 Added support for taking multiple section arguments."}},
};

}  // namespace

std::span<const CommandRow> info_rows() {
  return kInfoRows;
}

}  // namespace latchkey::commands
