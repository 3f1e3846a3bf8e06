
#include "commands/groups.h"
#include "script/engine.h"
#include "script/rows.h"
#include "server/client/blocking.h"
#include "unit/catch.h"
#include "unit/propagation_recorder.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

struct ListServer : ServerFixture {
  ListServer()
      : ServerFixture({commands::config_rows(), commands::expire_rows(), commands::info_rows(),
                       commands::list_move_rows(), commands::list_rows(),
                       commands::list_wait_rows(), commands::string_rows(),
                       commands::transaction_rows(), script::script_rows()}) {
    server.add_layer(std::make_shared<script::Engine>(server));
  }
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
  CHECK(client.run("BLPOP key -1e400") == error("ERR timeout is negative"));
  CHECK(client.run("BLPOP key 1e400") == error("ERR timeout is out of range"));
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

TEST_CASE("A script ends before those are served that wait for what it pushed", "[lists]") {
  ListServer server;
  TestClient first(server);
  TestClient second(server);
  TestClient other(server);
  first.run("BLPOP key 0");
  second.run("BLPOP key 0");
  CHECK(other.run_words({"EVAL",
                         "redis.call('rpush', KEYS[1], 1) redis.call('lpop', KEYS[1]) "
                         "redis.call('rpush', KEYS[1], 2, 3) return redis.call('llen', KEYS[1])",
                         "1", "key"}) == integer(2));
  CHECK(first.take_output() == bulks({"key", "2"}));
  CHECK(second.take_output() == bulks({"key", "3"}));
  CHECK(other.run_words({"EVAL", "return redis.call('blpop', KEYS[1], 0)", "1", "key"}) == kNull);
  CHECK(other.run_words(
            {"EVAL", "return redis.call('blmove', 'a', 'b', 'left', 'left', 0)", "0"}) == kNull);
}

TEST_CASE("An element goes through a chain of waiting moves in one go", "[lists]") {
  ListServer server;
  TestClient first(server);
  TestClient second(server);
  TestClient last(server);
  TestClient other(server);
  last.run("BLPOP c 0");
  second.run("BLMOVE b c LEFT RIGHT 0");
  first.run("BLMOVE a b LEFT RIGHT 0");
  other.run("RPUSH a x");
  CHECK(first.take_output() == bulk("x"));
  CHECK(second.take_output() == bulk("x"));
  CHECK(last.take_output() == bulks({"c", "x"}));
  CHECK(server.database().size() == 0);
}

TEST_CASE("Moves that wait for one another in a circle come to an end", "[lists]") {
  ListServer server;
  TestClient there(server);
  TestClient back(server);
  TestClient other(server);
  there.run("BLMOVE a b LEFT RIGHT 0");
  back.run("BLMOVE b a LEFT RIGHT 0");
  other.run("RPUSH a x");
  CHECK(there.take_output() == bulk("x"));
  CHECK(back.take_output() == bulk("x"));
  CHECK(other.run("LRANGE a 0 -1") == bulks({"x"}));
}

TEST_CASE("A key that is named twice is waited for once", "[lists]") {
  ListServer server;
  TestClient waiting(server);
  TestClient other(server);
  waiting.run("BLPOP key other key 0");
  const std::string figures = other.run("INFO clients");
  CHECK(figures.find("blocked_clients:1\r\n") != std::string::npos);
  CHECK(figures.find("total_blocking_keys:2\r\n") != std::string::npos);
  CHECK(figures.find("total_blocking_keys_on_nokey:0\r\n") != std::string::npos);
  other.run("RPUSH key a b");
  CHECK(waiting.take_output() == bulks({"key", "a"}));
  CHECK(server.server.blocking().keys() == 0);
  CHECK(other.run("LLEN key") == integer(1));
}

TEST_CASE("A waiting move is refused when memory has run out meanwhile", "[lists]") {
  ListServer server;
  TestClient moving(server);
  TestClient popping(server);
  TestClient other(server);
  moving.run("BLMOVE key target LEFT LEFT 0");
  popping.run("BLPOP key 0");
  other.run("MULTI");
  other.run("RPUSH key a b");
  other.run("CONFIG SET maxmemory 1");
  other.run("EXEC");
  CHECK(moving.take_output() == error("OOM command not allowed when used memory > 'maxmemory'."));
  CHECK(popping.take_output() == bulks({"key", "a"}));
}

TEST_CASE("A key that expires within the transaction that made it serves nobody", "[lists]") {
  ListServer server;
  TestClient waiting(server);
  TestClient other(server);
  waiting.run("BLPOP key 0");
  other.run("MULTI");
  other.run("RPUSH key a");
  other.run("PEXPIRE key 0");
  CHECK(other.run("EXEC") == array({integer(1), integer(1)}));
  CHECK(waiting.take_output().empty());
  CHECK(server.server.blocking().keys() == 1);
}

TEST_CASE("A move counts as one change, and a pop as many as it has popped", "[lists]") {
  ListServer server;
  TestClient client(server);
  client.run("RPUSH key a b c");
  server.changes();
  client.run("BLMOVE key other LEFT LEFT 0");
  CHECK(server.changes() == 1);
  client.run("RPOPLPUSH other other");
  CHECK(server.changes() == 1);
  client.run("BLMPOP 0 1 key LEFT COUNT 5");
  CHECK(server.changes() == 2);
  client.run("BLPOP other 0");
  CHECK(server.changes() == 1);
  client.run("RPUSH key a b c d");
  CHECK(server.changes() == 4);
  client.run("LTRIM key 1 2");
  CHECK(server.changes() == 2);
  client.run("LTRIM key 0 -1");
  CHECK(server.changes() == 0);
}

TEST_CASE("BLMOVEM waits for one element, and moves as many as have come", "[lists]") {
  ListServer server;
  TestClient waiting(server);
  TestClient other(server);
  PropagationRecorder stream(server);
  CHECK(waiting.run("BLMOVEM from to LEFT RIGHT 0 COUNT 3 BULK").empty());
  other.run("RPUSH from a b");
  CHECK(waiting.take_output() == bulks({"a", "b"}));
  CHECK(stream.take().ends_with("RPUSH from a b; LMOVEM from to LEFT RIGHT COUNT 3 BULK"));
  CHECK(waiting.run("BLMOVEM to from LEFT RIGHT 0") == bulks({"a"}));
  CHECK(stream.take() == "LMOVEM to from LEFT RIGHT");
}

TEST_CASE("BLMOVEM with EXACTLY waits for all of them, and lets others by", "[lists]") {
  ListServer server;
  TestClient waiting(server);
  TestClient next(server);
  TestClient other(server);
  CHECK(waiting.run("BLMOVEM from to LEFT LEFT 0 EXACTLY 3 OBO").empty());
  CHECK(next.run("BLPOP from 0").empty());
  other.run("RPUSH from a b");
  CHECK(waiting.take_output().empty());
  CHECK(next.take_output() == bulks({"from", "a"}));
  other.run("RPUSH from c d");
  CHECK(waiting.take_output() == bulks({"d", "c", "b"}));
  CHECK(other.run("LLEN from") == integer(0));
}

TEST_CASE("BLMOVEM gives up at its deadline, and at once where it must not wait", "[lists]") {
  ListServer server;
  TestClient waiting(server);
  CHECK(waiting.run("BLMOVEM from to LEFT LEFT 0.5 EXACTLY 2 BULK").empty());
  server.advance_ms(500);
  server.tick();
  CHECK(waiting.take_output() == kNullArray);
  waiting.run("MULTI");
  waiting.run("BLMOVEM from to LEFT LEFT 0 EXACTLY 2 BULK");
  CHECK(waiting.run("EXEC") == array({std::string(kNull)}));
  CHECK(waiting.run("BLMOVEM from to LEFT LEFT x COUNT 2 BULK") ==
        error("ERR timeout is not a float or out of range"));
  CHECK(waiting.run("BLMOVEM from to LEFT LEFT 0 COUNT 2") == error("ERR syntax error"));
}

}  // namespace latchkey::tests
