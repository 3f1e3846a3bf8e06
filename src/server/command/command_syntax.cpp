#include "server/command/command_syntax.h"

#include <algorithm>

#include "base/assert.h"
#include "base/text/text.h"

namespace latchkey::server {

namespace {

constexpr std::string_view kTypeNames[] = {
    "string", "integer", "double", "key", "pattern", "unix-time", "pure-token", "oneof", "block",
};

constexpr std::string_view kKeyNames[] = {
    "destination", "destkey", "dst", "key", "key1", "key2", "newkey", "source", "sourcekey", "src",
};

constexpr std::string_view kIntegerNames[] = {
    "client-id", "count",    "cursor",      "db",      "decrement", "destination-db", "end",
    "increment", "index",    "index1",      "index2",  "limit",     "milliseconds",   "numfields",
    "numkeys",   "numlocal", "numreplicas", "offset",  "port",      "protover",       "seconds",
    "slot",      "start",    "stop",        "timeout", "ttl",       "weight",
};

template <size_t N>
bool contains(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

ArgumentType type_from_name(std::string_view name) {
  if (contains(kKeyNames, name)) return ArgumentType::kKey;
  if (contains(kIntegerNames, name)) return ArgumentType::kInteger;
  if (name == "pattern") return ArgumentType::kPattern;
  if (name.starts_with("unix-time")) return ArgumentType::kUnixTime;
  return ArgumentType::kString;
}

ArgumentType type_named(std::string_view name) {
  const auto* const found = std::find(std::begin(kTypeNames), std::end(kTypeNames), name);
  LK_ASSERT(found != std::end(kTypeNames));
  return static_cast<ArgumentType>(found - std::begin(kTypeNames));
}

bool is_name_byte(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '-' || byte == '_';
}

bool is_name_start(char byte) {
  return byte >= 'a' && byte <= 'z';
}

bool is_token_word_byte(char byte) {
  return (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') || byte == '-';
}

bool is_token_symbol(char byte) {
  return byte == '=' || byte == '~' || byte == '*' || byte == '$';
}

bool is_token_start(char byte) {
  return (byte >= 'A' && byte <= 'Z') || is_token_symbol(byte) || byte == '"';
}

// Reads the words of a line.
class Lexer {
 public:
  explicit Lexer(std::string_view line) : rest_(line) {}

 protected:
  char peek() const { return rest_.empty() ? '\0' : rest_.front(); }

  bool take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  template <typename Predicate>
  std::string_view take_while(Predicate belongs) {
    size_t length = 0;
    while (length < rest_.size() && belongs(rest_[length])) ++length;
    const std::string_view taken = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return taken;
  }

  std::string_view take_until(char end) {
    const std::string_view taken = take_while([end](char byte) { return byte != end; });
    LK_ASSERT(peek() == end);
    rest_.remove_prefix(1);
    return taken;
  }

  void skip_spaces() {
    take_while([](char byte) { return byte == ' '; });
  }

  // Skips spaces. True at the end, a `|` or a closing bracket.
  bool at_end_of_sequence() {
    skip_spaces();
    return rest_.empty() || peek() == '|' || peek() == ']' || peek() == '}';
  }

  // The name in `name=`, or nothing and nothing taken.
  std::string_view take_label() {
    const std::string_view before = rest_;
    if (is_name_start(peek())) {
      const std::string_view name = take_while(is_name_byte);
      if (take("=")) return name;
    }
    rest_ = before;
    return {};
  }

  std::string_view take_token() {
    if (take("\"\"")) return {};
    if (is_token_symbol(peek())) {
      const std::string_view symbol = rest_.substr(0, 1);
      rest_.remove_prefix(1);
      return symbol;
    }
    return take_while(is_token_word_byte);
  }

  // True when the next word is a value, not the label of something else.
  bool value_follows() {
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
  GroupHead take_group_head() {
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

  static bool is_version_byte(char byte) { return (byte >= '0' && byte <= '9') || byte == '.'; }

  std::string_view rest_;
};

class Parser : Lexer {
 public:
  Parser(std::string_view line, size_t key_spec_count)
      : Lexer(line), key_spec_count_(static_cast<int>(key_spec_count)) {}

  std::vector<Argument> parse() {
    std::vector<Argument> arguments = parse_sequence();
    LK_ASSERT(rest_.empty());
    return arguments;
  }

 private:
  // Arguments up to the end, a `|` or a closing bracket.
  std::vector<Argument> parse_sequence() {
    std::vector<Argument> arguments;
    while (!at_end_of_sequence()) arguments.push_back(parse_argument());
    return arguments;
  }

  Argument parse_argument() {
    if (peek() == '[' || peek() == '{') return parse_group();
    const std::string_view label = take_label();
    if (is_token_start(peek())) return parse_token(label);
    LK_ASSERT(label.empty());
    Argument argument = parse_value();
    parse_suffixes(&argument);
    return argument;
  }

  Argument parse_value() {
    Argument argument;
    if (take("_")) {
      argument.hidden = true;
      return argument;
    }
    LK_ASSERT(is_name_start(peek()));
    argument.name = take_while(is_name_byte);
    argument.display_text = take("(") ? take_until(')') : std::string_view(argument.name);
    argument.type =
        take(":") ? type_named(take_while(is_name_byte)) : type_from_name(argument.name);
    if (argument.type == ArgumentType::kKey) {
      argument.key_spec_index = std::min(next_key_spec_++, key_spec_count_ - 1);
    }
    return argument;
  }

  Argument parse_token(std::string_view label) {
    const std::string_view token = take_token();
    Argument argument;
    if (label.empty() && value_follows()) {
      skip_spaces();
      argument = parse_value();
    } else {
      argument.type = ArgumentType::kPureToken;
      argument.name = label.empty() ? base::lower_case(token) : std::string(label);
      argument.display_text = argument.name;
    }
    argument.token = token;
    argument.has_token = true;
    parse_suffixes(&argument);
    return argument;
  }

  Argument parse_group() {
    const bool optional = peek() == '[';
    rest_.remove_prefix(1);

    const GroupHead head = take_group_head();
    const std::string_view label = head.label;
    Argument group;
    group.token = head.token;
    group.has_token = head.has_token;
    group.name = label;

    std::vector<std::vector<Argument>> alternatives;
    do {
      alternatives.push_back(parse_sequence());
    } while (take("|"));
    LK_ASSERT(take(optional ? "]" : "}"));

    if (alternatives.size() > 1) {
      group.type = ArgumentType::kOneOf;
      for (std::vector<Argument>& alternative : alternatives) {
        LK_ASSERT(alternative.size() == 1);
        group.arguments.push_back(std::move(alternative.front()));
      }
    } else if (alternatives.front().size() > 1) {
      group.type = ArgumentType::kBlock;
      group.arguments = std::move(alternatives.front());
    } else {
      LK_ASSERT(!alternatives.front().empty());
      Argument inner = std::move(alternatives.front().front());
      LK_ASSERT(!group.has_token || inner.type == ArgumentType::kBlock);
      if (!label.empty()) inner.name = label;
      if (!label.empty() && inner.type != ArgumentType::kBlock) inner.display_text = label;
      if (group.has_token) inner.token = group.token;
      inner.has_token = inner.has_token || group.has_token;
      group = std::move(inner);
    }
    LK_ASSERT(group.hidden || !group.name.empty());
    group.optional = group.optional || optional;
    const bool inner_multiple = group.multiple;
    parse_suffixes(&group);
    group.multiple_token = group.has_token && group.multiple && !inner_multiple;
    return group;
  }

  // A repetition outside the brackets repeats the token; that is for parse_group to see.
  void parse_suffixes(Argument* argument) {
    for (;;) {
      if (take("...")) {
        argument->multiple = true;
      } else if (take("@")) {
        argument->since = take_while(is_version_byte);
      } else if (take("!")) {
        argument->deprecated_since = take_while(is_version_byte);
      } else if (take("#")) {
        const std::string_view digit = take_while(is_version_byte);
        LK_ASSERT(digit.size() == 1);
        argument->key_spec_index = digit[0] - '0';
      } else {
        return;
      }
    }
  }

  int key_spec_count_;
  int next_key_spec_ = 0;
};

// How many words arguments take.
struct Extent {
  int least = 0;
  bool varies = false;
};

Extent extent_of_sequence(const std::vector<Argument>& arguments);

Extent extent_of_choice(const std::vector<Argument>& arguments);

Extent extent_of(const Argument& argument) {
  Extent extent;
  switch (argument.type) {
    case ArgumentType::kPureToken:
      break;
    case ArgumentType::kOneOf:
      extent = extent_of_choice(argument.arguments);
      break;
    case ArgumentType::kBlock:
      extent = extent_of_sequence(argument.arguments);
      break;
    default:
      extent.least = 1;
  }
  if (argument.has_token) ++extent.least;
  if (argument.multiple) extent.varies = true;
  if (argument.optional) extent = {0, true};
  return extent;
}

Extent extent_of_sequence(const std::vector<Argument>& arguments) {
  Extent total;
  for (const Argument& argument : arguments) {
    const Extent extent = extent_of(argument);
    total.least += extent.least;
    total.varies |= extent.varies;
  }
  return total;
}

Extent extent_of_choice(const std::vector<Argument>& arguments) {
  Extent result = extent_of(arguments.front());
  for (const Argument& argument : arguments) {
    const Extent extent = extent_of(argument);
    result.varies |= extent.varies || extent.least != result.least;
    result.least = std::min(result.least, extent.least);
  }
  return result;
}

// The extent of a line, without making its arguments.
class Measurer : Lexer {
 public:
  explicit Measurer(std::string_view line) : Lexer(line) {}

  Extent measure() {
    const Extent extent = measure_sequence().extent;
    LK_ASSERT(rest_.empty());
    return extent;
  }

 private:
  struct Measured {
    Extent extent;
    bool has_token = false;
    bool optional = false;
  };
  struct Sequence {
    Extent extent;
    Measured last;
    size_t count = 0;
  };

  Sequence measure_sequence() {
    Sequence sequence;
    while (!at_end_of_sequence()) {
      sequence.last = measure_argument();
      sequence.extent.least += sequence.last.extent.least;
      sequence.extent.varies |= sequence.last.extent.varies;
      ++sequence.count;
    }
    return sequence;
  }

  Measured measure_argument() {
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

  void skip_value() {
    if (take("_")) return;
    LK_ASSERT(is_name_start(peek()));
    take_while(is_name_byte);
    if (take("(")) take_until(')');
    if (take(":")) take_while(is_name_byte);
  }

  Measured measure_group() {
    const bool optional = peek() == '[';
    rest_.remove_prefix(1);
    const GroupHead head = take_group_head();

    const Sequence first = measure_sequence();
    Measured group{.extent = first.extent};
    if (first.count == 1 && peek() != '|') group = first.last;
    while (take("|")) {
      const Extent other = measure_sequence().extent;
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
  bool take_suffixes() {
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

int arity_of(const Extent& extent, int command_words) {
  const int words = command_words + extent.least;
  return extent.varies ? -words : words;
}

}  // namespace

std::string_view argument_type_name(ArgumentType type) {
  return kTypeNames[static_cast<size_t>(type)];
}

Syntax parse_syntax(std::string_view line, int command_words, size_t key_spec_count) {
  Syntax syntax;
  syntax.arguments = Parser(line, key_spec_count).parse();
  syntax.arity = arity_of(syntax.arguments, command_words);
  return syntax;
}

int arity_of(const std::vector<Argument>& arguments, int command_words) {
  return arity_of(extent_of_sequence(arguments), command_words);
}

int arity_of(std::string_view line, int command_words) {
  return arity_of(Measurer(line).measure(), command_words);
}

}  // namespace latchkey::server
