// The ACL file: one user a line, "user name rule rule ...", words separated by spaces.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/acl/rules.h"

namespace latchkey::server::acl {

// The users of a file that holds `text`; when any line is wrong, only the errors, a line each,
// which begin with `name`. Linear in the text; a rule for a command or a category looks at all
// commands.
struct AclFile {
  std::vector<User> users;
  std::string errors;  // empty: no error
};
AclFile read_acl_file(const RuleContext& context, std::string_view name, std::string_view text);

// The line of a user in the file, as the edition writes it.
std::string acl_line(const User& user, const Edition& edition = Edition());

}  // namespace latchkey::server::acl
