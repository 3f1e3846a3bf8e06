#include <algorithm>
#include <string>

#include "commands/groups.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

struct SetsFixture : ServerFixture {
  explicit SetsFixture(std::string_view settings = {})
      : ServerFixture(
            {commands::set_rows(), commands::set_random_rows(), commands::set_algebra_rows(),
             commands::object_rows(), commands::key_rows(), commands::string_rows()},
            settings) {}
};

}  // namespace

TEST_CASE("A set changes its encoding with what it holds", "[sets]") {
  SetsFixture server("set-max-intset-entries 3\nset-max-listpack-entries 4\n");
  TestClient client(server);
  client.run("SADD s 1 2 3");
  CHECK(client.run("OBJECT ENCODING s") == bulk("intset"));
  client.run("SADD s 4");
  CHECK(client.run("OBJECT ENCODING s") == bulk("hashtable"));
  client.run("SADD t 1 a");
  CHECK(client.run("OBJECT ENCODING t") == bulk("listpack"));
  client.run("SADD t b c d");
  CHECK(client.run("OBJECT ENCODING t") == bulk("hashtable"));
  CHECK(client.run("SMISMEMBER t 1 a d e") ==
        array({integer(1), integer(1), integer(1), integer(0)}));
}

TEST_CASE("More integers than an intset holds begin as a listpack when they come together",
          "[sets]") {
  SetsFixture server("set-max-intset-entries 3\nset-max-listpack-entries 5\n");
  TestClient client(server);
  client.run("SADD together 1 2 3 4");
  CHECK(client.run("OBJECT ENCODING together") == bulk("listpack"));
  client.run("SADD later 1 2 3");
  client.run("SADD later 4 5");
  CHECK(client.run("OBJECT ENCODING later") == bulk("hashtable"));
  client.run("SADD again 1");
  client.run("SADD again 1 1 1 1");
  CHECK(client.run("OBJECT ENCODING again") == bulk("hashtable"));
}

TEST_CASE("What SINTERSTORE keeps of tables and listpacks is made small again", "[sets]") {
  SetsFixture server("set-max-intset-entries 2\nset-max-listpack-entries 4\n");
  TestClient client(server);
  client.run("SADD a 1 2 3 4 5");
  client.run("SADD b 1 2 3 x y");
  CHECK(client.run("SINTERSTORE both a b") == integer(3));
  CHECK(client.run("OBJECT ENCODING both") == bulk("listpack"));
  CHECK(client.run("SMISMEMBER both 1 2 3 x") ==
        array({integer(1), integer(1), integer(1), integer(0)}));
  client.run("SADD few 1 2");
  client.run("SINTERSTORE both a few");
  CHECK(client.run("OBJECT ENCODING both") == bulk("intset"));
  client.run("SINTERSTORE both a");
  CHECK(client.run("OBJECT ENCODING both") == bulk("hashtable"));
}

TEST_CASE("SADD and SREM count what they change and tell of it once", "[sets]") {
  SetsFixture server;
  TestClient client(server);
  CHECK(client.run("SADD s a b a") == integer(2));
  CHECK(client.run("SADD s a") == integer(0));
  CHECK(server.events() == "sadd s");
  CHECK(server.changes() == 2);
  CHECK(client.run("SREM s a b c") == integer(2));
  CHECK(server.events() == "srem s, del s");
  CHECK(client.run("EXISTS s") == integer(0));
}

TEST_CASE("SMOVE finds its source although looking for the destination has removed a key",
          "[sets]") {
  SetsFixture server;
  TestClient client(server);
  // Some keys share a chain of buckets, in which the last takes the place of one that goes.
  constexpr int kKeys = 12;
  for (int round = 0; round < 100; ++round) {
    const auto source = [&](int i) { return "from" + std::to_string(round * kKeys + i); };
    const auto destination = [&](int i) { return "to" + std::to_string(round * kKeys + i); };
    for (int i = 0; i < kKeys; ++i) client.run("SET " + destination(i) + " text PX 1");
    for (int i = 0; i < kKeys; ++i) client.run("SADD " + source(i) + " a b");
    server.advance_ms(2);
    for (int i = 0; i < kKeys; ++i) {
      REQUIRE(client.run("SMOVE " + source(i) + " " + destination(i) + " a") == integer(1));
      REQUIRE(client.run("SMEMBERS " + source(i)) == array({bulk("b")}));
    }
    for (int i = 0; i < kKeys; ++i) client.run("DEL " + source(i) + " " + destination(i));
  }
}

