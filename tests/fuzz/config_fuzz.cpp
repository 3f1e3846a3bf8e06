// Feeds any text to the configuration's parser. What it accepts must come out of CONFIG REWRITE
// such that it is accepted again and means the same; what it refuses, --check-config must find.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "base/text/text.h"
#include "server/config/config.h"
#include "server/config/config_directive.h"
#include "server/config/config_parse.h"
#include "server/config/directive_help.h"

namespace {

using namespace latchkey::server;

// Files of the machine are left alone, and a title may depend on lines that a rewrite removes.
bool out_of_scope(std::string_view text) {
  const std::string lower = latchkey::base::lower_case(text);
  for (const auto* word : {"include", "dir", "proc-title"}) {
    if (lower.find(word) != std::string::npos) return true;
  }
  return false;
}

void check_words(std::string_view line) {
  const auto words = split_arguments(line);
  if (!words) return;
  std::string quoted;
  for (const auto& word : *words) quoted.append(quote_if_needed(word)).append(" ");
  LK_ASSERT(split_arguments(quoted) == words);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_words(text.substr(0, text.find('\n')));
  // An escape may spell a name in another way.
  if (out_of_scope(text) || text.find("\\x") != std::string_view::npos) return 0;

  for (const DirectiveHelp& block : read_directive_help(text)) LK_ASSERT(!block.names().empty());
  Config checked(std::make_unique<PrivateDirectory>());
  const std::vector<ConfigError> problems = checked.check("", text);
  Config config(std::make_unique<PrivateDirectory>());
  const auto loaded = config.load_text(text);
  LK_ASSERT(!problems.empty() || (loaded && config.startup_problems().empty()));
  if (!loaded) {
    LK_ASSERT(!loaded.error().report().empty());
    return 0;
  }
  const std::string rewritten = config.rewritten(text);
  Config again(std::make_unique<PrivateDirectory>());
  LK_ASSERT(again.load_text(rewritten));
  for (const auto& directive : config.directives()) {
    LK_ASSERT(directive.format(config.values()) == directive.format(again.values()));
  }
  // The end of the last line counts as the beginning of an empty one, once.
  const std::string twice = again.rewritten(rewritten);
  LK_ASSERT(twice == rewritten || twice == rewritten + "\n");
  return 0;
}
