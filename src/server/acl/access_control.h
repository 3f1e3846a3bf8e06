// Access control of one server: its users, the log of refusals, and the effects of changed users on
// connected clients.
//
// A client whose user may do everything does not have kClientRestricted and is never checked here.
// A client without a user (the master, the append-only file) may do everything too.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "server/acl/denial_log.h"
#include "server/acl/rules.h"
#include "server/command/arguments.h"

namespace latchkey::server {
class Client;
struct Command;
struct ConfigError;
struct DeferredDirective;
class Server;
}  // namespace latchkey::server

namespace latchkey::server::acl {

class AccessControl {
 public:
  using Users = std::map<std::string, std::shared_ptr<User>, std::less<>>;

  // Starts with the default user alone, whose password is `requirepass`.
  explicit AccessControl(Server& server);

  // Adds the users of the configuration or of the ACL file. To be called when all commands are
  // registered. Fails when a user is wrong; further messages have been logged.
  base::Result<void, ConfigError> configure();

  // --- Users ------------------------------------------------------------------------------------
  // By name.
  const Users& users() const { return users_; }
  // Null when there is none.
  std::shared_ptr<const User> find(std::string_view name) const;
  const std::shared_ptr<User>& default_user() const { return default_; }
  // Whether new connections are the default user without a password.
  bool admits_without_login() const { return default_->enabled && default_->needs_no_password; }

  // ACL SETUSER: applies all rules, or none. The error is the reply's text after "ERR ".
  base::Result<> set_user(std::string_view name, Arguments rules);
  // Closes the user's clients. False when there is no such user. REQUIRES: not the default user.
  bool delete_user(std::string_view name);
  // Makes `users`, which must have the default user among them, the only ones: a user that is not
  // there is deleted, one that differs is changed in place.
  void replace_users(std::vector<User> users);
  // Called when `requirepass` has changed.
  void password_changed();

  // ACL LOAD and ACL SAVE, which need `aclfile`. The error is the reply's text after "ERR ".
  base::Result<> load_file();
  base::Result<> save_file() const;

  // --- Refusals ---------------------------------------------------------------------------------
  // A name by which clients log in as the default user, beside "default"; of a space.
  void set_default_alias(std::string name) { default_alias_ = std::move(name); }
  const std::string& default_alias() const { return default_alias_; }
  DenialLog& log() { return log_; }
  // Why the client's user may not run the request, or nothing. Counts and logs a refusal.
  std::optional<Refusal> check(Client& client, const Command& command, Arguments words,
                               Denial::Context context);
  // Counts and logs a failed login. `object`: the command that tried it.
  void login_failed(Client& client, std::string_view user, std::string_view object);
  // The same for a certificate whose name is no enabled user's.
  void certificate_refused(Client& client, std::string_view user);

 private:
  RuleContext rule_context() const;
  std::string file_path() const;
  base::Result<> load_file_within(base::ReadLimits limits);
  base::Result<void, ConfigError> add_configured();
  base::Result<void, ConfigError> add_configured_user(const DeferredDirective& place);
  struct WrongRule {
    std::string rule;
    RuleError error;
  };
  // Applies the rules up to the first that is wrong.
  base::Result<void, WrongRule> apply_all(const std::vector<std::string>& rules, User* user) const;

  // Adds the user, or replaces the one of that name and closes the clients whose subscriptions the
  // new rules forbid.
  void put(User user);
  // Updates the rights of all connected clients after users have changed.
  void update_clients();
  // Closes the user's clients that have a subscription its rules forbid.
  void close_subscribers_without_right(const User& user);
  void close(Client& client);
  void record(Client& client, Denial denial);
  std::vector<std::string> configuration_lines() const;

  Server& server_;
  Users users_;
  std::shared_ptr<User> default_;
  std::string default_alias_;  // empty: none
  DenialLog log_;
};

// Why a request was refused, without the error's code, in the words of the edition. `shows_names`:
// with the user and the key, for ACL DRYRUN.
std::string refusal_text(const Edition& edition, const User& user, const Command& command,
                         Arguments words, const Refusal& refusal, bool shows_names = false);

}  // namespace latchkey::server::acl