TEST_CASE("SMOVE takes a member from one set to another", "[sets]") {
  SetsFixture server;
  TestClient client(server);
  client.run("SADD from a");
  client.run("SADD to b");
  server.events();
  CHECK(client.run("SMOVE from to x") == integer(0));
  CHECK(client.run("SMOVE from to a") == integer(1));
  CHECK(server.events() == "srem from, del from, sadd to");
  CHECK(client.run("SCARD to") == integer(2));
  CHECK(client.run("SMOVE to to a") == integer(1));
  client.run("SET text 1");
  CHECK(client.run("SMOVE to text a").starts_with("-WRONGTYPE"));
}

TEST_CASE("SPOP with a count takes different members, and the key when it takes all", "[sets]") {
  const std::string settings = GENERATE("", "set-max-listpack-entries 0\n");
  SetsFixture server(settings);
  TestClient client(server);
  client.run("SADD s a b c d e f");
  client.run("SPOP s 2");
  CHECK(client.run("SCARD s") == integer(4));
  CHECK(client.run("SPOP s -1") == error("ERR value is out of range, must be positive"));
  client.run("SPOP s");
  CHECK(client.run("SCARD s") == integer(3));
  server.events();
  client.run("SPOP s 10");
  CHECK(server.events() == "spop s, del s");
}

TEST_CASE("What little SPOP leaves of a large set is made small again", "[sets]") {
  SetsFixture server;
  TestClient client(server);
  const auto leave = [&](std::string_view prefix, int size, int remaining) {
    std::string request = "SADD s";
    for (int i = 0; i < size; ++i) request.append(" ").append(prefix).append(std::to_string(i));
    client.run("DEL s");
    client.run(request);
    client.run("SPOP s " + std::to_string(size - remaining));
    CHECK(client.run("SCARD s") == integer(remaining));
    return client.run("OBJECT ENCODING s");
  };
  CHECK(leave("m", 200, 33) == bulk("listpack"));
  CHECK(leave("m", 200, 34) == bulk("hashtable"));
  CHECK(leave("m", 1000, 128) == bulk("listpack"));
  CHECK(leave("m", 1000, 129) == bulk("hashtable"));
  CHECK(leave("", 600, 100) == bulk("listpack"));
  CHECK(leave("", 500, 3) == bulk("intset"));
  CHECK(leave(std::string(64, 'm'), 200, 10) == bulk("hashtable"));
}

TEST_CASE("SPOP makes integers of a large set an intset again where Redis 7.0 is emulated",
          "[sets]") {
  SetsFixture server("emulate \"redis 7.0\"\n");
  TestClient client(server);
  const auto leave = [&](int size, int remaining) {
    std::string request = "SADD s";
    for (int i = 0; i < size; ++i) request.append(" ").append(std::to_string(i));
    client.run("DEL s");
    client.run(request);
    client.run("SPOP s " + std::to_string(size - remaining));
    CHECK(client.run("SCARD s") == integer(remaining));
    return client.run("OBJECT ENCODING s");
  };
  CHECK(leave(600, 100) == bulk("intset"));
  CHECK(leave(600, 101) == bulk("hashtable"));
  client.run("DEL s");
  client.run("SADD s a b c d e f");
  client.run("SPOP s 5");
  CHECK(client.run("OBJECT ENCODING s") == bulk("hashtable"));
}

