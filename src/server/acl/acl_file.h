// The ACL file: one user a line, "user name rule rule ...", words separated by spaces.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/acl/rules.h"

namespace latchkey::server::acl {

// The users of a file that holds `text`. When any line is wrong nothing but the reasons, line by
// line, which begin with `name`, is given back. Linear in the text; a rule for a command or a
// category looks at all commands.
struct AclFile {
  std::vector<User> users;
  std::string errors;  // empty: all is well
};
AclFile read_acl_file(const RuleContext& context, std::string_view name, std::string_view text);

// The line that stands for a user.
std::string acl_line(const User& user);

}  // namespace latchkey::server::acl
