#include "server/acl/access_control.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/digest/sha256.h"
#include "base/file.h"
#include "server/acl/acl_file.h"
#include "server/client/authentication.h"
#include "server/client/client.h"
#include "server/client/client_info.h"
#include "server/client/pubsub.h"
#include "server/command/dispatcher.h"
#include "server/command/transaction.h"
#include "server/config/config_parse.h"
#include "server/server.h"

namespace latchkey::server::acl {

namespace {

constexpr std::string_view kUsersInBothPlaces =
    "Configuring Redis with users defined in redis.conf and at the same setting an ACL file path "
    "is invalid. This setup is very likely to lead to configuration errors and security holes, "
    "please define either an ACL file or declare users directly in your redis.conf, but not both.";

Denial::Reason reason_for(Forbidden what) {
  if (what == Forbidden::kDatabase) return Denial::Reason::kDatabase;
  if (what == Forbidden::kCommand) return Denial::Reason::kCommand;
  return what == Forbidden::kKey ? Denial::Reason::kKey : Denial::Reason::kChannel;
}

// Gives the default user the password of `requirepass`.
void take_password(const std::string& password, User* user) {
  user->passwords.clear();
  user->needs_no_password = password.empty();
  if (!password.empty()) user->passwords.push_back(base::sha256_hex(password));
}

bool may_stay_subscribed(const PubSub& pubsub, const Client& client, const User& user,
                         TopicKind kind) {
  for (const std::string& topic : pubsub.subscriptions(client, kind)) {
    if (!user.may_subscribe(topic, kind == TopicKind::kPattern)) return false;
  }
  return true;
}

}  // namespace

std::string refusal_text(const Edition& edition, const User& user, const Command& command,
                         Arguments words, const Refusal& refusal, bool shows_names) {
  const bool names_user = edition.has({7, 2});
  const std::string whose = (names_user    ? "User " + user.name
                             : shows_names ? "This user"
                                           : "this user") +
                            " has no permissions to ";
  if (refusal.what == Forbidden::kCommand) {
    return whose + "run the '" + command.full_name + "' command" +
           (edition.has({7, 0}) ? "" : " or its subcommand");
  }
  if (refusal.what == Forbidden::kDatabase) {
    if (!shows_names) return "No permissions to access database";
    return whose + "access database " + std::string(words[refusal.position]);
  }
  const std::string kind = refusal.what == Forbidden::kKey ? "key" : "channel";
  if (!shows_names && !names_user)
    return whose + "access one of the " + kind + "s used as arguments";
  if (!shows_names) return "No permissions to access a " + kind;
  return whose + "access the '" + std::string(words[refusal.position]) + "' " + kind;
}

AccessControl::AccessControl(Server& server)
    : server_(server), default_(std::make_shared<User>(User::make_default())) {
  take_password(server.settings().requirepass, default_.get());
  users_.emplace(default_->name, default_);
  server.config().on_rewrite("user", [this] { return configuration_lines(); });
}

RuleContext AccessControl::rule_context() const {
  return {.commands = server_.commands(),
          .all_channels = server_.settings().acl_pubsub_default == AclPubsubDefault::kAllChannels,
          .databases = server_.edition().has(kNever, {9, 1})};
}

std::shared_ptr<const User> AccessControl::find(std::string_view name) const {
  const auto it = users_.find(name);
  return it == users_.end() ? nullptr : it->second;
}

// --- Changing users -----------------------------------------------------------------------------

base::Result<void, AccessControl::WrongRule> AccessControl::apply_all(
    const std::vector<std::string>& rules, User* user) const {
  const RuleContext context = rule_context();
  for (const std::string& rule : rules) {
    const RuleError error = apply_rule(context, rule, user);
    if (error != RuleError::kNone) return base::fail_with(WrongRule{rule, error});
  }
  return {};
}

base::Result<> AccessControl::set_user(std::string_view name, Arguments words) {
  std::vector<std::string> rules;
  size_t open_at = 0;
  if (!join_selectors(words, &rules, &open_at)) {
    return base::fail("Unmatched parenthesis in acl selector starting at '" +
                      std::string(shown(words[open_at])) + "'.");
  }
  const auto existing = find(name);
  User user = existing != nullptr ? *existing : User(name, rule_context().all_channels);
  if (const auto applied = apply_all(rules, &user); !applied) {
    const WrongRule& wrong = applied.error();
    return base::fail("Error in ACL SETUSER modifier '" + std::string(shown(wrong.rule)) +
                      "': " + std::string(rule_error_text(wrong.error)));
  }
  put(std::move(user));
  update_clients();
  return {};
}

void AccessControl::put(User user) {
  const auto it = users_.find(user.name);
  if (it == users_.end()) {
    std::string name = user.name;
    users_.emplace(std::move(name), std::make_shared<User>(std::move(user)));
    return;
  }
  User& known = *it->second;
  const bool keeps_channels = known.keeps_channels_in(user);
  known = std::move(user);
  if (!keeps_channels) close_subscribers_without_right(known);
}

bool AccessControl::delete_user(std::string_view name) {
  const auto it = users_.find(name);
  if (it == users_.end()) return false;
  const std::shared_ptr<User> gone = std::move(it->second);
  users_.erase(it);
  server_.clients().for_each([&](Client& client) {
    if (client.user != gone) return;
    log_out(client);
    close(client);
  });
  return true;
}

void AccessControl::password_changed() {
  take_password(server_.settings().requirepass, default_.get());
  update_clients();
}

void AccessControl::update_clients() {
  server_.clients().for_each([](Client& client) { update_rights(client); });
}

void AccessControl::close_subscribers_without_right(const User& user) {
  const PubSub& pubsub = server_.pubsub();
  server_.clients().for_each([&](Client& client) {
    if (client.user.get() != &user || !client.has(kClientSubscribed)) return;
    for (const TopicKind kind :
         {TopicKind::kChannel, TopicKind::kPattern, TopicKind::kShardChannel}) {
      if (!may_stay_subscribed(pubsub, client, user, kind)) return close(client);
    }
  });
}

void AccessControl::close(Client& client) {
  // The client whose request causes this gets its reply first.
  if (server_.dispatcher().serving() == &client) return client.close_after_reply();
  client.close();
}

// --- The configuration and the file -------------------------------------------------------------

base::Result<void, ConfigError> AccessControl::configure() {
  const ConfigValues& settings = server_.settings();
  if (settings.aclfile.empty()) return add_configured();
  const auto refuse = [](std::string message) {
    return base::fail_with(ConfigError::of(ConfigError::Kind::kFile, std::move(message)));
  };
  if (!settings.users.empty()) return refuse(std::string(kUsersInBothPlaces));
  if (const auto loaded = load_file_within({}); !loaded)
    return refuse("Aborting Redis startup because of ACL errors: " + loaded.error());
  return {};
}

base::Result<void, ConfigError> AccessControl::add_configured() {
  for (const DeferredDirective& place : server_.settings().users) {
    if (auto added = add_configured_user(place); !added) return added;
  }
  return {};
}

base::Result<void, ConfigError> AccessControl::add_configured_user(const DeferredDirective& place) {
  const std::string& name = place.arguments[0];
  const auto refuse = [&](std::string_view reason) {
    return base::fail_with(
        ConfigError::at(place, "Error in user declaration 'user': " + std::string(reason)));
  };
  const auto refuse_in_log = [&](const std::string& reason) {
    server_.log().warning(reason);
    ConfigError error = ConfigError::at(place, "Critical error while loading ACLs. Exiting.");
    error.kind = ConfigError::Kind::kFile;
    error.hint = reason;
    return base::fail_with(std::move(error));
  };
  if (!is_user_name(name)) return refuse_in_log("Spaces not allowed in ACL usernames");
  const std::vector<std::string_view> words(place.arguments.begin() + 1, place.arguments.end());
  std::vector<std::string> rules;
  size_t open_at = 0;
  if (!join_selectors(words, &rules, &open_at)) return refuse("Wrong format");
  User user(name, rule_context().all_channels);
  if (const auto applied = apply_all(rules, &user); !applied) {
    const WrongRule& wrong = applied.error();
    const std::string_view text = rule_error_text(wrong.error);
    if (wrong.error != RuleError::kUnknownName) return refuse(text);
    return refuse_in_log("Error loading ACL rule '" + wrong.rule + "' for the user named '" + name +
                         "': " + std::string(text));
  }
  put(std::move(user));
  return {};
}

std::string AccessControl::file_path() const {
  return server_.config().directory().path_of(server_.settings().aclfile);
}

base::Result<> AccessControl::load_file() {
  // A pipe was read to its end at start, and the server would wait for another writer.
  return load_file_within({.pipe_patience_ms = 0});
}

base::Result<> AccessControl::load_file_within(base::ReadLimits limits) {
  const std::string& name = server_.settings().aclfile;
  const auto text = base::read_within(file_path(), limits, server_.files());
  if (!text) {
    return base::fail("Error loading ACLs, opening file '" + name +
                      "': " + base::read_error_text(errno));
  }
  auto users = read_acl_file(rule_context(), name, *text);
  if (!users) return users.failure();

  users->insert(users->begin(), User::make_default());
  // Since Redis 7.4 clients whose user stays keep their connections.
  if (!server_.edition().has({7, 4}, {8, 0})) {
    std::vector<std::string> known;
    for (const auto& [user_name, user] : users_) known.push_back(user_name);
    std::erase(known, kDefaultUser);
    for (const std::string& user_name : known) delete_user(user_name);
  }
  replace_users(*std::move(users));
  return {};
}

void AccessControl::replace_users(std::vector<User> users) {
  // Of several with the same name the last one counts.
  std::map<std::string, User, std::less<>> wanted;
  for (User& user : users) wanted.insert_or_assign(user.name, std::move(user));
  std::vector<std::string> gone;
  for (const auto& [known, user] : users_) {
    if (!wanted.contains(known)) gone.push_back(known);
  }
  for (const std::string& user : gone) delete_user(user);
  for (auto& [name, user] : wanted) put(std::move(user));
  update_clients();
}

base::Result<> AccessControl::save_file() const {
  std::string text;
  for (const auto& [name, user] : users_) text += acl_line(*user, server_.edition()) + "\n";
  if (base::replace_file(file_path(), text, server_.files())) return {};
  server_.log().warning("Writing the ACL file for ACL SAVE: " + std::string(strerror(errno)));
  return base::fail(
      "There was an error trying to save the ACLs. Please check the server logs for more "
      "information");
}

// Words are quoted as in any directive.
std::vector<std::string> AccessControl::configuration_lines() const {
  std::vector<std::string> lines;
  if (!server_.settings().aclfile.empty()) return lines;
  for (const auto& [name, user] : users_) {
    std::string line = "user " + quote_if_needed(name);
    for (const std::string& word : split_at_spaces(user->text(server_.edition())))
      line.append(" ").append(quote_if_needed(word));
    lines.push_back(std::move(line));
  }
  return lines;
}

// --- Refusals -----------------------------------------------------------------------------------

std::optional<Refusal> AccessControl::check(Client& client, const Command& command, Arguments words,
                                            Denial::Context context) {
  if (client.user == nullptr) return std::nullopt;
  Place place{.database = client.database, .databases = server_.database_count()};
  // A request that is being queued will run in the database that the queued requests select.
  const bool queues = context == Denial::Context::kMulti && client.transaction != nullptr &&
                      !server_.dispatcher().in_nested_call();
  if (queues && client.transaction->database >= 0) place.database = client.transaction->database;
  const auto refusal = client.user->check(command, words, place);
  if (!refusal) return std::nullopt;
  const std::string_view object =
      refusal->position == 0 ? std::string_view(command.full_name) : words[refusal->position];
  record(client, {.reason = reason_for(refusal->what),
                  .context = context,
                  .object = std::string(object),
                  .user = client.user->name,
                  .client = {}});
  return refusal;
}

void AccessControl::login_failed(Client& client, std::string_view user, std::string_view object) {
  const bool in_multi = server_.dispatcher().in_nested_call();
  record(client, {.reason = Denial::Reason::kAuth,
                  .context = in_multi ? Denial::Context::kMulti : Denial::Context::kToplevel,
                  .object = std::string(object),
                  .user = std::string(user),
                  .client = {}});
}

void AccessControl::certificate_refused(Client& client, std::string_view user) {
  record(client, {.reason = Denial::Reason::kTlsCertificate,
                  .context = Denial::Context::kToplevel,
                  .object = {},
                  .user = std::string(user),
                  .client = {}});
}

void AccessControl::record(Client& client, Denial denial) {
  ++server_.stats().denied[static_cast<size_t>(denial.reason)];
  denial.client = describe(client);
  log_.add(std::move(denial), server_.now_ms(),
           static_cast<size_t>(server_.settings().acllog_max_len));
}

}  // namespace latchkey::server::acl
