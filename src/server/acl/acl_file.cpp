#include "server/acl/acl_file.h"

#include <algorithm>
#include <cstddef>
#include <unordered_set>

#include "server/config/config_parse.h"

namespace latchkey::server::acl {

namespace {

// Reads line by line and collects the errors.
class Reader {
 public:
  Reader(const RuleContext& context, std::string_view name) : context_(context), name_(name) {}

  void read_line(std::string_view line) {
    ++line_;
    line = trim_line(line);
    if (line.empty()) return;
    const std::vector<std::string> pieces = split_at_spaces(line);
    if (pieces.size() < 2 || pieces[0] != "user")
      return report(" should start with user keyword followed by the username. ");
    const std::string& user_name = pieces[1];
    if (!is_user_name(user_name))
      return report(": username '" + std::string(shown(user_name)) +
                    "' contains invalid characters. ");
    if (!names_.insert(user_name).second) {
      errors_ += "WARNING: Duplicate user '" + user_name + "' found on line " +
                 std::to_string(line_) + ". ";
      return;
    }
    User& user = users_.emplace_back(user_name, context_.all_channels);
    read_rules(std::vector<std::string_view>(pieces.begin() + 2, pieces.end()), &user);
  }

  base::Result<std::vector<User>> finish() {
    if (errors_.empty()) return std::move(users_);
    return base::fail(
        errors_ +
        "WARNING: ACL errors detected, no change to the previously active ACL rules was performed");
  }

 private:
  void read_rules(const std::vector<std::string_view>& words, User* user) {
    std::vector<std::string> rules;
    size_t open_at = 0;
    if (!join_selectors(words, &rules, &open_at))
      return report(": Unmatched parenthesis in selector definition.");
    // Reports every unknown name, but of other errors only the first.
    bool told = false;
    for (const std::string& rule : rules) {
      const RuleError error = apply_rule(context_, trim_line(rule), user);
      if (error == RuleError::kNone) continue;
      if (error == RuleError::kUnknownName) {
        report(": Error in applying operation '" + std::string(shown(rule)) +
               "': " + std::string(rule_error_text(error)) + ". ");
      } else if (!told) {
        report(": " + std::string(rule_error_text(error)) + ". ");
        told = true;
      }
    }
  }

  void report(std::string_view what) {
    errors_.append(name_).append(":").append(std::to_string(line_)).append(what);
  }

  const RuleContext& context_;
  std::string_view name_;
  size_t line_ = 0;
  std::unordered_set<std::string> names_;
  std::vector<User> users_;
  std::string errors_;
};

}  // namespace

base::Result<std::vector<User>> read_acl_file(const RuleContext& context, std::string_view name,
                                              std::string_view text) {
  Reader reader(context, name);
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    reader.read_line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return reader.finish();
}

std::string acl_line(const User& user, const Edition& edition) {
  return "user " + user.name + " " + user.text(edition);
}

}  // namespace latchkey::server::acl
