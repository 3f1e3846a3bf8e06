#include "server/command/command_syntax.h"

#include "server/command/syntax_line.h"
#include "unit/catch.h"

namespace latchkey::server {

namespace {

int arity(std::string_view line, int command_words = 1) {
  const int parsed = parse_syntax(line, command_words, 1).arity;
  INFO(line);
  CHECK(SyntaxMeasurer(line).measure().arity(command_words) == parsed);
  return parsed;
}

Argument only_argument(std::string_view line, size_t key_spec_count = 1) {
  Syntax syntax = parse_syntax(line, 1, key_spec_count);
  REQUIRE(syntax.arguments.size() == 1);
  return syntax.arguments.front();
}

}  // namespace

TEST_CASE("Arity counts the words that must be there", "[syntax]") {
  CHECK(arity("") == 1);
  CHECK(arity("", 2) == 2);
  CHECK(arity("key value") == 3);
  CHECK(arity("key [count]") == -2);
  CHECK(arity("key...") == -2);
  CHECK(arity("{data=key value}...") == -3);
  CHECK(arity("EX seconds") == 3);
  CHECK(arity("key {where=LEFT|RIGHT}") == 3);
  CHECK(arity("key {from=FROMMEMBER member|{FROMLONLAT fromlonlat=longitude:double "
              "latitude:double}}") == -4);
  CHECK(arity("_...") == -2);
  CHECK(arity("[_...]") == -1);
  CHECK(arity("key [LIMIT limit=offset count]@2.0.0") == -2);
  CHECK(arity("key {SET set={data=field value}...}") == -5);
  CHECK(arity("key {STORE target=[inner=name value]}") == -2);
  CHECK(arity("key {how=A b|{two=C d}|E f} _ last=G") == 6);
  CHECK(arity("key {how=A b|C}...") == -3);
}

TEST_CASE("A value's type follows from its name unless the line says otherwise", "[syntax]") {
  CHECK(only_argument("member").type == ArgumentType::kString);
  CHECK(only_argument("seconds").type == ArgumentType::kInteger);
  CHECK(only_argument("unix-time-seconds").type == ArgumentType::kUnixTime);
  CHECK(only_argument("pattern").type == ArgumentType::kPattern);
  CHECK(only_argument("timeout:double").type == ArgumentType::kDouble);
  CHECK(only_argument("start:string").type == ArgumentType::kString);
  CHECK(only_argument("newkey").type == ArgumentType::kKey);
}

TEST_CASE("Keys take the key specifications in order, the last one again", "[syntax]") {
  SECTION("one specification covers both keys") {
    const Syntax syntax = parse_syntax("key1 key2", 1, 1);
    CHECK(syntax.arguments[0].key_spec_index == 0);
    CHECK(syntax.arguments[1].key_spec_index == 0);
  }
  SECTION("a specification for each") {
    const Syntax syntax = parse_syntax("source destination", 1, 2);
    CHECK(syntax.arguments[1].key_spec_index == 1);
  }
  SECTION("an explicit one") {
    const Argument argument = only_argument("[BY by-pattern(pattern):pattern#1]", 2);
    CHECK(argument.key_spec_index == 1);
    CHECK(argument.name == "by-pattern");
    CHECK(argument.display_text == "pattern");
    CHECK(argument.token == "BY");
    CHECK(argument.optional);
  }
}

TEST_CASE("A token alone is a word to type, before a value it introduces the value", "[syntax]") {
  const Syntax syntax =
      parse_syntax("[GET] [EX seconds] [change=CH] {id-selector=id|new-id=$}", 1, 0);
  REQUIRE(syntax.arguments.size() == 4);
  const Argument& get = syntax.arguments[0];
  CHECK(get.type == ArgumentType::kPureToken);
  CHECK(get.name == "get");
  CHECK(get.display_text == "get");
  CHECK(get.token == "GET");
  const Argument& seconds = syntax.arguments[1];
  CHECK(seconds.type == ArgumentType::kInteger);
  CHECK(seconds.name == "seconds");
  CHECK(seconds.token == "EX");
  CHECK(syntax.arguments[2].name == "change");
  CHECK(syntax.arguments[2].token == "CH");
  CHECK(syntax.arguments[3].arguments[1].name == "new-id");
  CHECK(syntax.arguments[3].arguments[1].token == "$");
}

TEST_CASE("A token may be a symbol or empty", "[syntax]") {
  const Argument op = only_argument("[operator=equal==|approximately=~]");
  CHECK(op.arguments[0].token == "=");
  CHECK(op.arguments[1].token == "~");
  const Argument selector = only_argument("{key-selector=key|empty-string=\"\"}");
  CHECK(selector.arguments[1].has_token);
  CHECK(selector.arguments[1].token.empty());
}

TEST_CASE("Blocks and choices nest, and may follow a token", "[syntax]") {
  const Argument limit = only_argument("[LIMIT limit=offset count]");
  CHECK(limit.type == ArgumentType::kBlock);
  CHECK(limit.name == "limit");
  CHECK(limit.token == "LIMIT");
  CHECK(limit.display_text.empty());
  CHECK(limit.arguments.size() == 2);

  const Argument range = only_argument("[range=start end [unit=BYTE|BIT]@7.0.0]");
  REQUIRE(range.arguments.size() == 3);
  const Argument& unit = range.arguments[2];
  CHECK(unit.type == ArgumentType::kOneOf);
  CHECK(unit.optional);
  CHECK(unit.since == "7.0.0");
  CHECK(unit.arguments[1].token == "BIT");
}

TEST_CASE("A repetition outside the brackets repeats the token", "[syntax]") {
  const Argument keys = only_argument("[KEYS key...]");
  CHECK(keys.multiple);
  CHECK_FALSE(keys.multiple_token);
  const Argument patterns = only_argument("[GET pattern]...");
  CHECK(patterns.multiple);
  CHECK(patterns.multiple_token);
  const Argument pairs = only_argument("{data=field value}...");
  CHECK(pairs.multiple);
  CHECK_FALSE(pairs.multiple_token);
  CHECK_FALSE(pairs.optional);
  const Argument settings = only_argument("{SET set={data=parameter value}...}");
  CHECK(settings.type == ArgumentType::kBlock);
  CHECK(settings.name == "set");
  CHECK(settings.token == "SET");
  CHECK(settings.has_token);
  CHECK(settings.display_text.empty());
  CHECK(settings.multiple);
  CHECK_FALSE(settings.multiple_token);
  CHECK(settings.arguments.size() == 2);
}

TEST_CASE("Versions attach to what they follow", "[syntax]") {
  const Argument filter =
      only_argument("{filter=old-format(ip:port)!2.8.12|[ID client-id]@2.8.12}");
  CHECK(filter.arguments[0].deprecated_since == "2.8.12");
  CHECK(filter.arguments[0].display_text == "ip:port");
  CHECK(filter.arguments[1].since == "2.8.12");
  CHECK(filter.since.empty());
}

}  // namespace latchkey::server
