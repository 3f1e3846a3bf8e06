// The language of rules, without a server: what users may do by them, and how they are told.
#include "server/acl/rules.h"

#include <initializer_list>

#include "commands/groups.h"
#include "script/rows.h"
#include "server/acl/acl_file.h"
#include "server/config/config_parse.h"
#include "unit/catch.h"

namespace latchkey::server::acl {

namespace {

struct Table {
  Table() {
    commands::add_all(commands);
    commands.add(script::script_rows());
  }
  CommandTable commands;
};

// A user by rules that are right, words separated by spaces.
class Ruled {
 public:
  explicit Ruled(std::string_view rules) : user_("anna") { add(rules); }

  void add(std::string_view rules) { REQUIRE(try_to_add(rules) == RuleError::kNone); }
  RuleError try_to_add(std::string_view rules) {
    const std::vector<std::string> words = split_at_spaces(rules);
    const std::vector<std::string_view> views(words.begin(), words.end());
    std::vector<std::string> joined;
    size_t open_at = 0;
    REQUIRE(join_selectors(views, &joined, &open_at));
    RuleError error = RuleError::kNone;
    for (const std::string& rule : joined) {
      if (error == RuleError::kNone) error = apply_rule(context_, rule, &user_);
    }
    return error;
  }

  // The word that is not permitted of a request; "" when all is.
  std::string refused(std::string_view request) const {
    const std::vector<std::string> words = split_at_spaces(request);
    const std::vector<std::string_view> views(words.begin(), words.end());
    const Command* command = table_.commands.find_request(views);
    REQUIRE(command != nullptr);
    const auto refusal = user_.check(*command, views);
    if (!refusal) return "";
    return refusal->what == Forbidden::kCommand ? "command " + command->full_name
                                                : words[refusal->position];
  }
  bool may(std::string_view request) const { return refused(request).empty(); }

  const User& user() const { return user_; }
  std::string text() const { return user_.text(); }
  std::string commands() const { return user_.own.commands.text(); }
  std::string keys() const { return user_.own.keys_text(); }

