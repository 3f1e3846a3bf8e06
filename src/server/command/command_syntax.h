// The syntax line of a command row: one line of text from which the command's arity and its COMMAND
// DOCS arguments come, and with them the hints that redis-cli shows.
//
// A line is a list of arguments separated by spaces.
//
//     seconds                    a value named "seconds"
//     member:integer             a value with a type that its name does not tell
//     addr(ip:port)              a value that is displayed otherwise than it is named
//     NX                         a word to type (a token), named "nx"; `= ~ * $ ""` are tokens too
//     new-id=$                   a token with another name
//     EX seconds                 a token and its value
//     [x]                        x is optional
//     x...                       x may be repeated
//     [GET pattern]...           ... and its token is repeated with it
//     [KEYS key...]              ... while here the token comes once
//     {data=field value}         a block: several arguments that belong together
//     {where=BEFORE|AFTER}       a choice; blocks and choices may be optional, in [ ]
//     [LIMIT limit=offset count] a block (or a choice) after a token
//     {SET set={data=field value}...}    ... that is repeated without the token
//     x@6.2.0                    x was added in 6.2.0, and with `!6.2.0` deprecated; after `...`
//     destination#2              the key belongs to key specification 2
//     _                          an argument that documentation does not tell
//
// The name before `=` is the block's or choice's own; around a single argument it is that
// argument's name. Blocks and choices nest. For example SET and ZADD:
//
//     key value [condition=NX|XX]@2.6.12 [GET]@6.2.0
//         [expiration=EX seconds@2.6.12|PX milliseconds@2.6.12|...]
//     key [condition=NX|XX]@3.0.2 [comparison=GT|LT]@6.2.0 [change=CH]@3.0.2
//         [increment=INCR]@3.0.2 {data=score:double member}...
//
// Types that follow from names: "key", "source", "destination" and the like are keys, which take
// the command's key specifications in order (the last one again when they run out); "seconds",
// "count", "numkeys", "timeout" and other counts are integers; "pattern" is a pattern; names that
// begin with "unix-time" are times; all else is a string.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey::server {

enum class ArgumentType : uint8_t {
  kString,
  kInteger,
  kDouble,
  kKey,
  kPattern,
  kUnixTime,
  kPureToken,
  kOneOf,
  kBlock,
};

// As COMMAND DOCS names it.
std::string_view argument_type_name(ArgumentType type);

// Versions and tokens are views into the syntax line.
struct Argument {
  std::string name;
  // Empty for blocks and choices.
  std::string display_text;
  ArgumentType type = ArgumentType::kString;
  // -1 where there is none.
  int key_spec_index = -1;
  bool has_token = false;
  bool optional = false;
  bool multiple = false;
  bool multiple_token = false;
  // Counts for the arity, and is not documented.
  bool hidden = false;
  // Came after the release that is emulated (server/emulation/later_options.h).
  bool later = false;
  std::string_view token;
  std::string_view since;
  std::string_view deprecated_since;
  // Of a block or a choice.
  std::vector<Argument> arguments;
};

struct Syntax {
  std::vector<Argument> arguments;
  // The number of words of a request, the command's own included; negative if that is the least
  // number.
  int arity = 0;
};

// `line` must outlive the result; `command_words` is 1, or 2 for a subcommand; `key_spec_count` is
// the number of the row's key specifications. A malformed line is a programmer's mistake and stops
// the process. Linear in the line.
Syntax parse_syntax(std::string_view line, int command_words, size_t key_spec_count);

// The arity of these arguments after so many words.
int arity_of(const std::vector<Argument>& arguments, int command_words);

}  // namespace latchkey::server
