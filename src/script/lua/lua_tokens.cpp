#include "script/lua/lua_tokens.h"

#include <algorithm>
#include <string>

#include "base/text/text.h"

namespace latchkey::script {

namespace {

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || base::is_digit(c) || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

class Scanner {
 public:
  explicit Scanner(std::string_view code) : code_(code) {}

  // False at the end and at text that is malformed; complete() tells which.
  bool next(LuaToken* token) {
    if (!skip_blanks() || at_ == code_.size()) return false;
    const size_t start = at_;
    const int line = line_;
    const LuaToken::Kind kind = scan();
    if (broken_) return false;
    *token = {kind, code_.substr(start, at_ - start), start, line};
    return true;
  }
  bool complete() const { return !broken_; }
  int line() const { return line_; }

 private:
  char peek(size_t ahead = 0) const {
    return at_ + ahead < code_.size() ? code_[at_ + ahead] : '\0';
  }

  LuaToken::Kind scan() {
    const char c = peek();
    if (base::is_digit(c) || (c == '.' && base::is_digit(peek(1)))) return scan_number();
    if (is_word(c)) {
      while (is_word(peek())) ++at_;
      return LuaToken::Kind::kName;
    }
    if (c == '"' || c == '\'') return scan_string(c);
    if (c == '[' && long_bracket_level() >= 0) {
      broken_ = !skip_long_bracket();
      return LuaToken::Kind::kLongString;
    }
    ++at_;
    // Reads symbols of several characters where a part of them would mean something else.
    if (c == '.') {
      while (peek() == '.') ++at_;
    } else if ((c == '=' || c == '~' || c == '<' || c == '>') && peek() == '=') {
      ++at_;
    }
    return LuaToken::Kind::kSymbol;
  }

  LuaToken::Kind scan_number() {
    while (is_word(peek()) || peek() == '.' ||
           ((peek() == '+' || peek() == '-') && (code_[at_ - 1] | 0x20) == 'e')) {
      ++at_;
    }
    return LuaToken::Kind::kNumber;
  }

  LuaToken::Kind scan_string(char quote) {
    for (++at_; at_ < code_.size() && code_[at_] != quote; ++at_) {
      if (code_[at_] == '\\') ++at_;
      if (at_ >= code_.size()) break;
      if (code_[at_] == '\n') {
        if (code_[at_ - 1] != '\\') break;
        ++line_;
      }
    }
    if (peek() != quote) broken_ = true;
    ++at_;
    return LuaToken::Kind::kString;
  }

  // The number of equals signs of the long bracket that opens here, or -1.
  int long_bracket_level() const {
    if (peek() != '[') return -1;
    size_t level = 0;
    while (peek(level + 1) == '=') ++level;
    return peek(level + 1) == '[' ? static_cast<int>(level) : -1;
  }

  bool skip_long_bracket() {
    const auto level = static_cast<size_t>(long_bracket_level());
    const std::string closing = "]" + std::string(level, '=') + "]";
    const size_t end = code_.find(closing, at_ + level + 2);
    if (end == code_.npos) return false;
    line_ += static_cast<int>(std::count(code_.begin() + static_cast<ptrdiff_t>(at_),
                                         code_.begin() + static_cast<ptrdiff_t>(end), '\n'));
    at_ = end + closing.size();
    return true;
  }

  // Skips blanks and comments. False in a comment that does not end.
  bool skip_blanks() {
    while (at_ < code_.size()) {
      if (is_space(code_[at_])) {
        line_ += code_[at_] == '\n' ? 1 : 0;
        ++at_;
      } else if (peek() == '-' && peek(1) == '-') {
        at_ += 2;
        if (long_bracket_level() >= 0) {
          if (!skip_long_bracket()) {
            broken_ = true;
            return false;
          }
        } else {
          at_ = std::min(code_.find('\n', at_), code_.size());
        }
      } else {
        break;
      }
    }
    return true;
  }

  std::string_view code_;
  size_t at_ = 0;
  int line_ = 1;
  bool broken_ = false;
};

}  // namespace

std::vector<LuaToken> read_lua_tokens(std::string_view code) {
  std::vector<LuaToken> tokens;
  Scanner scanner(code);
  for (LuaToken token; scanner.next(&token);) tokens.push_back(token);
  if (!scanner.complete()) return {};
  tokens.push_back({LuaToken::Kind::kEnd, {}, code.size(), scanner.line()});
  return tokens;
}

}  // namespace latchkey::script
