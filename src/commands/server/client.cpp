// CLIENT and its subcommands. client_filter.h selects the clients for LIST and KILL.
#include <string>

#include "commands/groups.h"
#include "commands/server/client_filter.h"
#include "commands/server/client_tracking.h"
#include "server/client/client.h"
#include "server/client/client_info.h"
#include "server/client/pause.h"
#include "server/command/command_context.h"
#include "server/command/command_table.h"
#include "server/command/help.h"
#include "server/server.h"

namespace latchkey::commands {

using namespace server;

namespace {

void client_id(CommandContext& ctx) {
  ctx.reply.integer(static_cast<int64_t>(ctx.client.id));
}

void client_getname(CommandContext& ctx) {
  if (ctx.client.name.empty()) return ctx.reply.null();
  ctx.reply.bulk(ctx.client.name);
}

void client_setname(CommandContext& ctx) {
  const std::string_view name = ctx.args[2];
  if (!check_client_name(ctx, name)) return;
  ctx.client.name = name;
  ctx.reply.ok();
}

void client_setinfo(CommandContext& ctx) {
  const std::string_view attribute = ctx.args[2];
  const std::string_view value = ctx.args[3];
  const bool is_name = is_word(attribute, "LIB-NAME");
  if (!is_name && !is_word(attribute, "LIB-VER")) {
    return ctx.reply.error("ERR Unrecognized option '" + std::string(attribute) + "'");
  }
  if (!is_one_printable_word(value)) {
    return ctx.reply.error("ERR " + std::string(attribute) +
                           " cannot contain spaces, newlines or special characters.");
  }
  std::unique_ptr<ClientLibrary>& library = ctx.client.library;
  if (library == nullptr) library = std::make_unique<ClientLibrary>();
  (is_name ? library->name : library->version) = value;
  ctx.reply.ok();
}

void client_info(CommandContext& ctx) {
  ctx.reply.verbatim("txt", describe(ctx.client) + "\n");
}

void client_list(CommandContext& ctx) {
  ClientFilter filter(ClientFilter::Purpose::kList);
  if (!filter.read(ctx)) return;
  std::string lines;
  filter.for_each(ctx, [&](Client& client) { lines += describe(client) + "\n"; });
  ctx.reply.verbatim("txt", lines);
}

// The calling client gets its reply before it is closed.
void kill(CommandContext& ctx, Client& client) {
  if (&client == &ctx.client) {
    client.close_after_reply();
  } else {
    client.close();
  }
}

void kill_by_address(CommandContext& ctx, std::string_view address) {
  bool found = false;
  ctx.server.clients().for_each([&](Client& client) {
    if (found || client.peer_address() != address) return;
    found = true;
    kill(ctx, client);
  });
  if (!found) return ctx.reply.error("ERR No such client");
  ctx.reply.ok();
}

void client_kill(CommandContext& ctx) {
  if (ctx.args.size() < 3) return ctx.wrong_arity();
  if (ctx.args.size() == 3) return kill_by_address(ctx, ctx.args[2]);
  ClientFilter filter(ClientFilter::Purpose::kKill);
  if (!filter.read(ctx)) return;
  int64_t killed = 0;
  filter.for_each(ctx, [&](Client& client) {
    kill(ctx, client);
    ++killed;
  });
  ctx.reply.integer(killed);
}

// Reads ON or OFF. False when an error has been sent.
bool read_switch(CommandContext& ctx, std::string_view word, bool* on) {
  *on = is_word(word, "ON");
  if (*on || is_word(word, "OFF")) return true;
  ctx.syntax_error();
  return false;
}

void client_no_evict(CommandContext& ctx) {
  bool on = false;
  if (!read_switch(ctx, ctx.args[2], &on)) return;
  ctx.client.set(kClientNoEvict, on);
  ctx.reply.ok();
}

void client_no_touch(CommandContext& ctx) {
  bool on = false;
  if (!read_switch(ctx, ctx.args[2], &on)) return;
  ctx.client.set(kClientNoTouch, on);
  ctx.reply.ok();
}

// Words that are not known are for other releases.
void client_capa(CommandContext& ctx) {
  for (const std::string_view word : ctx.args.subspan(2)) {
    if (is_word(word, "REDIRECT")) ctx.client.set(kClientRedirects);
  }
  ctx.reply.ok();
}

void client_import_source(CommandContext& ctx) {
  if (!ctx.server.settings().import_mode && !is_word(ctx.args[2], "OFF"))
    return ctx.reply.error("ERR Server is not in import mode");
  bool on = false;
  if (!read_switch(ctx, ctx.args[2], &on)) return;
  ctx.client.set(kClientImportSource, on);
  ctx.reply.ok();
}

void client_reply(CommandContext& ctx) {
  const std::string_view mode = ctx.args[2];
  if (is_word(mode, "ON")) {
    ctx.client.set(kClientReplyOff | kClientReplySkip, false);
    ctx.reply.ok();
  } else if (is_word(mode, "OFF")) {
    ctx.client.set(kClientReplyOff);
  } else if (is_word(mode, "SKIP")) {
    if (!ctx.client.has(kClientReplyOff)) ctx.client.set(kClientReplySkipNext);
  } else {
    ctx.syntax_error();
  }
}

// Whether a request with an optional fourth word has more. Valkey takes such, and reads only those
// before the optional one.
bool has_too_many_words(CommandContext& ctx) {
  return ctx.args.size() > 4 && !ctx.server.edition().is_valkey();
}

void client_pause(CommandContext& ctx) {
  if (has_too_many_words(ctx)) return wrong_subcommand(ctx);
  auto kind = PauseControl::Kind::kAll;
  if (ctx.args.size() == 4) {
    if (is_word(ctx.args[3], "WRITE")) {
      kind = PauseControl::Kind::kWrites;
    } else if (!is_word(ctx.args[3], "ALL")) {
      return ctx.reply.error("ERR CLIENT PAUSE mode must be WRITE or ALL");
    }
  }
  int64_t until_ms = 0;
  if (!ctx.read_timeout_ms(ctx.args[2], &until_ms)) return;
  ctx.server.pauses().pause(PauseControl::Reason::kClient, kind, until_ms);
  ctx.reply.ok();
}

void client_unpause(CommandContext& ctx) {
  ctx.server.pauses().unpause(PauseControl::Reason::kClient);
  ctx.reply.ok();
}

void client_unblock(CommandContext& ctx) {
  if (has_too_many_words(ctx)) return wrong_subcommand(ctx);
  auto end = BlockEnd::kUnblocked;
  if (ctx.args.size() == 4) {
    if (is_word(ctx.args[3], "ERROR")) {
      end = BlockEnd::kUnblockedWithError;
    } else if (!is_word(ctx.args[3], "TIMEOUT")) {
      return ctx.reply.error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
    }
  }
  int64_t id = 0;
  if (!ctx.read_int64(ctx.args[2], &id)) return;
  Client* client = id > 0 ? ctx.server.clients().find(static_cast<uint64_t>(id)) : nullptr;
  if (client == nullptr || client->block == nullptr || !client->block->may_unblock)
    return ctx.reply.integer(0);
  client->unblock(end);
  ctx.reply.integer(1);
}

void client_help(CommandContext& ctx) {
  reply_help(
      ctx,
      {
          "CACHING (YES|NO)",
          "    Say whether what the next command reads is tracked, where OPTIN or OPTOUT asks.",
          "CAPA <capability> [<capability> ...]",
          "    Say what this client understands: REDIRECT, that a replica may send it to its "
          "master.",
          "GETNAME",
          "    Tell the name that this connection was given.",
          "GETREDIR",
          "    Tell the number of the connection that hears of changes in place of this one.",
          "ID",
          "    Tell the number of this connection.",
          "IMPORT-SOURCE (ON|OFF)",
          "    Show this connection expired keys, while import-mode is on.",
          "INFO",
          "    Describe this connection in one line.",
          "KILL <ip:port>",
          "    Close the connection that comes from this address.",
          "KILL <option> <value> [<option> <value> ...]",
          "    Close the connections that all of these options hold for:",
          "    * ID <id> [<id> ...]: by number.",
          "    * ADDR <ip:port>, LADDR <ip:port>: by the address of either end; a unix socket is "
          "<path>:0.",
          "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB): by what they are used for.",
          "    * USER <name>: by who they have logged in as.",
          "    * MAXAGE <seconds>: those that are at least this old.",
          "    * FLAGS <letters>, CAPA <letters>: those that show all of these.",
          "    * NAME <name>, LIB-NAME <name>, LIB-VER <version>: by what they say of themselves.",
          "    * IDLE <seconds>: those that have not been heard of for at least so long.",
          "    * DB <number>: by the database that they have selected.",
          "    * IP <address>: by the address they come from, whatever the port.",
          "    * NOT-<option> <value>: those that the option does not hold for.",
          "    * SKIPME (YES|NO): whether to spare this connection (YES unless given).",
          "LIST [<option> <value> ...]",
          "    Describe connections, one a line. Options are those of KILL.",
          "NO-EVICT (ON|OFF)",
          "    Keep this connection when connections are closed to save memory.",
          "NO-TOUCH (ON|OFF)",
          "    Leave it unrecorded which keys this connection uses.",
          "PAUSE <milliseconds> [WRITE|ALL]",
          "    Let all commands, or those that write, wait for so long.",
          "REPLY (ON|OFF|SKIP)",
          "    Send replies, send none, or leave out the next one.",
          "SETINFO (LIB-NAME|LIB-VER) <value>",
          "    Say which client library, or which version of it, this is.",
          "SETNAME <name>",
          "    Name this connection.",
          "TRACKING (ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> [...]]",
          "         [OPTIN] [OPTOUT] [NOLOOP]",
          "    Be told when keys that this connection has read, or any with a prefix, change.",
          "TRACKINGINFO",
          "    Tell how this connection is told of changes.",
          "UNBLOCK <id> [TIMEOUT|ERROR]",
          "    End the wait of a blocked connection, as if its time were over or with an error.",
          "UNPAUSE",
          "    End a pause before its time.",
      });
}

constexpr CommandRow kClientSubcommands[] = {
    {"CACHING",
     client_caching,
     "{mode=YES|NO}",
     kNoScript | kLoading | kStale,
     {},
     kAclConnection,
     Group::kConnection,
     "6.0.0",
     "O(1)",
     "Instructs the server whether to track the keys in the next request."},
    {"CAPA",
     client_capa,
     "capability...",
     kNoScript | kLoading | kStale,
     {},
     kAclConnection,
     Group::kConnection,
     "8.0.0",
     "O(1)",
     "A client claims its capability."},
    {"GETNAME",
     client_getname,
     "",
     kNoScript | kLoading | kStale,
     {},
     kAclConnection,
     Group::kConnection,
     "2.6.9",
     "O(1)",
     "Returns the name of the connection."},
    {"GETREDIR",
     client_getredir,
     "",
     kNoScript | kLoading | kStale,
     {},
     kAclConnection,
     Group::kConnection,
     "6.0.0",
     "O(1)",
     "Returns the client ID to which the connection's tracking notifications are redirected."},
    help_row(client_help, kAclConnection, Group::kConnection, "5.0.0"),
    {"ID",
     client_id,
     "",
     kNoScript | kLoading | kStale,
     {},
     kAclConnection,
     Group::kConnection,
     "5.0.0",
     "O(1)",
     "Returns the unique client ID of the connection."},
    {"IMPORT-SOURCE",
     client_import_source,
     "{enabled=ON|OFF}",
     kNoScript | kLoading | kStale,
     {},
     kAclConnection,
     Group::kConnection,
     "8.1.0",
     "O(1)",
     "Marks this client as an import source when the server is in import mode."},
    {"INFO",
     client_info,
     "",
     kNoScript | kLoading | kStale,
     {},
     kAclConnection,
     Group::kConnection,
     "6.2.0",
     "O(1)",
     "Returns information about the connection.",
     {.tips = "nondeterministic_output"}},
    {"KILL",
     client_kill,
     "{filter=old-format(ip:port)!2.8.12|{new-format=[ID client-id]@2.8.12|[TYPE "
     "client-type=NORMAL|MASTER@3.2.0|SLAVE|REPLICA@5.0.0|PUBSUB]@2.8.12|[USER username]|[ADDR "
     "addr(ip:port)]|[LADDR laddr(ip:port)]@6.2.0|[SKIPME skipme=YES|NO]|[MAXAGE "
     "maxage:integer]@7.4.0}...} _",
     kAdmin | kNoScript | kLoading | kStale,
     {},
     kAclConnection,
     Group::kConnection,
     "2.4.0",
     "O(N) where N is the number of client connections",
     "Terminates open connections.",
     {.history =
          "2.8.12 Added new filter format.\n2.8.12 `ID` option.\n3.2.0 Added `master` type in for "
          "`TYPE` option.\n5.0.0 Replaced `slave` `TYPE` with `replica`. `slave` still supported "
          "for backward compatibility.\n6.2.0 `LADDR` option.\n7.4.0 `MAXAGE` option."}},
    {"LIST",
     client_list,
     "[TYPE client-type=NORMAL|MASTER|REPLICA|PUBSUB]@5.0.0 [ID client-id...]@6.2.0",
     kAdmin | kNoScript | kLoading | kStale,
     {},
     kAclConnection,
     Group::kConnection,
     "2.4.0",
     "O(N) where N is the number of client connections",
     "Lists open connections.",
     {.tips = "nondeterministic_output",
      .history =
          "2.8.12 Added unique client `id` field.\n5.0.0 Added optional `TYPE` filter.\n6.0.0 "
          "Added `user` field.\n6.2.0 Added `argv-mem`, `tot-mem`, `laddr` and `redir` fields and "
          "the optional `ID` filter.\n7.0.0 Added `resp`, `multi-mem`, `rbs` and `rbp` "
          "fields.\n7.0.3 Added `ssub` field.\n7.2.0 Added `lib-name` and `lib-ver` fields.\n7.4.0 "
          "Added `watch` field.\n8.0.0 Added `io-thread` field."}},
    {"NO-EVICT",
     client_no_evict,
     "{enabled=ON|OFF}",
     kAdmin | kNoScript | kLoading | kStale,
     {},
     kAclConnection,
     Group::kConnection,
     "7.0.0",
     "O(1)",
     "Sets the client eviction mode of the connection."},
    {"NO-TOUCH",
     client_no_touch,
     "{enabled=ON|OFF}",
     kNoScript | kLoading | kStale,
     {},
     kAclConnection,
     Group::kConnection,
     "7.2.0",
     "O(1)",
     "Controls whether commands sent by the client affect the LRU/LFU of accessed keys."},
    {"PAUSE",
     client_pause,
     "timeout [mode=WRITE|ALL]@6.2.0",
     kAdmin | kNoScript | kLoading | kStale,
     {},
     kAclConnection,
     Group::kConnection,
     "3.0.0",
     "O(1)",
     "Suspends commands processing.",
     {.history = "6.2.0 `CLIENT PAUSE WRITE` mode added along with the `mode` option."}},
    {"REPLY",
     client_reply,
     "{action=ON|OFF|SKIP}",
     kNoScript | kLoading | kStale,
     {},
     kAclConnection,
     Group::kConnection,
     "3.2.0",
     "O(1)",
     "Instructs the server whether to reply to commands."},
    {"SETINFO",
     client_setinfo,
     "{attr=LIB-NAME libname|LIB-VER libver}",
     kNoScript | kLoading | kStale,
     {},
     kAclConnection,
     Group::kConnection,
     "7.2.0",
     "O(1)",
     "Sets information specific to the client or connection.",
     {.tips = "request_policy:all_nodes response_policy:all_succeeded"}},
    {"SETNAME",
     client_setname,
     "connection-name",
     kNoScript | kLoading | kStale,
     {},
     kAclConnection,
     Group::kConnection,
     "2.6.9",
     "O(1)",
     "Sets the connection name.",
     {.tips = "request_policy:all_nodes response_policy:all_succeeded"}},
    {"TRACKING",
     client_tracking,
     "{status=ON|OFF} [REDIRECT client-id:integer] [PREFIX prefix]... [BCAST] [OPTIN] [OPTOUT] "
     "[NOLOOP]",
     kNoScript | kLoading | kStale,
     {},
     kAclConnection,
     Group::kConnection,
     "6.0.0",
     "O(1). Some options may introduce additional complexity.",
     "Controls server-assisted client-side caching for the connection."},
    {"TRACKINGINFO",
     client_trackinginfo,
     "",
     kNoScript | kLoading | kStale,
     {},
     kAclConnection,
     Group::kConnection,
     "6.2.0",
     "O(1)",
     "Returns information about server-assisted client-side caching for the connection."},
    {"UNBLOCK",
     client_unblock,
     "client-id [unblock-type=TIMEOUT|ERROR]",
     kAdmin | kNoScript | kLoading | kStale,
     {},
     kAclConnection,
     Group::kConnection,
     "5.0.0",
     "O(log N) where N is the number of client connections",
     "Unblocks a client blocked by a blocking command from a different connection."},
    {"UNPAUSE",
     client_unpause,
     "",
     kAdmin | kNoScript | kLoading | kStale,
     {},
     kAclConnection,
     Group::kConnection,
     "6.2.0",
     "O(N) Where N is the number of paused clients",
     "Resumes processing commands from paused clients."},
};

constexpr CommandRow kClientRows[] = {
    {"CLIENT",
     nullptr,
     "",
     0,
     {},
     0,
     Group::kConnection,
     "2.4.0",
     "Depends on subcommand.",
     "A container for client connection commands.",
     {.subcommands = kClientSubcommands}},
};

}  // namespace

std::span<const CommandRow> client_rows() {
  return kClientRows;
}

}  // namespace latchkey::commands
