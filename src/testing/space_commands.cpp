// SPACE CREATE, DROP, ENTER, HELP, INFO, LIST, LISTEN.
#include <cstdint>
#include <string>
#include <string_view>

#include "server/client/client.h"
#include "server/client/client_registry.h"
#include "server/command/command_context.h"
#include "server/command/help.h"
#include "server/server.h"
#include "testing/rows.h"
#include "testing/spaces.h"

namespace latchkey::testing {

using namespace server;

namespace {

constexpr size_t kFirstArgument = 2;

// Null, with the error sent, when the process has no spaces.
Spaces* spaces_of(CommandContext& ctx) {
  Spaces* const spaces = ctx.server.spaces();
  if (spaces == nullptr) ctx.reply.error("ERR This server has no spaces");
  return spaces;
}

// Null, with the error sent, when there is none of that name.
Spaces::Space* named_space(CommandContext& ctx, Spaces& spaces, std::string_view name) {
  Spaces::Space* const space = spaces.find(name);
  if (space == nullptr) ctx.reply.error("ERR No such space");
  return space;
}

void space_create(CommandContext& ctx) {
  Spaces* const spaces = spaces_of(ctx);
  if (spaces == nullptr) return;
  std::string name;
  bool keep = false;
  ArgReader options(ctx.args, kFirstArgument);
  // A name may be left out, but the option comes behind it.
  if (options.more() && !(options.left() == 1 && is_word(options.peek(), "KEEP")))
    name = options.next();
  while (options.more()) {
    if (!options.word("KEEP")) return ctx.syntax_error();
    keep = true;
  }
  if (name.empty()) name = spaces->unused_name();
  if (spaces->find(name) != nullptr)
    return ctx.reply.error("ERR A space of that name exists already");
  std::string error;
  if (spaces->create(name, keep, &error) == nullptr) return ctx.reply.error("ERR " + error);
  ctx.reply.bulk(name);
}

// The gate has brought the client here, or left it where it may not go from.
void space_enter(CommandContext& ctx) {
  Spaces* const spaces = spaces_of(ctx);
  if (spaces == nullptr) return;
  const std::string_view name = ctx.args[kFirstArgument];
  const Spaces::Space* const here = spaces->space_of(ctx.server);
  if (here != nullptr ? here->name == name : is_word(name, "MAIN")) return ctx.reply.ok();
  if (const std::string_view objection = Spaces::objection_to(name);
      !objection.empty() && !is_word(name, "MAIN"))
    return ctx.reply.error("ERR " + std::string(objection));
  ctx.reply.error(
      "ERR A client that is subscribed, monitors or replicates cannot change its space");
}

void space_drop(CommandContext& ctx) {
  Spaces* const spaces = spaces_of(ctx);
  if (spaces == nullptr) return;
  Spaces::Space* const space = named_space(ctx, *spaces, ctx.args[kFirstArgument]);
  if (space == nullptr) return;
  ctx.reply.ok();
  spaces->drop(*space);
}

void space_listen(CommandContext& ctx) {
  Spaces* const spaces = spaces_of(ctx);
  if (spaces == nullptr) return;
  int64_t port = 0;
  if (ctx.args.size() > kFirstArgument + 1 &&
      !ctx.read_int64_in(ctx.args[kFirstArgument + 1], 1, UINT16_MAX, &port, "ERR Invalid port"))
    return;
  const std::string_view name = ctx.args[kFirstArgument];
  std::string error;
  Spaces::Space* space = spaces->find(name);
  if (space == nullptr) space = spaces->create(name, /*keep=*/false, &error);
  if (space == nullptr) return ctx.reply.error("ERR " + error);
  const bool listens = space->port != 0;
  if (listens && port != 0 && port != space->port)
    return ctx.reply.error("ERR The space listens on port " + std::to_string(space->port) +
                           " already");
  if (!listens && !spaces->listen(*space, static_cast<int>(port), &error))
    return ctx.reply.error("ERR " + error);
  ctx.reply.integer(space->port);
}

void reply_space(CommandContext& ctx, const Spaces::Space& space) {
  Server& server = space.server();
  size_t keys = 0;
  for (const auto& database : server.databases()) keys += database->size();
  ctx.reply.map(6);
  ctx.reply.bulk("name");
  ctx.reply.bulk(space.name);
  ctx.reply.bulk("clients");
  ctx.reply.integer(static_cast<int64_t>(server.clients().size()));
  ctx.reply.bulk("keys");
  ctx.reply.integer(static_cast<int64_t>(keys));
  ctx.reply.bulk("keep");
  ctx.reply.integer(space.keep ? 1 : 0);
  ctx.reply.bulk("port");
  ctx.reply.integer(space.port);
  ctx.reply.bulk("age-ms");
  ctx.reply.integer(ctx.server.machine_ms() - space.made_ms);
}

void space_list(CommandContext& ctx) {
  Spaces* const spaces = spaces_of(ctx);
  if (spaces == nullptr) return;
  size_t count = 0;
  for (const auto& [name, space] : spaces->all()) count += space->ends ? 0 : 1;
  ctx.reply.array(count);
  for (const auto& [name, space] : spaces->all()) {
    if (!space->ends) reply_space(ctx, *space);
  }
}

void space_info(CommandContext& ctx) {
  Spaces* const spaces = spaces_of(ctx);
  if (spaces == nullptr) return;
  const Spaces::Space* space = nullptr;
  if (ctx.args.size() > kFirstArgument) {
    space = named_space(ctx, *spaces, ctx.args[kFirstArgument]);
    if (space == nullptr) return;
  } else if (space = spaces->space_of(ctx.server); space == nullptr) {
    return ctx.reply.error("ERR This client is in no space");
  }
  reply_space(ctx, *space);
}

void space_help(CommandContext& ctx) {
  reply_help(
      ctx,
      {"CREATE [<name>] [KEEP]",
       "    Make a space, a server of its own within this process, and return its name.",
       "    Without KEEP it goes when it has had no client for space-linger-ms.", "DROP <name>",
       "    Close the clients of a space and destroy it with its data.", "ENTER <name>|MAIN",
       "    Go into a space, which is made if there is none, or back to the first server.",
       "    Logging in as the user space-<name> does the same.", "INFO [<name>]",
       "    Return name, number of clients and keys, whether it is kept, port and age.",
       "LISTEN <name> [<port>]",
       "    Let the space, which is made if there is none, have a port of its own, and return it.",
       "    It stays until it is dropped.", "LIST", "    Return the same of all spaces."});
}

constexpr uint32_t kFlags = kAdmin | kNoScript | kNoMulti | kStale | kProtected;
constexpr const char* kSince = "0.2.0";

constexpr CommandRow kSpaceSubcommands[] = {
    {"CREATE",
     space_create,
     "[name] [KEEP]",
     kFlags,
     {},
     0,
     Group::kServer,
     kSince,
     "O(1)",
     "Makes a space, a server of its own within the process."},
    {"DROP",
     space_drop,
     "name",
     kFlags,
     {},
     0,
     Group::kServer,
     kSince,
     "O(N) where N is the number of its clients",
     "Destroys a space with its data, and closes its clients."},
    {"ENTER",
     space_enter,
     "name",
     kFlags | kMayChangeServer,
     {},
     0,
     Group::kServer,
     kSince,
     "O(1)",
     "Takes the client into a space, or back to the first server."},
    help_row(space_help, 0, Group::kServer, kSince),
    {"INFO",
     space_info,
     "[name]",
     kFlags,
     {},
     0,
     Group::kServer,
     kSince,
     "O(N) where N is the number of its databases",
     "Returns figures of a space."},
    {"LIST",
     space_list,
     "",
     kFlags,
     {},
     0,
     Group::kServer,
     kSince,
     "O(N) where N is the number of spaces and their databases",
     "Returns figures of all spaces."},
    {"LISTEN",
     space_listen,
     "name [port]",
     kFlags,
     {},
     0,
     Group::kServer,
     kSince,
     "O(1)",
     "Lets a space have a port of its own, and returns it."},
};

constexpr CommandRow kSpaceRows[] = {
    {"SPACE",
     nullptr,
     "",
     0,
     {},
     0,
     Group::kServer,
     kSince,
     "Depends on subcommand.",
     "A container for commands about spaces.",
     {.subcommands = kSpaceSubcommands}},
};

}  // namespace

std::span<const CommandRow> space_rows() {
  return kSpaceRows;
}

}  // namespace latchkey::testing
