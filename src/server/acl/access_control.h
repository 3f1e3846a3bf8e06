// Who may do what on one server: its users, what they were refused, and what becomes of clients
// when users change.
//
// Clients whose user may do everything carry no kClientRestricted and never come here. A client
// without a user (the master, the append-only file) may do everything too.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "server/acl/denial_log.h"
#include "server/acl/rules.h"
#include "server/command/command_context.h"

namespace latchkey::server {
class Client;
struct ConfigError;
struct DeferredDirective;
class Server;
}  // namespace latchkey::server

namespace latchkey::server::acl {

class AccessControl {
 public:
  using Users = std::map<std::string, std::shared_ptr<User>, std::less<>>;

  // There is the default user alone, whose password is `requirepass`.
  explicit AccessControl(Server& server);

  // Takes the users of the configuration or of the ACL file. To be called when all commands are
  // there. False with the reason when they cannot be had; what the log is to tell besides has been
  // logged.
  bool configure(ConfigError* error);

  // --- Users ------------------------------------------------------------------------------------
  // By name.
  const Users& users() const { return users_; }
  // Null when there is none.
  std::shared_ptr<const User> find(std::string_view name) const;
  const std::shared_ptr<User>& default_user() const { return default_; }
  // Whether those who connect are the default user without being asked.
  bool admits_everybody() const { return default_->enabled && default_->needs_no_password; }

  // ACL SETUSER: obeys the rules, or changes nothing; then the reason is given back.
  std::optional<std::string> set_user(std::string_view name, Arguments rules);
  // Its clients are closed. False when there is no such user. REQUIRES: not the default user.
  bool delete_user(std::string_view name);
  // What `requirepass` says has changed.
  void password_changed();

  // ACL LOAD and ACL SAVE, which need a file (aclfile). The reason when that failed.
  std::optional<std::string> load_file();
  std::optional<std::string> save_file() const;

  // --- Refusals ---------------------------------------------------------------------------------
  DenialLog& log() { return log_; }
  // What the client's user may not do of the request; that is counted and logged as the client's.
  std::optional<Refusal> check(Client& client, const Command& command, Arguments words,
                               Denial::Context context);
  // Counts and logs a login that failed. `object`: the command that tried it.
  void login_failed(Client& client, std::string_view user, std::string_view object);

 private:
  RuleContext rule_context() const;
  std::string file_path() const;
  bool add_configured(ConfigError* error);
  bool add_configured_user(const DeferredDirective& place, ConfigError* error);
  // Obeys the words; on error *rule is the one that could not be obeyed.
  RuleError apply_all(const std::vector<std::string>& rules, User* user, std::string* rule) const;

  // Puts this in the place of the user of that name, if there is one, and lets its clients know.
  void put(User user);
  // What follows from a change of users' rules for those who are logged in.
  void update_clients();
  // Closes clients that listen to what their user may no longer hear.
  void close_eavesdroppers(const User& user);
  void close(Client& client);
  void record(Client& client, Denial denial);
  std::vector<std::string> configuration_lines() const;

  Server& server_;
  Users users_;
  std::shared_ptr<User> default_;
  DenialLog log_;
};

// Why a request was refused, without the error's code. `shows_names`: also tells whose request and
// which key, to those who ask about other users.
std::string refusal_text(const User& user, const Command& command, Arguments words,
                         const Refusal& refusal, bool shows_names = false);

}  // namespace latchkey::server::acl
