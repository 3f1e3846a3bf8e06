#include "testing/calls.h"

#include <string>

#include "unit/catch.h"
#include "unit/testing/tested_server.h"

using namespace latchkey;
using tests::bulk;
using tests::error;
using tests::integer;
using tests::kOk;
using tests::TestClient;
using tests::TestedServer;

namespace {

constexpr std::string_view kSyntaxError = "-ERR syntax error\r\n";

struct RecordingServer : TestedServer {
  explicit RecordingServer(std::string_view settings = {}) : TestedServer(settings) {
    CHECK(admin.run("CALLS START") == kOk);
  }
  std::string count(const std::string& selector = {}) {
    return admin.run("CALLS COUNT" + (selector.empty() ? "" : " " + selector));
  }
  TestClient admin{*this};
};

}  // namespace

TEST_CASE("CALLS records what is sent between START and STOP") {
  TestedServer server;
  TestClient client(server);
  client.run("SET before 1");
  CHECK(server.server.layer<testing::Calls>().records().empty());
  CHECK(client.run("CALLS START") == kOk);
  client.run("SET a 1");
  client.run("GET a");
  CHECK(client.run("CALLS COUNT") == integer(2));
  CHECK(client.run("CALLS STOP") == kOk);
  client.run("GET a");
  CHECK(server.calls() == "SET a 1 -> OK, GET a -> \"1\"");
  CHECK((server.server.state() & server::kStateRecorded) == 0);

  client.run("CALLS START");
  client.run("PING");
  CHECK(server.calls() == "SET a 1 -> OK, GET a -> \"1\", PING -> PONG");
  CHECK(client.run("CALLS RESET") == kOk);
  client.run("PING");
  CHECK(server.calls() == "PING -> PONG");
  CHECK(server.call(0).id == 4);
}

TEST_CASE("CALLS LIST tells of each call who made it, where and when") {
  RecordingServer server;
  TestClient client(server);
  client.run("CLIENT SETNAME somebody");
  client.run("SELECT 3");
  server.admin.run("CALLS RESET");
  server.advance_ms(1500);
  client.run("INCR n");
  const auto& record = server.call(0);
  CHECK(record.time_us == server.now_ms() * 1000);
  CHECK(record.client_id == client->id);
  CHECK(record.duration_us >= 0);
  const std::string head = "*1\r\n*20\r\n" + bulk("id") + integer(3) + bulk("time-us") +
                           integer(record.time_us) + bulk("client-id") +
                           integer(static_cast<int64_t>(client->id)) + bulk("client-name") +
                           bulk("somebody") + bulk("user") + bulk("default") + bulk("db") +
                           integer(3) + bulk("context") + bulk("plain") + bulk("args") +
                           tests::bulks({"INCR", "n"}) + bulk("duration-us");
  const std::string reply = server.admin.run("CALLS LIST");
  CHECK(reply.substr(0, head.size()) == head);
  CHECK(reply.ends_with(bulk("reply") + bulk("(integer) 1")));
  TestClient modern(server, 3);
  CHECK(modern.run("CALLS LIST").starts_with("*1\r\n%10\r\n$2\r\nid\r\n"));
}

TEST_CASE("CALLS LIST gives the latest calls that match, the oldest of them first") {
  RecordingServer server;
  TestClient client(server);
  for (const char* key : {"a", "b", "c"}) client.run(std::string("SET ") + key + " 1");
  client.run("PING");
  const std::string reply = server.admin.run("CALLS LIST COMMAND set COUNT 2");
  CHECK(reply.starts_with("*2\r\n"));
  CHECK(reply.find(tests::bulks({"SET", "a", "1"})) == std::string::npos);
  CHECK(reply.find(tests::bulks({"SET", "b", "1"})) < reply.find(tests::bulks({"SET", "c", "1"})));
  CHECK(server.admin.run("CALLS LIST COUNT 0") == "*0\r\n");
  CHECK(server.admin.run("CALLS LIST COUNT 100").starts_with("*4\r\n"));
}

