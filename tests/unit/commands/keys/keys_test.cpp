
#include "commands/groups.h"
#include "unit/catch.h"
#include "unit/propagation_recorder.h"
#include "unit/server_fixture.h"
#include "unit/testing/tested_server.h"

namespace latchkey::tests {

namespace {

struct KeysFixture : ServerFixture {
  explicit KeysFixture(std::string_view settings = {})
      : ServerFixture({commands::database_rows(), commands::expire_rows(), commands::key_rows(),
                       commands::object_rows(), commands::string_rows()},
                      settings) {}
};

}  // namespace

TEST_CASE("EXISTS and TOUCH count a key as often as it is named", "[keys]") {
  KeysFixture server;
  TestClient client(server);
  client.run("SET a 1");
  CHECK(client.run("EXISTS a a b") == integer(2));
  CHECK(client.run("TOUCH a b a") == integer(2));
  CHECK(server.database().environment().figures.hits == 4);
  CHECK(server.database().environment().figures.misses == 2);
}

TEST_CASE("DEL and UNLINK remove each key once and tell of it", "[keys]") {
  KeysFixture server;
  TestClient client(server);
  client.run("SET a 1");
  client.run("SET b 1");
  server.events();
  server.changes();
  CHECK(client.run("DEL a a c") == integer(1));
  CHECK(client.run("UNLINK b c") == integer(1));
  CHECK(server.events() == "del a, del b");
  CHECK(server.changes() == 2);
}

TEST_CASE("DEL of a key past its deadline removes nothing: it had expired", "[keys]") {
  KeysFixture server;
  TestClient client(server);
  client.run("SET a 1");
  client.run("PEXPIRE a 10");
  server.events();
  server.advance_ms(10);
  CHECK(client.run("DEL a") == integer(0));
  CHECK(server.events() == "expired a");
  CHECK(server.database().environment().figures.expired_keys == 1);
}

TEST_CASE("TYPE names the type, or none", "[keys]") {
  KeysFixture server;
  TestClient client(server);
  client.run("SET a 1");
  CHECK(client.run("TYPE a") == status("string"));
  CHECK(client.run("TYPE b") == status("none"));
}

TEST_CASE("RENAME moves value and deadline and overwrites what was there", "[keys]") {
  KeysFixture server;
  TestClient client(server);
  client.run("SET from value");
  client.run("PEXPIRE from 1000");
  client.run("SET to other");
  server.events();
  server.changes();
  CHECK(client.run("RENAME from to") == kOk);
  CHECK(client.run("GET to") == bulk("value"));
  CHECK(client.run("PTTL to") == integer(1000));
  CHECK(client.run("EXISTS from") == integer(0));
  CHECK(server.events() == "rename_from from, rename_to to");
  CHECK(server.changes() == 1);
}

TEST_CASE("RENAME onto a volatile key does not take over its deadline", "[keys]") {
  KeysFixture server;
  TestClient client(server);
  client.run("SET from value");
  client.run("SET to other");
  client.run("EXPIRE to 100");
  CHECK(client.run("RENAME from to") == kOk);
  CHECK(client.run("TTL to") == integer(-1));
  CHECK(server.database().volatile_size() == 0);
}

TEST_CASE("RENAME to itself changes nothing, without a source it is an error", "[keys]") {
  KeysFixture server;
  TestClient client(server);
  CHECK(client.run("RENAME a a") == error("ERR no such key"));
  CHECK(client.run("RENAMENX a b") == error("ERR no such key"));
  client.run("SET a 1");
  server.events();
  CHECK(client.run("RENAME a a") == kOk);
  CHECK(client.run("RENAMENX a a") == integer(0));
  CHECK(server.events().empty());
}

TEST_CASE("RENAMENX leaves a taken name alone, unless its time has come", "[keys]") {
  KeysFixture server;
  TestClient client(server);
  client.run("SET a 1");
  client.run("SET b 2");
  CHECK(client.run("RENAMENX a b") == integer(0));
  client.run("PEXPIRE b 5");
  server.advance_ms(5);
  CHECK(client.run("RENAMENX a b") == integer(1));
  CHECK(client.run("GET b") == bulk("1"));
}

TEST_CASE("MOVE carries value and deadline to another database", "[keys]") {
  KeysFixture server;
  TestClient client(server);
  client.run("SET a value");
  client.run("EXPIRE a 100");
  server.events();
  server.changes();
  CHECK(client.run("MOVE a 3") == integer(1));
  CHECK(server.events() == "move_from a, move_to a");
  CHECK(server.changes() == 1);
  CHECK(client.run("DBSIZE") == integer(0));
  client.run("SELECT 3");
  CHECK(client.run("GET a") == bulk("value"));
  CHECK(client.run("TTL a") == integer(100));
}

TEST_CASE("MOVE refuses the same database, a taken name and bad numbers", "[keys]") {
  KeysFixture server;
  TestClient client(server);
  CHECK(client.run("MOVE a 0") == error("ERR source and destination objects are the same"));
  CHECK(client.run("MOVE a 16") == error("ERR DB index is out of range"));
  CHECK(client.run("MOVE a -1") == error("ERR DB index is out of range"));
  CHECK(client.run("MOVE a x") == error("ERR value is not an integer or out of range"));
  CHECK(client.run("MOVE a 1") == integer(0));
  client.run("SET a 1");
  client.run("MOVE a 1");
  client.run("SET a 2");
  CHECK(client.run("MOVE a 1") == integer(0));
  CHECK(client.run("GET a") == bulk("2"));
}

TEST_CASE("COPY makes an independent value with the source's deadline", "[keys]") {
  KeysFixture server;
  TestClient client(server);
  const std::string large(1000, 'x');
  client.run_words({"SET", "a", large});
  client.run("PEXPIRE a 700");
  server.events();
  CHECK(client.run("COPY a b") == integer(1));
  CHECK(server.events() == "copy_to b");
  client.run("SET a short");
  CHECK(client.run("GET b") == bulk(large));
  CHECK(client.run("PTTL b") == integer(700));
}

TEST_CASE("COPY overwrites only with REPLACE, and into any database", "[keys]") {
  KeysFixture server;
  TestClient client(server);
  CHECK(client.run("COPY a b") == integer(0));
  client.run("SET a 1");
  client.run("SET b 2");
  CHECK(client.run("COPY a b") == integer(0));
  CHECK(client.run("COPY a b REPLACE") == integer(1));
  CHECK(client.run("GET b") == bulk("1"));
  CHECK(client.run("COPY a a") == error("ERR source and destination objects are the same"));
  CHECK(client.run("COPY a a DB 1") == integer(1));
  CHECK(client.run("COPY a b DB 99") == error("ERR DB index is out of range"));
  CHECK(client.run("COPY a b NO") == error("ERR syntax error"));
  CHECK(client.run("COPY a b DB") == error("ERR syntax error"));
}

TEST_CASE("RANDOMKEY gives a key that has not expired", "[keys]") {
  KeysFixture server;
  TestClient client(server);
  CHECK(client.run("RANDOMKEY") == kNull);
  for (int i = 0; i < 300; ++i) {
    const std::string key = "volatile" + std::to_string(i);
    client.run_words({"SET", key, "1"});
    client.run_words({"PEXPIRE", key, "1"});
  }
  client.run("SET lasting 1");
  server.advance_ms(1);
  CHECK(client.run("RANDOMKEY") == bulk("lasting"));
  client.run("DEL lasting");
  CHECK(client.run("RANDOMKEY") == kNull);
}

TEST_CASE("OBJECT shows the form of a value", "[keys]") {
  KeysFixture server;
  TestClient client(server);
  client.run("SET number 10000");
  client.run("SET small 9999");
  client.run("SET text hello");
  CHECK(client.run("OBJECT ENCODING number") == bulk("int"));
  CHECK(client.run("OBJECT ENCODING text") == bulk("embstr"));
  CHECK(client.run("OBJECT ENCODING missing") == kNull);
  CHECK(client.run("OBJECT REFCOUNT number") == integer(1));
  CHECK(client.run("OBJECT REFCOUNT small") == integer(1));
  CHECK(client.run("OBJECT REFCOUNT missing") == kNull);
}

TEST_CASE("OBJECT IDLETIME counts seconds since the last use; asking is no use", "[keys]") {
  KeysFixture server;
  TestClient client(server);
  client.run("SET a 1");
  client.run("SET b 1");
  server.advance_ms(5000);
  client.run("EXISTS a");
  client.run("TYPE a");
  client.run("TTL a");
  client.run("OBJECT ENCODING a");
  CHECK(client.run("OBJECT IDLETIME a") == integer(5));
  client.run("TOUCH a");
  CHECK(client.run("OBJECT IDLETIME a") == integer(0));
  CHECK(client.run("OBJECT IDLETIME b") == integer(5));
  client.run("RENAME b c");
  CHECK(client.run("OBJECT IDLETIME c") == integer(0));
  CHECK_THAT(client.run("OBJECT FREQ a"),
             Catch::Matchers::StartsWith("-ERR An LFU maxmemory policy is not selected"));
}

TEST_CASE("A client in NO-TOUCH mode leaves no trace but with TOUCH", "[keys]") {
  KeysFixture server;
  TestClient client(server);
  client.run("SET a 1");
  client->set(server::kClientNoTouch);
  server.advance_ms(3000);
  client.run("GET a");
  CHECK(client.run("OBJECT IDLETIME a") == integer(3));
  client.run("TOUCH a");
  CHECK(client.run("OBJECT IDLETIME a") == integer(0));
}

TEST_CASE("OBJECT FREQ counts uses under an LFU policy", "[keys]") {
  KeysFixture server("maxmemory-policy allkeys-lfu\nlfu-log-factor 0\nlfu-decay-time 1\n");
  TestClient client(server);
  client.run("SET a value");
  CHECK(client.run("OBJECT FREQ a") == integer(5));
  client.run("GET a");
  client.run("TOUCH a");
  CHECK(client.run("OBJECT FREQ a") == integer(7));
  server.advance_ms(2 * 60'000);
  CHECK(client.run("OBJECT FREQ a") == integer(5));
  CHECK(client.run("OBJECT FREQ missing") == kNull);
  CHECK_THAT(client.run("OBJECT IDLETIME a"),
             Catch::Matchers::StartsWith("-ERR An LFU maxmemory policy is selected"));
  client.run("COPY a b");
  CHECK(client.run("OBJECT FREQ b") == integer(5));
}

TEST_CASE("OBJECT ENCODING names encodings as the emulated release does", "[keys]") {
  const auto encoding = [](std::string_view settings, const char* key) {
    TestedServer server(settings);
    TestClient client(server);
    client.run("HSET hash a 1");
    client.run("HSET timed a 1 b 2");
    client.run("HEXPIRE timed 100 FIELDS 1 a");
    client.run("RPUSH list a");
    client.run("CONFIG SET hash-max-listpack-entries 1");
    client.run("HSET large a 1 b 2");
    return client.run("OBJECT ENCODING " + std::string(key));
  };
  CHECK(encoding("emulate \"valkey 9.1\"\n", "hash") == bulk("listpack"));
  CHECK(encoding("emulate \"valkey 9.1\"\n", "timed") == bulk("hashtable"));
  CHECK(encoding("emulate \"valkey 9.1\"\n", "large") == bulk("hashtable"));
  CHECK(encoding("emulate \"valkey 9.1\"\n", "list") == bulk("listpack"));
  CHECK(encoding("", "timed") == bulk("listpackex"));
  CHECK(encoding("emulate \"redis 7.0\"\n", "list") == bulk("quicklist"));
  CHECK(encoding("emulate \"redis 7.2\"\n", "list") == bulk("listpack"));
}

TEST_CASE("Valkey knows the types that SCAN may ask for, and says where NOSCORES belongs",
          "[keys]") {
  TestedServer server("emulate \"valkey 9.1\"\n");
  TestClient client(server);
  client.run("SET text 1");
  client.run("RPUSH list 1");
  client.run("ZADD sorted 1 a");
  CHECK(client.run("SSCAN set 0 NOSCORES") == array({bulk("0"), array({})}));
  client.run("SADD set a");
  CHECK(client.run("SCAN 0 TYPE nosuch") == error("ERR unknown type name 'nosuch'"));
  CHECK(client.run("SCAN 0 TYPE LIST") == array({bulk("0"), bulks({"list"})}));
  CHECK(client.run("SCAN 0 TYPE string") == array({bulk("0"), bulks({"text"})}));
  CHECK(client.run("SCAN 0 NOSCORES") == error("ERR NOSCORES option can only be used in ZSCAN"));
  CHECK(client.run("SCAN 0 NOVALUES") == error("ERR NOVALUES option can only be used in HSCAN"));
  CHECK(client.run("SSCAN set 0 NOSCORES") ==
        error("ERR NOSCORES option can only be used in ZSCAN"));
  CHECK(client.run("ZSCAN sorted 0 NOVALUES") ==
        error("ERR NOVALUES option can only be used in HSCAN"));
  CHECK(client.run("ZSCAN sorted 0 NOSCORES") == array({bulk("0"), bulks({"a"})}));
  CHECK(client.run("ZSCAN sorted 0 COUNT 0") == error("ERR syntax error"));
  CHECK(client.run("SCAN 0 COUNT 0") == error("ERR syntax error"));
  CHECK(client.run("SCAN 0 COUNT x") == error("ERR value is not an integer or out of range"));
}

TEST_CASE("Redis takes any type for SCAN, and has no NOSCORES", "[keys]") {
  TestedServer server("emulate \"redis 8.6\"\n");
  TestClient client(server);
  client.run("SET text 1");
  CHECK(client.run("SCAN 0 TYPE nosuch") == array({bulk("0"), array({})}));
  CHECK(client.run("SCAN 0 NOSCORES") == error("ERR syntax error"));
  client.run("ZADD sorted 1 a");
  CHECK(client.run("ZSCAN sorted 0 NOSCORES") == error("ERR syntax error"));
}

TEST_CASE("A deadline that has passed deletes at once, which each release tells in its way",
          "[keys]") {
  for (const bool valkey : {true, false}) {
    INFO(valkey);
    TestedServer server(valkey ? "emulate \"valkey 9.1\"\n" : "");
    TestClient client(server);
    PropagationRecorder stream(server);
    client.run("SET a 1");
    client.run("SET b 1");
    stream.take();
    server.events();
    CHECK(client.run("EXPIRE a -1") == integer(1));
    CHECK(server.events() == (valkey ? "expired a" : "del a"));
    // Valkey's defaults have the background free what has expired.
    CHECK(stream.take() == (valkey ? "UNLINK a" : "DEL a"));
    CHECK(server.database().environment().figures.expired_keys == (valkey ? 1 : 0));
    CHECK(client.run("SET b 2 PXAT 1") == kOk);
    CHECK(client.run("EXISTS b") == integer(0));
    if (valkey) {
      CHECK(server.events() == "expired b");
      CHECK(stream.take() == "UNLINK b");
      CHECK(client.run("SET c 2 PXAT 1") == kOk);
      CHECK(stream.take().empty());
      CHECK(client.run("EXISTS c") == integer(0));
    }
  }
}

}  // namespace latchkey::tests
