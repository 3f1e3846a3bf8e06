#include "server/emulation/valkey_words.h"

#include <algorithm>

#include "server/server.h"

namespace latchkey::server {

namespace {

struct Word {
  std::string_view from;
  std::string_view to;
};

constexpr Word kWords[] = {
    {"master", "primary"}, {"Master", "Primary"}, {"MASTER", "PRIMARY"}, {"Redis", "Valkey"}};

bool is_part_of_word(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
         (byte >= '0' && byte <= '9') || byte == '_';
}

// The word that begins at `at`; null if none of them does.
const Word* word_at(std::string_view text, size_t at) {
  if (at > 0 && is_part_of_word(text[at - 1])) return nullptr;
  for (const Word& word : kWords) {
    if (!text.substr(at).starts_with(word.from)) continue;
    const size_t end = at + word.from.size();
    if (end == text.size() || !is_part_of_word(text[end])) return &word;
  }
  return nullptr;
}

}  // namespace

std::string_view in_words_of_valkey(std::string_view message, std::span<char> room) {
  size_t size = 0;
  for (size_t at = 0; at < message.size();) {
    const Word* const word = word_at(message, at);
    const std::string_view piece = word != nullptr ? word->to : message.substr(at, 1);
    if (size + piece.size() > room.size()) return message;
    std::copy(piece.begin(), piece.end(), room.begin() + static_cast<ptrdiff_t>(size));
    size += piece.size();
    at += word != nullptr ? word->from.size() : 1;
  }
  return {room.data(), size};
}

std::string in_words_of(const Server& server, std::string_view error) {
  constexpr std::string_view kRedis = "Redis";
  std::string worded(error);
  if (!server.edition().is_valkey() || server.settings().extended_redis_compatibility)
    return worded;
  for (size_t at = 0; (at = worded.find(kRedis, at)) != worded.npos;)
    worded.replace(at, kRedis.size(), "Valkey");
  return worded;
}

std::string_view no_script_error(const Edition& edition) {
  return edition.is_valkey() ? "NOSCRIPT No matching script."
                             : "NOSCRIPT No matching script. Please use EVAL.";
}

std::string registration_error(const Edition& edition, std::string_view error) {
  const bool is_bare = edition.is_valkey() && error.starts_with("ERR Function names can");
  return (is_bare ? "" : "ERR Error registering functions: ") + std::string(error);
}

std::string shebang_error_of_valkey(std::string_view error) {
  constexpr std::string_view kUnexpected = "ERR Unexpected engine in script shebang: #!";
  if (!error.starts_with(kUnexpected)) return std::string(error);
  return "ERR Could not find scripting engine '" + std::string(error.substr(kUnexpected.size())) +
         "'";
}

std::string script_error_of_valkey(std::string_view text) {
  static constexpr Word kPhrases[] = {
      {"Unknown Redis Lua debugger", "Unknown Lua debugger"},
      {"Lua redis lib command arguments", "Command arguments"},
      {"Unknown Redis command", "Unknown command"},
      {"calling Redis command", "calling command"},
      {"this redis lib call", "this call"},
      {"Library names can", "Function names can"},
      {" redis.", " server."},
  };
  std::string worded(text);
  for (const Word& phrase : kPhrases) {
    if (const size_t at = worded.find(phrase.from); at != worded.npos)
      worded.replace(at, phrase.from.size(), phrase.to);
  }
  return worded;
}

}  // namespace latchkey::server
