#include "server/command/redaction.h"

#include "server/command/command_table.h"

namespace latchkey::server {

namespace {

constexpr size_t kMaxWords = 32;
constexpr size_t kMaxBytes = 128;

std::string shortened(std::string_view word) {
  if (word.size() <= kMaxBytes) return std::string(word);
  return std::string(word.substr(0, kMaxBytes)) + "... (" +
         std::to_string(word.size() - kMaxBytes) + " more bytes)";
}

}  // namespace

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

std::vector<std::string> shortened(std::span<const std::string_view> words) {
  std::vector<std::string> kept;
  const size_t whole = words.size() <= kMaxWords ? words.size() : kMaxWords - 1;
  for (const std::string_view word : words.first(whole)) kept.push_back(shortened(word));
  if (whole < words.size())
    kept.push_back("... (" + std::to_string(words.size() - whole) + " more arguments)");
  return kept;
}

}  // namespace latchkey::server
