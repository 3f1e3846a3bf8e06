#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "commands/groups.h"
#include "server/client/blocking.h"
#include "store/value/sorted_set.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"
#include "unit/testing/tested_server.h"

namespace latchkey::tests {

namespace {

class SortedSetServer : public ServerFixture {
 public:
  SortedSetServer()
      : ServerFixture({commands::sorted_set_algebra_rows(), commands::sorted_set_pop_rows(),
                       commands::sorted_set_range_rows(), commands::sorted_set_rows(),
                       commands::sorted_set_wait_rows(), commands::set_rows(),
                       commands::string_rows(), commands::transaction_rows()}) {}
  // Makes new sorted sets large from the first member on, or not.
  void set_large(bool large) {
    database().environment().limits.zset_max_listpack_entries = large ? 0 : 128;
  }
  std::string encoding(std::string_view key) {
    return std::string(database().find(key, store::Keyspace::kPeek)->encoding_name());
  }
};

}  // namespace

TEST_CASE("ZADD adds, changes and counts as its options want it", "[sorted_sets]") {
  SortedSetServer server;
  server.set_large(GENERATE(false, true));
  TestClient client(server);
  CHECK(client.run("ZADD key 1 a 2 b") == integer(2));
  CHECK(client.run("ZADD key CH 1 a 3 b 4 c") == integer(2));
  CHECK(client.run("ZADD key NX 9 a 5 d") == integer(1));
  CHECK(client.run("ZADD key XX CH 9 a 5 e") == integer(1));
  CHECK(client.run("ZADD key GT CH 8 a 6 d") == integer(1));
  CHECK(client.run("ZADD key LT CH 8 a 7 d") == integer(1));
  CHECK(client.run("ZADD key INCR 2.5 c") == bulk("6.5"));
  CHECK(client.run("ZADD key XX INCR 2.5 none") == kNull);
  CHECK(client.run("ZRANGE key 0 -1 WITHSCORES") ==
        bulks({"b", "3", "d", "6", "c", "6.5", "a", "8"}));
  CHECK(server.events() == "zadd key, zadd key, zadd key, zadd key, zadd key, zadd key, zincr key");
  CHECK(client.run("ZADD key NX XX 1 a") ==
        error("ERR XX and NX options at the same time are not compatible"));
  CHECK(client.run("ZADD key GT LT 1 a") ==
        error("ERR GT, LT, and/or NX options at the same time are not compatible"));
  CHECK(client.run("ZADD key INCR 1 a 2 b") ==
        error("ERR INCR option supports a single increment-element pair"));
  CHECK(client.run("ZADD key 1 a 2") == error("ERR syntax error"));
  CHECK(client.run("ZADD key nan a") == error("ERR value is not a valid float"));
  client.run("ZADD key inf a");
  CHECK(client.run("ZINCRBY key -inf a") == error("ERR resulting score is not a number (NaN)"));
  client.run("SET text a");
  CHECK(client.run("ZADD text 1 a") == kWrongType);
}

TEST_CASE("A sorted set becomes large when it has outgrown the thresholds", "[sorted_sets]") {
  SortedSetServer server;
  TestClient client(server);
  for (int i = 0; i < 128; ++i) client.run("ZADD key 1 " + std::to_string(i));
  CHECK(server.encoding("key") == "listpack");
  client.run("ZADD key 1 more");
  CHECK(server.encoding("key") == "skiplist");
  client.run("ZADD long 1 " + std::string(65, 'x'));
  CHECK(server.encoding("long") == "skiplist");
  client.run("ZUNIONSTORE joined 1 long");
  CHECK(server.encoding("joined") == "skiplist");
  client.run("ZREMRANGEBYRANK key 1 -1");
  client.run("ZUNIONSTORE joined 1 key");
  CHECK(server.encoding("joined") == "listpack");
}

TEST_CASE("Ranges by score, by bytes and by rank, from either end", "[sorted_sets]") {
  SortedSetServer server;
  server.set_large(GENERATE(false, true));
  TestClient client(server);
  client.run("ZADD key -inf a 1 b 2 c 2 d 3 e inf f");
  CHECK(client.run("ZRANGE key (1 +inf BYSCORE") == bulks({"c", "d", "e", "f"}));
  CHECK(client.run("ZRANGE key 3 1 BYSCORE REV LIMIT 1 2") == bulks({"d", "c"}));
  CHECK(client.run("ZRANGEBYSCORE key -inf (2 WITHSCORES") == bulks({"a", "-inf", "b", "1"}));
  CHECK(client.run("ZREVRANGE key 1 2") == bulks({"e", "d"}));
  CHECK(client.run("ZRANGE key -2 -1") == bulks({"e", "f"}));
  CHECK(client.run("ZCOUNT key (2 3") == integer(1));
  CHECK(client.run("ZREVRANK key f") == integer(0));
  CHECK(client.run("ZRANK key c WITHSCORE") == array({integer(2), bulk("2")}));
  CHECK(client.run("ZRANK key none WITHSCORE") == kNullArray);
  CHECK(client.run("ZRANGE key 0 1 LIMIT 0 1") ==
        error("ERR syntax error, LIMIT is only supported in combination with either BYSCORE or "
              "BYLEX"));
  CHECK(client.run("ZRANGE key x 1 BYSCORE") == error("ERR min or max is not a float"));
  client.run("ZADD lex 0 a 0 b 0 c 0 d");
  CHECK(client.run("ZRANGEBYLEX lex [b (d") == bulks({"b", "c"}));
  CHECK(client.run("ZREVRANGEBYLEX lex + (b") == bulks({"d", "c"}));
  CHECK(client.run("ZLEXCOUNT lex - +") == integer(4));
  CHECK(client.run("ZLEXCOUNT lex + -") == integer(0));
  CHECK(client.run("ZRANGEBYLEX lex b c") == error("ERR min or max not valid string range item"));
  CHECK(client.run("ZRANGESTORE copy key 0 1") == integer(2));
  CHECK(client.run("ZRANGESTORE copy none 0 1") == integer(0));
  CHECK(client.run("ZCARD copy") == integer(0));
  CHECK(client.run("ZREMRANGEBYLEX lex - [c") == integer(3));
  CHECK(client.run("ZREMRANGEBYSCORE key 2 2") == integer(2));
  CHECK(client.run("ZREMRANGEBYRANK key 0 -1") == integer(4));
  CHECK(client.run("ZCARD key") == integer(0));
}

TEST_CASE("Members are popped from either end, and the key goes with the last", "[sorted_sets]") {
  SortedSetServer server;
  server.set_large(GENERATE(false, true));
  TestClient client(server);
  client.run("ZADD key 1 a 2 b 3 c 4 d");
  server.events();
  CHECK(client.run("ZPOPMIN key") == bulks({"a", "1"}));
  CHECK(client.run("ZMPOP 2 none key MAX COUNT 2") ==
        array({bulk("key"), array({bulks({"d", "4"}), bulks({"c", "3"})})}));
  TestClient third(server, 3);
  CHECK(third.run("ZPOPMAX key 5") == array({array({bulk("b"), ",2\r\n"})}));
  CHECK(server.events() == "zpopmin key, zpopmax key, zpopmax key, del key");
}

TEST_CASE("Unions, intersections and differences weigh and join scores", "[sorted_sets]") {
  SortedSetServer server;
  server.set_large(GENERATE(false, true));
  TestClient client(server);
  client.run("ZADD a 1 x 2 y inf z");
  client.run("ZADD b 10 y -inf z 30 w");
  CHECK(client.run("ZUNION 2 a b WITHSCORES") == bulks({"z", "0", "x", "1", "y", "12", "w", "30"}));
  CHECK(client.run("ZINTER 2 a b WEIGHTS 2 1 AGGREGATE MAX WITHSCORES") ==
        bulks({"y", "10", "z", "inf"}));
  CHECK(client.run("ZDIFF 2 a b WITHSCORES") == bulks({"x", "1"}));
  CHECK(client.run("ZINTERCARD 2 a b LIMIT 1") == integer(1));
  CHECK(client.run("ZINTER 2 a a WITHSCORES") == bulks({"x", "2", "y", "4", "z", "inf"}));
  CHECK(client.run("ZDIFFSTORE a 2 a a") == integer(0));
  CHECK(client.run("ZCARD a") == integer(0));
  // Infinity times zero is zero in the smallest set, and in another leaves an extreme as it is.
  client.run("ZADD five 5 m");
  client.run("ZADD infinite inf m");
  CHECK(client.run("ZINTER 2 five infinite WEIGHTS 1 0 WITHSCORES") == bulks({"m", "0"}));
  CHECK(client.run("ZINTER 2 five infinite WEIGHTS 1 0 AGGREGATE MIN WITHSCORES") ==
        bulks({"m", "5"}));
  CHECK(client.run("ZUNION 2 five infinite WEIGHTS 1 0 WITHSCORES") == bulks({"m", "5"}));
  // Sums are made from the smallest set to the largest.
  client.run("ZADD three inf m 1 x 1 y");
  client.run("ZADD one -inf m");
  client.run("ZADD two 5 m 1 z");
  CHECK(client.run("ZUNION 3 three one two WITHSCORES") ==
        bulks({"m", "0", "x", "1", "y", "1", "z", "1"}));
  client.run("ZADD tenths 0.1 m 1 x 1 y");
  client.run("ZADD fifths 0.2 m 1 x");
  client.run("ZADD others 0.3 m");
  CHECK(client.run("ZUNION 3 tenths fifths others WITHSCORES") ==
        bulks({"m", "0.6", "y", "1", "x", "2"}));
  CHECK(client.run("ZUNION 0 a") ==
        error("ERR at least 1 input key is needed for 'zunion' command"));
}

TEST_CASE("A sorted set that is named many times is counted and taken away once", "[sorted_sets]") {
  SortedSetServer server;
  server.set_large(GENERATE(false, true));
  TestClient client(server);
  client.run("ZADD a 1 x 2 y 3 z");
  client.run("ZADD b 5 y 6 z 7 w");
  client.run("ZADD c 1 x 4 y 9 v");
  std::string keys;
  for (int i = 0; i < 10; ++i) keys += " a b";
  CHECK(client.run("ZINTERCARD 20" + keys) == integer(2));
  CHECK(client.run("ZINTERCARD 21 none" + keys) == integer(0));
  CHECK(client.run("ZDIFF 20" + keys) == bulks({}));
  CHECK(client.run("ZDIFF 21 c" + keys + " WITHSCORES") == bulks({"v", "9"}));
  CHECK(client.run("ZINTER 20" + keys + " WITHSCORES") == bulks({"y", "70", "z", "90"}));
}

TEST_CASE("A set that is named many times counts as much as so many copies of it",
          "[sorted_sets]") {
  SortedSetServer server;
  server.set_large(GENERATE(false, true));
  TestClient client(server);
  base::Random random(7);
  const auto any_of = [&](std::initializer_list<std::string_view> words) {
    return std::string(words.begin()[random.below(words.size())]);
  };
  constexpr size_t kMost = 30;
  const std::vector<std::string> names = {"a", "b", "plain", "none"};
  for (const std::string& name : {names[0], names[1]}) {
    for (const char* member : {"x", "y", "z", "w"}) {
      if (random.below(4) == 0) continue;
      const std::string score = any_of({"0.1", "-0", "inf", "-inf", "1e308", "3", "-0.7"});
      client.run("ZADD " + name + " " + score + " " + member);
    }
  }
  for (size_t i = 0; i < kMost; ++i) {
    client.run("ZUNIONSTORE a" + std::to_string(i) + " 1 a");
    client.run("ZUNIONSTORE b" + std::to_string(i) + " 1 b");
    client.run("SADD plain" + std::to_string(i) + " x y other");
  }
  client.run("SADD plain x y other");
  for (int round = 0; round < 300; ++round) {
    const size_t count = 9 + random.below(kMost - 9);
    const size_t kinds = 1 + random.below(names.size());
    std::string repeated = std::to_string(count);
    std::string copied = repeated;
    std::string options = " WEIGHTS";
    for (size_t i = 0; i < count; ++i) {
      const std::string& name = names[random.below(kinds)];
      repeated += " " + name;
      copied += " " + name + std::to_string(i);
      options += " " + any_of({"1", "1", "0", "-1", "0.3", "inf"});
    }
    options += " AGGREGATE " + any_of({"SUM", "MIN", "MAX", "COUNT"}) + " WITHSCORES";
    if (random.below(3) == 0) options = " WITHSCORES";
    CAPTURE(repeated, options);
    for (const std::string command : {"ZUNION ", "ZINTER "})
      CHECK(client.run(command + repeated + options) == client.run(command + copied + options));
  }
}

TEST_CASE("A sorted set holds what a model holds, over many random changes", "[sorted_sets]") {
  base::Random random(GENERATE(1u, 2u));
  store::Environment environment;
  environment.limits.zset_max_listpack_entries = GENERATE(10u, 128u);
  store::SortedSet set(environment);
  std::map<std::string, double> model;
  for (int step = 0; step < 20'000; ++step) {
    const std::string member = std::to_string(random.below(300));
    const double score = static_cast<double>(random.below(50)) / 4;
    if (random.below(5) < 3) {
      REQUIRE(set.set(member, score) == !model.contains(member));
      model[member] = score;
    } else {
      REQUIRE(set.erase(member) == (model.erase(member) == 1));
    }
    if (step % 500 != 0) continue;
    std::set<std::pair<double, std::string>> order;
    for (const auto& [name, value] : model) order.insert({value, name});
    std::vector<std::pair<double, std::string>> held;
    set.for_each([&](std::string_view name, double value) {
      held.emplace_back(value, std::string(name));
      REQUIRE(set.rank(name) == held.size() - 1);
    });
    REQUIRE(held == std::vector(order.begin(), order.end()));
  }
}

TEST_CASE("Plain sets take part in the algebra with a score of 1", "[sorted_sets]") {
  SortedSetServer server;
  server.set_large(GENERATE(false, true));
  TestClient client(server);
  client.run("ZADD sorted 5 a 6 b 7 7");
  client.run("SADD plain b c");
  client.run("SADD numbers 7 8");
  CHECK(client.run("ZUNION 2 sorted plain WEIGHTS 1 10 WITHSCORES") ==
        bulks({"a", "5", "7", "7", "c", "10", "b", "16"}));
  CHECK(client.run("ZINTER 2 plain sorted AGGREGATE MIN WITHSCORES") == bulks({"b", "1"}));
  CHECK(client.run("ZDIFF 3 sorted plain numbers WITHSCORES") == bulks({"a", "5"}));
  CHECK(client.run("ZDIFF 2 plain plain") == bulks({}));
  CHECK(client.run("ZINTERCARD 2 numbers sorted") == integer(1));
  CHECK(client.run("ZUNIONSTORE plain 1 plain") == integer(2));
  CHECK(client.run("ZRANGE plain 0 -1 WITHSCORES") == bulks({"b", "1", "c", "1"}));
  client.run("SET text a");
  CHECK(client.run("ZUNION 2 plain text") == kWrongType);
}

TEST_CASE("Many scores in one ZADD make a sorted set large, whatever comes of them",
          "[sorted_sets]") {
  SortedSetServer server;
  TestClient client(server);
  server.database().environment().limits.zset_max_listpack_entries = 2;
  client.run("ZADD key 1 a");
  client.run("ZADD key 2 a 3 a");
  CHECK(server.encoding("key") == "listpack");
  client.run("ZADD key XX 2 x 3 y 4 z");
  CHECK(server.encoding("key") == "skiplist");
}

TEST_CASE("Bounds by score are rounded and end at a zero byte", "[sorted_sets]") {
  SortedSetServer server;
  TestClient client(server);
  client.run("ZADD key 1 a 2 b");
  CHECK(client.run("ZCOUNT key -1e400 1e400") == integer(2));
  CHECK(client.run_words({"ZCOUNT", "key", "(", std::string_view("1\0x", 3)}) == integer(1));
  CHECK(client.run("ZCOUNT key 0x1 2") == error("ERR min or max is not a float"));
  CHECK(client.run("ZADD key 1e400 a") == error("ERR value is not a valid float"));
}

TEST_CASE("Nothing is within a negative offset, whatever the encoding", "[sorted_sets]") {
  SortedSetServer server;
  server.set_large(GENERATE(false, true));
  TestClient client(server);
  client.run("ZADD key 1 a 2 b 3 c 4 d");
  client.run("ZADD words 0 a 0 b 0 c");
  CHECK(client.run("ZRANGEBYSCORE key 1 3 LIMIT -2 5") == bulks({}));
  CHECK(client.run("ZREVRANGEBYSCORE key 3 1 LIMIT -2 1") == bulks({}));
  CHECK(client.run("ZRANGE key 1 3 BYSCORE LIMIT -1 5") == bulks({}));
  CHECK(client.run("ZRANGEBYLEX words - + LIMIT -1 2") == bulks({}));
  CHECK(client.run("ZRANGESTORE to key 1 3 BYSCORE LIMIT -1 5") == integer(0));
}

TEST_CASE("A sorted set that grows large loses the sign of its zeros", "[sorted_sets]") {
  SortedSetServer server;
  TestClient client(server);
  const std::string long_name(100, 'x');
  client.run("ZADD at_first -0 a 1 " + long_name);
  CHECK(client.run("ZSCORE at_first a") == bulk("0"));
  client.run("ZADD from_start 1 " + long_name + " -0 a");
  CHECK(client.run("ZSCORE from_start a") == bulk("-0"));
}

TEST_CASE("Sums of zeros lose their sign as they do in ZADD", "[sorted_sets]") {
  SortedSetServer server;
  server.set_large(true);
  TestClient client(server);
  client.run("ZADD minus -0 a");
  client.run("ZADD plus 0 a");
  CHECK(client.run("ZUNION 2 minus plus WITHSCORES") == bulks({"a", "0"}));
  CHECK(client.run("ZUNION 2 minus minus WITHSCORES") == bulks({"a", "-0"}));
}

TEST_CASE("ZINCRBY takes no options", "[sorted_sets]") {
  SortedSetServer server;
  TestClient client(server);
  CHECK(client.run("ZINCRBY key NX 1") == error("ERR syntax error"));
  CHECK(client.run("ZINCRBY key 1 NX") == bulk("1"));
}

TEST_CASE("ZRANGE takes one order and one direction", "[sorted_sets]") {
  SortedSetServer server;
  TestClient client(server);
  client.run("ZADD key 1 a 2 b");
  CHECK(client.run("ZRANGE key 0 1 BYSCORE BYSCORE") == error("ERR syntax error"));
  CHECK(client.run("ZRANGE key - + BYLEX BYSCORE") == error("ERR syntax error"));
  CHECK(client.run("ZRANGE key 0 1 REV REV") == error("ERR syntax error"));
  CHECK(client.run("ZRANGE key 0 0 WITHSCORES WITHSCORES") == bulks({"a", "1"}));
}

TEST_CASE("ZSCAN gives members and scores", "[sorted_sets]") {
  SortedSetServer server;
  server.set_large(GENERATE(false, true));
  TestClient client(server);
  client.run("ZADD key 0.1 a 2 b");
  const std::string shown = server.encoding("key") == "listpack" ? "0.1" : "0.10000000000000001";
  CHECK(client.run("ZSCAN key 0 MATCH a COUNT 100") == "*2\r\n" + bulk("0") + bulks({"a", shown}));
  CHECK(client.run("ZSCAN none 0") == "*2\r\n" + bulk("0") + bulks({}));
  CHECK(client.run("ZSCAN key 0 NOVALUES") ==
        error("ERR NOVALUES option can only be used in HSCAN"));
  CHECK(client.run("ZSCAN key x") == error("ERR invalid cursor"));
}

TEST_CASE("Clients wait for members of sorted sets", "[sorted_sets]") {
  SortedSetServer server;
  TestClient lowest(server);
  TestClient highest(server);
  TestClient several(server);
  TestClient other(server);
  CHECK(lowest.run("BZPOPMIN none key 0").empty());
  CHECK(highest.run("BZPOPMAX key 0").empty());
  CHECK(several.run("BZMPOP 0 2 key none MAX COUNT 2").empty());
  other.run("SET key x");
  other.run("SET key y");
  CHECK(lowest.take_output().empty());
  other.run("GETDEL key");
  CHECK(other.run("ZADD key 1 a 2 b 3 c 4 d 5 e") == integer(5));
  CHECK(lowest.take_output() == bulks({"key", "a", "1"}));
  CHECK(highest.take_output() == bulks({"key", "e", "5"}));
  CHECK(several.take_output() ==
        array({bulk("key"), array({bulks({"d", "4"}), bulks({"c", "3"})})}));
  CHECK(other.run("BZPOPMIN key 0") == bulks({"key", "b", "2"}));
  CHECK(server.server.blocking().keys() == 0);
}

TEST_CASE("Waiting for sorted sets is refused with an error that fits", "[sorted_sets]") {
  SortedSetServer server;
  TestClient client(server);
  client.run("SET text x");
  CHECK(client.run("BZPOPMIN text 0") == kWrongType);
  CHECK(client.run("BZPOPMAX key -1") == error("ERR timeout is negative"));
  CHECK(client.run("BZMPOP 0 0 key MIN") == error("ERR numkeys should be greater than 0"));
  CHECK(client.run("BZMPOP 0 1 key MIN COUNT 0") == error("ERR count should be greater than 0"));
  CHECK(client.run("BZMPOP 0 1 key WRONG") == error("ERR syntax error"));
  CHECK(client.run("BZMPOP -1 1 key WRONG") == error("ERR syntax error"));
  CHECK(client.run("BZMPOP -1 1 key MIN") == error("ERR timeout is negative"));
  client.run("MULTI");
  client.run("BZPOPMIN key 0");
  CHECK(client.run("EXEC") == array({std::string(kNullArray)}));
}

TEST_CASE("AGGREGATE COUNT counts in how many sets a member is, by their weights",
          "[sorted_sets]") {
  SortedSetServer server;
  server.set_large(GENERATE(false, true));
  TestClient client(server);
  client.run("ZADD a 1 x -2 y inf z");
  client.run("ZADD b 10 y -inf z 30 w");
  CHECK(client.run("ZUNION 2 a b AGGREGATE COUNT WITHSCORES") ==
        bulks({"w", "1", "x", "1", "y", "2", "z", "2"}));
  CHECK(client.run("ZUNION 2 a b WEIGHTS 2 5 AGGREGATE count WITHSCORES") ==
        bulks({"x", "2", "w", "5", "y", "7", "z", "7"}));
  CHECK(client.run("ZINTER 2 a b WEIGHTS 2 -0.5 AGGREGATE COUNT WITHSCORES") ==
        bulks({"y", "1.5", "z", "1.5"}));
  CHECK(client.run("ZUNIONSTORE to 3 a b a AGGREGATE COUNT") == integer(4));
  CHECK(client.run("ZSCORE to x") == bulk("2"));
  CHECK(client.run("ZINTERSTORE to 2 a b AGGREGATE COUNT") == integer(2));
  CHECK(client.run("ZSCORE to z") == bulk("2"));
  CHECK(client.run("ZUNION 2 a b AGGREGATE NUMBER") == error("ERR syntax error"));
}

TEST_CASE("ZMPOP and ZRANDMEMBER say what is wrong with their words", "[sorted_sets]") {
  SortedSetServer server;
  TestClient client(server);
  client.run("ZADD z 1 a 2 b");
  const std::string syntax = error("ERR syntax error");
  CHECK(client.run("ZMPOP 0 z MIN") == error("ERR numkeys should be greater than 0"));
  CHECK(client.run("ZMPOP x z MIN") == error("ERR numkeys should be greater than 0"));
  CHECK(client.run("ZMPOP 2 z MIN") == syntax);
  CHECK(client.run("ZMPOP 3 z MIN") == syntax);
  CHECK(client.run("ZMPOP 1 z MEDIAN") == syntax);
  CHECK(client.run("ZMPOP 1 z MIN COUNT 0") == error("ERR count should be greater than 0"));
  CHECK(client.run("ZMPOP 1 z MIN COUNT") == syntax);
  CHECK(client.run("ZMPOP 1 z MIN COUNT 1 COUNT 1") == syntax);
  CHECK(client.run("ZMPOP 1 z MIN MAX") == syntax);
  CHECK(client.run("ZCARD z") == integer(2));
  CHECK(client.run("ZMPOP 1 z MAX COUNT 1") == array({bulk("z"), array({bulks({"b", "2"})})}));
  CHECK(client.run("ZRANDMEMBER z 1 WITHOUT") == syntax);
  CHECK(client.run("ZRANDMEMBER z 1 WITHSCORES more") == syntax);
  const std::string range = error("ERR value is out of range");
  CHECK(client.run("ZRANDMEMBER z 4611686018427387904 WITHSCORES") == range);
  CHECK(client.run("ZRANDMEMBER z -4611686018427387904 WITHSCORES") == range);
  CHECK(client.run("ZRANDMEMBER z 4611686018427387903 WITHSCORES") == bulks({"a", "1"}));
  CHECK(client.run("ZRANDMEMBER z 9223372036854775807") == bulks({"a"}));
  CHECK(client.run("ZRANDMEMBER none") == kNull);
  CHECK(client.run("ZRANDMEMBER none 1") == "*0\r\n");
}

TEST_CASE("ZSCAN tells scores with 17 digits before Redis 7.2") {
  const auto scan = [](const char* settings) {
    TestedServer server(settings);
    TestClient client(server);
    client.run("ZADD set 3.1 a");
    return client.run("ZSCAN set 0");
  };
  CHECK(scan("emulate \"redis 7.0\"\n") == array({bulk("0"), bulks({"a", "3.1000000000000001"})}));
  CHECK(scan("emulate \"redis 7.2\"\n") == array({bulk("0"), bulks({"a", "3.1"})}));
}

}  // namespace latchkey::tests