TEST_CASE("Selectors choose calls by command, key, client, user and database") {
  RecordingServer server;
  TestClient one(server);
  TestClient two(server);
  two.run("ACL SETUSER anna on nopass ~* +@all");
  two.run("AUTH anna x");
  one.run("CLIENT SETNAME worker-1");
  server.admin.run("CALLS RESET");
  one.run("MSET lock:a 1 other 2");
  one.run("GET lock:a");
  two.run("SELECT 5");
  two.run("GET lock:b");
  two.run("CONFIG GET port");
  two.run("CLIENT ID");
  CHECK(server.count() == integer(6));
  CHECK(server.count("COMMAND get") == integer(2));
  CHECK(server.count("COMMAND GET COMMAND mset") == integer(3));
  CHECK(server.count("COMMAND config") == integer(1));
  CHECK(server.count("COMMAND config|get") == integer(1));
  CHECK(server.count("COMMAND config|set") == integer(0));
  CHECK(server.count("COMMAND @read") == integer(2));
  CHECK(server.count("COMMAND @write") == integer(1));
  CHECK(server.count("KEY lock:*") == integer(3));
  CHECK(server.count("KEY other") == integer(1));
  CHECK(server.count("KEY *") == integer(3));
  CHECK(server.count("CLIENT worker-*") == integer(2));
  CHECK(server.count("CLIENT " + std::to_string(two->id)) == integer(4));
  CHECK(server.count("USER anna") == integer(4));
  CHECK(server.count("USER default") == integer(2));
  CHECK(server.count("DB 5") == integer(3));
  CHECK(server.count("COMMAND get KEY lock:* USER anna DB 5") == integer(1));
  CHECK(server.count("COMMAND get KEY lock:* USER anna DB 0") == integer(0));
}

TEST_CASE("Words of selectors that say nothing are refused") {
  RecordingServer server;
  CHECK(server.count("COMMAND nosuch") == error("ERR unknown command 'nosuch'"));
  CHECK(server.count("COMMAND config|nosuch") == error("ERR unknown command 'config|nosuch'"));
  CHECK(server.count("COMMAND @nosuch") == error("ERR unknown category '@nosuch'"));
  CHECK(server.count("COMMAND") == kSyntaxError);
  CHECK(server.count("KEY") == kSyntaxError);
  CHECK(server.count("KEY a KEY b") == kSyntaxError);
  CHECK(server.count("DB 0 DB 0") == kSyntaxError);
  CHECK(server.count("DB x") == error("ERR value is not an integer or out of range"));
  CHECK(server.count("DB 16") == error("ERR DB index is out of range"));
  CHECK(server.count("DB -1") == error("ERR DB index is out of range"));
  CHECK(server.count("nonsense") == kSyntaxError);
  CHECK(server.count("KEY " + std::string(1025, 'x')) ==
        error("ERR a pattern may have up to 1024 bytes"));
  std::string many = "COMMAND get";
  for (int i = 0; i < 128; ++i) many += " COMMAND get";
  CHECK(server.count(many) == error("ERR up to 128 commands may be named"));
}

TEST_CASE("Subcommands of CALLS refuse what they do not understand") {
  TestedServer server;
  TestClient client(server);
  const std::string range = "ERR value is out of range, value must between ";
  CHECK(client.run("CALLS START MAX") == kSyntaxError);
  CHECK(client.run("CALLS START NOW") == kSyntaxError);
  CHECK(client.run("CALLS START MAX 0") == error(range + "1 and 1000000"));
  CHECK(client.run("CALLS START MAX 1000001") == error(range + "1 and 1000000"));
  CHECK(client.run("CALLS START MAX x") == error("ERR value is not an integer or out of range"));
  CHECK(client.run("CALLS LIST COUNT -1") == error(range + "0 and 9223372036854775807"));
  CHECK(client.run("CALLS LIST COUNT") == kSyntaxError);
  CHECK(client.run("CALLS LIST 5") == kSyntaxError);
  CHECK(client.run("CALLS LIST KEY a KEY b") == kSyntaxError);
  CHECK(client.run("CALLS WAIT x 0") == error("ERR value is not an integer or out of range"));
  CHECK(client.run("CALLS WAIT -1 0") == error(range + "0 and 9223372036854775807"));
  CHECK(client.run("CALLS WAIT 1 x") == error("ERR timeout is not an integer or out of range"));
  CHECK(client.run("CALLS WAIT 1 -1") == error("ERR timeout is negative"));
  CHECK(client.run("CALLS WAIT 1 9223372036854775807") == error("ERR timeout is out of range"));
  CHECK(client.run("CALLS WAIT 1 0 COMMAND nosuch") == error("ERR unknown command 'nosuch'"));
  CHECK(client.run("CALLS WAIT 1 0 nonsense") == kSyntaxError);
  CHECK(client.run("CALLS WAIT 1 0") == error("ERR no calls are being recorded, use CALLS START"));
  CHECK(client.run("CALLS WAIT 1") ==
        error("ERR wrong number of arguments for 'calls|wait' command"));
  CHECK(client.run("CALLS NOSUCH") == error("ERR unknown subcommand 'NOSUCH'. Try CALLS HELP."));
  CHECK(client.run("CALLS HELP").find("WAIT <count> <timeout-ms>") != std::string::npos);
}

