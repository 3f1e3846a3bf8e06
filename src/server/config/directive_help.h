// What each directive is for, in words: the text of conf/latchkey.conf, which is part of the
// program.
//
// That file is written in blocks, with an empty line between them: comments, then the directives
// they are about with their defaults. A directive behind a `#` without a space is one that is not
// set by default. Titles of sections stand between rows of `#`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey::server {

// The text of conf/latchkey.conf.
std::string_view default_configuration();

// One block.
struct DirectiveHelp {
  std::string_view section;             // "Network"
  std::string text;                     // lines as they are, without their `#`
  std::vector<std::string_view> lines;  // "port 6379"; views into the configuration
  std::vector<bool> set_by_default;     // of each line

  // The directives of `lines`, each once, in order.
  std::vector<std::string_view> names() const;
};

// The blocks of a file of that form that are about directives.
std::vector<DirectiveHelp> read_directive_help(std::string_view configuration);

// The output of `--explain NAME`: the help of the directives that match (a name or an alias, any
// case, or a glob), a page each block. None: there is no such directive.
std::optional<std::string> explain_directives(std::string_view pattern);

}  // namespace latchkey::server
