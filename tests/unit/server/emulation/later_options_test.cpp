#include "server/emulation/later_options.h"

#include <initializer_list>
#include <string>
#include <vector>

#include "unit/catch.h"

namespace latchkey::server {

namespace {

// What a release of that name has of a command with this syntax.
struct Seen {
  Seen(std::string_view line, const char* edition_name)
      : edition(*Edition::parse(edition_name)),
        syntax(parse_syntax(line, 1, 1)),
        options(syntax.arguments, edition, "command") {}

  bool uses(std::initializer_list<std::string_view> words) const {
    return options.used_by(std::vector<std::string_view>(words));
  }
  int arity() const {
    std::vector<Argument> arguments = syntax.arguments;
    remove_later(&arguments, edition, "command");
    return arity_of(arguments, 1);
  }

  Edition edition;
  Syntax syntax;
  LaterOptions options;
};

}  // namespace

TEST_CASE("A later option is found where an option may be", "[emulation]") {
  const Seen set(
      "key value [condition=NX|XX|IFEQ compare@8.4.0]@2.6.12 [GET]@6.2.0 "
      "[expiration=EX seconds@2.6.12|KEEPTTL@6.0.0]",
      "redis 7.0");
  CHECK(set.options.any());
  CHECK(set.arity() == -3);
  CHECK(set.uses({"k", "v", "IFEQ", "x"}));
  CHECK(set.uses({"k", "v", "EX", "5", "ifeq", "x"}));
  CHECK(set.uses({"k", "v", "IFEQ"}));
  // As a key, a value, or a number that is none, the word is no option.
  CHECK_FALSE(set.uses({"IFEQ", "IFEQ"}));
  CHECK_FALSE(set.uses({"k", "IFEQ", "NX"}));
  CHECK_FALSE(set.uses({"k", "v", "EX", "IFEQ"}));
  CHECK_FALSE(set.uses({"k", "v", "GET", "NX", "KEEPTTL"}));
  CHECK_FALSE(set.uses({"k", "v", "unknown", "IFEQ"}));
  CHECK_FALSE(set.uses({}));
  CHECK_FALSE(Seen("key value [NX]", "redis 7.0").options.any());
}

TEST_CASE("A word that stands where another must be is followed by no options", "[emulation]") {
  const Seen xreadgroup("GROUP group [CLAIM idle]@8.4.0 STREAMS key", "redis 8.0");
  CHECK(xreadgroup.uses({"GROUP", "g", "CLAIM", "1", "STREAMS", "k"}));
  CHECK_FALSE(xreadgroup.uses({"GROUPS", "g", "CLAIM", "1", "STREAMS", "k"}));
  CHECK_FALSE(xreadgroup.uses({"CLAIM", "1", "STREAMS", "k"}));
}

TEST_CASE("Where the later words were all that could follow, the arity says it", "[emulation]") {
  const Seen expire("key seconds [condition=NX|XX|GT|LT]@7.0.0", "redis 6.2");
  CHECK(expire.arity() == 3);
  const Seen newer("key seconds [condition=NX|XX|GT|LT]@7.0.0", "redis 7.0");
  CHECK(newer.arity() == -3);
  CHECK_FALSE(newer.options.any());
}

TEST_CASE("Counted words are no options", "[emulation]") {
  const Seen zunion(
      "numkeys key... [WEIGHTS weight...] [aggregate=AGGREGATE mode@9.0.0] [LATER]@9.0.0",
      "redis 8.0");
  CHECK(zunion.uses({"2", "a", "b", "LATER"}));
  CHECK(zunion.uses({"2", "a", "b", "WEIGHTS", "1", "2", "LATER"}));
  CHECK_FALSE(zunion.uses({"2", "a", "LATER"}));
  CHECK_FALSE(zunion.uses({"3", "a", "b", "later", "WEIGHTS", "1", "2", "3"}));
  CHECK_FALSE(zunion.uses({"nonsense", "a"}));
}

TEST_CASE("What repeats to the end holds no options", "[emulation]") {
  const Seen xadd("key [NOMKSTREAM]@6.2.0 [LATER]@8.6.0 id {data=field value}...", "redis 8.0");
  CHECK(xadd.uses({"k", "LATER", "*", "f", "v"}));
  CHECK_FALSE(xadd.uses({"k", "*", "LATER", "v"}));
  CHECK_FALSE(xadd.uses({"k", "*", "f", "v", "LATER", "v"}));
  const Seen blocks("key {FIELDS fields=numfields field...}... [LATER]@9.0.0", "redis 8.0");
  CHECK(blocks.uses({"k", "FIELDS", "1", "LATER", "LATER"}));
  CHECK_FALSE(blocks.uses({"k", "FIELDS", "2", "a", "LATER"}));
}

}  // namespace latchkey::server