TEST_CASE("Requests that are refused are recorded, those of CALLS are not") {
  RecordingServer server;
  TestClient client(server);
  client.run("NOSUCH x");
  client.run("GET");
  client.run("LPUSH list a");
  client.run("GET list");
  client.run("CALLS COUNT");
  client.run("CALLS NOSUCH");
  CHECK(server.calls() ==
        "NOSUCH x -> (error) ERR unknown command 'NOSUCH', with args beginning with: 'x' , "
        "GET -> (error) ERR wrong number of arguments for 'get' command, "
        "LPUSH list a -> (integer) 1, "
        "GET list -> (error) WRONGTYPE Operation against a key holding the wrong kind of valu");
}

TEST_CASE("Calls of transactions and scripts say so, and follow what made them") {
  RecordingServer server;
  TestClient client(server);
  client.run("MULTI");
  client.run("SET a 1");
  client.run_words({"EVAL", "return redis.call('GET', 'a')", "0"});
  client.run("EXEC");
  CHECK(server.calls() ==
        "MULTI -> OK, EXEC -> (array) 2, SET a 1 -> OK, "
        "EVAL return redis.call('GET', 'a') 0 -> \"1\", GET a -> \"1\"");
  using Context = server::Call::Context;
  CHECK(server.call(1).context == Context::kPlain);
  CHECK(server.call(2).context == Context::kMulti);
  CHECK(server.call(3).context == Context::kMulti);
  CHECK(server.call(4).context == Context::kScript);
  // A script's calls are those of whoever called it.
  CHECK(server.call(4).client_id == client->id);
  CHECK(server.call(4).user == "default");
}

TEST_CASE("A transaction that is recorded from its middle on is recorded from there") {
  TestedServer server;
  TestClient client(server);
  client.run("MULTI");
  client.run("CALLS START");
  client.run("SET a 1");
  client.run("CALLS STOP");
  client.run("SET b 1");
  client.run("EXEC");
  CHECK(server.calls() == "SET a 1 -> OK");

  client.run("CALLS START");
  client.run("MULTI");
  client.run("SET a 2");
  client.run("CALLS RESET");
  client.run("SET b 2");
  CHECK(client.run("EXEC") == tests::array({std::string(kOk), std::string(kOk), std::string(kOk)}));
  CHECK(server.calls() == "SET b 2 -> OK");
}

TEST_CASE("Secrets are not recorded, and long requests are cut") {
  RecordingServer server;
  TestClient client(server);
  client.run("AUTH default geheim");
  CHECK(server.call(0).words == std::vector<std::string>{"AUTH", "(redacted)", "(redacted)"});
  server.admin.run("CALLS RESET");
  client.run("SET " + std::string(200, 'k') + " " + std::string(200, 'v'));
  CHECK(server.call(0).words[1] == std::string(128, 'k') + "... (72 more bytes)");
  // A key of which a part is missing is none to selectors.
  CHECK(server.count("KEY k*") == integer(0));
  std::string words = "MSET";
  for (int i = 0; i < 50; ++i) words += " k" + std::to_string(i) + " v";
  client.run(words);
  CHECK(server.call(1).words.size() == 32);
  CHECK(server.call(1).words.back() == "... (70 more arguments)");
  CHECK(server.count("KEY k0") == integer(1));
  CHECK(server.count("KEY k49") == integer(0));
}

TEST_CASE("The oldest calls go when there are as many as may be") {
  TestedServer server;
  TestClient client(server);
  client.run("CALLS START MAX 3");
  for (int i = 0; i < 10; ++i) client.run("ECHO " + std::to_string(i));
  CHECK(server.calls() == "ECHO 7 -> \"7\", ECHO 8 -> \"8\", ECHO 9 -> \"9\"");
  client.run("CALLS START MAX 1");
  CHECK(server.calls() == "ECHO 9 -> \"9\"");
  // The transaction itself is not on record any more when it ends.
  client.run("MULTI");
  client.run("PING");
  client.run("ECHO last");
  client.run("EXEC");
  CHECK(server.calls() == "ECHO last -> \"last\"");
}

TEST_CASE("A call that waits is on record at once, and its reply when it comes") {
  RecordingServer server;
  TestClient client(server);
  client.run("BLPOP list 0");
  CHECK(server.call(0).state == testing::Calls::State::kWaiting);
  CHECK(server.count("COMMAND blpop") == integer(1));
  CHECK(server.admin.run("CALLS LIST").ends_with(bulk("(waiting)")));
  server.admin.run("RPUSH list a");
  CHECK(server.call(0).reply == "(array) 2");
  CHECK(server.call(0).state == testing::Calls::State::kEnded);
  server.admin.run("CALLS RESET");

  client.run("BLPOP list 1");
  server.advance_ms(1001);
  server.tick();
  CHECK(server.calls() == "BLPOP list 1 -> (nil)");
  server.admin.run("CALLS RESET");

  client.run("BLPOP list 0");
  client->close();
  CHECK(server.calls() == "BLPOP list 0 -> (none)");
}

