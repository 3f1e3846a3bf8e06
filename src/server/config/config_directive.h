// Directive: one row of the configuration table, and the context of its parser.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/config/config_values.h"

namespace latchkey::server {

class WorkingDirectory;

// Properties of a directive.
enum DirectiveFlag : unsigned {
  kImmutable = 1u << 0,            // from the file or command line only
  kHidden = 1u << 1,               // CONFIG GET shows it by its exact name only
  kSensitive = 1u << 2,            // never shown in logs
  kProtectedDirective = 1u << 3,   // CONFIG SET needs enable-protected-configs
  kDenyLoading = 1u << 4,          // not while a dataset is being loaded
  kManyValues = 1u << 5,           // several values; a single one is split at spaces
  kActsAlways = 1u << 6,           // CONFIG SET acts even if the value is the one it was
  kOfValkey = 1u << 7,             // as kHidden, unless the server emulates Valkey, which shows it
  kLiveInValkey = 1u << 8,         // not kImmutable where the server emulates Valkey 9.1
  kDenyLoadingInValkey = 1u << 9,  // as kDenyLoading, where the server emulates Valkey
};

struct DirectiveContext {
  ConfigValues& values;
  WorkingDirectory& directory;
  bool from_file = false;   // a configuration is being loaded
  bool first_line = false;  // the directive's first line in that configuration
};

// A line that CONFIG REWRITE writes. One that is not forced replaces an existing line of the same
// directive but is not added where there was none: it states the default.
struct RewriteLine {
  std::string text;
  bool forced = false;
};

struct Directive {
  std::string_view name;
  std::string_view alias;  // empty when there is none
  unsigned flags = 0;
  // Why its value changes nothing here, as the end of a sentence; empty for those that do what they
  // say. Such a directive is known because configurations written for other servers have it.
  std::string_view no_effect_because = {};

  // Checks and stores the value. A value that is refused may be half stored, and the caller
  // restores the old one.
  std::function<base::Result<>(std::span<const std::string> arguments, DirectiveContext& context)>
      parse;
  // The text for CONFIG GET.
  std::function<std::string(const ConfigValues& values)> format;
  // The lines for CONFIG REWRITE. None: existing lines of the directive are removed.
  std::function<std::vector<RewriteLine>(const ConfigValues& values, const ConfigValues& defaults)>
      rewrite;

  bool has(DirectiveFlag flag) const { return (flags & flag) != 0; }
};

// Every directive, sorted by theme.
std::vector<Directive> make_directive_table();

}  // namespace latchkey::server
