#include "script/shebang.h"

#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "server/command/command.h"
#include "server/config/config_parse.h"

namespace latchkey::script {

namespace {

constexpr std::string_view kEngine = "#!lua";
constexpr std::string_view kFlagsOption = "flags=";

base::Result<uint32_t> parse_flags(std::string_view list) {
  uint32_t flags = 0;
  if (list.empty()) return flags;
  for (size_t start = 0;;) {
    const size_t comma = list.find(',', start);
    const std::string_view name = list.substr(start, comma == list.npos ? comma : comma - start);
    const uint32_t flag = script_flag(name);
    if (flag == 0) return base::fail("ERR Unexpected flag in script shebang: " + std::string(name));
    flags |= flag;
    if (comma == list.npos) return flags;
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

base::Result<Shebang> parse_shebang(std::string_view script) {
  if (!script.starts_with("#!")) return Shebang{0, script};
  const size_t line_end = script.find('\n');
  if (line_end == script.npos) return base::fail("ERR Invalid script shebang");
  const std::optional<std::vector<std::string>> words =
      server::split_arguments(script.substr(0, line_end));
  if (!words.has_value() || words->empty())
    return base::fail("ERR Invalid engine in script shebang");
  if (words->front() != kEngine)
    return base::fail("ERR Unexpected engine in script shebang: " + words->front());
  Shebang shebang{kDeclared, script.substr(line_end)};
  for (auto word = std::next(words->begin()); word != words->end(); ++word) {
    if (!word->starts_with(kFlagsOption))
      return base::fail("ERR Unknown lua shebang option: " + *word);
    base::Result<uint32_t> flags = parse_flags(std::string_view(*word).substr(kFlagsOption.size()));
    if (!flags) return flags.failure();
    shebang.flags |= *flags;
  }
  return shebang;
}

}  // namespace latchkey::script
