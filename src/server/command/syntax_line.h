// The syntax line of a command row, read while the program is compiled as far as a server that
// starts needs it: how many words a request has. A malformed line does not compile. The language is
// described in server/command/command_syntax.h, which makes arguments of a line.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "base/assert.h"
#include "base/text/text.h"

namespace latchkey::server {

// How many words arguments take.
struct SyntaxExtent {
  int least = 0;
  bool varies = false;

  // Of a request that begins with so many words of the command's own; negative if that is the least
  // number.
  constexpr int arity(int command_words) const {
    const int words = command_words + least;
    return varies ? -words : words;
  }
};

// Reads the words of a line.
class SyntaxLexer {
 public:
  explicit constexpr SyntaxLexer(std::string_view line) : rest_(line) {}

 protected:
  static constexpr bool is_name_start(char byte) { return byte >= 'a' && byte <= 'z'; }
  static constexpr bool is_name_byte(char byte) {
    return is_name_start(byte) || (byte >= 'A' && byte <= 'Z') || base::is_digit(byte) ||
           byte == '-' || byte == '_';
  }
  static constexpr bool is_token_word_byte(char byte) {
    return (byte >= 'A' && byte <= 'Z') || base::is_digit(byte) || byte == '-' || byte == '_';
  }
  static constexpr bool is_token_symbol(char byte) {
    return byte == '=' || byte == '~' || byte == '*' || byte == '$';
  }
  static constexpr bool is_token_start(char byte) {
    return (byte >= 'A' && byte <= 'Z') || is_token_symbol(byte) || byte == '"';
  }
  static constexpr bool is_version_byte(char byte) { return base::is_digit(byte) || byte == '.'; }

  constexpr char peek() const { return rest_.empty() ? '\0' : rest_.front(); }

  constexpr bool take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  template <typename Predicate>
  constexpr std::string_view take_while(Predicate belongs) {
    size_t length = 0;
    while (length < rest_.size() && belongs(rest_[length])) ++length;
    const std::string_view taken = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return taken;
  }

  constexpr std::string_view take_until(char end) {
    const std::string_view taken = take_while([end](char byte) { return byte != end; });
    LK_ASSERT(peek() == end);
    rest_.remove_prefix(1);
    return taken;
  }

  constexpr void skip_spaces() {
    take_while([](char byte) { return byte == ' '; });
  }

  // Skips spaces. True at the end, a `|` or a closing bracket.
  constexpr bool at_end_of_sequence() {
    skip_spaces();
    return rest_.empty() || peek() == '|' || peek() == ']' || peek() == '}';
  }

  // The name in `name=`, or nothing and nothing taken.
  constexpr std::string_view take_label() {
    const std::string_view before = rest_;
    if (is_name_start(peek())) {
      const std::string_view name = take_while(is_name_byte);
      if (take("=")) return name;
    }
    rest_ = before;
    return {};
  }

  constexpr std::string_view take_token() {
    if (take("\"\"")) return {};
    if (is_token_symbol(peek())) {
      const std::string_view symbol = rest_.substr(0, 1);
      rest_.remove_prefix(1);
      return symbol;
    }
    return take_while(is_token_word_byte);
  }

  // True when the next word is a value, not the label of something else.
  constexpr bool value_follows() {
    const std::string_view before = rest_;
    skip_spaces();
    const bool found =
        rest_.size() < before.size() && is_name_start(peek()) && take_label().empty();
    rest_ = before;
    return found;
  }

  // What stands before the arguments of a group.
  struct GroupHead {
    std::string_view label;
    std::string_view token;
    bool has_token = false;
  };
  constexpr GroupHead take_group_head() {
    GroupHead head;
    const std::string_view before = rest_;
    if (is_token_start(peek())) {
      head.token = take_token();
      head.has_token = true;
      skip_spaces();
    }
    head.label = take_label();
    if (!head.label.empty()) return head;
    rest_ = before;
    return {};
  }

  std::string_view rest_;
};

// The extent of a line, without making its arguments.
class SyntaxMeasurer : SyntaxLexer {
 public:
  explicit constexpr SyntaxMeasurer(std::string_view line) : SyntaxLexer(line) {}

  constexpr SyntaxExtent measure() {
    const SyntaxExtent extent = measure_sequence().extent;
    LK_ASSERT(rest_.empty());
    return extent;
  }

 private:
  struct Measured {
    SyntaxExtent extent;
    bool has_token = false;
    bool optional = false;
  };
  struct Sequence {
    SyntaxExtent extent;
    Measured last;
    size_t count = 0;
  };

  constexpr Sequence measure_sequence() {
    Sequence sequence;
    while (!at_end_of_sequence()) {
      sequence.last = measure_argument();
      sequence.extent.least += sequence.last.extent.least;
      sequence.extent.varies |= sequence.last.extent.varies;
      ++sequence.count;
    }
    return sequence;
  }

  constexpr Measured measure_argument() {
    if (peek() == '[' || peek() == '{') return measure_group();
    Measured argument{.extent = {.least = 1}};
    const std::string_view label = take_label();
    if (is_token_start(peek())) {
      take_token();
      argument.has_token = true;
      if (label.empty() && value_follows()) {
        skip_spaces();
        skip_value();
        ++argument.extent.least;
      }
    } else {
      skip_value();
    }
    argument.extent.varies = take_suffixes();
    return argument;
  }

  constexpr void skip_value() {
    if (take("_")) return;
    LK_ASSERT(is_name_start(peek()));
    take_while(is_name_byte);
    if (take("(")) take_until(')');
    if (take(":")) take_while(is_name_byte);
  }

  constexpr Measured measure_group() {
    const bool optional = peek() == '[';
    rest_.remove_prefix(1);
    const GroupHead head = take_group_head();

    const Sequence first = measure_sequence();
    Measured group{.extent = first.extent};
    if (first.count == 1 && peek() != '|') group = first.last;
    while (take("|")) {
      const SyntaxExtent other = measure_sequence().extent;
      group.extent.varies |= other.varies || other.least != first.extent.least;
      group.extent.least = std::min(group.extent.least, other.least);
    }
    LK_ASSERT(take(optional ? "]" : "}"));

    if (head.has_token && !group.has_token && !group.optional) ++group.extent.least;
    group.has_token |= head.has_token;
    group.optional |= optional;
    if (take_suffixes()) group.extent.varies = true;
    if (group.optional) group.extent = {0, true};
    return group;
  }

  // Whether one of them says that it may be repeated.
  constexpr bool take_suffixes() {
    bool multiple = false;
    for (;;) {
      if (take("...")) {
        multiple = true;
      } else if (take("@") || take("!") || take("#")) {
        take_while(is_version_byte);
      } else {
        return multiple;
      }
    }
  }
};

// A line that lives as long as the program, with its extent.
class SyntaxLine {
 public:
  constexpr SyntaxLine(const char* text) : text_(text), extent_(SyntaxMeasurer(text).measure()) {}
  constexpr std::string_view text() const { return text_; }
  constexpr int arity(int command_words) const { return extent_.arity(command_words); }

 private:
  const char* text_;
  SyntaxExtent extent_;
};

}  // namespace latchkey::server
