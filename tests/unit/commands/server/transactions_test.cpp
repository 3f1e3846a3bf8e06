
#include <array>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "commands/groups.h"
#include "server/command/transaction.h"
#include "server/command/watch.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

struct TransactionsFixture : ServerFixture {
  TransactionsFixture()
      : ServerFixture({commands::counter_rows(), commands::string_rows(),
                       commands::transaction_rows(), commands::config_rows()}) {}
};

}  // namespace

TEST_CASE("EXEC answers with the replies of what was queued", "[transactions]") {
  TransactionsFixture server;
  TestClient client(server);
  CHECK(client.run("MULTI") == kOk);
  CHECK(client.run("SET a 1") == kQueued);
  CHECK(client.run("INCR a") == kQueued);
  CHECK(client.run("EXEC") == array({std::string(kOk), integer(2)}));
  CHECK(client.run("EXEC") == error("ERR EXEC without MULTI"));
}

TEST_CASE("Whoever watches a key is told of its change, and nobody else", "[transactions]") {
  TransactionsFixture server;
  constexpr size_t kClients = 5;
  constexpr size_t kKeys = 4;
  std::vector<std::unique_ptr<TestClient>> clients;
  for (size_t i = 0; i < kClients; ++i) clients.push_back(std::make_unique<TestClient>(server));
  TestClient writer(server);
  std::array<std::set<size_t>, kClients> watched;
  std::array<bool, kClients> fails{};
  std::mt19937 random(7);
  for (int step = 0; step < 2000; ++step) {
    const size_t one = random() % kClients;
    const size_t key = random() % kKeys;
    const std::string name = "key" + std::to_string(key);
    switch (random() % 4) {
      case 0:
      case 1:
        clients[one]->run("WATCH " + name);
        if (!fails[one]) watched[one].insert(key);
        break;
      case 2:
        writer.run("INCR " + name);
        for (size_t i = 0; i < kClients; ++i) {
          if (watched[i].count(key) == 0) continue;
          fails[i] = true;
          watched[i].clear();
        }
        break;
      default:
        clients[one]->run("MULTI");
        CHECK(clients[one]->run("EXEC") == (fails[one] ? std::string(kNullArray) : array({})));
        fails[one] = false;
        watched[one].clear();
    }
    size_t watching = 0;
    std::set<size_t> keys;
    for (const std::set<size_t>& mine : watched) {
      watching += mine.empty() ? 0 : 1;
      keys.insert(mine.begin(), mine.end());
    }
    REQUIRE(server.server.watches().watching_clients() == watching);
    REQUIRE(server.server.watches().watched_keys() == keys.size());
  }
}

TEST_CASE("EXEC does nothing when a watched key was written meanwhile", "[transactions]") {
  TransactionsFixture server;
  TestClient client(server);
  TestClient other(server);
  client.run("WATCH a");
  client.run("MULTI");
  client.run("SET a mine");
  other.run("SET a theirs");
  CHECK(client.run("EXEC") == kNullArray);
  CHECK(client.run("GET a") == bulk("theirs"));
}

TEST_CASE("Who is to fail watches no key any more", "[transactions]") {
  TransactionsFixture server;
  TestClient client(server);
  TestClient same(server);
  TestClient other(server);
  const server::WatchRegistry& watches = server.server.watches();
  client.run("WATCH a b");
  same.run("WATCH a c");
  CHECK(watches.watching_clients() == 2);
  CHECK(watches.watched_keys() == 3);
  other.run("SET b theirs");
  CHECK(watches.watched_by(*client) == 0);
  CHECK(watches.memory_of(*client) == 0);
  CHECK(watches.watched_by(*same) == 2);
  // Watching is of no use to it before its EXEC.
  client.run("WATCH d");
  CHECK(watches.watched_keys() == 2);
  other.run("SET a theirs");
  CHECK(watches.watching_clients() == 0);
  for (TestClient* each : {&client, &same}) {
    each->run("MULTI");
    each->run("INCR n");
    CHECK(each->run("EXEC") == kNullArray);
  }
  // From then on everything is as in the beginning.
  client.run("WATCH a");
  CHECK(watches.watched_keys() == 1);
  other.run("SET a again");
  CHECK(watches.watched_keys() == 0);
  client.run("UNWATCH");
  client.run("WATCH a");
  client.run("MULTI");
  client.run("INCR n");
  CHECK(client.run("EXEC") == array({integer(1)}));
  CHECK(watches.watching_clients() == 0);
}

