// PING, ECHO, QUIT, RESET, AUTH, HELLO.
#include <string>

#include "commands/groups.h"
#include "commands/server/modules.h"
#include "server/acl/access_control.h"
#include "server/client/authentication.h"
#include "server/client/client.h"
#include "server/client/client_info.h"
#include "server/client/fieldsets.h"
#include "server/client/monitors.h"
#include "server/client/pubsub.h"
#include "server/client/tracking.h"
#include "server/command/command_context.h"
#include "server/command/slot_gate.h"
#include "server/command/transaction.h"
#include "server/command/watch.h"
#include "server/server.h"

namespace latchkey::commands {

using namespace server;

namespace {

constexpr std::string_view kWrongPassword =
    "WRONGPASS invalid username-password pair or user is disabled.";

void ping(CommandContext& ctx) {
  if (ctx.args.size() > 2) return ctx.wrong_arity();
  const bool has_message = ctx.args.size() == 2;
  // In RESP2 a subscriber could not distinguish a plain PONG from a message.
  if (ctx.client.has(kClientSubscribed) && !ctx.reply.is_resp3()) {
    ctx.reply.array(2);
    ctx.reply.bulk("pong");
    return ctx.reply.bulk(has_message ? ctx.args[1] : std::string_view());
  }
  if (has_message) return ctx.reply.bulk(ctx.args[1]);
  ctx.reply.status("PONG");
}

void echo(CommandContext& ctx) {
  ctx.reply.bulk(ctx.args[1]);
}

void quit(CommandContext& ctx) {
  ctx.reply.ok();
  ctx.client.close_after_reply();
}

void reset(CommandContext& ctx) {
  Client& client = ctx.client;
  client.transaction.reset();
  ctx.server.watches().unwatch_all(client);
  ctx.server.pubsub().unsubscribe_all(client);
  ctx.server.monitors().remove(client);
  ctx.server.tracking().stop(client);
  client.set(kClientInMulti | kClientReplyOff | kClientNoTouch | kClientNoEvict |
                 kClientReadsAnywhere | kClientImportSource,
             false);
  client.database = 0;
  client.name.clear();
  client.fieldsets.reset();
  ctx.reply.set_protocol(2);
  assume_default_user(client);
  ctx.reply.status("RESET");
}

// What another node of the cluster says in place of a user's name.
constexpr std::string_view kNodeUser = "internal connection";

void authenticate_node(CommandContext& ctx) {
  if (!ctx.server.in_cluster()) {
    return ctx.reply.error(
        "ERR Cannot authenticate as an internal connection on non-cluster instances");
  }
  if (!ctx.server.slot_gate()->admit_node(ctx.client, ctx.args[2]))
    return ctx.reply.error("WRONGPASS invalid internal password");
  ctx.reply.ok();
}

void auth(CommandContext& ctx) {
  if (ctx.args.size() > 3) return ctx.syntax_error();
  const bool names_user = ctx.args.size() == 3;
  if (!names_user && ctx.server.access().default_user()->needs_no_password) {
    return ctx.reply.error(
        "ERR AUTH <password> called without any password configured for the default user. Are you "
        "sure your configuration is "
        "correct?");
  }
  const std::string_view user = names_user ? ctx.args[1] : acl::kDefaultUser;
  if (names_user && user == kNodeUser) return authenticate_node(ctx);
  if (!authenticate(ctx.client, user, ctx.args.back(), ctx.args[0]))
    return ctx.reply.error(kWrongPassword);
  ctx.reply.ok();
}

// The positions of the arguments of AUTH.
void find_auth_secrets(const Config&, Arguments words, std::vector<size_t>* positions) {
  for (size_t i = 1; i < words.size(); ++i) positions->push_back(i);
}

struct Greeting {
  int64_t protocol = 0;  // 0: unchanged
  bool has_credentials = false;
  std::string_view user;
  std::string_view password;
  bool has_name = false;
  std::string_view name;
};

// False when an error has been sent.
bool read_greeting(CommandContext& ctx, Greeting* greeting) {
  ArgReader options(ctx.args, 1);
  if (!options.more()) return true;
  if (!ctx.read_int64(options.next(), &greeting->protocol,
                      "ERR Protocol version is not an integer or out of range")) {
    return false;
  }
  if (greeting->protocol < 2 || greeting->protocol > 3)
    return ctx.refuse("NOPROTO unsupported protocol version");
  while (options.more()) {
    const std::string_view option = options.peek();
    if (options.left() >= 3 && options.word("AUTH")) {
      greeting->has_credentials = true;
      greeting->user = options.next();
      greeting->password = options.next();
    } else if (options.word("SETNAME", &greeting->name)) {
      greeting->has_name = true;
      if (!check_client_name(ctx, greeting->name)) return false;
    } else {
      return ctx.refuse("ERR Syntax error in HELLO option '" + std::string(option) + "'");
    }
  }
  return true;
}

void hello(CommandContext& ctx) {
  Client& client = ctx.client;
  Greeting greeting;
  if (!read_greeting(ctx, &greeting)) return;
  if (greeting.has_credentials &&
      !authenticate(client, greeting.user, greeting.password, ctx.args[0])) {
    return ctx.reply.error(kWrongPassword);
  }
  if (client.has(kClientNeedsAuth)) {
    return ctx.reply.error(
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "
        "<proto> AUTH <user> <pass> "
        "option can be used to authenticate the client and select the RESP protocol version at the "
        "same time");
  }
  if (greeting.has_name) client.name = greeting.name;
  if (greeting.protocol != 0) ctx.reply.set_protocol(static_cast<int>(greeting.protocol));

  const std::string& zone = ctx.server.settings().availability_zone;
  const bool has_role = !ctx.server.is_sentinel();
  ctx.reply.map(size_t{6} + (has_role ? 1 : 0) + (zone.empty() ? 0 : 1));
  ctx.reply.bulk("server");
  const Edition& edition = ctx.server.edition();
  const bool as_redis = ctx.server.settings().extended_redis_compatibility;
  ctx.reply.bulk(as_redis ? std::string_view("redis") : edition.product_name());
  ctx.reply.bulk("version");
  ctx.reply.bulk(as_redis ? edition.redis_version() : edition.version());
  ctx.reply.bulk("proto");
  ctx.reply.integer(ctx.reply.protocol());
  ctx.reply.bulk("id");
  ctx.reply.integer(static_cast<int64_t>(client.id));
  ctx.reply.bulk("mode");
  ctx.reply.bulk(server_mode(ctx.server.settings()));
  if (has_role) {
    ctx.reply.bulk("role");
    ctx.reply.bulk(ctx.server.is_replica() ? "replica" : "master");
  }
  ctx.reply.bulk("modules");
  reply_modules(ctx);
  if (zone.empty()) return;
  ctx.reply.bulk("availability_zone");
  ctx.reply.bulk(zone);
}

void find_hello_secrets(const Config&, Arguments words, std::vector<size_t>* positions) {
  std::string_view name;
  for (ArgReader options(words, 2); options.more();) {
    if (options.left() >= 3 && options.word("AUTH")) {
      positions->insert(positions->end(), {options.position(), options.position() + 1});
      options.next();
      options.next();
    } else if (!options.word("SETNAME", &name)) {
      return;
    }
  }
}

constexpr CommandRow kConnectionRows[] = {
    {"AUTH",
     auth,
     "[username]@6.0.0 password",
     kNoScript | kLoading | kStale | kFast | kNoAuth | kAllowBusy | kMayChangeServer,
     {},
     kAclConnection,
     Group::kConnection,
     "1.0.0",
     "O(N) where N is the number of passwords defined for the user",
     "Authenticates the connection.",
     {.history = "6.0.0 Added ACL style (username and password).",
      .find_secrets = find_auth_secrets}},
    {"ECHO",
     echo,
     "message",
     kLoading | kStale | kFast,
     {},
     kAclConnection,
     Group::kConnection,
     "1.0.0",
     "O(1)",
     "Returns the given string."},
    {"HELLO",
     hello,
     "[arguments=protover [AUTH auth=username password] [SETNAME clientname]]",
     kNoScript | kLoading | kStale | kFast | kNoAuth | kAllowBusy | kMayChangeServer,
     {},
     kAclConnection,
     Group::kConnection,
     "6.0.0",
     "O(1)",
     "Handshakes with the Redis server.",
     {.history = "6.2.0 `protover` made optional; when called without arguments the command "
                 "reports the current connection's context.",
      .find_secrets = find_hello_secrets}},
    {"PING",
     ping,
     "[message]",
     kFast | kWhileSubscribed,
     {},
     kAclConnection,
     Group::kConnection,
     "1.0.0",
     "O(1)",
     "Returns the server's liveliness response.",
     {.tips = "request_policy:all_shards response_policy:all_succeeded"}},
    {"QUIT",
     quit,
     "[_...]",
     kNoScript | kLoading | kStale | kFast | kNoAuth | kAllowBusy | kNotQueued | kWhileSubscribed,
     {},
     kAclConnection,
     Group::kConnection,
     "1.0.0",
     "O(1)",
     "Closes the connection.",
     {.deprecated_since = "7.2.0", .replaced_by = "just closing the connection"}},
    {"RESET",
     reset,
     "",
     kNoScript | kLoading | kStale | kFast | kNoAuth | kAllowBusy | kNotQueued | kWhileSubscribed,
     {},
     kAclConnection,
     Group::kConnection,
     "6.2.0",
     "O(1)",
     "Resets the connection."},
};

}  // namespace

std::span<const CommandRow> connection_rows() {
  return kConnectionRows;
}

}  // namespace latchkey::commands
