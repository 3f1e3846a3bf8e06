#include "server/observe/slow_log.h"

#include <utility>

namespace latchkey::server {

namespace {

constexpr size_t kMaxWords = 32;
constexpr size_t kMaxBytes = 128;

std::string cut(std::string_view word) {
  if (word.size() <= kMaxBytes) return std::string(word);
  return std::string(word.substr(0, kMaxBytes)) + "... (" +
         std::to_string(word.size() - kMaxBytes) + " more bytes)";
}

// The last word that is kept says how many are left out.
std::vector<std::string> cut(std::span<const std::string_view> words) {
  std::vector<std::string> kept;
  const size_t whole = words.size() <= kMaxWords ? words.size() : kMaxWords - 1;
  for (const std::string_view word : words.first(whole)) kept.push_back(cut(word));
  if (whole < words.size())
    kept.push_back("... (" + std::to_string(words.size() - whole) + " more arguments)");
  return kept;
}

}  // namespace

void SlowLog::add(Call call, std::span<const std::string_view> words) {
  entries_.push_front({next_id_++, std::move(call), cut(words)});
  while (entries_.size() > settings_.most_entries) entries_.pop_back();
}

}  // namespace latchkey::server
