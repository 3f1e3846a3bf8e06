#include <string>

#include "commands/groups.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

struct PubSubServer : ServerFixture {
  explicit PubSubServer(std::string_view settings = {})
      : ServerFixture(
            {commands::client_rows(), commands::config_rows(), commands::connection_rows(),
             commands::key_rows(), commands::pubsub_rows(), commands::scan_rows(),
             commands::string_batch_rows(), commands::string_rows(), commands::transaction_rows()},
            settings) {}
};

std::string confirmation(std::string_view type, std::string_view topic, int64_t count) {
  return array({bulk(type), bulk(topic), integer(count)});
}

std::string push(std::initializer_list<std::string> elements) {
  std::string text = array(elements);
  text.front() = '>';
  return text;
}

std::string message3(std::string_view channel, std::string_view text) {
  return push({bulk("message"), bulk(channel), bulk(text)});
}

}  // namespace

TEST_CASE("SUBSCRIBE confirms each channel with the number of subscriptions", "[pubsub]") {
  PubSubServer server;
  TestClient client(server);
  CHECK(client.run("SUBSCRIBE a b a") == confirmation("subscribe", "a", 1) +
                                             confirmation("subscribe", "b", 2) +
                                             confirmation("subscribe", "a", 2));
  CHECK(client.run("PSUBSCRIBE p*") == confirmation("psubscribe", "p*", 3));
  CHECK(client.run("SSUBSCRIBE s") == confirmation("ssubscribe", "s", 1));
  CHECK(client.run("UNSUBSCRIBE b") == confirmation("unsubscribe", "b", 2));
  CHECK(client.run("UNSUBSCRIBE b") == confirmation("unsubscribe", "b", 2));
}

TEST_CASE("UNSUBSCRIBE without names leaves all, and says so when there are none", "[pubsub]") {
  PubSubServer server;
  TestClient client(server);
  client.run("SUBSCRIBE a");
  client.run("PSUBSCRIBE p*");
  CHECK(client.run("UNSUBSCRIBE") == confirmation("unsubscribe", "a", 1));
  CHECK(client.run("UNSUBSCRIBE") == array({bulk("unsubscribe"), std::string(kNull), integer(1)}));
  CHECK(client.run("PUNSUBSCRIBE") == confirmation("punsubscribe", "p*", 0));
  CHECK(client.run("SUNSUBSCRIBE") ==
        array({bulk("sunsubscribe"), std::string(kNull), integer(0)}));
}

TEST_CASE("a subscriber of RESP2 may do little but subscribe", "[pubsub]") {
  PubSubServer server;
  TestClient client(server);
  client.run("SUBSCRIBE a");
  CHECK(client.run("GET key") ==
        error("ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / "
              "RESET are allowed in this context"));
  CHECK(client.run("PING") == bulks({"pong", ""}));
  CHECK(client.run("PING hello") == bulks({"pong", "hello"}));
  client.run("UNSUBSCRIBE a");
  CHECK(client.run("GET key") == kNull);
}

TEST_CASE("a subscriber of RESP3 may do everything", "[pubsub]") {
  PubSubServer server;
  TestClient client(server, 3);
  CHECK(client.run("SUBSCRIBE a") == push({bulk("subscribe"), bulk("a"), integer(1)}));
  CHECK(client.run("GET key") == kNull3);
  CHECK(client.run("PING") == status("PONG"));
}

