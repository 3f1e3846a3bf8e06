
#include "commands/groups.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

TEST_CASE("COMMAND COUNT counts commands, LIST names subcommands too", "[command]") {
  ServerFixture server({commands::command_rows(), commands::transaction_rows()});
  TestClient client(server);
  CHECK(client.run("COMMAND COUNT") == integer(6));
  CHECK(client.run("COMMAND LIST FILTERBY PATTERN command|get*") ==
        bulks({"command|getkeys", "command|getkeysandflags"}));
}

TEST_CASE("COMMAND LIST filters by module, category and pattern", "[command]") {
  ServerFixture server({commands::command_rows(), commands::transaction_rows()});
  TestClient client(server);
  CHECK(client.run("COMMAND LIST FILTERBY ACLCAT Transaction") ==
        bulks({"discard", "exec", "multi", "unwatch", "watch"}));
  CHECK(client.run("COMMAND LIST FILTERBY ACLCAT nosuch") == "*0\r\n");
  CHECK(client.run("COMMAND LIST FILTERBY MODULE any") == "*0\r\n");
  CHECK(client.run("COMMAND LIST FILTERBY PATTERN *WATCH") == bulks({"unwatch", "watch"}));
  CHECK(client.run("COMMAND LIST FILTERBY PATTERN") == error("ERR syntax error"));
  CHECK(client.run("COMMAND LIST FILTERBY NAME a") == error("ERR syntax error"));
  CHECK(client.run("COMMAND LIST x") == error("ERR syntax error"));
}

TEST_CASE("COMMAND INFO answers null for what it does not know", "[command]") {
  ServerFixture server({commands::command_rows(), commands::transaction_rows()});
  TestClient client(server);
  CHECK(client.run("COMMAND INFO nosuch command|nosuch") == "*2\r\n$-1\r\n$-1\r\n");
  CHECK(client.run("COMMAND INFO multi") ==
        "*1\r\n*10\r\n$5\r\nmulti\r\n:1\r\n*5\r\n+noscript\r\n+loading\r\n+stale\r\n+fast\r\n+"
        "allow_busy\r\n"
        ":0\r\n:0\r\n:0\r\n*2\r\n+@fast\r\n+@transaction\r\n*0\r\n*0\r\n*0\r\n");
  CHECK(client.run("COMMAND") == client.run("COMMAND INFO"));
}

TEST_CASE("COMMAND DOCS leaves out what it does not know", "[command]") {
  ServerFixture server({commands::command_rows(), commands::transaction_rows()});
  TestClient client(server);
  CHECK(client.run("COMMAND DOCS nosuch") == "*0\r\n");
  CHECK(client.run("COMMAND DOCS MULTI nosuch") ==
        "*2\r\n$5\r\nmulti\r\n*8\r\n$7\r\nsummary\r\n$21\r\nStarts a "
        "transaction.\r\n$5\r\nsince\r\n$5\r\n1.2.0\r\n"
        "$5\r\ngroup\r\n$12\r\ntransactions\r\n$10\r\ncomplexity\r\n$4\r\nO(1)\r\n");
}

TEST_CASE("COMMAND GETKEYS finds the keys of a request, or says why it cannot", "[command]") {
  ServerFixture server({commands::command_rows(), commands::transaction_rows()});
  TestClient client(server);
  CHECK(client.run("COMMAND GETKEYS watch a b") == bulks({"a", "b"}));
  CHECK(client.run("COMMAND GETKEYSANDFLAGS watch a") ==
        array({array({bulk("a"), array({status("RO")})})}));
  CHECK(client.run("COMMAND GETKEYS nosuch a") == error("ERR Invalid command specified"));
  CHECK(client.run("COMMAND GETKEYS multi") == error("ERR The command has no key arguments"));
  CHECK(client.run("COMMAND GETKEYS watch") ==
        error("ERR Invalid number of arguments specified for command"));
}

TEST_CASE("Every second argument of commands that set several keys is a key", "[command]") {
  ServerFixture server({commands::command_rows(), commands::string_batch_rows()});
  TestClient client(server);
  for (const std::string_view request :
       {"MSET a 1 b 2 c 3", "MSETNX a 1 b 2 c 3", "MSETEX 3 a 1 b 2 c 3", "MGET a b c"}) {
    CAPTURE(request);
    CHECK(client.run("COMMAND GETKEYS " + std::string(request)) == bulks({"a", "b", "c"}));
  }
}

