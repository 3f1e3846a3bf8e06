#include <catch2/catch.hpp>

#include "commands/groups.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

struct ListServer : ServerFixture {
  ListServer()
      : ServerFixture({commands::list_rows(), commands::list_wait_rows(), commands::string_rows(),
                       commands::transaction_rows()}) {}
};

}  // namespace

TEST_CASE("BLPOP and BRPOP take at once what there is, and wait for what is not", "[lists]") {
  ListServer server;
  TestClient waiting(server);
  TestClient other(server);
  other.run("RPUSH second a b c");
  CHECK(waiting.run("BLPOP first second 0") == bulks({"second", "a"}));
  CHECK(waiting.run("BRPOP first second 0") == bulks({"second", "c"}));
  CHECK(waiting.run("BRPOP first third 0").empty());
  CHECK(other.run("RPUSH third x y") == integer(2));
  CHECK(waiting.take_output() == bulks({"third", "y"}));
  CHECK(other.run("LLEN third") == integer(1));
}

TEST_CASE("BLMOVE moves an element on as soon as it comes", "[lists]") {
  ListServer server;
  TestClient waiting(server);
  TestClient other(server);
  CHECK(waiting.run("BLMOVE from to RIGHT LEFT 0").empty());
  server.events();
  other.run("RPUSH from a");
  CHECK(waiting.take_output() == bulk("a"));
  CHECK(server.events() == "rpush from, lpush to, rpop from, del from");
  CHECK(waiting.run("BRPOPLPUSH to from 0") == bulk("a"));
  CHECK(other.run("LRANGE from 0 -1") == bulks({"a"}));
}

TEST_CASE("Who waits to move an element is told when the target is no list", "[lists]") {
  ListServer server;
  TestClient waiting(server);
  TestClient other(server);
  other.run("SET text x");
  CHECK(waiting.run("BRPOPLPUSH from text 0").empty());
  other.run("RPUSH from a");
  CHECK(waiting.take_output() == kWrongType);
  CHECK(other.run("LLEN from") == integer(1));
}

TEST_CASE("BLMPOP waits for the first list to have elements", "[lists]") {
  ListServer server;
  TestClient waiting(server);
  TestClient other(server);
  CHECK(waiting.run("BLMPOP 0 2 first second LEFT COUNT 2").empty());
  other.run("RPUSH second a b c");
  CHECK(waiting.take_output() == array({bulk("second"), bulks({"a", "b"})}));
}

TEST_CASE("Waiting for lists is refused with an error that fits", "[lists]") {
  ListServer server;
  TestClient client(server);
  client.run("SET text x");
  CHECK(client.run("BLPOP none text 0") == kWrongType);
  CHECK(client.run("BLMOVE text key LEFT LEFT 0") == kWrongType);
  CHECK(client.run("BLPOP key -1") == error("ERR timeout is negative"));
  CHECK(client.run("BLMOVE key key LEFT WRONG x") == error("ERR syntax error"));
  CHECK(client.run("BLMPOP -1 0 key LEFT") == error("ERR numkeys should be greater than 0"));
  CHECK(client.run("BLMPOP -1 1 key WRONG") == error("ERR syntax error"));
  CHECK(client.run("BLMPOP -1 1 key LEFT") == error("ERR timeout is negative"));
}

TEST_CASE("A wait for a list ends with a null array, whatever the command", "[lists]") {
  for (const std::string_view line :
       {"BLPOP key 0.5", "BRPOP key 0.5", "BLMOVE key key LEFT LEFT 0.5", "BRPOPLPUSH key key 0.5",
        "BLMPOP 0.5 1 key LEFT"}) {
    ListServer server;
    TestClient client(server);
    CHECK(client.run(line).empty());
    server.advance_ms(500);
    server.tick();
    CHECK(client.take_output() == kNullArray);
  }
}

TEST_CASE("A transaction does not wait for lists", "[lists]") {
  ListServer server;
  TestClient client(server);
  client.run("MULTI");
  client.run("BLPOP key 0");
  client.run("BLMOVE key key LEFT LEFT 0");
  client.run("BLMPOP 0 1 key LEFT");
  CHECK(client.run("EXEC") ==
        array({std::string(kNullArray), std::string(kNull), std::string(kNullArray)}));
}

}  // namespace latchkey::tests
