// COMMAND: describes the commands of the server.
#include <functional>
#include <string_view>
#include <vector>

#include "base/text/glob.h"
#include "commands/groups.h"
#include "server/command/command_context.h"
#include "server/command/command_docs.h"
#include "server/command/command_table.h"
#include "server/command/help.h"
#include "server/server.h"

namespace latchkey::commands {

using namespace server;

namespace {

void command(CommandContext& ctx) {
  ctx.server.commands().write_infos(ctx.reply);
}

void command_count(CommandContext& ctx) {
  ctx.reply.integer(static_cast<int64_t>(ctx.server.commands().commands().size()));
}

void command_info(CommandContext& ctx) {
  const Arguments names = ctx.args.subspan(2);
  if (names.empty()) return ctx.server.commands().write_infos(ctx.reply);
  ctx.reply.array(names.size());
  for (const std::string_view name : names) {
    const Command* const one = ctx.server.commands().find_full_name(name);
    one != nullptr ? write_command_info(*one, ctx.server.edition(), ctx.reply) : ctx.reply.null();
  }
}

void command_docs(CommandContext& ctx) {
  const Arguments names = ctx.args.subspan(2);
  if (names.empty()) return ctx.server.commands().write_docs(ctx.reply);
  std::vector<const Command*> documented;
  for (const std::string_view name : names) {
    const Command* const one = ctx.server.commands().find_full_name(name);
    if (one != nullptr) documented.push_back(one);
  }
  ctx.reply.map(documented.size());
  for (const Command* one : documented) {
    ctx.reply.bulk(one->full_name);
    write_command_docs(*one, ctx.server.edition(), ctx.reply);
  }
}

using CommandFilter = std::function<bool(const Command&)>;

// Replies with the full names of the commands and subcommands that pass the filter.
void list_commands(CommandContext& ctx, const CommandFilter& passes) {
  std::vector<std::string_view> names;
  for (const Command* one : ctx.server.commands().commands()) {
    if (passes(*one)) names.push_back(one->full_name);
    for (const Command* subcommand : one->subcommands) {
      if (passes(*subcommand)) names.push_back(subcommand->full_name);
    }
  }
  ctx.reply.array(names.size());
  for (const std::string_view name : names) ctx.reply.bulk(name);
}

void command_list(CommandContext& ctx) {
  ArgReader options(ctx.args, 2);
  if (!options.more()) {
    return list_commands(ctx, [](const Command&) { return true; });
  }
  std::string_view value;
  if (!options.word("FILTERBY") || options.left() != 2) return ctx.syntax_error();
  if (options.word("MODULE", &value)) {
    return list_commands(ctx, [value](const Command& one) {
      return one.row->group == Group::kModule && one.row->extras.module == value;
    });
  }
  if (options.word("ACLCAT", &value)) {
    const uint32_t category = acl_category_named(value);
    return list_commands(ctx, [category](const Command& one) { return (one.acl & category) != 0; });
  }
  if (options.word("PATTERN", &value)) {
    const base::GlobPattern pattern(value, /*ignore_case=*/true);
    return list_commands(ctx,
                         [&pattern](const Command& one) { return pattern.matches(one.full_name); });
  }
  ctx.syntax_error();
}

// Finds the keys of the request in the arguments from the third on. False, with the error sent, if
// it has none.
bool find_keys_of_request(CommandContext& ctx, std::vector<KeyReference>* found) {
  const Arguments request = ctx.args.subspan(2);
  const Command* const one = ctx.server.commands().find_request(request);
  if (one == nullptr) {
    ctx.reply.error("ERR Invalid command specified");
  } else if (!one->has_keys()) {
    ctx.reply.error("ERR The command has no key arguments");
  } else if (!one->accepts_word_count(request.size())) {
    ctx.reply.error("ERR Invalid number of arguments specified for command");
  } else if (!get_keys(*one, request, found)) {
    ctx.reply.error("ERR Invalid arguments specified for command");
  } else {
    return true;
  }
  return false;
}

void command_getkeys(CommandContext& ctx) {
  std::vector<KeyReference> found;
  if (!find_keys_of_request(ctx, &found)) return;
  ctx.reply.array(found.size());
  for (const KeyReference& key : found) ctx.reply.bulk(ctx.args[2 + key.position]);
}

void command_getkeysandflags(CommandContext& ctx) {
  std::vector<KeyReference> found;
  if (!find_keys_of_request(ctx, &found)) return;
  ctx.reply.array(found.size());
  for (const KeyReference& key : found) {
    ctx.reply.array(2);
    ctx.reply.bulk(ctx.args[2 + key.position]);
    write_bit_names(key.flags, key_flag_names(), "", ctx.reply);
  }
}

void command_help(CommandContext& ctx) {
  reply_help(ctx, {
                      "(no subcommand)",
                      "    Describe every command.",
                      "COUNT",
                      "    Tell how many commands there are.",
                      "DOCS [<command-name> ...]",
                      "    Document the named commands, or all of them.",
                      "GETKEYS <full-command>",
                      "    List the keys of a request.",
                      "GETKEYSANDFLAGS <full-command>",
                      "    List the keys of a request, and what it does to each.",
                      "INFO [<command-name> ...]",
                      "    Describe the named commands, or all of them.",
                      "LIST [FILTERBY MODULE <module> | ACLCAT <category> | PATTERN <pattern>]",
                      "    List the names of commands.",
                  });
}

constexpr CommandRow kCommandSubcommands[] = {
    {"COUNT",
     command_count,
     "",
     kLoading | kStale,
     {},
     kAclConnection,
     Group::kServer,
     "2.8.13",
     "O(1)",
     "Returns a count of commands."},
    {"DOCS",
     command_docs,
     "[command-name...]",
     kLoading | kStale,
     {},
     kAclConnection,
     Group::kServer,
     "7.0.0",
     "O(N) where N is the number of commands to look up",
     "Returns documentary information about one, multiple or all commands.",
     {.tips = "nondeterministic_output_order"}},
    {"GETKEYS",
     command_getkeys,
     "command [arg...]",
     kLoading | kStale,
     {},
     kAclConnection,
     Group::kServer,
     "2.8.13",
     "O(N) where N is the number of arguments to the command",
     "Extracts the key names from an arbitrary command."},
    {"GETKEYSANDFLAGS",
     command_getkeysandflags,
     "command [arg...]",
     kLoading | kStale,
     {},
     kAclConnection,
     Group::kServer,
     "7.0.0",
     "O(N) where N is the number of arguments to the command",
     "Extracts the key names and access flags for an arbitrary command."},
    help_row(command_help, kAclConnection, Group::kServer, "5.0.0"),
    {"INFO",
     command_info,
     "[command-name...]",
     kLoading | kStale,
     {},
     kAclConnection,
     Group::kServer,
     "2.8.13",
     "O(N) where N is the number of commands to look up",
     "Returns information about one, multiple or all commands.",
     {.tips = "nondeterministic_output_order",
      .history = "7.0.0 Allowed to be called with no argument to get info on all commands."}},
    {"LIST",
     command_list,
     "[FILTERBY filterby=MODULE module-name|ACLCAT category|PATTERN pattern]",
     kLoading | kStale,
     {},
     kAclConnection,
     Group::kServer,
     "7.0.0",
     "O(N) where N is the total number of Redis commands",
     "Returns a list of command names.",
     {.tips = "nondeterministic_output_order"}},
};

constexpr CommandRow kCommandRows[] = {
    {"COMMAND",
     command,
     "[_...]",
     kLoading | kStale,
     {},
     kAclConnection,
     Group::kServer,
     "2.8.13",
     "O(N) where N is the total number of Redis commands",
     "Returns detailed information about all commands.",
     {.tips = "nondeterministic_output_order", .subcommands = kCommandSubcommands}},
};

}  // namespace

std::span<const CommandRow> command_rows() {
  return kCommandRows;
}

}  // namespace latchkey::commands