TEST_CASE("SRANDMEMBER repeats members only when the count is negative", "[sets]") {
  SetsFixture server("set-max-listpack-entries 0\n");
  TestClient client(server);
  for (int i = 0; i < 200; ++i) client.run("SADD s m" + std::to_string(i));
  CHECK(client.run("SRANDMEMBER s 500").starts_with("*200\r\n"));
  CHECK(client.run("SRANDMEMBER s -500").starts_with("*500\r\n"));
  CHECK(client.run("SRANDMEMBER s 3").starts_with("*3\r\n"));
  CHECK(client.run("SCARD s") == integer(200));
}

TEST_CASE("Sets are intersected, joined and taken from one another", "[sets]") {
  const std::string settings =
      GENERATE("", "set-max-listpack-entries 0\nset-max-intset-entries 0\n");
  SetsFixture server(settings);
  TestClient client(server);
  client.run("SADD a 1 2 3 4");
  client.run("SADD b 3 4 5");
  client.run("SADD c 4");
  CHECK(client.run("SINTER a b c") == array({bulk("4")}));
  CHECK(client.run("SINTERCARD 2 a b") == integer(2));
  CHECK(client.run("SINTERCARD 2 a b LIMIT 1") == integer(1));
  CHECK(client.run("SUNIONSTORE d a b missing") == integer(5));
  CHECK(client.run("SDIFFSTORE e a b") == integer(2));
  CHECK(client.run("SISMEMBER e 1") == integer(1));
  CHECK(client.run("SINTERSTORE e a missing") == integer(0));
  CHECK(client.run("EXISTS e") == integer(0));
  client.run("SET text 1");
  CHECK(client.run("SINTER missing text").starts_with("-WRONGTYPE"));
  CHECK(client.run("SINTERCARD 0 a") == error("ERR numkeys should be greater than 0"));
  CHECK(client.run("SINTERCARD 1 a LIMIT -1") == error("ERR LIMIT can't be negative"));
}

TEST_CASE("A set that is named many times counts as if it were named once", "[sets]") {
  const std::string settings =
      GENERATE("", "set-max-listpack-entries 0\nset-max-intset-entries 0\n");
  SetsFixture server(settings);
  TestClient client(server);
  client.run("SADD a 1 2 3 4");
  client.run("SADD b 3 4 5");
  std::string keys;
  for (int i = 0; i < 10; ++i) keys += " a b";
  CHECK(client.run("SINTERCARD 20" + keys) == integer(2));
  CHECK(client.run("SINTERSTORE to" + keys) == integer(2));
  CHECK(client.run("SUNIONSTORE to" + keys + " none") == integer(5));
  CHECK(client.run("SUNIONCARD 20" + keys) == integer(5));
  CHECK(client.run("SDIFFSTORE to" + keys) == integer(0));
  CHECK(client.run("SDIFFCARD 20" + keys) == integer(0));
  client.run("SADD c 1 3 9");
  CHECK(client.run("SDIFFSTORE to c" + keys) == integer(1));
  CHECK(client.run("SMEMBERS to") == array({bulk("9")}));
  CHECK(client.run("SDIFFCARD 21 c" + keys) == integer(1));
}

TEST_CASE("Intsets are intersected as tables with the same members are", "[sets]") {
  SetsFixture server;
  TestClient client(server);
  client.run("SADD narrow -7 1 2 3 300");
  client.run("SADD wide -7 2 3 70000 5000000000");
  client.run("SADD single 3");
  client.run("SADD mixed 3 2 text");
  CHECK(client.run("SINTER wide narrow") == array({bulk("-7"), bulk("2"), bulk("3")}));
  CHECK(client.run("SINTER narrow narrow single") == array({bulk("3")}));
  CHECK(client.run("SINTER single wide") == array({bulk("3")}));
  CHECK(client.run("SINTER narrow") ==
        array({bulk("-7"), bulk("1"), bulk("2"), bulk("3"), bulk("300")}));
  CHECK(client.run("SINTER narrow missing") == "*0\r\n");
  CHECK(client.run("SINTERCARD 2 narrow wide") == integer(3));
  CHECK(client.run("SINTERCARD 2 narrow wide LIMIT 2") == integer(2));
  CHECK(client.run("SINTERCARD 3 narrow wide mixed") == integer(2));
  CHECK(client.run("SINTERSTORE to narrow wide") == integer(3));
  CHECK(client.run("SMEMBERS to") == array({bulk("-7"), bulk("2"), bulk("3")}));
}

