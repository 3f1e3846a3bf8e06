// MODULE LIST, LOAD, LOADEX, UNLOAD, HELP. This server loads no modules: the list has what is built
// in, and the others return an error.
#include "commands/server/modules.h"

#include <algorithm>
#include <string>

#include "commands/groups.h"
#include "server/command/built_in_modules.h"
#include "server/command/command_context.h"
#include "server/command/help.h"
#include "server/server.h"

namespace latchkey::commands {

using namespace server;

namespace {

std::span<const BuiltInModule> modules_of(const CommandContext& ctx) {
  // A Sentinel has no values.
  if (ctx.server.is_sentinel()) return {};
  return built_in_modules(ctx.server.edition());
}

void module_list(CommandContext& ctx) {
  reply_modules(ctx);
}

void module_load(CommandContext& ctx) {
  ctx.server.log().warning("Module " + std::string(ctx.args[2]) +
                           " failed to load: this server runs no modules");
  ctx.reply.error("ERR Error loading the extension. Please check the server logs.");
}

void module_unload(CommandContext& ctx) {
  const auto modules = modules_of(ctx);
  const bool is_there = std::any_of(modules.begin(), modules.end(),
                                    [&](const auto& module) { return ctx.args[2] == module.name; });
  ctx.reply.error(is_there ? "ERR Error unloading module: the module can't be unloaded"
                           : "ERR Error unloading module: no such module with that name");
}

void module_help(CommandContext& ctx) {
  reply_help(ctx, {
                      "LIST",
                      "    List the modules that there are, which are built in.",
                      "LOAD <path> [<arg> ...]",
                      "    Refused: this server runs no modules.",
                      "LOADEX <path> [[CONFIG NAME VALUE] [CONFIG NAME VALUE]] [ARGS ...]",
                      "    Refused as well.",
                      "UNLOAD <name>",
                      "    Refused, since what is built in cannot be unloaded.",
                  });
}

constexpr CommandRow kModuleSubcommands[] = {
    help_row(module_help, 0, Group::kServer, "5.0.0"),
    {"LIST",
     module_list,
     "",
     kAdmin | kNoScript,
     {},
     0,
     Group::kServer,
     "4.0.0",
     "O(N) where N is the number of loaded modules.",
     "Returns all loaded modules.",
     {.tips = "nondeterministic_output_order"}},
    {"LOAD",
     module_load,
     "path [arg...]",
     kAdmin | kNoScript | kNoAsyncLoading | kProtected,
     {},
     0,
     Group::kServer,
     "4.0.0",
     "O(1)",
     "Loads a module."},
    {"LOADEX",
     module_load,
     "path [CONFIG configs=name value]... [ARGS args...]",
     kAdmin | kNoScript | kNoAsyncLoading | kProtected,
     {},
     0,
     Group::kServer,
     "7.0.0",
     "O(1)",
     "Loads a module using extended parameters."},
    {"UNLOAD",
     module_unload,
     "name",
     kAdmin | kNoScript | kNoAsyncLoading | kProtected,
     {},
     0,
     Group::kServer,
     "4.0.0",
     "O(1)",
     "Unloads a module."},
};

constexpr CommandRow kModuleRows[] = {
    {"MODULE",
     nullptr,
     "",
     0,
     {},
     0,
     Group::kServer,
     "4.0.0",
     "Depends on subcommand.",
     "A container for module commands.",
     {.subcommands = kModuleSubcommands}},
};

}  // namespace

void reply_modules(CommandContext& ctx) {
  const auto modules = modules_of(ctx);
  ctx.reply.array(modules.size());
  for (const BuiltInModule& module : modules) {
    ctx.reply.map(4);
    ctx.reply.bulk("name");
    ctx.reply.bulk(module.name);
    ctx.reply.bulk("ver");
    ctx.reply.integer(module_version(module, ctx.server.edition()));
    ctx.reply.bulk("path");
    ctx.reply.bulk("");
    ctx.reply.bulk("args");
    ctx.reply.empty_array();
  }
}

std::span<const CommandRow> module_rows() {
  return kModuleRows;
}

}  // namespace latchkey::commands