TEST_CASE("A call that looks from time to time whether something is there waits all the while") {
  RecordingServer server;
  TestClient client(server);
  server.admin.run("XGROUP CREATE stream group 0 MKSTREAM");
  server.admin.run("CALLS RESET");
  client.run("XREADGROUP GROUP group name BLOCK 0 CLAIM 100 STREAMS stream >");
  for (int i = 0; i < 3; ++i) {
    server.advance_ms(150);
    server.tick();
    CHECK(server.call(0).state == testing::Calls::State::kWaiting);
  }
  server.admin.run("XADD stream 1-1 a b");
  CHECK(server.call(0).state == testing::Calls::State::kEnded);
  CHECK(server.call(0).reply == "(array) 1");
}

TEST_CASE("CALLS WAIT replies as soon as enough calls have come") {
  RecordingServer server;
  TestClient client(server);
  TestClient waiter(server);
  client.run("SET a 1");
  CHECK(waiter.run("CALLS WAIT 1 0 COMMAND set") == integer(1));
  CHECK(waiter.run("CALLS WAIT 0 0") == integer(1));
  CHECK(waiter.run("CALLS WAIT 3 0 COMMAND set KEY a") == "");
  client.run("SET a 2");
  client.run("SET b 2");
  client.run("GET a");
  CHECK(waiter.take_output() == "");
  client.run("SET a 3");
  CHECK(waiter.take_output() == integer(3));
  CHECK(waiter.run("PING") == "+PONG\r\n");

  // Who waits counts on when records are dropped.
  CHECK(waiter.run("CALLS WAIT 5 0 COMMAND set KEY a") == "");
  client.run("SET a 4");
  server.admin.run("CALLS RESET");
  client.run("SET a 5");
  CHECK(waiter.take_output() == integer(5));
}

TEST_CASE("CALLS WAIT replies with what there is when its time is over") {
  RecordingServer server;
  TestClient client(server);
  TestClient waiter(server);
  CHECK(waiter.run("CALLS WAIT 2 100 COMMAND set") == "");
  client.run("SET a 1");
  server.advance_ms(99);
  server.tick();
  CHECK(waiter.take_output() == "");
  server.advance_ms(1);
  server.tick();
  CHECK(waiter.take_output() == integer(1));

  SECTION("or when it is unblocked") {
    CHECK(waiter.run("CALLS WAIT 2 0 COMMAND set") == "");
    CHECK(client.run("CLIENT UNBLOCK " + std::to_string(waiter->id)) == integer(1));
    CHECK(waiter.take_output() == integer(1));
  }
  SECTION("or when recording ends") {
    CHECK(waiter.run("CALLS WAIT 2 0 COMMAND set") == "");
    client.run("CALLS STOP");
    CHECK(waiter.take_output() == integer(1));
  }
  SECTION("or at once in a transaction") {
    waiter.run("MULTI");
    waiter.run("CALLS WAIT 2 0 COMMAND set");
    CHECK(waiter.run("EXEC") == tests::array({integer(1)}));
  }
  SECTION("and a client that goes while it waits leaves nothing behind") {
    CHECK(waiter.run("CALLS WAIT 2 0 COMMAND set") == "");
    waiter->close();
    client.run("SET a 2");
    CHECK(server.count("COMMAND set") == integer(2));
  }
}

TEST_CASE("CALLS is for administrators, and may be disabled") {
  TestedServer server;
  TestClient client(server);
  client.run("ACL SETUSER user on nopass ~* +@all -@dangerous");
  client.run("AUTH user x");
  CHECK(client.run("CALLS START").starts_with("-NOPERM "));
  TestedServer closed("enable-test-commands no\n");
  TestClient other(closed);
  CHECK(other.run("CALLS START").starts_with("-ERR CALLS command not allowed."));
  CHECK(other.run("CALLS COUNT").starts_with("-ERR CALLS command not allowed."));
}

TEST_CASE("CALLS LIST tells where a call came from") {
  RecordingServer server;
  TestClient client(server);
  client.run("SET a 1");
  client.run("MULTI");
  client.run("SET b 2");
  client.run("EXEC");
  client.run_words({"EVAL", "return redis.call('SET', 'c', '3')", "0"});
  const std::string list = server.admin.run("CALLS LIST");
  const auto called = [&](const std::string& context, const char* key, const char* value) {
    return list.find(bulk("context") + bulk(context) + bulk("args") +
                     tests::bulks({"SET", key, value})) != std::string::npos;
  };
  INFO(list);
  CHECK(called("plain", "a", "1"));
  CHECK(called("multi", "b", "2"));
  CHECK(called("script", "c", "3"));
}
