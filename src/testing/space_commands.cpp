// SPACE CREATE, DROP, ENTER, HELP, INFO, LIST, LISTEN.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

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

// Null, with the error sent, when the process has no spaces.
Spaces* spaces_of(CommandContext& ctx) {
  Spaces* const spaces = ctx.server.find_layer<Spaces>();
  if (spaces == nullptr) ctx.reply.error("ERR This server has no spaces");
  return spaces;
}

// Null, with the error sent, when there is none of that name.
Spaces::Space* named_space(CommandContext& ctx, Spaces& spaces, std::string_view name) {
  Spaces::Space* const space = spaces.find(name);
  if (space == nullptr) ctx.reply.error("ERR No such space");
  return space;
}

// Null, with the error sent, where there are none, or where the client may not run this subcommand:
// clients of a space may do no more to others than the first server's default user.
Spaces* changeable_spaces(CommandContext& ctx, std::string_view subcommand) {
  Spaces* const spaces = spaces_of(ctx);
  if (spaces == nullptr || &ctx.server == &spaces->main() || spaces->default_user_may(subcommand))
    return spaces;
  return ctx.refuse("NOPERM Clients of spaces may run SPACE " + std::string(subcommand) +
                        " only where the default user of the first server may",
                    nullptr);
}

struct CreateOptions {
  bool keep = false;
  std::optional<std::string_view> from;

  // False when there is something else.
  bool read(ArgReader args) {
    *this = {};
    while (args.more()) {
      std::string_view source;
      if (!keep && args.word("KEEP")) {
        keep = true;
      } else if (!from && args.word("FROM", &source)) {
        from = source;
      } else {
        return false;
      }
    }
    return true;
  }
};

void space_create(CommandContext& ctx) {
  Spaces* const spaces = changeable_spaces(ctx, "CREATE");
  if (spaces == nullptr) return;
  std::string name;
  CreateOptions options;
  ArgReader args(ctx.args, kFirstArgument);
  // The name may be left out: what can be read as options alone has none.
  const bool named = !options.read(args);
  if (named) {
    name = args.next();
    if (!options.read(args)) return ctx.syntax_error();
  }
  Server* from = nullptr;
  if (options.from && !is_word(*options.from, "MAIN")) {
    Spaces::Space* const space = named_space(ctx, *spaces, *options.from);
    if (space == nullptr) return;
    from = &space->server();
  } else if (options.from) {
    if (!spaces->may_copy_main(ctx.server))
      return ctx.reply.error(
          "NOPERM Clients of a space copy the first server only with the password that it has");
    from = &spaces->main();
  }
  if (!named) name = spaces->unused_name();
  if (spaces->find(name) != nullptr)
    return ctx.reply.error("ERR A space of that name exists already");
  if (const auto made = spaces->create(name, options.keep, from); !made)
    return ctx.reply.error("ERR " + made.error());
  ctx.reply.bulk(name);
}

// The gate has brought the client here, or left it where it may not go from.
void space_enter(CommandContext& ctx) {
  Spaces* const spaces = spaces_of(ctx);
  if (spaces == nullptr) return;
  const std::string_view name = ctx.args[kFirstArgument];
  const Spaces::Space* const here = spaces->space_of(ctx.server);
  if (here != nullptr ? here->name == name : is_word(name, "MAIN")) return ctx.reply.ok();
  if (const std::string_view objection = Spaces::name_error(name);
      !objection.empty() && !is_word(name, "MAIN"))
    return ctx.reply.error("ERR " + std::string(objection));
  ctx.reply.error(
      "ERR A client that is subscribed, monitors or replicates cannot change its space");
}

void space_drop(CommandContext& ctx) {
  Spaces* const spaces = changeable_spaces(ctx, "DROP");
  if (spaces == nullptr) return;
  Spaces::Space* const space = named_space(ctx, *spaces, ctx.args[kFirstArgument]);
  if (space == nullptr) return;
  ctx.reply.ok();
  spaces->drop(*space);
}

void listen_at_port(CommandContext& ctx, Spaces& spaces, Spaces::Space& space, int port) {
  const bool listens = space.port != 0;
  if (listens && port != 0 && port != space.port)
    return ctx.reply.error("ERR The space listens on port " + std::to_string(space.port) +
                           " already");
  if (!listens) {
    const base::Result<> opened = spaces.listen(space, port);
    if (!opened) return ctx.reply.error("ERR " + opened.error());
  }
  ctx.reply.integer(space.port);
}