TEST_CASE("SUNIONCARD counts each member once, as far as its limit", "[sets]") {
  SetsFixture server;
  TestClient client(server);
  client.run("SADD a 1 2 3");
  client.run("SADD b 3 4 5 6");
  client.run("SADD c 6 7");
  CHECK(client.run("SUNIONCARD 1 a") == integer(3));
  CHECK(client.run("SUNIONCARD 3 a b c") == integer(7));
  CHECK(client.run("SUNIONCARD 4 a a none b") == integer(6));
  CHECK(client.run("SUNIONCARD 10 a b c a b c a b c none") == integer(7));
  CHECK(client.run("SUNIONCARD 10 a b c a b c a b c none LIMIT 5") == integer(5));
  CHECK(client.run("SUNIONCARD 3 a b c APPROX") == integer(7));
  for (int limit = 1; limit <= 9; ++limit) {
    CHECK(client.run("SUNIONCARD 3 a b c LIMIT " + std::to_string(limit) + " APPROX") ==
          integer(std::min(limit, 7)));
  }
  CHECK(client.run("SUNIONCARD 3 a b c LIMIT 0") == integer(7));
  CHECK(client.run("SUNIONCARD 1 none") == integer(0));
}

TEST_CASE("SDIFFCARD counts what only the first set has, as far as its limit", "[sets]") {
  SetsFixture server;
  TestClient client(server);
  client.run("SADD a 1 2 3 x y");
  client.run("SADD b 3 4");
  client.run("SADD c y");
  CHECK(client.run("SDIFFCARD 1 a") == integer(5));
  CHECK(client.run("SDIFFCARD 3 a b c") == integer(3));
  CHECK(client.run("SDIFFCARD 3 a b c LIMIT 2") == integer(2));
  CHECK(client.run("SDIFFCARD 3 a none c LIMIT 9") == integer(4));
  CHECK(client.run("SDIFFCARD 2 a a") == integer(0));
  CHECK(client.run("SDIFFCARD 2 none a") == integer(0));
}

TEST_CASE("SUNIONCARD and SDIFFCARD refuse what SINTERCARD refuses", "[sets]") {
  SetsFixture server;
  TestClient client(server);
  client.run("SADD a 1");
  client.run("SET text x");
  for (const std::string name : {"SUNIONCARD", "SDIFFCARD"}) {
    CAPTURE(name);
    CHECK(client.run(name + " 0 a") == error("ERR numkeys should be greater than 0"));
    CHECK(client.run(name + " 2 a") ==
          error("ERR Number of keys can't be greater than number of args"));
    CHECK(client.run(name + " 1 a LIMIT -1") == error("ERR LIMIT can't be negative"));
    CHECK(client.run(name + " 1 a LIMIT") == error("ERR syntax error"));
    CHECK(client.run(name + " 1 a MORE") == error("ERR syntax error"));
    CHECK(client.run(name + " 2 a text") == kWrongType);
  }
  CHECK(client.run("SDIFFCARD 1 a APPROX") == error("ERR syntax error"));
  CHECK(client.run("SINTERCARD 1 a APPROX") == error("ERR syntax error"));
}

