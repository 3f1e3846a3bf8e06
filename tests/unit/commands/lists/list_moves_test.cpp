
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

TEST_CASE("LMOVEM moves several elements, in their order or one by one", "[lists]") {
  struct Case {
    const char* request;
    std::initializer_list<std::string_view> reply;
    std::initializer_list<std::string_view> target;
    std::initializer_list<std::string_view> source;
  };
  const Case cases[] = {
      {"LEFT LEFT COUNT 2 BULK", {"a", "b"}, {"a", "b", "x"}, {"c", "d"}},
      {"LEFT LEFT COUNT 2 OBO", {"b", "a"}, {"b", "a", "x"}, {"c", "d"}},
      {"LEFT RIGHT COUNT 2 OBO", {"a", "b"}, {"x", "a", "b"}, {"c", "d"}},
      {"LEFT RIGHT COUNT 2 BULK", {"a", "b"}, {"x", "a", "b"}, {"c", "d"}},
      {"RIGHT LEFT COUNT 2 OBO", {"c", "d"}, {"c", "d", "x"}, {"a", "b"}},
      {"RIGHT LEFT COUNT 2 BULK", {"c", "d"}, {"c", "d", "x"}, {"a", "b"}},
      {"RIGHT RIGHT COUNT 2 OBO", {"d", "c"}, {"x", "d", "c"}, {"a", "b"}},
      {"RIGHT RIGHT COUNT 2 BULK", {"c", "d"}, {"x", "c", "d"}, {"a", "b"}},
      {"LEFT RIGHT", {"a"}, {"x", "a"}, {"b", "c", "d"}},
      {"LEFT RIGHT EXACTLY 3 BULK", {"a", "b", "c"}, {"x", "a", "b", "c"}, {"d"}}};
  for (const Case& one : cases) {
    CAPTURE(one.request);
    ListServer server;
    TestClient client(server);
    client.run("RPUSH from a b c d");
    client.run("RPUSH to x");
    CHECK(client.run("LMOVEM from to " + std::string(one.request)) == bulks(one.reply));
    CHECK(client.run("LRANGE to 0 -1") == bulks(one.target));
    CHECK(client.run("LRANGE from 0 -1") == bulks(one.source));
  }
}

TEST_CASE("LMOVEM within one list turns it, and reverses what it moves one by one", "[lists]") {
  ListServer server;
  TestClient client(server);
  client.run("RPUSH l a b c");
  CHECK(client.run("LMOVEM l l LEFT LEFT EXACTLY 2 OBO") == bulks({"b", "a"}));
  CHECK(client.run("LRANGE l 0 -1") == bulks({"b", "a", "c"}));
  CHECK(client.run("LMOVEM l l LEFT LEFT COUNT 9 BULK") == bulks({"b", "a", "c"}));
  CHECK(client.run("LMOVEM l l LEFT RIGHT COUNT 2 BULK") == bulks({"b", "a"}));
  CHECK(client.run("LRANGE l 0 -1") == bulks({"c", "b", "a"}));
}

TEST_CASE("LMOVEM moves what there is, or exactly what was asked for", "[lists]") {
  ListServer server;
  TestClient client(server);
  client.run("RPUSH from 1 2 3");
  server.events();
  CHECK(client.run("LMOVEM from to LEFT LEFT EXACTLY 4 BULK") == kNull);
  CHECK(client.run("LMOVEM none to LEFT LEFT EXACTLY 1 BULK") == kNull);
  CHECK(client.run("LMOVEM none to LEFT LEFT COUNT 1 BULK") == kNull);
  CHECK(client.run("LMOVEM none to LEFT LEFT") == kNull);
  CHECK(server.events().empty());
  CHECK(client.run("LMOVEM from to LEFT LEFT COUNT 4 BULK") == bulks({"1", "2", "3"}));
  CHECK(server.events() == "lpush to, lpop from, del from");
}

TEST_CASE("LMOVEM refuses what makes no sense, and moves nothing then", "[lists]") {
  ListServer server;
  TestClient client(server);
  client.run("RPUSH from 1 2 3");
  client.run("SET text x");
  constexpr std::string_view kSyntax = "ERR syntax error";
  constexpr std::string_view kCount = "ERR count should be greater than 0";
  const std::pair<const char*, std::string_view> kRequests[] = {
      {"LEFT UP", kSyntax},
      {"LEFT LEFT COUNT 2", kSyntax},
      {"LEFT LEFT COUNT", kSyntax},
      {"LEFT LEFT OBO COUNT 2", kSyntax},
      {"LEFT LEFT COUNT 2 EXACTLY 2 OBO", kSyntax},
      {"LEFT LEFT COUNT 2 OBO BULK", kSyntax},
      {"LEFT LEFT COUNT 0 OBO", kCount},
      {"LEFT LEFT EXACTLY -1 BULK", kCount},
      {"LEFT LEFT COUNT x BULK", kCount}};
  for (const auto& [options, text] : kRequests) {
    CAPTURE(options);
    CHECK(client.run("LMOVEM from to " + std::string(options)) == error(text));
  }
  CHECK(client.run("LMOVEM from text LEFT LEFT") == kWrongType);
  CHECK(client.run("LMOVEM text from LEFT LEFT") == kWrongType);
  CHECK(client.run("LLEN from") == integer(3));
}

TEST_CASE("LMPOP says what is wrong with its words", "[lists]") {
  ListServer server;
  TestClient client(server);
  client.run("RPUSH list a b c");
  const std::string syntax = error("ERR syntax error");
  CHECK(client.run("LMPOP 0 list LEFT") == error("ERR numkeys should be greater than 0"));
  CHECK(client.run("LMPOP 2 list LEFT") == syntax);
  CHECK(client.run("LMPOP 1 list MIDDLE") == syntax);
  CHECK(client.run("LMPOP 1 list LEFT COUNT 0") == error("ERR count should be greater than 0"));
  CHECK(client.run("LMPOP 1 list LEFT COUNT 1 COUNT 1") == syntax);
  CHECK(client.run("LMPOP 1 list LEFT RIGHT") == syntax);
  CHECK(client.run("LMPOP 1 list LEFT COUNT") == syntax);
  CHECK(client.run("LLEN list") == integer(3));
  CHECK(client.run("LMPOP 1 list RIGHT COUNT 2") == array({bulk("list"), bulks({"c", "b"})}));
}

}  // namespace latchkey::tests
