// ACL: users and their permissions. server/acl/rules.h describes the language of the rules.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/time_units.h"
#include "commands/groups.h"
#include "server/acl/access_control.h"
#include "server/acl/acl_file.h"
#include "server/acl/categories.h"
#include "server/client/client.h"
#include "server/command/command_context.h"
#include "server/command/command_table.h"
#include "server/command/help.h"
#include "server/server.h"

namespace latchkey::commands {

using namespace server;
using acl::Denial;
using acl::Selector;
using acl::User;

namespace {

// --- Users --------------------------------------------------------------------------------------

void acl_whoami(CommandContext& ctx) {
  ctx.client.user != nullptr ? ctx.reply.bulk(ctx.client.user->name) : ctx.reply.null();
}

void acl_users(CommandContext& ctx) {
  const auto& users = ctx.server.access().users();
  ctx.reply.array(users.size());
  for (const auto& [name, user] : users) ctx.reply.bulk(name);
}

void acl_list(CommandContext& ctx) {
  const auto& users = ctx.server.access().users();
  ctx.reply.array(users.size());
  for (const auto& [name, user] : users) ctx.reply.bulk(acl::acl_line(*user, ctx.server.edition()));
}

// Whether databases are shown, which Redis does not know: where Valkey is emulated, or a user is
// restricted to some.
bool shows_databases(const Edition& edition, const User& user) {
  if (!edition.has(kNever, {9, 1})) return false;
  const auto restricted = [](const Selector& selector) { return !selector.allows_all_databases(); };
  return edition.emulates() || restricted(user.own) ||
         std::any_of(user.selectors.begin(), user.selectors.end(), restricted);
}

void reply_selector(resp::ReplyBuilder& reply, const Selector& selector, bool with_databases) {
  reply.bulk("commands");
  reply.bulk(selector.commands.text());
  reply.bulk("keys");
  reply.bulk(selector.keys_text());
  reply.bulk("channels");
  reply.bulk(selector.channels_text());
  if (!with_databases) return;
  reply.bulk("databases");
  reply.bulk(selector.databases_text());
}

void acl_getuser(CommandContext& ctx) {
  const auto user = ctx.server.access().find(ctx.args[2]);
  if (user == nullptr) return ctx.reply.null();
  const bool with_databases = shows_databases(ctx.server.edition(), *user);
  ctx.reply.map(with_databases ? 7 : 6);
  ctx.reply.bulk("flags");
  const std::string_view sanitizing = user->sanitizing_flag(ctx.server.edition());
  ctx.reply.set(1 + size_t{user->needs_no_password} + size_t{!sanitizing.empty()});
  ctx.reply.bulk(user->enabled ? "on" : "off");
  if (user->needs_no_password) ctx.reply.bulk("nopass");
  if (!sanitizing.empty()) ctx.reply.bulk(sanitizing);
  ctx.reply.bulk("passwords");
  ctx.reply.array(user->passwords.size());
  for (const std::string& digest : user->passwords) ctx.reply.bulk(digest);
  reply_selector(ctx.reply, user->own, with_databases);
  ctx.reply.bulk("selectors");
  ctx.reply.array(user->selectors.size());
  for (const Selector& selector : user->selectors) {
    ctx.reply.map(with_databases ? 4 : 3);
    reply_selector(ctx.reply, selector, with_databases);
  }
}

void acl_setuser(CommandContext& ctx) {
  const std::string_view name = ctx.args[2];
  if (!acl::is_user_name(name))
    return ctx.reply.error("ERR Usernames can't contain spaces or null characters");
  if (const auto set = ctx.server.access().set_user(name, ctx.args.subspan(3)); !set)
    return ctx.reply.error("ERR " + set.error());
  ctx.reply.ok();
}

void acl_deluser(CommandContext& ctx) {
  const Arguments names = ctx.args.subspan(2);
  if (std::find(names.begin(), names.end(), acl::kDefaultUser) != names.end())
    return ctx.reply.error("ERR The 'default' user cannot be removed");
  int64_t deleted = 0;
  for (const std::string_view name : names) {
    if (ctx.server.access().delete_user(name)) ++deleted;
  }
  ctx.reply.integer(deleted);
}

// Positions of the names, rules and passwords of users.
void find_user_secrets(const Config&, Arguments words, std::vector<size_t>* positions) {
  for (size_t i = 2; i < words.size(); ++i) positions->push_back(i);
}

// --- The file -----------------------------------------------------------------------------------

// False, with the error sent, when no ACL file is configured.
bool has_file(CommandContext& ctx) {
  if (!ctx.server.settings().aclfile.empty()) return true;
  const std::string name = ctx.server.edition().is_valkey() ? "" : "Redis ";
  return ctx.refuse("ERR This " + name +
                    "instance is not configured to use an ACL file. You may want to specify users "
                    "via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you "
                    "have a " +
                    name + "configuration file set) in order to store users in the " + name +
                    "configuration.");
}

void acl_load(CommandContext& ctx) {
  if (!has_file(ctx)) return;
  if (const auto loaded = ctx.server.access().load_file(); !loaded)
    return ctx.reply.error("ERR " + loaded.error());
  ctx.reply.ok();
}

void acl_save(CommandContext& ctx) {
  if (!has_file(ctx)) return;
  if (const auto saved = ctx.server.access().save_file(); !saved)
    return ctx.reply.error("ERR " + saved.error());
  ctx.reply.ok();
}

// --- Permissions --------------------------------------------------------------------------------

void reply_categories(CommandContext& ctx) {
  const auto size = ctx.reply.later();
  size_t count = 0;
  for (const BitName& category : acl_category_names()) {
    if (!acl::has_category(ctx.server.commands(), category.bit)) continue;
    ctx.reply.bulk(category.name);
    ++count;
  }
  ctx.reply.array_later(size, count);
}

void acl_cat(CommandContext& ctx) {
  if (ctx.args.size() > 3) return wrong_subcommand(ctx);
  if (ctx.args.size() == 2) return reply_categories(ctx);
  const uint32_t category = acl_category_named(ctx.args[2]);
  if (category == 0 || !acl::has_category(ctx.server.commands(), category))
    return ctx.reply.error("ERR Unknown category '" + std::string(acl::shown(ctx.args[2])) + "'");
  const auto size = ctx.reply.later();
  size_t count = 0;
  for (const auto& command : ctx.server.commands().all()) {
    if ((command->acl & category) == 0) continue;
    ctx.reply.bulk(command->full_name);
    ++count;
  }
  ctx.reply.array_later(size, count);
}

void acl_dryrun(CommandContext& ctx) {
  const auto user = ctx.server.access().find(ctx.args[2]);
  if (user == nullptr) {
    return ctx.reply.error("ERR User '" + std::string(acl::shown(ctx.args[2])) + "' not found");
  }
  const Arguments request = ctx.args.subspan(3);
  const Command* const command = ctx.server.commands().find_request(request);
  if (command == nullptr) {
    return ctx.reply.error("ERR Command '" + std::string(acl::shown(request[0])) + "' not found");
  }
  if (!command->accepts_word_count(request.size())) {
    return ctx.reply.error("ERR wrong number of arguments for '" + command->full_name +
                           "' command");
  }
  const auto refusal = user->check(
      *command, request, {.database = ctx.db.index(), .databases = ctx.server.database_count()});
  if (!refusal) return ctx.reply.ok();
  ctx.reply.bulk(acl::refusal_text(ctx.server.edition(), *user, *command, request, *refusal,
                                   /*shows_names=*/true));
}

// --- The log ------------------------------------------------------------------------------------

std::string_view name_of(Denial::Reason reason) {
  switch (reason) {
    case Denial::Reason::kCommand:
      return "command";
    case Denial::Reason::kKey:
      return "key";
    case Denial::Reason::kChannel:
      return "channel";
    case Denial::Reason::kTlsCertificate:
      return "tls-cert";
    case Denial::Reason::kDatabase:
      return "database";
    case Denial::Reason::kAuth:
      break;
  }
  return "auth";
}

std::string_view name_of(Denial::Context context) {
  switch (context) {
    case Denial::Context::kToplevel:
      return "toplevel";
    case Denial::Context::kMulti:
      return "multi";
    case Denial::Context::kScript:
      break;
  }
  return "lua";
}

void reply_entry(CommandContext& ctx, const acl::DenialLog::Entry& entry) {
  resp::ReplyBuilder& reply = ctx.reply;
  reply.map(10);
  reply.bulk("count");
  reply.integer(static_cast<int64_t>(entry.count));
  reply.bulk("reason");
  reply.bulk(name_of(entry.denial.reason));
  reply.bulk("context");
  reply.bulk(name_of(entry.denial.context));
  reply.bulk("object");
  reply.bulk(entry.denial.object);
  reply.bulk("username");
  reply.bulk(entry.denial.user);
  reply.bulk("age-seconds");
  // The clock may have been set back.
  const int64_t age_ms = std::max<int64_t>(ctx.now_ms() - entry.updated_ms, 0);
  reply.number(static_cast<double>(age_ms) / base::kMsPerSecond);
  reply.bulk("client-info");
  reply.bulk(entry.denial.client);
  reply.bulk("entry-id");
  reply.integer(static_cast<int64_t>(entry.id));
  reply.bulk("timestamp-created");
  reply.integer(entry.created_ms);
  reply.bulk("timestamp-last-updated");
  reply.integer(entry.updated_ms);
}

void acl_log(CommandContext& ctx) {
  if (ctx.args.size() > 3) return wrong_subcommand(ctx);
  acl::DenialLog& log = ctx.server.access().log();
  int64_t count = 10;
  if (ctx.args.size() == 3) {
    if (is_word(ctx.args[2], "RESET")) {
      log.clear();
      return ctx.reply.ok();
    }
    if (!ctx.read_int64(ctx.args[2], &count)) return;
  }
  const size_t most = static_cast<size_t>(std::max<int64_t>(count, 0));
  const size_t shown = std::min(most, log.entries().size());
  ctx.reply.array(shown);
  auto entry = log.entries().begin();
  for (size_t i = 0; i < shown; ++i, ++entry) reply_entry(ctx, *entry);
}

// --- Passwords ----------------------------------------------------------------------------------

void acl_genpass(CommandContext& ctx) {
  constexpr int64_t kMaxBits = 4096;
  constexpr int64_t kBitsPerDigit = 4;
  if (ctx.args.size() > 3) return wrong_subcommand(ctx);
  int64_t bits = 256;
  if (ctx.args.size() == 3 && !ctx.read_int64(ctx.args[2], &bits)) return;
  if (bits <= 0 || bits > kMaxBits) {
    return ctx.reply.error(
        "ERR ACL GENPASS argument must be the number of bits for the output password, a positive "
        "number up to 4096");
  }
  const auto digits = static_cast<size_t>((bits + kBitsPerDigit - 1) / kBitsPerDigit);
  ctx.reply.bulk(ctx.server.random_source().hex(digits));
}

void acl_help(CommandContext& ctx) {
  reply_help(ctx, {
                      "CAT [<category>]",
                      "    Name the categories of commands, or the commands of one.",
                      "DELUSER <username> [<username> ...]",
                      "    Delete users, and close the connections that have logged in as them.",
                      "DRYRUN <username> <command> [<arg> ...]",
                      "    Tell whether a user may send this request, without running it.",
                      "GENPASS [<bits>]",
                      "    Make a password that nobody can guess, of 256 bits or so many.",
                      "GETUSER <username>",
                      "    Describe a user.",
                      "LIST",
                      "    Show all users as lines of an ACL file.",
                      "LOAD",
                      "    Take the users that the ACL file holds now.",
                      "LOG [<count> | RESET]",
                      "    Show the latest requests and logins that were refused, or forget them.",
                      "SAVE",
                      "    Write the users to the ACL file.",
                      "SETUSER <username> [<rule> ...]",
                      "    Change a user by these rules; one that is not there is made first.",
                      "USERS",
                      "    Name all users.",
                      "WHOAMI",
                      "    Name the user of this connection.",
                  });
}

constexpr CommandRow kAclSubcommands[] = {
    {"CAT",
     acl_cat,
     "[category]",
     kNoScript | kLoading | kStale,
     {},
     0,
     Group::kServer,
     "6.0.0",
     "O(1) since the categories and commands are a fixed set.",
     "Lists the ACL categories, or the commands inside a category."},
    {"DELUSER",
     acl_deluser,
     "username...",
     kAdmin | kNoScript | kLoading | kStale,
     {},
     0,
     Group::kServer,
     "6.0.0",
     "O(1) amortized time considering the typical user.",
     "Deletes ACL users, and terminates their connections.",
     {.tips = "request_policy:all_nodes response_policy:all_succeeded",
      .find_secrets = find_user_secrets}},
    {"DRYRUN",
     acl_dryrun,
     "username command [arg...]",
     kAdmin | kNoScript | kLoading | kStale,
     {},
     0,
     Group::kServer,
     "7.0.0",
     "O(1).",
     "Simulates the execution of a command by a user, without executing the command."},
    {"GENPASS",
     acl_genpass,
     "[bits:integer]",
     kNoScript | kLoading | kStale,
     {},
     0,
     Group::kServer,
     "6.0.0",
     "O(1)",
     "Generates a pseudorandom, secure password that can be used to identify ACL users."},
    {"GETUSER",
     acl_getuser,
     "username",
     kAdmin | kNoScript | kLoading | kStale,
     {},
     0,
     Group::kServer,
     "6.0.0",
     "O(N). Where N is the number of password, command and pattern rules that the user has.",
     "Lists the ACL rules of a user.",
     {.history = "6.2.0 Added Pub/Sub channel patterns.\n7.0.0 Added selectors and changed the "
                 "format of key and channel patterns from a list to their rule representation.",
      .find_secrets = find_user_secrets}},
    help_row(acl_help, 0, Group::kServer, "6.0.0"),
    {"LIST",
     acl_list,
     "",
     kAdmin | kNoScript | kLoading | kStale,
     {},
     0,
     Group::kServer,
     "6.0.0",
     "O(N). Where N is the number of configured users.",
     "Dumps the effective rules in ACL file format."},
    {"LOAD",
     acl_load,
     "",
     kAdmin | kNoScript | kLoading | kStale,
     {},
     0,
     Group::kServer,
     "6.0.0",
     "O(N). Where N is the number of configured users.",
     "Reloads the rules from the configured ACL file."},
    {"LOG",
     acl_log,
     "[operation=count|RESET]",
     kAdmin | kNoScript | kLoading | kStale,
     {},
     0,
     Group::kServer,
     "6.0.0",
     "O(N) with N being the number of entries shown.",
     "Lists recent security events generated due to ACL rules.",
     {.history = "7.2.0 Added entry ID, timestamp created, and timestamp last updated."}},
    {"SAVE",
     acl_save,
     "",
     kAdmin | kNoScript | kLoading | kStale,
     {},
     0,
     Group::kServer,
     "6.0.0",
     "O(N). Where N is the number of configured users.",
     "Saves the effective ACL rules in the configured ACL file.",
     {.tips = "request_policy:all_nodes response_policy:all_succeeded"}},
    {"SETUSER",
     acl_setuser,
     "username [rule...]",
     kAdmin | kNoScript | kLoading | kStale,
     {},
     0,
     Group::kServer,
     "6.0.0",
     "O(N). Where N is the number of rules provided.",
     "Creates and modifies an ACL user and its rules.",
     {.tips = "request_policy:all_nodes response_policy:all_succeeded",
      .history = "6.2.0 Added Pub/Sub channel patterns.\n7.0.0 Added selectors and key based "
                 "permissions.",
      .find_secrets = find_user_secrets}},
    {"USERS",
     acl_users,
     "",
     kAdmin | kNoScript | kLoading | kStale,
     {},
     0,
     Group::kServer,
     "6.0.0",
     "O(N). Where N is the number of configured users.",
     "Lists all ACL users."},
    {"WHOAMI",
     acl_whoami,
     "",
     kNoScript | kLoading | kStale,
     {},
     0,
     Group::kServer,
     "6.0.0",
     "O(1)",
     "Returns the authenticated username of the current connection."},
};

constexpr CommandRow kAclRows[] = {
    {"ACL",
     nullptr,
     "",
     0,
     {},
     0,
     Group::kServer,
     "6.0.0",
     "Depends on subcommand.",
     "A container for Access List Control commands.",
     {.subcommands = kAclSubcommands}},
};

}  // namespace

std::span<const CommandRow> acl_rows() {
  return kAclRows;
}

}  // namespace latchkey::commands
