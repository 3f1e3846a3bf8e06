#include "server/command/redaction.h"

#include "server/command/command_table.h"

namespace latchkey::server {

namespace {

std::string cut(std::string_view word, size_t most_bytes) {
  if (word.size() <= most_bytes) return std::string(word);
  return std::string(word.substr(0, most_bytes)) + "... (" +
         std::to_string(word.size() - most_bytes) + " more bytes)";
}

}  // namespace

std::vector<std::string_view> shown_words(const Config& config, const Command& command,
                                          Arguments args) {
  constexpr std::string_view kRedactedWord = "(redacted)";
  std::vector<std::string_view> words(args.begin(), args.end());
  const SecretFinder find_secrets = command.row->extras.find_secrets;
  if (find_secrets == nullptr) return words;
  std::vector<size_t> positions;
  find_secrets(config, args, &positions);
  for (const size_t position : positions) words[position] = kRedactedWord;
  return words;
}

std::vector<std::string> shortened(std::span<const std::string_view> words,
                                   const WordLimits& limits) {
  std::vector<std::string> kept;
  const size_t whole = words.size() <= limits.most_words ? words.size() : limits.most_words - 1;
  for (const std::string_view word : words.first(whole))
    kept.push_back(cut(word, limits.most_bytes));
  if (whole < words.size())
    kept.push_back("... (" + std::to_string(words.size() - whole) + " more arguments)");
  return kept;
}

}  // namespace latchkey::server
