#include "server/command/redaction.h"

#include "server/command/command_table.h"

namespace latchkey::server {

std::vector<std::string_view> shown_words(const Config& config, const Command& command,
                                          Arguments args) {
  constexpr std::string_view kRedacted = "(redacted)";
  std::vector<std::string_view> words(args.begin(), args.end());
  const SecretFinder find_secrets = command.row->extras.find_secrets;
  if (find_secrets == nullptr) return words;
  std::vector<size_t> positions;
  find_secrets(config, args, &positions);
  for (const size_t position : positions) words[position] = kRedacted;
  return words;
}

}  // namespace latchkey::server
