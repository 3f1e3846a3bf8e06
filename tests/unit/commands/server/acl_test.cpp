// Users of a whole server: logging in, being refused, and what becomes of those whose rules change.

#include "commands/groups.h"
#include "script/engine.h"
#include "script/rows.h"
#include "server/acl/access_control.h"
#include "server/command/command_table.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"
#include "unit/temporary_directory.h"

namespace latchkey::tests {

namespace {

struct GuardedServer : ServerFixture {
  explicit GuardedServer(std::string_view settings = {}) : ServerFixture({}, settings) {
    commands::add_all(server.commands());
    server.commands().add(script::script_rows());
    server.add_layer(std::make_shared<script::Engine>(server));
  }
};

// A client that has logged in as anna, who has these rules.
struct Anna : TestClient {
  explicit Anna(GuardedServer& server, std::string_view rules) : TestClient(server) {
    TestClient operator_(server);
    REQUIRE(operator_.run("ACL SETUSER anna reset on nopass " + std::string(rules)) == kOk);
    REQUIRE(run("AUTH anna secret") == kOk);
  }
};

const std::string kWrongPassword =
    error("WRONGPASS invalid username-password pair or user is disabled.");
const std::string kNoKey = error("NOPERM No permissions to access a key");
const std::string kNoChannel = error("NOPERM No permissions to access a channel");

std::string no_command(std::string_view name) {
  return error("NOPERM User anna has no permissions to run the '" + std::string(name) +
               "' command");
}

}  // namespace

TEST_CASE("A user is made, logs in and goes", "[acl]") {
  GuardedServer server;
  TestClient root(server);
  TestClient client(server);
  CHECK(root.run("ACL WHOAMI") == bulk("default"));
  CHECK(root.run("ACL SETUSER anna >secret +acl|whoami") == kOk);
  CHECK(root.run("ACL USERS") == bulks({"anna", "default"}));
  CHECK(client.run("AUTH anna secret") == kWrongPassword);
  root.run("ACL SETUSER anna on");
  CHECK(client.run("AUTH anna wrong") == kWrongPassword);
  CHECK(client.run("AUTH anna secret") == kOk);
  CHECK(client.run("ACL WHOAMI") == bulk("anna"));
  CHECK(client.run("GET a") == no_command("get"));
  CHECK(root.run("ACL DELUSER anna nobody") == integer(1));
  CHECK(client->has(server::kClientClosing));
  CHECK(root.run("ACL GETUSER anna") == kNull);
}

TEST_CASE("ACL DELUSER with the default user among the names deletes nobody", "[acl]") {
  GuardedServer server;
  TestClient root(server);
  root.run("ACL SETUSER anna");
  CHECK(root.run("ACL DELUSER anna default") == error("ERR The 'default' user cannot be removed"));
  CHECK(root.run("ACL USERS") == bulks({"anna", "default"}));
}

TEST_CASE("Rules are obeyed all or not at all", "[acl]") {
  GuardedServer server;
  TestClient root(server);
  CHECK(
      root.run("ACL SETUSER anna on +zebra") ==
      error("ERR Error in ACL SETUSER modifier '+zebra': Unknown command or category name in ACL"));
  CHECK(root.run("ACL USERS") == bulks({"default"}));
  CHECK(root.run("ACL SETUSER anna (+get") ==
        error("ERR Unmatched parenthesis in acl selector starting at '(+get'."));
  CHECK(root.run_words({"ACL", "SETUSER", "an na"}) ==
        error("ERR Usernames can't contain spaces or null characters"));
}

TEST_CASE("A client is refused what its user may not do, from the next request on", "[acl]") {
  GuardedServer server;
  TestClient root(server);
  Anna anna(server, "+@all ~mine:* resetchannels &news");
  CHECK(anna.run("SET mine:a 1") == kOk);
  CHECK(anna.run("SET yours 1") == kNoKey);
  CHECK(anna.run("PUBLISH news a") == integer(0));
  CHECK(anna.run("PUBLISH gossip a") == kNoChannel);
  root.run("ACL SETUSER anna -set");
  CHECK(anna.run("SET mine:a 1") == no_command("set"));
  root.run("ACL SETUSER anna allkeys allchannels allcommands");
  CHECK(anna.run("SET yours 1") == kOk);
  CHECK_FALSE(anna->has(server::kClientRestricted));
}

TEST_CASE("EXEC does not publish to a channel that the user has lost meanwhile", "[acl]") {
  GuardedServer server;
  TestClient root(server);
  Anna anna(server, "+@all allchannels");
  anna.run("MULTI");
  CHECK(anna.run("PUBLISH news 1") == kQueued);
  root.run("ACL SETUSER anna resetchannels");
  CHECK(anna.run("EXEC") ==
        array({error("NOPERM ACLs rules changed between the moment the transaction was accumulated "
                     "and the EXEC call. This command is no longer allowed for the following "
                     "reason: no permission to access one of the channels used as arguments")}));
}

TEST_CASE("A transaction is refused when it is queued, and again when rules have changed",
          "[acl]") {
  GuardedServer server;
  TestClient root(server);
  Anna anna(server, "+@all ~mine:* resetchannels");
  anna.run("MULTI");
  CHECK(anna.run("SET yours 1") == kNoKey);
  CHECK(anna.run("EXEC") == error("EXECABORT Transaction discarded because of previous errors."));

  anna.run("MULTI");
  CHECK(anna.run("SET mine:a 1") == kQueued);
  CHECK(anna.run("PING") == kQueued);
  root.run("ACL SETUSER anna -set");
  const std::string changed =
      "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC "
      "call. This command is no longer allowed for the following reason: ";
  CHECK(anna.run("EXEC") ==
        array({error(changed + "no permission to execute the command or subcommand"),
               status("PONG")}));
  root.run("ACL SETUSER anna +set");
  anna.run("MULTI");
  anna.run("SET mine:a 1");
  root.run("ACL SETUSER anna resetkeys");
  CHECK(anna.run("EXEC") == array({error(changed + "no permission to touch the specified keys")}));
  CHECK(root.run("EXISTS mine:a") == integer(0));

  root.run("ACL SETUSER anna -exec");
  anna.run("MULTI");
  CHECK(anna.run("EXEC") ==
        error("EXECABORT Transaction discarded because of: NOPERM User anna has no permissions to "
              "run the 'exec' command"));
  CHECK(server.server.stats().errors["NOPERM"] == 3);
}

TEST_CASE("A script may do what its caller may", "[acl]") {
  GuardedServer server;
  Anna anna(server, "+@all -del ~mine:*");
  const auto run = [&](std::string_view code) { return anna.run_words({"EVAL", code, "0"}); };
  CHECK(run("return redis.pcall('set', 'mine:a', 1)") == kOk);
  CHECK(run("return redis.pcall('set', 'yours', 1)") ==
        error("ERR ACL failure in script: No permissions to access a key"));
  CHECK(run("return redis.pcall('del', 'mine:a')") ==
        error("ERR ACL failure in script: User anna has no permissions to run the 'del' command"));
  CHECK(run("return redis.acl_check_cmd('set', 'mine:a', 1)") == integer(1));
  CHECK(run("return redis.acl_check_cmd('set', 'yours', 1)") == kNull);
  for (const char* const words : {"'get'", "'get', 'a', 'b'", "'eval', 'return 1'", "'config'"})
    CHECK(run("return select(2, pcall(redis.acl_check_cmd, " + std::string(words) + "))") ==
          bulk("ERR Wrong number of args for redis.acl_check_cmd()"));
  TestClient root(server);
  CHECK(root.run_words({"EVAL", "return redis.pcall('set', 'yours', 1)", "0"}) == kOk);
}

TEST_CASE("Whoever waits for a key needs the permission when it comes", "[acl]") {
  GuardedServer server;
  TestClient root(server);
  Anna anna(server, "+@all ~*");
  anna.run("BLPOP list 0");
  root.run("ACL SETUSER anna resetkeys");
  root.run("RPUSH list a");
  CHECK(anna.take_output() == kNoKey);
  CHECK(root.run("LLEN list") == integer(1));
}

TEST_CASE("SORT looks up other keys only for those who may read them all", "[acl]") {
  GuardedServer server;
  TestClient root(server);
  root.run("RPUSH list 2 1");
  Anna anna(server, "+sort ~list");
  CHECK(anna.run("SORT list") == bulks({"1", "2"}));
  CHECK(anna.run("SORT list BY weight_*") ==
        error("ERR BY option of SORT denied due to insufficient ACL permissions."));
  CHECK(anna.run("SORT list GET value_*") ==
        error("ERR GET option of SORT denied due to insufficient ACL permissions."));
  root.run("ACL SETUSER anna %R~*");
  CHECK(anna.run("SORT list BY weight_*") == bulks({"1", "2"}));
}

TEST_CASE("Those who listen to what they may no longer hear are closed", "[acl]") {
  GuardedServer server;
  TestClient root(server);
  Anna reader(server, "+@all resetchannels &news &log.*");
  TestClient idle(server);
  idle.run("AUTH anna secret");
  reader.run("SUBSCRIBE news");
  root.run("ACL SETUSER anna resetchannels &news &more");
  CHECK_FALSE(reader->has(server::kClientClosing));
  root.run("ACL SETUSER anna allchannels");
  CHECK_FALSE(reader->has(server::kClientClosing));
  root.run("ACL SETUSER anna resetchannels &more");
  CHECK(reader->has(server::kClientClosing));
  CHECK_FALSE(idle->has(server::kClientClosing));
}

TEST_CASE("The log tells who was refused what and where", "[acl]") {
  GuardedServer server;
  TestClient root(server);
  Anna anna(server, "+@all -get ~mine:* resetchannels");
  anna.run("GET a");
  anna.run("GET a");
  anna.run("AUTH nobody x");
  anna.run_words({"EVAL", "redis.call('set', 'yours', 1)", "0"});
  anna.run("MULTI");
  anna.run("PUBLISH gossip a");
  using Reason = server::acl::Denial::Reason;
  using Context = server::acl::Denial::Context;
  const auto& entries = server.server.access().log().entries();
  REQUIRE(entries.size() == 4);
  auto entry = entries.begin();
  const auto is = [&](Reason reason, Context context, std::string_view object,
                      std::string_view user, uint64_t count) {
    const auto& denial = entry->denial;
    const bool right = denial.reason == reason && denial.context == context &&
                       denial.object == object && denial.user == user && entry->count == count;
    ++entry;
    return right;
  };
  CHECK(entry->denial.client.find("cmd=publish user=anna") != std::string::npos);
  CHECK(is(Reason::kChannel, Context::kMulti, "gossip", "anna", 1));
  CHECK(entry->denial.client.find("cmd=eval user=anna") != std::string::npos);
  CHECK(is(Reason::kKey, Context::kScript, "yours", "anna", 1));
  CHECK(is(Reason::kAuth, Context::kToplevel, "AUTH", "nobody", 1));
  CHECK(is(Reason::kCommand, Context::kToplevel, "get", "anna", 2));
  CHECK(root.run("ACL LOG 1").starts_with("*1\r\n*20\r\n$5\r\ncount\r\n:1\r\n"));
  const std::string stats = root.run("INFO stats");
  CHECK(stats.find("acl_access_denied_auth:1\r\nacl_access_denied_cmd:2\r\nacl_access_denied_key:1"
                   "\r\nacl_access_denied_channel:1\r\n") != std::string::npos);
  CHECK(root.run("ACL LOG RESET") == kOk);
  CHECK(root.run("ACL LOG") == "*0\r\n");
}

TEST_CASE("The password of the configuration is the default user's", "[acl]") {
  GuardedServer server("requirepass secret");
  TestClient client(server);
  CHECK(client.run("PING") == error("NOAUTH Authentication required."));
  CHECK(client.run("AUTH wrong") == kWrongPassword);
  CHECK(client.run("AUTH secret") == kOk);
  CHECK(client.run("ACL SETUSER default >other") == kOk);
  TestClient second(server);
  CHECK(second.run("AUTH other") == kOk);
  client.run("CONFIG SET requirepass third");
  TestClient stranger(server);
  CHECK(stranger.run("AUTH other") == kWrongPassword);
  CHECK(second.run("PING") == status("PONG"));
  CHECK(client.run_words({"CONFIG", "SET", "requirepass", ""}) == kOk);
  CHECK(stranger.run("PING") == status("PONG"));
  client.run("ACL SETUSER default off");
  CHECK(stranger.run("PING") == error("NOAUTH Authentication required."));
}

TEST_CASE("Users of the configuration are there from the start", "[acl]") {
  GuardedServer server(
      "user anna on nopass +@all -flushdb ~a* (+get ~b*)\nuser default on >x +@all");
  REQUIRE(server.server.access().configure());
  TestClient client(server);
  CHECK(client.run("AUTH anna x") == kOk);
  CHECK(client.run("FLUSHDB") == no_command("flushdb"));
  CHECK(client.run("GET b") == kNull);
  CHECK(client.run("SET b 1") == kNoKey);
  CHECK(server.config.rewritten("").find(
            "user anna on nopass sanitize-payload ~a* resetchannels +@all -flushdb (~b* "
            "resetchannels -@all +get)\n") != std::string::npos);
}

TEST_CASE("A configuration with a wrong user is refused", "[acl]") {
  const auto refusal = [](const char* settings) {
    GuardedServer server(settings);
    return server.server.access().configure().error();
  };
  CHECK(refusal("user anna on +zebra").message == "Critical error while loading ACLs. Exiting.");
  const server::ConfigError malformed = refusal("user anna zz");
  CHECK(malformed.message == "Error in user declaration 'user': Syntax error");
  CHECK(malformed.line == 1);
  CHECK(refusal("user anna on\naclfile users.acl").line == 0);
  CHECK(refusal("aclfile /nonexistent/users.acl").message ==
        "Aborting Redis startup because of ACL errors: Error loading ACLs, opening file "
        "'/nonexistent/users.acl': No such file or directory");
}

TEST_CASE("ACL DRYRUN tells what a user may do without doing it", "[acl]") {
  GuardedServer server;
  TestClient root(server);
  Anna anna(server, "+@all -get ~mine:* resetchannels");
  CHECK(root.run("ACL DRYRUN anna SET mine:a 1") == kOk);
  CHECK(root.run("ACL DRYRUN anna GET mine:a") ==
        bulk("User anna has no permissions to run the 'get' command"));
  CHECK(root.run("ACL DRYRUN anna SET yours 1") ==
        bulk("User anna has no permissions to access the 'yours' key"));
  CHECK(root.run_words({"ACL", "DRYRUN", "anna", "SET", std::string_view("a\0b", 3), "1"}) ==
        bulk(std::string_view("User anna has no permissions to access the 'a\0b' key", 52)));
  CHECK(root.run("ACL DRYRUN anna PUBLISH gossip 1") ==
        bulk("User anna has no permissions to access the 'gossip' channel"));
  CHECK(root.run("ACL DRYRUN nobody GET a") == error("ERR User 'nobody' not found"));
  CHECK(root.run("ACL DRYRUN anna ZEBRA a") == error("ERR Command 'ZEBRA' not found"));
  CHECK(root.run("ACL DRYRUN anna SET a") ==
        error("ERR wrong number of arguments for 'set' command"));
  CHECK(root.run("DBSIZE") == integer(0));
  CHECK(root.run("ACL LOG") == "*0\r\n");
}

TEST_CASE("ACL GETUSER describes a user", "[acl]") {
  GuardedServer server;
  TestClient root(server);
  root.run("ACL SETUSER anna on nopass +get %R~a resetchannels &c (+set ~b)");
  CHECK(root.run("ACL GETUSER anna") ==
        array({bulk("flags"), bulks({"on", "nopass", "sanitize-payload"}), bulk("passwords"),
               array({}), bulk("commands"), bulk("-@all +get"), bulk("keys"), bulk("%R~a"),
               bulk("channels"), bulk("&c"), bulk("selectors"),
               array({bulks({"commands", "-@all +set", "keys", "~b", "channels", ""})})}));
}

TEST_CASE("ACL GENPASS gives as many digits as bits need", "[acl]") {
  GuardedServer server;
  TestClient root(server);
  CHECK(root.run("ACL GENPASS").starts_with("$64\r\n"));
  CHECK(root.run("ACL GENPASS 1").starts_with("$1\r\n"));
  CHECK(root.run("ACL GENPASS 4").starts_with("$1\r\n"));
  CHECK(root.run("ACL GENPASS 5").starts_with("$2\r\n"));
  CHECK(root.run("ACL GENPASS 4096").starts_with("$1024\r\n"));
  CHECK(root.run("ACL GENPASS -1").starts_with("-ERR ACL GENPASS argument must be the number"));
  CHECK(root.run("ACL GENPASS") != root.run("ACL GENPASS"));
  CHECK(root.run("ACL GENPASS 0").starts_with("-ERR ACL GENPASS argument must be the number"));
  CHECK(root.run("ACL GENPASS 4097").starts_with("-ERR ACL GENPASS argument must be the number"));
}

TEST_CASE("ACL SAVE and LOAD bring users to the file and from it", "[acl]") {
  const TemporaryDirectory directory;
  directory.write("users.acl", "");
  GuardedServer server("aclfile " + (directory.path() / "users.acl").string());
  TestClient root(server);
  CHECK(root.run("ACL SETUSER anna on nopass +get ~a") == kOk);
  CHECK(root.run("ACL SAVE") == kOk);
  CHECK(directory.read("users.acl") ==
        "user anna on nopass sanitize-payload ~a resetchannels -@all +get\n"
        "user default on nopass sanitize-payload ~* &* +@all\n");
  TestClient anna(server);
  CHECK(anna.run("AUTH anna x") == kOk);
  root.run("ACL SETUSER bert on");
  directory.write("users.acl", "user anna on nopass +get +set ~a\n");
  CHECK(root.run("ACL LOAD") == kOk);
  CHECK(root.run("ACL USERS") == bulks({"anna", "default"}));
  // A client whose user stays keeps its connection, and has the new rules.
  CHECK_FALSE(anna->has(server::kClientClosing));
  CHECK(anna.run("SET a 1") == kOk);
  directory.write("users.acl", "user bert on\n");
  CHECK(root.run("ACL LOAD") == kOk);
  CHECK(anna->has(server::kClientClosing));
}

TEST_CASE("Before Redis 7.4 ACL LOAD closes the clients of all users of the file", "[acl]") {
  const TemporaryDirectory directory;
  directory.write("users.acl", "user anna on nopass +@all ~*\n");
  GuardedServer server("emulate \"redis 7.2\"\naclfile " +
                       (directory.path() / "users.acl").string());
  REQUIRE(server.server.access().configure());
  TestClient root(server);
  TestClient anna(server);
  CHECK(anna.run("AUTH anna x") == kOk);
  CHECK(root.run("ACL LOAD") == kOk);
  CHECK(anna->has(server::kClientClosing));
  CHECK_FALSE(root->has(server::kClientClosing));
  CHECK(root.run("ACL USERS") == bulks({"anna", "default"}));
}

TEST_CASE("ACL LOAD tells what is wrong with the file, and changes nothing", "[acl]") {
  const TemporaryDirectory directory;
  const std::string path = directory.path() / "users.acl";
  GuardedServer server("aclfile " + path);
  TestClient root(server);
  root.run("ACL SETUSER bert on");
  CHECK(root.run("ACL LOAD") ==
        error("ERR Error loading ACLs, opening file '" + path + "': No such file or directory"));
  const std::string unchanged =
      "WARNING: ACL errors detected, no change to the previously active ACL rules was performed";
  const auto told = [&](std::string_view text) {
    directory.write("users.acl", text);
    const std::string reply = root.run("ACL LOAD");
    const std::string start = "-ERR ";
    REQUIRE(reply.starts_with(start));
    REQUIRE(reply.ends_with(unchanged + "\r\n"));
    return reply.substr(start.size(), reply.size() - start.size() - unchanged.size() - 2);
  };
  CHECK(told("anna on\n") == path + ":1 should start with user keyword followed by the username. ");
  CHECK(told("\nuser\n") == path + ":2 should start with user keyword followed by the username. ");
  CHECK(told("user anna on +zebra +lion\n") ==
        path +
            ":1: Error in applying operation '+zebra': Unknown command or category name in "
            "ACL. " +
            path +
            ":1: Error in applying operation '+lion': Unknown command or category name in "
            "ACL. ");
  CHECK(told("user anna zz yy\nuser anna on\n") ==
        path + ":1: Syntax error. WARNING: Duplicate user 'anna' found on line 2. ");
  CHECK(told("user anna (+get\n") == path + ":1: Unmatched parenthesis in selector definition.");
  CHECK(told("user anna ~* ~a\n") ==
        path +
            ":1: Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and "
            "does not have any effect. Try 'resetkeys' to start with an empty list of "
            "patterns. ");
  CHECK(told("user anna &* &a\n") ==
        path +
            ":1: Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid "
            "and does not have any effect. Try 'resetchannels' to start with an empty list of "
            "channels. ");
  CHECK(root.run("ACL USERS") == bulks({"bert", "default"}));
}

TEST_CASE("ACL LOAD and SAVE without a file say that there is none", "[acl]") {
  GuardedServer server;
  TestClient root(server);
  for (const char* const request : {"ACL LOAD", "ACL SAVE"}) {
    CHECK(root.run(request) ==
          error("ERR This Redis instance is not configured to use an ACL file. You may want to "
                "specify users via the ACL SETUSER command and then issue a CONFIG REWRITE "
                "(assuming you have a Redis configuration file set) in order to store users in the "
                "Redis configuration."));
  }
}

TEST_CASE("ACL LOG shows refusals as maps, the latest first, as many as are asked for", "[acl]") {
  GuardedServer server;
  TestClient root(server);
  Anna anna(server, "+@all -get ~mine:* resetchannels");
  anna.run("GET mine:a");
  server.advance_ms(1500);
  anna.run("SET yours 1");
  anna.run_words({"EVAL", "redis.call('set', 'theirs', 1)", "0"});
  anna.run("MULTI");
  anna.run("PUBLISH gossip a");
  anna.run("DISCARD");
  anna.run("AUTH nobody x");
  server.advance_ms(500);
  const std::string log = root.run("ACL LOG");
  const auto start = [](std::string_view reason, std::string_view context, std::string_view object,
                        std::string_view user, std::string_view age) {
    return "*20\r\n" + bulk("count") + integer(1) + bulk("reason") + bulk(reason) +
           bulk("context") + bulk(context) + bulk("object") + bulk(object) + bulk("username") +
           bulk(user) + bulk("age-seconds") + bulk(age) + bulk("client-info");
  };
  const std::string wanted[] = {start("auth", "toplevel", "AUTH", "nobody", "0.5"),
                                start("channel", "multi", "gossip", "anna", "0.5"),
                                start("key", "lua", "theirs", "anna", "0.5"),
                                start("key", "toplevel", "yours", "anna", "0.5"),
                                start("command", "toplevel", "get", "anna", "2")};
  CHECK(log.starts_with("*5\r\n"));
  size_t at = 0;
  for (const std::string& entry : wanted) {
    INFO(entry);
    at = log.find(entry, at);
    REQUIRE(at != std::string::npos);
    ++at;
  }
  CHECK(log.find(bulk("entry-id") + integer(4) + bulk("timestamp-created") +
                 integer(server.now_ms() - 500) + bulk("timestamp-last-updated") +
                 integer(server.now_ms() - 500)) != std::string::npos);
  CHECK(root.run("ACL LOG 2").starts_with("*2\r\n" + wanted[0]));
  CHECK(root.run("ACL LOG 0") == "*0\r\n");
  CHECK(root.run("ACL LOG -1") == "*0\r\n");
  CHECK(root.run("ACL LOG 5").starts_with("*5\r\n"));
  CHECK(root.run("ACL LOG 6").starts_with("*5\r\n"));
  CHECK(root.run("ACL LOG x") == error("ERR value is not an integer or out of range"));
  CHECK(root.run("ACL LOG 1 2") ==
        error("ERR unknown subcommand or wrong number of arguments for 'LOG'. Try ACL HELP."));
  CHECK(root.run("ACL GENPASS 1 2") ==
        error("ERR unknown subcommand or wrong number of arguments for 'GENPASS'. Try ACL HELP."));
}

TEST_CASE("A user of some databases is refused in the others, and told which", "[acl]") {
  GuardedServer server;
  TestClient root(server);
  const std::string no_database = error("NOPERM No permissions to access database");
  CHECK(root.run("ACL SETUSER anna db=-1") ==
        error("ERR Error in ACL SETUSER modifier 'db=-1': The provided database ID is out of "
              "range"));
  Anna anna(server, "+@all ~* db=0,2");
  CHECK(anna.run("SET a 1") == kOk);
  CHECK(anna.run("SELECT 1") == no_database);
  CHECK(anna.run("SELECT 2") == kOk);
  CHECK(anna.run("COPY a b DB 1") == no_database);
  CHECK(anna.run("COPY a b DB 0") == integer(0));
  CHECK(anna.run("COPY a b REPLACE DB 1") == no_database);
  CHECK(anna.run("COPY a b DB 1 REPLACE") == no_database);
  CHECK(anna.run("COPY a b DB") == error("ERR syntax error"));
  CHECK(anna.run("FLUSHALL") == no_database);
  CHECK(anna.run("MOVE a 1") == no_database);
  CHECK(anna.run("SWAPDB 0 1") == no_database);
  CHECK(anna.run("SWAPDB 0 2") == kOk);
  CHECK(anna.run("SELECT 99") == error("ERR DB index is out of range"));
  CHECK(root.run("ACL DRYRUN anna SELECT 1") ==
        bulk("User anna has no permissions to access database 1"));
  CHECK(root.run("ACL GETUSER anna").find(bulk("databases") + bulk("db=0,2")) != std::string::npos);
  CHECK(root.run("ACL LOG 1").find(bulk("reason") + bulk("database")) != std::string::npos);

  anna.run("MULTI");
  CHECK(anna.run("SET a 1") == kQueued);
  root.run("ACL SETUSER anna resetdbs");
  CHECK(anna.run("EXEC") ==
        array({error("NOPERM ACLs rules changed between the moment the transaction was accumulated "
                     "and the EXEC call. This command is no longer allowed for the following "
                     "reason: no permission to access the database")}));
  CHECK(root.run("ACL SETUSER anna alldbs") == kOk);
  CHECK(anna.run("SELECT 1") == kOk);
  CHECK(root.run("ACL GETUSER anna").find(bulk("databases")) == std::string::npos);
}

TEST_CASE("Who has not logged in is told what is wrong, by Valkey only that", "[acl]") {
  GuardedServer server("requirepass secret");
  TestClient client(server);
  const std::string no_auth = error("NOAUTH Authentication required.");
  GuardedServer strict("emulate \"valkey 9.1\"\nrequirepass secret");
  TestClient stranger(strict);
  CHECK(stranger.run("NOSUCH") == no_auth);
  CHECK(stranger.run("GET") == no_auth);
  CHECK(stranger.run("DEBUG HELP") == no_auth);
  CHECK(stranger.run("AUTH") == error("ERR wrong number of arguments for 'auth' command"));
  CHECK(stranger.run("AUTH secret") == kOk);
  CHECK(stranger.run("GET") == error("ERR wrong number of arguments for 'get' command"));
  CHECK(client.run("GET a") == no_auth);
  CHECK(client.run("GET") == error("ERR wrong number of arguments for 'get' command"));
  CHECK(client.run("NOSUCH") == error("ERR unknown command 'NOSUCH'"));
  CHECK(client.run("AUTH") == error("ERR wrong number of arguments for 'auth' command"));
  CHECK(client.run("AUTH a b c") == error("ERR syntax error"));
  CHECK(client.run("HELLO") ==
        error("NOAUTH HELLO must be called with the client already authenticated, otherwise the "
              "HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and "
              "select the RESP protocol version at the same time"));
  CHECK(client.run("HELLO 3 AUTH default wrong") == kWrongPassword);
  CHECK(client.run("HELLO 1") == error("NOPROTO unsupported protocol version"));
  CHECK(client.run("HELLO 4") == error("NOPROTO unsupported protocol version"));
  CHECK(client.run("HELLO x") == error("ERR Protocol version is not an integer or out of range"));
  CHECK(client.run("HELLO 2 AUTH default") == error("ERR Syntax error in HELLO option 'AUTH'"));
  CHECK(client.run("HELLO 2 WHAT") == error("ERR Syntax error in HELLO option 'WHAT'"));
  CHECK(client.run("HELLO 2 AUTH default secret SETNAME me").starts_with("*14\r\n"));
  CHECK(client.run("CLIENT GETNAME") == bulk("me"));
}

TEST_CASE("Nodes of a cluster log in at nodes of a cluster alone", "[acl]") {
  GuardedServer server;
  TestClient client(server);
  CHECK(client.run_words({"AUTH", "internal connection", "x"}) ==
        error("ERR Cannot authenticate as an internal connection on non-cluster instances"));
  CHECK(client.run("AUTH x") ==
        error("ERR AUTH <password> called without any password configured for the default user. "
              "Are you sure your configuration is correct?"));
}

TEST_CASE("HELLO tells the zone of a server that has one", "[acl]") {
  GuardedServer server("availability-zone zone-a");
  TestClient client(server);
  const std::string reply = client.run("HELLO");
  CHECK(reply.starts_with("*16\r\n" + bulk("server")));
  CHECK(reply.ends_with(bulk("availability_zone") + bulk("zone-a")));
}

}  // namespace latchkey::tests