TEST_CASE("What SET does to its key is told by the options of the request", "[command]") {
  ServerFixture server({commands::command_rows(), commands::string_rows()});
  TestClient client(server);
  const auto told = [&](std::string_view request) {
    return client.run("COMMAND GETKEYSANDFLAGS " + std::string(request));
  };
  const auto key_with = [](std::initializer_list<std::string> flags) {
    return array({array({bulk("key"), array(flags)})});
  };
  const std::string written = key_with({status("OW"), status("update")});
  const std::string read_too = key_with({status("RW"), status("access"), status("update")});
  for (const std::string_view request :
       {"SET key value", "SET key value NX", "SET key value XX EX 10", "SET key value KEEPTTL",
        "SET key GET", "SET key IFEQ"}) {
    CAPTURE(request);
    CHECK(told(request) == written);
  }
  for (const std::string_view request : {"SET key value GET", "SET key value NX get",
                                         "SET key value PX 10 GET", "SET key value IFEQ old GET"}) {
    CAPTURE(request);
    CHECK(told(request) == read_too);
  }
  const std::string compared = key_with({status("RW"), status("update")});
  for (const std::string_view request : {"SET key value IFEQ old", "SET key value IFNE old",
                                         "SET key value IFDEQ 0123", "SET key value IFDNE 0123"}) {
    CAPTURE(request);
    CHECK(told(request) == compared);
  }
  CHECK(client.run("COMMAND GETKEYS SET key value GET") == bulks({"key"}));
}

TEST_CASE("Commands of strings say what they do to their key", "[command]") {
  ServerFixture server({commands::command_rows(), commands::string_rows()});
  TestClient client(server);
  const auto flags_of = [&](std::string_view request) {
    return client.run("COMMAND GETKEYSANDFLAGS " + std::string(request));
  };
  const auto key_with = [](std::initializer_list<std::string> flags) {
    return array({array({bulk("key"), array(flags)})});
  };
  CHECK(flags_of("GET key") == key_with({status("RO"), status("access")}));
  CHECK(flags_of("GETDEL key") == key_with({status("RW"), status("access"), status("delete")}));
  CHECK(flags_of("GETEX key") == key_with({status("RW"), status("access"), status("update")}));
  CHECK(flags_of("GETSET key value") ==
        key_with({status("RW"), status("access"), status("update")}));
  CHECK(flags_of("SETEX key 10 value") == key_with({status("OW"), status("update")}));
  CHECK(flags_of("PSETEX key 10 value") == key_with({status("OW"), status("update")}));
  CHECK(flags_of("SETNX key value") == key_with({status("OW"), status("insert")}));
}

TEST_CASE("COMMAND refuses unknown subcommands and tells of HELP", "[command]") {
  ServerFixture server({commands::command_rows(), commands::transaction_rows()});
  TestClient client(server);
  CHECK(client.run("COMMAND nosuch") ==
        error("ERR unknown subcommand 'nosuch'. Try COMMAND HELP."));
  CHECK(client.run("COMMAND COUNT x") ==
        error("ERR wrong number of arguments for 'command|count' command"));
  const std::string help = client.run("COMMAND HELP");
  CHECK(help.find("+COMMAND <subcommand> [<arg> [value] [opt] ...]. Subcommands are:\r\n") !=
        std::string::npos);
}

TEST_CASE("DELEX reads its key only to compare it", "[command]") {
  ServerFixture server({commands::command_rows(), commands::string_condition_rows()});
  TestClient client(server);
  const auto told = [&](std::string_view request) {
    return client.run("COMMAND GETKEYSANDFLAGS " + std::string(request));
  };
  const auto key_with = [](std::string_view flag) {
    return array({array({bulk("key"), array({status(flag), status("delete")})})});
  };
  for (const std::string_view request : {"DELEX key", "DELEX key nosuch x"})
    CHECK(told(request) == key_with("RM"));
  for (const std::string_view request : {"DELEX key IFEQ x", "DELEX key ifdne x", "DELEX key IFNE",
                                         "DELEX key nosuch IFEQ", "DELEX key IFDEQ x y"})
    CHECK(told(request) == key_with("RW"));
}

}  // namespace latchkey::tests