// Whether a server listens at that unix socket, or may do so.
bool is_in_use(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return false;  // nobody can
  path.copy(address.sun_path, path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return true;
  const bool connected =
      connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  const bool is_left = !connected && (errno == ECONNREFUSED || errno == ENOENT);
  close(fd);
  return !is_left;
}

void listen_at_socket(CommandContext& ctx, Spaces& spaces, Spaces::Space& space,
                      const std::string& path) {
  const bool listens = !space.socket.empty();
  if (listens && path != space.socket)
    return ctx.reply.error("ERR The space listens at " + space.socket + " already");
  std::error_code ignored;
  const std::filesystem::file_status there = std::filesystem::symlink_status(path, ignored);
  if (!listens && std::filesystem::exists(there) && !std::filesystem::is_socket(there))
    return ctx.reply.error("ERR There is something else than a socket at this path");
  // As with the directive unixsocket a stale socket is replaced, but not that of a running server:
  // the permission to make spaces must not allow taking the clients of other servers.
  if (!listens && std::filesystem::exists(there) && is_in_use(path))
    return ctx.reply.error("ERR A server listens at this path already");
  if (!listens) {
    const base::Result<> opened = spaces.listen(space, path);
    if (!opened) return ctx.reply.error("ERR " + opened.error());
  }
  ctx.reply.bulk(path);
}

void space_listen(CommandContext& ctx) {
  Spaces* const spaces = changeable_spaces(ctx, "LISTEN");
  if (spaces == nullptr) return;
  const bool has_place = ctx.args.size() > kFirstArgument + 1;
  const std::string_view place = has_place ? ctx.args[kFirstArgument + 1] : std::string_view();
  const bool at_socket = place.find('/') != std::string_view::npos;
  int64_t port = 0;
  if (has_place && !at_socket &&
      !ctx.read_int64_in(place, 1, UINT16_MAX, &port, "ERR Invalid port"))
    return;
  const std::string_view name = ctx.args[kFirstArgument];
  Spaces::Space* space = spaces->find(name);
  if (space == nullptr) {
    const auto made = spaces->create(name, /*keep=*/false, /*from=*/nullptr);
    if (!made) return ctx.reply.error("ERR " + made.error());
    space = *made;
  }
  if (at_socket) {
    listen_at_socket(ctx, *spaces, *space, std::string(place));
  } else {
    listen_at_port(ctx, *spaces, *space, static_cast<int>(port));
  }
}

void reply_space(CommandContext& ctx, const Spaces::Space& space) {
  Server& server = space.server();
  ctx.reply.map(9);
  ctx.reply.bulk("name");
  ctx.reply.bulk(space.name);
  ctx.reply.bulk("clients");
  ctx.reply.integer(static_cast<int64_t>(server.clients().size()));
  ctx.reply.bulk("keys");
  ctx.reply.integer(static_cast<int64_t>(server.key_count()));
  ctx.reply.bulk("keep");
  ctx.reply.integer(space.stays() ? 1 : 0);
  ctx.reply.bulk("port");
  ctx.reply.integer(space.port);
  ctx.reply.bulk("unixsocket");
  ctx.reply.bulk(space.socket);
  ctx.reply.bulk("used-memory");
  ctx.reply.integer(static_cast<int64_t>(server.used_memory()));
  ctx.reply.bulk("age-ms");
  ctx.reply.integer((ctx.server.clock().monotonic_us() - space.made_us) / base::kUsPerMs);
  ctx.reply.bulk("emulate");
  ctx.reply.bulk(server.edition().text());
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
  reply_help(ctx,
             {"CREATE [<name>] [KEEP] [FROM <name>|MAIN]",
              "    Make a space, a server of its own within this process, and return its name.",
              "    Without KEEP it goes when it has had no client for space-linger-ms.",
              "    With FROM it begins with a copy of that one's keys, functions and clock.",
              "    A name that ends in ~redis-7.0 or the like makes it emulate that release.",
              "DROP <name>", "    Close the clients of a space and destroy it with its data.",
              "ENTER <name>|MAIN",
              "    Go into a space, which is made if there is none, or back to the first server.",
              "    Logging in as the user space-<name> does the same.", "INFO [<name>]",
              "    Return its name, clients, keys, whether it is kept, port, socket, memory, age, "
              "release.",
              "LISTEN <name> [<port>|<path>]",
              "    Let a space, made if there is none, have a port or a unix socket of its own,",
              "    and return it. It stays until it is dropped.", "LIST",
              "    Return the same of all spaces."});
}

constexpr uint32_t kFlags = kAdmin | kNoScript | kNoMulti | kStale | kProtected;
constexpr const char* kSince = "0.2.0";

constexpr CommandRow kSpaceSubcommands[] = {
    {"CREATE",
     space_create,
     "[name] [KEEP] [FROM source]",
     kFlags,
     {},
     0,
     Group::kServer,
     kSince,
     "O(1); with FROM O(N) where N is the size of what is copied",
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
     "name [port-or-path]",
     kFlags,
     {},
     0,
     Group::kServer,
     kSince,
     "O(1)",
     "Lets a space have a port or a unix socket of its own, and returns it."},
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