TEST_CASE("a client's own message comes behind the reply", "[pubsub]") {
  PubSubServer server;
  TestClient client(server, 3);
  client.run("SUBSCRIBE a");
  CHECK(client.run("PUBLISH a hello") == integer(1) + message3("a", "hello"));
  const std::string text(50'000, 'x');
  CHECK(client.run_words({"PUBLISH", "a", text}) == integer(1) + message3("a", text));
}

TEST_CASE("messages to oneself in a transaction come behind its reply", "[pubsub]") {
  PubSubServer server;
  TestClient client(server);
  for (const char* line :
       {"MULTI", "SUBSCRIBE a", "PUBLISH a one", "UNSUBSCRIBE a", "PUBLISH a two"})
    client.run(line);
  CHECK(client.run("EXEC") == array({confirmation("subscribe", "a", 1), integer(1),
                                     confirmation("unsubscribe", "a", 0), integer(0)}) +
                                  bulks({"message", "a", "one"}));
}

TEST_CASE("messages and confirmations reach clients that have switched replies off", "[pubsub]") {
  PubSubServer server;
  TestClient client(server, 3);
  client.run("SUBSCRIBE a");
  CHECK(client.run("CLIENT REPLY OFF").empty());
  CHECK(client.run("PUBLISH a hello") == message3("a", "hello"));
  CHECK(client.run("SUBSCRIBE b") == push({bulk("subscribe"), bulk("b"), integer(2)}));
  CHECK(client.run("GET key").empty());
  CHECK(client.run("CLIENT REPLY ON") == kOk);
}

TEST_CASE("RESET ends subscriptions", "[pubsub]") {
  PubSubServer server;
  TestClient client(server);
  TestClient other(server);
  client.run("SUBSCRIBE a");
  client.run("PSUBSCRIBE *");
  CHECK(client.run("RESET") == status("RESET"));
  CHECK(other.run("PUBLISH a x") == integer(0));
  CHECK(client.run("GET key") == kNull);
}

TEST_CASE("PUBSUB tells who listens", "[pubsub]") {
  PubSubServer server;
  TestClient client(server);
  TestClient other(server);
  client.run("SUBSCRIBE a");
  other.run("SUBSCRIBE a");
  client.run("PSUBSCRIBE p* q*");
  other.run("PSUBSCRIBE p*");
  client.run("SSUBSCRIBE s");
  TestClient asker(server);
  CHECK(asker.run("PUBSUB CHANNELS") == bulks({"a"}));
  CHECK(asker.run("PUBSUB CHANNELS b*") == bulks({}));
  CHECK(asker.run("PUBSUB NUMSUB a b") == array({bulk("a"), integer(2), bulk("b"), integer(0)}));
  CHECK(asker.run("PUBSUB NUMPAT") == integer(2));
  CHECK(asker.run("PUBSUB SHARDCHANNELS") == bulks({"s"}));
  CHECK(asker.run("PUBSUB SHARDNUMSUB s a") ==
        array({bulk("s"), integer(1), bulk("a"), integer(0)}));
  CHECK(asker.run("PUBSUB CHANNELS a b") ==
        error("ERR unknown subcommand or wrong number of arguments for 'CHANNELS'. Try PUBSUB "
              "HELP."));
}

TEST_CASE("CLIENT LIST counts subscriptions, CLIENT KILL finds subscribers", "[pubsub]") {
  PubSubServer server;
  TestClient client(server);
  TestClient asker(server);
  client.run("SUBSCRIBE a b");
  client.run("PSUBSCRIBE p*");
  client.run("SSUBSCRIBE s");
  const std::string list = asker.run("CLIENT LIST TYPE pubsub");
  CHECK(list.find(" flags=P db=0 sub=2 psub=1 ssub=1 ") != list.npos);
  CHECK(asker.run("CLIENT KILL TYPE pubsub") == integer(1));
  CHECK(asker.run("PUBSUB NUMPAT") == integer(0));
}

TEST_CASE("keyspace notifications name the key or the event", "[pubsub]") {
  PubSubServer server("notify-keyspace-events KEA\n");
  TestClient listener(server);
  TestClient client(server);
  listener.run("PSUBSCRIBE __key*");
  client.run("SET name anna");
  CHECK(listener.take_output() == bulks({"pmessage", "__key*", "__keyspace@0__:name", "set"}) +
                                      bulks({"pmessage", "__key*", "__keyevent@0__:set", "name"}));
  client.run("CONFIG SET notify-keyspace-events Kg");
  client.run("SET name ben");
  client.run("DEL name");
  CHECK(listener.take_output() == bulks({"pmessage", "__key*", "__keyspace@0__:name", "del"}));
  client.run_words({"CONFIG", "SET", "notify-keyspace-events", ""});
  client.run("SET name ben");
  CHECK(listener.take_output().empty());
}

TEST_CASE("notifications tell of keys expired, missed and new", "[pubsub]") {
  PubSubServer server("notify-keyspace-events Exmn\n");
  TestClient listener(server);
  TestClient client(server);
  listener.run("PSUBSCRIBE __key*");
  client.run("SET name anna PX 100");
  CHECK(listener.take_output() == bulks({"pmessage", "__key*", "__keyevent@0__:new", "name"}));
  client.run("SET name ben PX 100");
  CHECK(listener.take_output().empty());
  server.advance_ms(100);
  client.run("GET name");
  CHECK(listener.take_output() ==
        bulks({"pmessage", "__key*", "__keyevent@0__:expired", "name"}) +
            bulks({"pmessage", "__key*", "__keyevent@0__:keymiss", "name"}));
}

TEST_CASE("SSUBSCRIBE is refused in a transaction", "[pubsub]") {
  PubSubServer server("");
  TestClient client(server);
  client.run("MULTI");
  client.run("SSUBSCRIBE s");
  CHECK(client.run("EXEC") == "*1\r\n-ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client\r\n");
}

TEST_CASE("The class n is added beside A, and taken away", "[pubsub]") {
  PubSubServer server("");
  TestClient listener(server);
  TestClient client(server);
  listener.run("PSUBSCRIBE __key*");
  client.run("CONFIG SET notify-keyspace-events EA");
  client.run("CONFIG SET notify-keyspace-events EAn");
  client.run("SET one 1");
  CHECK(listener.take_output() == bulks({"pmessage", "__key*", "__keyevent@0__:new", "one"}) +
                                      bulks({"pmessage", "__key*", "__keyevent@0__:set", "one"}));
  client.run("CONFIG SET notify-keyspace-events EA");
  client.run("SET two 2");
  CHECK(listener.take_output() == bulks({"pmessage", "__key*", "__keyevent@0__:set", "two"}));
}

TEST_CASE("SCAN with TYPE tells of no misses", "[pubsub]") {
  PubSubServer server("notify-keyspace-events Emx\n");
  TestClient listener(server);
  TestClient client(server);
  listener.run("PSUBSCRIBE __key*");
  client.run("SET a-name-longer-than-twenty-bytes 1 PX 1");
  server.advance_ms(1);
  const uint64_t misses = server.database().environment().figures.misses;
  client.run("SCAN 0 TYPE string");
  CHECK(server.database().environment().figures.misses == misses);
  CHECK(listener.take_output() ==
        bulks({"pmessage", "__key*", "__keyevent@0__:expired", "a-name-longer-than-twenty-bytes"}));
}

TEST_CASE("MSETEX tells of each key's deadline before its value", "[pubsub]") {
  PubSubServer server("notify-keyspace-events Eg$\n");
  TestClient listener(server);
  TestClient client(server);
  listener.run("PSUBSCRIBE __key*");
  client.run("MSETEX 1 a 1 EX 10");
  CHECK(listener.take_output() == bulks({"pmessage", "__key*", "__keyevent@0__:expire", "a"}) +
                                      bulks({"pmessage", "__key*", "__keyevent@0__:set", "a"}));
}

}  // namespace latchkey::tests
