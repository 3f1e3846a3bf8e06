#include "server/config/config_parse.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/text/escape.h"
#include "base/text/text.h"
#include "base/text/up_to_nul.h"

namespace latchkey::server {

namespace {

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

// Reads one line word by word.
class WordReader {
 public:
  explicit WordReader(std::string_view line) : line_(base::up_to_nul(line)) {}

  // False at the end of the line.
  bool skip_spaces() {
    while (at_ < line_.size() && is_space(line_[at_])) ++at_;
    return at_ < line_.size();
  }

  // False when quotes do not balance.
  bool read(std::string* word) {
    while (at_ < line_.size() && !is_space(line_[at_])) {
      const char c = line_[at_++];
      if (c != '"' && c != '\'') {
        word->push_back(c);
        continue;
      }
      if (c == '"' ? !read_double_quoted(word) : !read_single_quoted(word)) return false;
      return at_ == line_.size() || is_space(line_[at_]);
    }
    return true;
  }

 private:
  bool read_double_quoted(std::string* word) {
    while (at_ < line_.size()) {
      const char c = line_[at_++];
      if (c == '"') return true;
      if (c != '\\' || at_ == line_.size()) {
        word->push_back(c);
        continue;
      }
      std::string_view rest = line_.substr(at_ - 1);
      word->push_back(base::take_escape(rest));
      at_ = line_.size() - rest.size();
    }
    return false;
  }

  bool read_single_quoted(std::string* word) {
    while (at_ < line_.size()) {
      const char c = line_[at_++];
      if (c == '\'') return true;
      if (c == '\\' && at_ < line_.size() && line_[at_] == '\'') {
        word->push_back(line_[at_++]);
      } else {
        word->push_back(c);
      }
    }
    return false;
  }

  std::string_view line_;
  size_t at_ = 0;
};

struct Unit {
  std::string_view name;
  uint64_t bytes;
};

constexpr std::array<Unit, 8> kUnits = {{
    {"", 1},
    {"b", 1},
    {"k", 1000},
    {"kb", 1024},
    {"m", 1000 * 1000},
    {"mb", 1024 * 1024},
    {"g", 1000L * 1000 * 1000},
    {"gb", 1024L * 1024 * 1024},
}};

}  // namespace

std::optional<std::vector<std::string>> split_arguments(std::string_view line) {
  std::vector<std::string> words;
  WordReader reader(line);
  while (reader.skip_spaces()) {
    if (!reader.read(&words.emplace_back())) return std::nullopt;
  }
  return words;
}

std::string quote_argument(std::string_view text) {
  std::string quoted;
  base::append_quoted(&quoted, text);
  return quoted;
}

std::string quote_if_needed(std::string_view text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c > ' ' && c < 0x7f && c != '"' && c != '\'' && c != '\\';
  });
  return plain ? std::string(text) : quote_argument(text);
}

std::vector<std::string> split_at_spaces(std::string_view text) {
  std::vector<std::string> pieces;
  if (text.empty()) return pieces;
  for (;;) {
    const size_t space = text.find(' ');
    pieces.emplace_back(text.substr(0, space));
    if (space == std::string_view::npos) return pieces;
    text.remove_prefix(space + 1);
  }
}

std::optional<uint64_t> parse_memory(std::string_view text) {
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  uint64_t number = 0;
  size_t at = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    const auto digit = static_cast<uint64_t>(text[at] - '0');
    number = number > (kMax - digit) / 10 ? kMax : number * 10 + digit;
  }
  const auto suffix = text.substr(at);
  for (const Unit& unit : kUnits) {
    if (!base::equal_ignoring_case(suffix, unit.name)) continue;
    return number > kMax / unit.bytes ? kMax : number * unit.bytes;
  }
  return std::nullopt;
}

std::string format_memory(uint64_t bytes) {
  for (const auto index : {7u, 5u, 3u}) {
    const Unit& unit = kUnits[index];
    if (bytes != 0 && bytes % unit.bytes == 0) {
      return std::to_string(bytes / unit.bytes).append(unit.name);
    }
  }
  return std::to_string(bytes);
}

std::string_view trim_line(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

}  // namespace latchkey::server