 private:
  Table table_;
  RuleContext context_{.commands = table_.commands, .all_channels = false};
  User user_;
};

}  // namespace

TEST_CASE("A user may be kept to some databases", "[acl]") {
  Ruled ruled("on nopass ~* +@all db=3,0,3");
  CHECK(ruled.text() == "on nopass sanitize-payload ~* resetchannels db=0,3 +@all");
  CHECK(ruled.may("GET a"));
  CHECK(ruled.may("PING"));
  CHECK(ruled.may("SELECT 3"));
  CHECK(ruled.refused("SELECT 1") == "1");
  CHECK(ruled.refused("SELECT 99").empty());
  CHECK_FALSE(ruled.user().may_do_everything());
  CHECK(ruled.try_to_add("alldbs") == RuleError::kNone);
  CHECK(ruled.may("SELECT 1"));
  CHECK(ruled.try_to_add("resetdbs") == RuleError::kNone);
  CHECK(ruled.text() == "on nopass sanitize-payload ~* resetchannels resetdbs +@all");
  CHECK_FALSE(ruled.may("GET a"));
  for (const std::string_view wrong : {"db=", "db=x", "db=1,", "db=,1", "db=1,,2", "db=3-4", "db"})
    CHECK(ruled.try_to_add(wrong) == RuleError::kSyntax);
  for (const std::string_view beyond : {"db=-1", "db=2147483648", "db=99999999999999999999"})
    CHECK(ruled.try_to_add(beyond) == RuleError::kDatabaseRange);
  CHECK(ruled.try_to_add("db=2147483647 db=+1") == RuleError::kNone);
  CHECK(ruled.text() == "on nopass sanitize-payload ~* resetchannels db=1 +@all");
}

TEST_CASE("A new user may do nothing, and the default user everything", "[acl]") {
  const Ruled nobody("");
  CHECK(nobody.text() == "off sanitize-payload resetchannels -@all");
  CHECK(nobody.refused("GET a") == "command get");
  CHECK_FALSE(nobody.user().may_do_everything());
  CHECK(User::make_default().may_do_everything());
  CHECK(User::make_default().text() == "on nopass sanitize-payload ~* &* +@all");
}

TEST_CASE("Commands that let people in are for everybody", "[acl]") {
  const Ruled nobody("");
  CHECK(nobody.may("AUTH anna secret"));
  CHECK(nobody.may("HELLO 3"));
  CHECK(nobody.may("QUIT"));
}

TEST_CASE("Later rules for commands go before earlier ones", "[acl]") {
  Ruled user("+@all -@string +get ~*");
  CHECK(user.may("GET a"));
  CHECK(user.may("LPUSH a b"));
  CHECK(user.refused("SET a b") == "command set");
  user.add("-@all");
  CHECK(user.commands() == "-@all");
  CHECK(user.refused("GET a") == "command get");
}

TEST_CASE("A rule for a container holds for its subcommands", "[acl]") {
  Ruled user("+config -config|set");
  CHECK(user.may("CONFIG GET a"));
  CHECK(user.refused("CONFIG SET a b") == "command config|set");
  CHECK(user.commands() == "-@all +config -config|set");
  user.add("+config");
  CHECK(user.may("CONFIG SET a b"));
  CHECK(user.commands() == "-@all +config");
}

TEST_CASE("A first word is allowed of a command that is not", "[acl]") {
  Ruled user("+select|0 +SELECT|1 +select|0");
  CHECK(user.commands() == "-@all +select|1 +select|0");
  CHECK(user.may("SELECT 1"));
  CHECK(user.refused("SELECT 2") == "command select");
  user.add("-select");
  CHECK(user.commands() == "-@all -select");
  CHECK(user.refused("SELECT 1") == "command select");
  CHECK(user.try_to_add("+config|zebra") == RuleError::kUnknownName);
  CHECK(user.try_to_add("+config|get|a") == RuleError::kFirstWordOfSub);
  CHECK(user.try_to_add("+get|") == RuleError::kSyntax);
  CHECK(user.try_to_add("-get|a") == RuleError::kUnknownName);
  CHECK(user.try_to_add("+get|a|b") == RuleError::kUnknownName);
  // The names of some commands are in capital letters.
  CHECK(Ruled("+VREM|X").commands() == "-@all +vrem|x");
}

TEST_CASE("Whoever may run every command again is unrestricted again", "[acl]") {
  Ruled user("+@all ~* &*");
  CHECK(user.user().may_do_everything());
  user.add("-get");
  CHECK_FALSE(user.user().may_do_everything());
  user.add("+get");
  CHECK(user.user().may_do_everything());
  CHECK(user.commands() == "+@all +get");
}

TEST_CASE("Reading and writing keys are permitted apart", "[acl]") {
  Ruled user("+@all %R~read:* %W~write:* ~both:*");
  CHECK(user.may("GET read:a"));
  CHECK(user.refused("GET write:a") == "write:a");
  CHECK(user.may("LPUSH write:a b"));
  CHECK(user.refused("LPUSH read:a b") == "read:a");
  CHECK(user.may("COPY read:a write:a"));
  CHECK(user.refused("COPY write:a read:a") == "write:a");
  CHECK(user.may("INCR both:a"));
  // Asking whether something is there is neither.
  CHECK(user.may("EXISTS read:a write:a both:a"));
  CHECK(user.refused("EXISTS read:a other") == "other");
  CHECK(user.keys() == "%R~read:* %W~write:* ~both:*");
  user.add("%W~read:*");
  CHECK(user.keys() == "~read:* %W~write:* ~both:*");
}

TEST_CASE("What SET does to its key depends on its options", "[acl]") {
  const Ruled writer("+set %W~*");
  CHECK(writer.may("SET a b"));
  CHECK(writer.may("SET a get"));
  CHECK(writer.refused("SET a b GET") == "a");
}

TEST_CASE("Requests that name no keys where they should are left to the command", "[acl]") {
  const Ruled user("+@all ~mine");
  CHECK(user.may("EVAL code 0"));
  CHECK(user.may("EVAL code 3 theirs"));
  CHECK(user.refused("EVAL code 1 theirs") == "theirs");
}

TEST_CASE("A pattern behind all keys or channels is refused", "[acl]") {
  Ruled user("~* &*");
  CHECK(user.try_to_add("~a") == RuleError::kKeysAfterAll);
  CHECK(user.try_to_add("&a") == RuleError::kChannelsAfterAll);
  user.add("resetkeys ~a resetchannels &a");
  CHECK(user.text() == "off sanitize-payload ~a resetchannels &a -@all");
}

TEST_CASE("To read and to write any key is two permissions, which others may follow", "[acl]") {
  Ruled user("~a %R~* ~b");
  CHECK(user.keys() == "~a %R~* ~b");
  user.add("%W~*");
  CHECK(user.keys() == "~a ~* ~b");
  user.add("%R~c ~*");
  CHECK(user.keys() == "~*");
  CHECK(user.try_to_add("%R~c") == RuleError::kKeysAfterAll);
}

TEST_CASE("Channels are matched, patterns of channels are compared", "[acl]") {
  const Ruled user("+@pubsub resetchannels &news.* &log");
  CHECK(user.may("SUBSCRIBE news.today log"));
  CHECK(user.refused("SUBSCRIBE news.today gossip") == "gossip");
  CHECK(user.may("PSUBSCRIBE news.*"));
  CHECK(user.refused("PSUBSCRIBE news.t*") == "news.t*");
  CHECK(user.refused("PUBLISH gossip log") == "gossip");
  CHECK(user.may("SPUBLISH log gossip"));
  CHECK(user.refused("SSUBSCRIBE gossip") == "gossip");
  CHECK(user.may("UNSUBSCRIBE gossip"));
}

TEST_CASE("Each selector permits requests by itself", "[acl]") {
  Ruled user("(+@write ~write:*) ( %R~read:* +get )");
  CHECK(user.may("SET write:a b"));
  CHECK(user.may("GET read:a"));
  CHECK(user.refused("GET write:a") == "write:a");
  CHECK(user.refused("PING") == "command ping");
  CHECK(user.text() ==
        "off sanitize-payload resetchannels -@all (~write:* resetchannels -@all +@write) "
        "(%R~read:* resetchannels -@all +get)");
  user.add("clearselectors");
  CHECK(user.user().selectors.empty());
}

TEST_CASE("Of several refusals that of the selector that came furthest is told", "[acl]") {
  const Ruled user("+mget ~key (+mget ~key ~other)");
  CHECK(user.refused("GET key") == "command get");
  CHECK(user.refused("MGET other third") == "third");
  CHECK(user.refused("MGET key other third") == "third");
}

TEST_CASE("A selector is read in one piece or in several, and holds no words of users", "[acl]") {
  Ruled user("");
  CHECK(user.try_to_add("(on)") == RuleError::kSyntax);
  CHECK(user.try_to_add("(>secret)") == RuleError::kSyntax);
  CHECK(user.try_to_add("(+get (+set))") == RuleError::kSyntax);
  CHECK(user.try_to_add(")") == RuleError::kSyntax);
  CHECK(user.user().selectors.empty());

  std::vector<std::string> rules;
  size_t open_at = 0;
  const std::vector<std::string_view> words = {"on", "(+get", "~a", "(+set"};
  CHECK_FALSE(join_selectors(words, &rules, &open_at));
  CHECK(open_at == 1);
}

TEST_CASE("A user has any number of passwords, or needs none", "[acl]") {
  Ruled user("on >one >two >one");
  CHECK(user.user().accepts("one"));
  CHECK(user.user().accepts("two"));
  CHECK_FALSE(user.user().accepts("three"));
  CHECK(user.user().passwords.size() == 2);
  user.add("<one");
  CHECK_FALSE(user.user().accepts("one"));
  CHECK(user.try_to_add("<one") == RuleError::kUnknownPassword);
  CHECK(user.try_to_add("#abc") == RuleError::kMalformedDigest);
  CHECK(user.try_to_add("#" + std::string(64, 'A')) == RuleError::kMalformedDigest);
  user.add("#" + user.user().passwords[0]);
  user.add("!" + std::string(user.user().passwords[0]));
  CHECK_FALSE(user.user().accepts("two"));
  user.add("nopass");
  CHECK(user.user().accepts("whatever"));
  user.add(">one");
  CHECK_FALSE(user.user().accepts("whatever"));
  user.add("off");
  CHECK_FALSE(user.user().accepts("one"));
}

TEST_CASE("RESETPASS takes passwords and NOPASS back, until there is a new password", "[acl]") {
  Ruled user("on nopass");
  user.add("resetpass");
  CHECK_FALSE(user.user().accepts("whatever"));
  CHECK(user.text() == "on sanitize-payload resetchannels -@all");
  user.add(">one");
  CHECK(user.user().accepts("one"));
  user.add("resetpass");
  CHECK_FALSE(user.user().accepts("one"));
  user.add("nopass");
  CHECK(user.user().passwords.empty());
  CHECK(user.text() == "on nopass sanitize-payload resetchannels -@all");
}

TEST_CASE("Rules that mean nothing are refused and change nothing", "[acl]") {
  Ruled user("on +get ~a");
  const std::string before = user.text();
  for (const char* rule : {"%", "%~a", "%RR~a", "%X~a", "+", "-", "+@", "+@zebra", "-zebra",
                           "zebra", "~a\tb", "&a\nb", "+get|a\tb"}) {
    INFO(rule);
    CHECK(user.try_to_add(rule) != RuleError::kNone);
    CHECK(user.text() == before);
  }
  CHECK(user.try_to_add(std::string("~a\0b", 4)) == RuleError::kSyntax);
}

TEST_CASE("RESET makes a user new", "[acl]") {
  Ruled user("on >a ~* &* +@all (+get) skip-sanitize-payload");
  user.add("reset");
  CHECK(user.text() == Ruled("").text());
}

// --- The file -----------------------------------------------------------------------------------

TEST_CASE("An ACL file is written such that it is read the same", "[acl]") {
  const Table table;
  const RuleContext context{.commands = table.commands, .all_channels = false};
  const std::string text =
      "user a on nopass sanitize-payload ~* &* +@all -get\n"
      "user b off skip-sanitize-payload #" +
      std::string(64, '0') +
      " %R~a %W~b resetchannels &c -@all +select|0 (~x resetchannels -@all +@read)\n";
  const auto users = read_acl_file(context, "users.acl", text);
  REQUIRE(users);
  REQUIRE(users->size() == 2);
  CHECK(acl_line(users->at(0)) + "\n" + acl_line(users->at(1)) + "\n" == text);
}

TEST_CASE("All that is wrong with an ACL file is told at once", "[acl]") {
  const Table table;
  const RuleContext context{.commands = table.commands, .all_channels = false};
  const auto users = read_acl_file(context, "u.acl",
                                   "user a on\r\n\nuser b zz\nuser c +foo\nfoo\nuser a off\n"
                                   "user d (~x\nuser e ~* ~x\n");
  REQUIRE_FALSE(users);
  CHECK(users.error() ==
        "u.acl:3: Syntax error. u.acl:4: Error in applying operation '+foo': Unknown command or "
        "category name in ACL. u.acl:5 should start with user keyword followed by the username. "
        "WARNING: Duplicate user 'a' found on line 6. u.acl:7: Unmatched parenthesis in selector "
        "definition.u.acl:8: Adding a pattern after the * pattern (or the 'allkeys' flag) is not "
        "valid and does not have any effect. Try 'resetkeys' to start with an empty list of "
        "patterns. WARNING: ACL errors detected, no change to the previously active ACL rules was "
        "performed");
}

}  // namespace latchkey::server::acl
