// The ACL file: one user a line, "user name rule rule ...", words separated by spaces.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/acl/rules.h"

namespace latchkey::server::acl {

// The users of a file that holds `text`. The error is all that is wrong with its lines, each with
// `name` and the line's number before it. Linear in the text; a rule for a command or a category
// visits all commands.
base::Result<std::vector<User>> read_acl_file(const RuleContext& context, std::string_view name,
                                              std::string_view text);

// The line of a user in the file, as the edition writes it.
std::string acl_line(const User& user, const Edition& edition = Edition());

}  // namespace latchkey::server::acl
