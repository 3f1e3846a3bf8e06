#include "server/command/command_syntax.h"

#include <algorithm>

#include "base/assert.h"
#include "base/text/text.h"
#include "server/command/syntax_line.h"

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

class Parser : SyntaxLexer {
 public:
  Parser(std::string_view line, size_t key_spec_count)
      : SyntaxLexer(line), key_spec_count_(static_cast<int>(key_spec_count)) {}

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

SyntaxExtent extent_of_sequence(const std::vector<Argument>& arguments);

SyntaxExtent extent_of_choice(const std::vector<Argument>& arguments);

SyntaxExtent extent_of(const Argument& argument) {
  SyntaxExtent extent;
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

SyntaxExtent extent_of_sequence(const std::vector<Argument>& arguments) {
  SyntaxExtent total;
  for (const Argument& argument : arguments) {
    const SyntaxExtent extent = extent_of(argument);
    total.least += extent.least;
    total.varies |= extent.varies;
  }
  return total;
}

SyntaxExtent extent_of_choice(const std::vector<Argument>& arguments) {
  SyntaxExtent result = extent_of(arguments.front());
  for (const Argument& argument : arguments) {
    const SyntaxExtent extent = extent_of(argument);
    result.varies |= extent.varies || extent.least != result.least;
    result.least = std::min(result.least, extent.least);
  }
  return result;
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
  return extent_of_sequence(arguments).arity(command_words);
}

}  // namespace latchkey::server
