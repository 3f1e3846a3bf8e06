#include "server/config/directive_help.h"

#include <algorithm>

#include "base/text/glob.h"
#include "base/text/text.h"
#include "server/config/config.h"
#include "server/config/config_directive.h"
#include "server/config/config_parse.h"

namespace latchkey::server {

namespace {

std::string_view first_word(std::string_view line) {
  return line.substr(0, line.find(' '));
}

// "##### Network #####" gives "Network"; a line without words nothing.
std::string_view title_of(std::string_view line) {
  const size_t from = line.find_first_not_of("# ");
  if (from == std::string_view::npos) return {};
  return line.substr(from, line.find_last_not_of("# ") - from + 1);
}

void add_line(DirectiveHelp& block, std::string_view line) {
  if (!line.starts_with('#')) {
    block.lines.push_back(line);
    block.set_by_default.push_back(true);
  } else if (line.size() > 1 && line[1] != ' ') {
    block.lines.push_back(line.substr(1));
    block.set_by_default.push_back(false);
  } else {
    line.remove_prefix(std::min<size_t>(line.size(), 2));
    block.text.append(line).append("\n");
  }
}

// How a directive is set.
std::string setting_of(const Directive& directive) {
  if (directive.has(kImmutable)) return "at start only: in the file, or on the command line";
  if (directive.has(kProtectedDirective))
    return "CONFIG SET too, where enable-protected-configs allows it";
  return "CONFIG SET too, while the server runs";
}

void add_setting(std::string_view name, const Directive& directive, std::string* page) {
  page->append("  ").append(name).append(": ").append(setting_of(directive));
  if (!directive.no_effect_because.empty())
    page->append("; without effect, because ").append(directive.no_effect_because);
  if (!directive.alias.empty()) {
    const bool is_alias = base::equal_ignoring_case(name, directive.alias);
    page->append("; also ").append(is_alias ? directive.name : directive.alias);
  }
  page->append("\n");
}

// Of a directive that the configuration of the distribution does not show.
std::string page_of(const Directive& directive) {
  const std::string name(directive.name);
  std::string page = "Not in latchkey.conf\n\n";
  page.append("It is for debugging and tests, or known because other servers have it.\n\n");
  page.append("  default   " + name + ' ' + quote_if_needed(directive.format(ConfigValues())) +
              '\n');
  add_setting(name, directive, &page);
  return page;
}

std::string page_of(const DirectiveHelp& block) {
  std::string page;
  page.append(block.section).append("\n\n");
  page.append(block.text);
  if (!block.text.empty()) page.append("\n");
  for (size_t i = 0; i < block.lines.size(); ++i) {
    page.append(block.set_by_default[i] ? "  default   " : "  example   ");
    page.append(block.lines[i]).append("\n");
  }
  for (const std::string_view name : block.names()) {
    const Directive* directive = Config::find(name);
    if (directive != nullptr) add_setting(name, *directive, &page);
  }
  return page;
}

bool concerns(const DirectiveHelp& block, const base::GlobPattern& pattern) {
  for (const std::string_view name : block.names()) {
    if (pattern.matches(name)) return true;
    const Directive* directive = Config::find(name);
    if (directive == nullptr) continue;
    for (const std::string_view spelling : {directive->name, directive->alias}) {
      if (!spelling.empty() && pattern.matches(spelling)) return true;
    }
  }
  return false;
}

}  // namespace

std::vector<std::string_view> DirectiveHelp::names() const {
  std::vector<std::string_view> found;
  for (const std::string_view line : lines) {
    const std::string_view name = first_word(line);
    if (std::find(found.begin(), found.end(), name) == found.end()) found.push_back(name);
  }
  return found;
}

std::vector<DirectiveHelp> read_directive_help(std::string_view configuration) {
  std::vector<DirectiveHelp> blocks;
  DirectiveHelp block;
  std::string_view section;
  const auto end_block = [&] {
    if (!block.lines.empty()) blocks.push_back(std::move(block));
    block = {};
    block.section = section;
  };
  while (!configuration.empty()) {
    const size_t end = std::min(configuration.find('\n'), configuration.size());
    const std::string_view line = configuration.substr(0, end);
    configuration.remove_prefix(std::min(end + 1, configuration.size()));
    if (line.starts_with("####")) {
      section = title_of(line);
      end_block();
    } else if (line.empty()) {
      end_block();
    } else {
      add_line(block, line);
    }
  }
  end_block();
  return blocks;
}

std::optional<std::string> explain_directives(std::string_view pattern) {
  std::string pages;
  const base::GlobPattern glob(pattern, /*ignore_case=*/true);
  for (const DirectiveHelp& block : read_directive_help(default_configuration())) {
    if (!concerns(block, glob)) continue;
    if (!pages.empty()) pages.append("\n");
    pages.append(page_of(block));
  }
  if (!pages.empty()) return pages;
  const Directive* const hidden = Config::find(pattern);
  if (hidden == nullptr) return std::nullopt;
  return page_of(*hidden);
}

}  // namespace latchkey::server