TEST_CASE("An error while queueing aborts the transaction", "[transactions]") {
  TransactionsFixture server;
  TestClient client(server);
  client.run("MULTI");
  CHECK(client.run("GET") == error("ERR wrong number of arguments for 'get' command"));
  client.run("SET a 1");
  CHECK(client.run("EXEC") == error("EXECABORT Transaction discarded because of previous errors."));
  CHECK(client.run("GET a") == kNull);
}

TEST_CASE("What is queued behind the reason why EXEC will do nothing takes no memory",
          "[transactions]") {
  TransactionsFixture server;
  TestClient client(server);
  TestClient other(server);
  std::string reply = error("EXECABORT Transaction discarded because of previous errors.");
  client.run("WATCH a");
  client.run("MULTI");
  CHECK(client.run("GET a") == kQueued);
  SECTION("an error") {
    client.run("GET");
  }
  SECTION("a key that has changed") {
    other.run("SET a theirs");
    reply = kNullArray;
  }
  const size_t before = client->transaction->memory_usage;
  CHECK(client.run("SET a mine") == kQueued);
  CHECK(client->transaction->requests.size() == 1);
  CHECK(client->transaction->memory_usage == before);
  // Nor is it a reason of its own.
  other.run("CONFIG SET min-replicas-to-write 1");
  CHECK(client.run("EXEC") == reply);
}

TEST_CASE("Nothing is written while there are fewer replicas than wanted", "[transactions]") {
  constexpr std::string_view kRefusal = "NOREPLICAS Not enough good replicas to write.";
  TransactionsFixture server;
  TestClient client(server);
  TestClient other(server);
  client.run("MULTI");
  client.run("INCR a");
  other.run("CONFIG SET min-replicas-to-write 1");
  CHECK(client.run("EXEC") ==
        error("EXECABORT Transaction discarded because of: " + std::string(kRefusal)));
  CHECK(client.run("SET a 1") == error(kRefusal));
  CHECK(client.run("GET a") == kNull);
  client.run("MULTI");
  client.run("GET a");
  CHECK(client.run("EXEC") == array({std::string(kNull)}));
  other.run("CONFIG SET min-replicas-max-lag 0");
  CHECK(client.run("SET a 1") == kOk);
}

TEST_CASE("An error within EXEC is counted once, and not as one of EXEC", "[transactions]") {
  TransactionsFixture server;
  TestClient client(server);
  client.run("SET a text");
  client.run("MULTI");
  client.run("INCR a");
  client.run("EXEC");
  const auto failed = [&](std::string_view name) {
    return server.server.commands().find_full_name(name)->stats.failed_calls;
  };
  CHECK(failed("incr") == 1);
  CHECK(failed("exec") == 0);
  CHECK(server.server.stats().error_replies == 1);
  client.run("EXEC");
  CHECK(failed("exec") == 1);
  CHECK(server.server.stats().error_replies == 2);
}

TEST_CASE("An EXEC that is refused ends the transaction and its watches", "[transactions]") {
  TransactionsFixture server;
  TestClient client(server);
  TestClient other(server);
  client.run("WATCH a");
  client.run("MULTI");
  client.run("SET a 1");
  const std::string refused = error(
      "EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command");
  CHECK(client.run("EXEC now") == refused);
  CHECK(client.run("EXEC") == error("ERR EXEC without MULTI"));
  other.run("SET a 2");
  client.run("MULTI");
  client.run("GET a");
  CHECK(client.run("EXEC") == array({bulk("2")}));
  CHECK(client.run("EXEC now") == refused);
}

TEST_CASE("An unknown command's words are shown up to a NUL", "[dispatcher]") {
  TransactionsFixture server;
  TestClient client(server);
  using namespace std::string_view_literals;
  CHECK(client.run_words({"NO\0SUCH"sv, "a\0b"sv, "c"sv}) ==
        error("ERR unknown command 'NO', with args beginning with: 'a' 'c' "));
}

}  // namespace latchkey::tests