TEST_CASE("A difference is the same whichever way it is found", "[sets]") {
  SetsFixture server;
  TestClient client(server);
  for (int i = 0; i < 100; ++i) client.run("SADD large " + std::to_string(i));
  for (int other = 0; other < 10; ++other) {
    const std::string name = " s" + std::to_string(other);
    client.run("SADD" + name + " " + std::to_string(other) + " other");
  }
  // Ten small sets: less work than to look up each of the first set's members in each of them.
  CHECK(client.run("SDIFFSTORE to large s0 s1 s2 s3 s4 s5 s6 s7 s8 s9 none") == integer(90));
  CHECK(client.run("SISMEMBER to 9") == integer(0));
  CHECK(client.run("SISMEMBER to 10") == integer(1));
  CHECK(client.run("SDIFFSTORE to large s0") == integer(99));
  CHECK(client.run("SISMEMBER to 0") == integer(0));
  CHECK(client.run("SDIFFSTORE to none large") == integer(0));
  CHECK(client.run("SDIFFSTORE to large s0 large") == integer(0));
}

TEST_CASE("SRANDMEMBER with a count of one gives one of the members", "[sets]") {
  SetsFixture server;
  TestClient client(server);
  client.run("SADD s a");
  CHECK(client.run("SRANDMEMBER s 1") == bulks({"a"}));
  CHECK(client.run("SRANDMEMBER s 0") == "*0\r\n");
  CHECK(client.run("SRANDMEMBER s 5") == bulks({"a"}));
  for (int i = 0; i < 1000; ++i) client.run("SADD many " + std::to_string(i));
  CHECK(client.run("SRANDMEMBER many 1").starts_with("*1\r\n"));
  CHECK(client.run("SPOP many 1").starts_with("*1\r\n"));
  CHECK(client.run("SCARD many") == integer(999));
}

TEST_CASE("Counts of set algebra end at their limit, whatever holds the sets", "[sets]") {
  const char* settings = GENERATE("", "set-max-intset-entries 0\nset-max-listpack-entries 0\n",
                                  "set-max-intset-entries 0\n");
  SetsFixture server(settings);
  TestClient client(server);
  client.run("SADD a 1 2 3 4 5 6");
  client.run("SADD b 2 4 6 8");
  const auto counts = [&](const std::string& request, int64_t size) {
    for (int64_t limit = 0; limit <= size + 1; ++limit) {
      CAPTURE(request, limit);
      const int64_t expected = limit == 0 ? size : std::min(limit, size);
      CHECK(client.run(request + " LIMIT " + std::to_string(limit)) == integer(expected));
    }
    CHECK(client.run(request) == integer(size));
  };
  counts("SINTERCARD 2 a b", 3);
  counts("SUNIONCARD 2 a b", 7);
  counts("SDIFFCARD 2 a b", 3);
  counts("SDIFFCARD 2 a none", 6);
  // More than are united by looking up.
  std::string many = "SUNIONCARD 12 a b";
  for (int i = 0; i < 10; ++i) {
    client.run("SADD s" + std::to_string(i) + " " + std::to_string(100 + i));
    many += " s" + std::to_string(i);
  }
  counts(many, 17);
}

TEST_CASE("A set that is named many times is looked at once", "[sets]") {
  const char* settings = GENERATE("", "set-max-intset-entries 0\nset-max-listpack-entries 0\n",
                                  "set-max-intset-entries 0\n");
  SetsFixture server(settings);
  TestClient client(server);
  client.run("SADD a 1 2 3");
  client.run("SADD b 2 3 4");
  std::string keys;
  for (int i = 0; i < 10; ++i) keys += " a b";
  CHECK(client.run("SINTERSTORE to" + keys) == integer(2));
  CHECK(client.run("SMISMEMBER to 2 3") == array({integer(1), integer(1)}));
  CHECK(client.run("SUNIONSTORE to" + keys) == integer(4));
  CHECK(client.run("SDIFFSTORE to" + keys) == integer(0));
  CHECK(client.run("SADD c 1 5") == integer(2));
  CHECK(client.run("SDIFFSTORE to c" + keys) == integer(1));
  CHECK(client.run("SISMEMBER to 5") == integer(1));
  CHECK(client.run("SINTERCARD 20" + keys) == integer(2));
  CHECK(client.run("SUNIONCARD 20" + keys) == integer(4));
  CHECK(client.run("SDIFFCARD 21 c" + keys) == integer(1));
}

}  // namespace latchkey::tests
