#include "script/shebang.h"

#include <iterator>
#include <optional>
#include <vector>

#include "server/command/command.h"
#include "server/config/config_parse.h"

namespace latchkey::script {

namespace {

constexpr std::string_view kEngine = "#!lua";
constexpr std::string_view kFlagsOption = "flags=";

bool add_flag(std::string_view name, uint32_t* flags, std::string* error) {
  if (const uint32_t flag = script_flag(name); flag != 0) {
    *flags |= flag;
    return true;
  }
  *error = "ERR Unexpected flag in script shebang: " + std::string(name);
  return false;
}

bool add_flags(std::string_view list, uint32_t* flags, std::string* error) {
  if (list.empty()) return true;
  for (size_t start = 0;;) {
    const size_t comma = list.find(',', start);
    if (!add_flag(list.substr(start, comma == list.npos ? comma : comma - start), flags, error))
      return false;
    if (comma == list.npos) return true;
    start = comma + 1;
  }
}

}  // namespace

uint32_t script_flag(std::string_view name) {
  for (const NamedScriptFlag& known : kNamedScriptFlags) {
    if (known.name == name) return known.flag;
  }
  return 0;
}

uint32_t command_flags_of(uint32_t script_flags, uint32_t command_flags) {
  using namespace server;
  if ((script_flags & kDeclared) == 0) return command_flags;
  uint32_t flags = command_flags & ~(kStale | kDenyOom | kWrite | kMayReplicate);
  if ((script_flags & kNoWrites) == 0) {
    flags |= kWrite;
    if ((script_flags & kAllowOom) == 0) flags |= kDenyOom;
  }
  if ((script_flags & kAllowStale) != 0) flags |= kStale;
  return flags;
}

bool parse_shebang(std::string_view script, Shebang* result, std::string* error) {
  *result = {0, script};
  if (!script.starts_with("#!")) return true;
  const size_t line_end = script.find('\n');
  if (line_end == script.npos) {
    *error = "ERR Invalid script shebang";
    return false;
  }
  const std::optional<std::vector<std::string>> words =
      server::split_arguments(script.substr(0, line_end));
  if (!words.has_value() || words->empty()) {
    *error = "ERR Invalid engine in script shebang";
    return false;
  }
  if (words->front() != kEngine) {
    *error = "ERR Unexpected engine in script shebang: " + words->front();
    return false;
  }
  result->flags = kDeclared;
  result->code = script.substr(line_end);
  for (auto word = std::next(words->begin()); word != words->end(); ++word) {
    if (!word->starts_with(kFlagsOption)) {
      *error = "ERR Unknown lua shebang option: " + *word;
      return false;
    }
    if (!add_flags(std::string_view(*word).substr(kFlagsOption.size()), &result->flags, error))
      return false;
  }
  return true;
}

}  // namespace latchkey::script
