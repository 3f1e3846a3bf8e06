
#include "commands/groups.h"
#include "server/command/watch.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

struct DatabasesFixture : ServerFixture {
  explicit DatabasesFixture(std::string_view settings = {})
      : ServerFixture({commands::database_rows(), commands::expire_rows(), commands::key_rows(),
                       commands::string_rows(), commands::transaction_rows()},
                      settings) {}
};

}  // namespace

TEST_CASE("SELECT chooses one of the configured databases", "[databases]") {
  DatabasesFixture server("databases 3\n");
  TestClient client(server);
  client.run("SET a 0");
  CHECK(client.run("SELECT 2") == kOk);
  CHECK(client.run("GET a") == kNull);
  CHECK(client.run("SELECT 3") == error("ERR DB index is out of range"));
  CHECK(client.run("SELECT -1") == error("ERR DB index is out of range"));
  CHECK(client.run("SELECT two") == error("ERR value is not an integer or out of range"));
  CHECK(client.run("SELECT 2147483648") ==
        error("ERR value is out of range, value must between -2147483648 and 2147483647"));
  CHECK(client->database == 2);
}

TEST_CASE("SWAPDB exchanges the contents of two databases", "[databases]") {
  DatabasesFixture server;
  TestClient client(server);
  client.run("SET a zero");
  client.run("PEXPIRE a 50");
  client.run("SELECT 1");
  client.run("SET a one");
  server.events();
  server.changes();
  CHECK(client.run("SWAPDB 0 1") == kOk);
  CHECK(server.events() == "swapped db0, swapped db1");
  CHECK(server.changes() == 1);
  CHECK(client.run("GET a") == bulk("zero"));
  CHECK(client.run("PTTL a") == integer(50));
  client.run("SELECT 0");
  CHECK(client.run("GET a") == bulk("one"));
  server.advance_ms(100);
  server.tick();
  CHECK(server.database(1).size() == 0);
}

TEST_CASE("SWAPDB tells which of its numbers is wrong", "[databases]") {
  DatabasesFixture server;
  TestClient client(server);
  CHECK(client.run("SWAPDB x y") == error("ERR invalid first DB index"));
  CHECK(client.run("SWAPDB 99 y") == error("ERR invalid second DB index"));
  CHECK(client.run("SWAPDB 0 16") == error("ERR DB index is out of range"));
  CHECK(client.run("SWAPDB 1 1") == kOk);
  CHECK(server.changes() == 1);
}

TEST_CASE("FLUSHDB empties one database, FLUSHALL all", "[databases]") {
  DatabasesFixture server;
  TestClient client(server);
  client.run("SET a 1");
  client.run("SELECT 1");
  client.run("SET a 1");
  client.run("SET b 1");
  client.run("EXPIRE b 100");
  server.events();
  server.changes();
  CHECK(client.run("FLUSHDB") == kOk);
  CHECK(server.events() == "cleared db1");
  CHECK(server.changes() == 2);
  CHECK(client.run("DBSIZE") == integer(0));
  CHECK(server.database(0).size() == 1);
  CHECK(client.run("FLUSHDB SYNC") == kOk);
  CHECK(server.changes() == 0);
  CHECK(client.run("FLUSHALL ASYNC") == kOk);
  CHECK(server.database(0).size() == 0);
  CHECK(client.run("FLUSHALL NOW") == error("ERR syntax error"));
  CHECK(client.run("FLUSHALL SYNC ASYNC") == error("ERR syntax error"));
}

TEST_CASE("Flushing many keys is left to the background with ASYNC or lazyfree-lazy-user-flush",
          "[databases]") {
  const bool configured = GENERATE(false, true);
  DatabasesFixture server(configured ? "lazyfree-lazy-user-flush yes\n" : "");
  TestClient client(server);
  constexpr size_t kKeys = 1000;
  for (size_t i = 0; i < kKeys; ++i) client.run_words({"SET", std::to_string(i), "value"});
  store::Reclaimer& reclaimer = server.server.environment().reclaimer;
  CHECK(client.run(configured ? "FLUSHALL" : "FLUSHALL ASYNC") == kOk);
  CHECK(client.run("DBSIZE") == integer(0));
  reclaimer.drain();
  CHECK(reclaimer.freed_objects() == kKeys);
  client.run("SET a 1");
  CHECK(client.run("FLUSHALL SYNC") == kOk);
  CHECK(reclaimer.freed_objects() == kKeys);
}

TEST_CASE("Flushing and swapping fail the transactions of those who watch keys that were there",
          "[databases]") {
  DatabasesFixture server;
  TestClient watcher(server);
  TestClient other(server);
  other.run("SET a 1");
  const auto outcome = [&](std::string_view key, std::string_view command) {
    watcher.run_words({"WATCH", key});
    other.run(command);
    watcher.run("MULTI");
    const bool failed = watcher.run("EXEC") == kNullArray;
    other.run("SET a 1");
    return failed;
  };
  CHECK(outcome("a", "FLUSHALL"));
  CHECK(outcome("a", "FLUSHDB"));
  CHECK(outcome("a", "SWAPDB 0 1"));
  CHECK_FALSE(outcome("missing", "FLUSHALL"));
  CHECK_FALSE(outcome("a", "SWAPDB 2 3"));
  CHECK_FALSE(outcome("a", "SWAPDB 0 0"));
}

}  // namespace latchkey::tests
