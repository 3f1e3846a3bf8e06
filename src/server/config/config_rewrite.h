// CONFIG REWRITE: putting settings back into the text of a configuration file that people edit.
//
// What is kept: comments, the order of lines, include, rename-command. What changes: a line of a
// directive shows its present value; lines of a directive that needs fewer of them disappear, and
// so do blank lines in a row; lines that are needed but had no place follow after a marker at the
// end. Lines that mean nothing become comments.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "server/config/config_directive.h"

namespace latchkey::server {

// The lines that shall stand for one directive.
struct DirectiveLines {
  std::string name;
  std::vector<RewriteLine> lines;
};

// The name under which lines of a directive, spelt in any known way, are listed above; empty for
// what is unknown.
using CanonicalName = std::function<std::string(std::string_view name)>;

// The new text of the file. Directives that `canonical` knows but `directives` does not list keep
// their lines. Linear in the text but for the lookups.
std::string rewrite_configuration(std::string_view text,
                                  const std::vector<DirectiveLines>& directives,
                                  const CanonicalName& canonical);

}  // namespace latchkey::server
