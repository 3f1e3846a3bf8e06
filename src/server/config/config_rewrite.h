// CONFIG REWRITE: writes settings back into the text of a configuration file that people edit.
//
// Kept: comments, the order of lines, include, rename-command. Changed: a directive's line shows
// its present value; surplus lines of a directive are removed, and so are blank lines in a row;
// lines without a place follow after a marker at the end. Unknown lines become comments.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "server/config/config_directive.h"

namespace latchkey::server {

// A directive whose lines take the places of lines with the same second word: sentinel.
inline constexpr std::string_view kDirectiveOfOptions = "sentinel";

// The new lines of one directive.
struct DirectiveLines {
  std::string name;
  std::vector<RewriteLine> lines;
};

// Maps a directive's name or alias, in any case, to its DirectiveLines::name; empty for unknown
// names.
using CanonicalName = std::function<std::string(std::string_view name)>;

// The new text of the file. Directives that `canonical` knows but `directives` does not list keep
// their lines. Linear in the text, without the lookups.
std::string rewrite_configuration(std::string_view text,
                                  const std::vector<DirectiveLines>& directives,
                                  const CanonicalName& canonical);

}  // namespace latchkey::server
