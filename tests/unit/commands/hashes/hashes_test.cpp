#include <string>

#include "commands/groups.h"
#include "unit/catch.h"
#include "unit/propagation_recorder.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

struct HashServer : ServerFixture {
  explicit HashServer(std::string_view settings = {})
      : ServerFixture({commands::hash_rows(), commands::hash_counter_rows(),
                       commands::hash_random_rows(), commands::string_rows()},
                      settings) {}
  std::string encoding(std::string_view key) {
    return std::string(database().find(key)->encoding_name());
  }
};

}  // namespace

TEST_CASE("HSET tells how many fields are new", "[hashes]") {
  HashServer server;
  TestClient client(server);
  CHECK(client.run("HSET h a 1 b 2") == integer(2));
  CHECK(client.run("HSET h a 3 c 4") == integer(1));
  CHECK(client.run("HGET h a") == bulk("3"));
  CHECK(client.run("HMGET h a x c") == "*3\r\n" + bulk("3") + std::string(kNull) + bulk("4"));
  CHECK(server.events() == "hset h, hset h");
  CHECK(server.changes() == 4);
  CHECK(client.run("HSET h a") == error("ERR wrong number of arguments for 'hset' command"));
}

TEST_CASE("A hash goes with its last field", "[hashes]") {
  HashServer server;
  TestClient client(server);
  client.run("HSET h a 1 b 2");
  server.events();
  CHECK(client.run("HDEL h a x") == integer(1));
  CHECK(client.run("HDEL h b") == integer(1));
  CHECK(server.events() == "hdel h, hdel h, del h");
  CHECK(client.run("HLEN h") == integer(0));
  CHECK(client.run("HGETALL h") == "*0\r\n");
}

TEST_CASE("A hash becomes a table beyond either limit", "[hashes]") {
  HashServer server("hash-max-listpack-entries 3\nhash-max-listpack-value 5\n");
  TestClient client(server);
  client.run("HSET few a 1 b 2 c 3");
  CHECK(server.encoding("few") == "listpack");
  client.run("HSET few d 4");
  CHECK(server.encoding("few") == "hashtable");
  client.run("HSET long a 123456");
  CHECK(server.encoding("long") == "hashtable");
  CHECK(client.run("HGET long a") == bulk("123456"));
  client.run("HSET long a 12");
  CHECK(client.run("HGET long a") == bulk("12"));
  CHECK(client.run("HSTRLEN few d") == integer(1));
  CHECK(client.run("HVALS long") == bulks({"12"}));
}

TEST_CASE("A change makes a hash a table that a lowered limit leaves too large", "[hashes]") {
  HashServer server;
  TestClient client(server);
  client.run("HSET key a 1 b 2 c 3");
  server.database().environment().limits.hash_max_listpack_entries = 2;
  client.run("HSETNX key a 5");
  CHECK(server.encoding("key") == "listpack");
  client.run("HINCRBY key a 5");
  CHECK(server.encoding("key") == "hashtable");
}

TEST_CASE("Fields count in whole and in broken numbers", "[hashes]") {
  HashServer server;
  TestClient client(server);
  CHECK(client.run("HINCRBY h n 5") == integer(5));
  CHECK(client.run("HINCRBYFLOAT h n 0.5") == bulk("5.5"));
  CHECK(client.run("HINCRBY h n 1") == error("ERR hash value is not an integer"));
  client.run("HSET h top 9223372036854775807");
  CHECK(client.run("HINCRBY h top 1") == error("ERR increment or decrement would overflow"));
  client.run("HSET h t text");
  CHECK(client.run("HINCRBYFLOAT h t 1") == error("ERR hash value is not a float"));
}

TEST_CASE("HRANDFIELD gives each field once, or any as often as asked", "[hashes]") {
  for (const char* const limit :
       {"hash-max-listpack-entries 512\n", "hash-max-listpack-entries 1\n"}) {
    HashServer server(limit);
    TestClient client(server);
    client.run("HSET h a 1 b 2");
    const std::string both = client.run("HRANDFIELD h 5");
    CHECK((both == bulks({"a", "b"}) || both == bulks({"b", "a"})));
    CHECK(client.run("HRANDFIELD h -7 WITHVALUES").substr(0, 5) == "*14\r\n");
    CHECK(client.run("HRANDFIELD none") == kNull);
    CHECK(client.run("HRANDFIELD none 2") == "*0\r\n");
  }
}

TEST_CASE("HSCAN meets every field of a table", "[hashes]") {
  HashServer server("hash-max-listpack-entries 1\n");
  TestClient client(server);
  for (int i = 0; i < 100; ++i) client.run("HSET h f" + std::to_string(i) + " v");
  const std::string all = client.run("HSCAN h 0 COUNT 1000 NOVALUES");
  CHECK(all.starts_with("*2\r\n$1\r\n0\r\n*100\r\n"));
  const std::string one = client.run("HSCAN h 0 COUNT 1000 MATCH f42");
  CHECK(one == "*2\r\n" + bulk("0") + bulks({"f42", "v"}));
  CHECK(client.run("HSCAN h 0 COUNT 0") == error("ERR syntax error"));
}

TEST_CASE("Hash commands refuse keys of other types", "[hashes]") {
  HashServer server;
  TestClient client(server);
  client.run("SET s text");
  for (const char* const line :
       {"HSET s a 1", "HGET s a", "HDEL s a", "HINCRBY s a 1", "HINCRBYFLOAT s a 1", "HGETALL s",
        "HRANDFIELD s", "HSCAN s 0", "HMGET s a", "HSETNX s a 1", "HSTRLEN s a"}) {
    CHECK(client.run(line) == kWrongType);
  }
  CHECK(client.run("GET s") == bulk("text"));
}

TEST_CASE("HRANDFIELD takes a count that can be doubled where it is to be", "[hashes]") {
  HashServer server;
  TestClient client(server);
  client.run("HSET h a 1");
  const std::string range = error("ERR value is out of range");
  CHECK(client.run("HRANDFIELD h 4611686018427387904 WITHVALUES") == range);
  CHECK(client.run("HRANDFIELD h -4611686018427387904 WITHVALUES") == range);
  CHECK(client.run("HRANDFIELD h 4611686018427387903 WITHVALUES") == bulks({"a", "1"}));
  CHECK(client.run("HRANDFIELD h 9223372036854775807") == bulks({"a"}));
  CHECK(client.run("HRANDFIELD h 1 WITH") == error("ERR syntax error"));
  CHECK(client.run("HRANDFIELD h 1 WITHVALUES more") == error("ERR syntax error"));
  CHECK(client.run("HRANDFIELD h -9223372036854775808").starts_with("-ERR"));
}

TEST_CASE("A sum is propagated so that the field keeps its deadline, where fields have any",
          "[hashes]") {
  const auto propagated = [](std::string_view settings) {
    HashServer server(settings);
    TestClient client(server);
    client.run("HSET h f 1");
    PropagationRecorder stream(server);
    CHECK(client.run("HINCRBYFLOAT h f 0.5") == bulk("1.5"));
    return stream.take();
  };
  CHECK(propagated("") == "SELECT 0; HSETEX h KEEPTTL FIELDS 1 f 1.5");
  CHECK(propagated("emulate \"redis 7.4\"\n") == "SELECT 0; HSET h f 1.5");
}

}  // namespace latchkey::tests
