
#include "commands/groups.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

struct ListServer : ServerFixture {
  ListServer()
      : ServerFixture({commands::list_move_rows(), commands::list_rows(),
                       commands::list_search_rows(), commands::string_rows()}) {}
  std::string encoding(std::string_view key) {
    return std::string(database().find(key, store::Keyspace::kPeek)->encoding_name());
  }
};

}  // namespace

TEST_CASE("A list that is measured in elements shrinks back by their number alone", "[lists]") {
  ListServer server;
  TestClient client(server);
  server.database().environment().limits.list_max_listpack_size = 8;
  const std::string half(5000, 'x');
  client.run("RPUSH key " + half + " " + half + " a b");
  CHECK(server.encoding("key") == "quicklist");
  client.run("LPOP key");
  CHECK(server.encoding("key") == "listpack");
}

TEST_CASE("LREM refuses the count whose opposite is no number", "[lists]") {
  ListServer server;
  TestClient client(server);
  client.run("RPUSH key a b a");
  CHECK(client.run("LREM key -9223372036854775808 a") ==
        error("ERR value is out of range, value must between -9223372036854775807 and "
              "9223372036854775807"));
  CHECK(client.run("LREM key -9223372036854775807 a") == integer(2));
}

TEST_CASE("LMOVE takes from one list and gives to another", "[lists]") {
  ListServer server;
  TestClient client(server);
  client.run("RPUSH from a b");
  server.events();
  CHECK(client.run("LMOVE from to LEFT RIGHT") == bulk("a"));
  CHECK(server.events() == "rpush to, lpop from");
  CHECK(client.run("RPOPLPUSH from to") == bulk("b"));
  CHECK(server.events() == "lpush to, rpop from, del from");
  CHECK(client.run("LRANGE to 0 -1") == bulks({"b", "a"}));
  CHECK(client.run("LMOVE from to LEFT LEFT") == kNull);
}

TEST_CASE("LMOVE turns a list round on itself, even one of a single element", "[lists]") {
  ListServer server;
  TestClient client(server);
  client.run("RPUSH key a");
  CHECK(client.run("LMOVE key key LEFT RIGHT") == bulk("a"));
  client.run("RPUSH key 2 c");
  CHECK(client.run("LMOVE key key RIGHT LEFT") == bulk("c"));
  CHECK(client.run("LRANGE key 0 -1") == bulks({"c", "a", "2"}));
}

TEST_CASE("LMOVE leaves the source alone when the target is no list", "[lists]") {
  ListServer server;
  TestClient client(server);
  client.run("RPUSH key a");
  client.run("SET text x");
  CHECK(client.run("LMOVE key text LEFT LEFT") == kWrongType);
  CHECK(client.run("LMOVE text key LEFT LEFT") == kWrongType);
  CHECK(client.run("LMOVE missing text LEFT LEFT") == kNull);
  CHECK(client.run("LLEN key") == integer(1));
}

TEST_CASE("LMPOP pops from the first list that there is", "[lists]") {
  ListServer server;
  TestClient client(server);
  client.run("RPUSH second a b c");
  CHECK(client.run("LMPOP 2 first second RIGHT COUNT 2") ==
        array({bulk("second"), bulks({"c", "b"})}));
  CHECK(client.run("LMPOP 1 second LEFT COUNT 9") == array({bulk("second"), bulks({"a"})}));
  CHECK(client.run("LMPOP 1 second LEFT") == kNullArray);
  CHECK(client.run("LMPOP 0 second LEFT") == error("ERR numkeys should be greater than 0"));
  CHECK(client.run("LMPOP 1 second LEFT COUNT 0") == error("ERR count should be greater than 0"));
  CHECK(client.run("LMPOP 2 second LEFT") == error("ERR syntax error"));
}

TEST_CASE("LPOS finds elements from either end, within bounds", "[lists]") {
  ListServer server;
  TestClient client(server);
  client.run("RPUSH key a b c a b a 1");
  CHECK(client.run("LPOS key a") == integer(0));
  CHECK(client.run("LPOS key 1") == integer(6));
  CHECK(client.run("LPOS key a RANK 2") == integer(3));
  CHECK(client.run("LPOS key a RANK -1") == integer(5));
  CHECK(client.run("LPOS key a RANK -2 COUNT 0") == array({integer(3), integer(0)}));
  CHECK(client.run("LPOS key a COUNT 0 MAXLEN 4") == array({integer(0), integer(3)}));
  CHECK(client.run("LPOS key c MAXLEN 2") == kNull);
  CHECK(client.run("LPOS missing c COUNT 1") == array({}));
}

}  // namespace latchkey::tests
