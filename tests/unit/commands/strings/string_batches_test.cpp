#include <string>
#include <vector>

#include "unit/catch.h"
#include "unit/commands/string_server.h"

namespace latchkey::tests {

TEST_CASE("MGET answers null for what is no string", "[strings]") {
  StringServer server;
  TestClient client(server);
  client.run("SET a 1");
  client.run("SET b two");
  server.put_list("list");
  CHECK(client.run("MGET a none list b a") ==
        array({bulk("1"), std::string(kNull), std::string(kNull), bulk("two"), bulk("1")}));
  TestClient third(server, 3);
  CHECK(third.run("MGET none") == array({std::string(kNull3)}));
}

TEST_CASE("Batches of any length keep their order", "[strings]") {
  StringServer server;
  TestClient client(server);
  for (const size_t count : {1u, 15u, 16u, 17u, 100u, 1000u}) {
    std::vector<std::string> texts;
    for (size_t i = 0; i < count; ++i) texts.push_back("key:" + std::to_string(i));
    std::vector<std::string_view> set{"MSET"};
    std::vector<std::string_view> get{"MGET"};
    std::string expected = "*" + std::to_string(count) + "\r\n";
    for (size_t i = 0; i < count; ++i) {
      set.push_back(texts[i]);
      set.push_back(texts[count - 1 - i]);
      get.push_back(texts[i]);
      expected += bulk(texts[count - 1 - i]);
    }
    server.changes();
    CHECK(client.run_words(set) == kOk);
    CHECK(server.changes() == count);
    CHECK(client.run_words(get) == expected);
  }
}

TEST_CASE("MGET goes on when a key of the batch turns out to have expired", "[strings]") {
  StringServer server;
  TestClient client(server);
  client.run("MSET a 1 b 2 c 3");
  client.run("SET b 2 PX 1");
  server.advance_ms(1);
  CHECK(client.run("MGET a b c b") ==
        array({bulk("1"), std::string(kNull), bulk("3"), std::string(kNull)}));
}

TEST_CASE("MSET sets every pair in turn, whatever was there", "[strings]") {
  StringServer server;
  TestClient client(server);
  server.put_list("list");
  client.run("SET a 1 EX 10");
  server.events();
  CHECK(client.run("MSET a 2 list x a 3") == kOk);
  CHECK(server.ttl_ms("a") == -1);
  CHECK(client.run("MGET a list") == bulks({"3", "x"}));
  CHECK(server.events() == "set a, set list, set a");
  CHECK(client.run("MSET a 2 b") == error("ERR wrong number of arguments for 'mset' command"));
}

TEST_CASE("MSETNX sets all or nothing", "[strings]") {
  StringServer server;
  TestClient client(server);
  CHECK(client.run("MSETNX a 1 a 2") == integer(1));
  CHECK(client.run("MSETNX b 1 a 3") == integer(0));
  CHECK(client.run("MGET a b") == array({bulk("2"), std::string(kNull)}));
  CHECK(client.run("MSETNX a") == error("ERR wrong number of arguments for 'msetnx' command"));
  CHECK(client.run("MSETNX a 1 b") == error("ERR wrong number of arguments for 'msetnx' command"));
}

TEST_CASE("MSETEX gives all keys one deadline", "[strings]") {
  StringServer server;
  TestClient client(server);
  CHECK(client.run("MSETEX 2 a 1 b 2 EX 10") == integer(1));
  CHECK(server.ttl_ms("a") == 10'000);
  CHECK(server.ttl_ms("b") == 10'000);
  CHECK(server.events() == "expire a, set a, expire b, set b");
  CHECK(server.changes() == 2);
  CHECK(client.run("MSETEX 1 a 3 KEEPTTL") == integer(1));
  CHECK(server.ttl_ms("a") == 10'000);
  CHECK(client.run("MSETEX 1 a 3") == integer(1));
  CHECK(server.ttl_ms("a") == -1);
}

TEST_CASE("MSETEX sets none where one key breaks the condition", "[strings]") {
  StringServer server;
  TestClient client(server);
  client.run("SET a 1");
  CHECK(client.run("MSETEX 2 b 1 a 2 NX EX 10") == integer(0));
  CHECK(client.run("MSETEX 2 a 2 b 1 PX 10 XX") == integer(0));
  CHECK(client.run("MGET a b") == array({bulk("1"), std::string(kNull)}));
  CHECK(client.run("MSETEX 2 b 1 c 2 NX") == integer(1));
  CHECK(client.run("MSETEX 2 b 3 c 4 XX NX") == error("ERR syntax error"));
  CHECK(client.run("MSETEX 2 b 3 c 4 XX XX") == integer(1));
  CHECK(client.run("MGET b c") == bulks({"3", "4"}));
}

TEST_CASE("MSETEX refuses counts and options that make no sense", "[strings]") {
  StringServer server;
  TestClient client(server);
  for (const char* const count : {"0", "-1", "x", "2147483648"}) {
    CAPTURE(count);
    CHECK(client.run(std::string("MSETEX ") + count + " a 1") ==
          error("ERR invalid numkeys value"));
  }
  CHECK(client.run("MSETEX 2 a 1") == error("ERR wrong number of key-value pairs"));
  CHECK(client.run("MSETEX 2147483647 a 1 EX 10") == error("ERR wrong number of key-value pairs"));
  for (const char* const options :
       {"GET", "EX", "EX 1 PX 1", "KEEPTTL EX 1", "PERSIST", "EX 0 x"}) {
    CAPTURE(options);
    CHECK(client.run(std::string("MSETEX 1 a 1 ") + options) == error("ERR syntax error"));
  }
  CHECK(client.run("MSETEX 1 a 1 EX 0") == error("ERR invalid expire time in 'msetex' command"));
  CHECK(client.run("MSETEX 1 a") == error("ERR wrong number of arguments for 'msetex' command"));
  CHECK(server.changes() == 0);
}

}  // namespace latchkey::tests
