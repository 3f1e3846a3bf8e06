// HOTKEYS: which keys cost most.
#include <memory>
#include <string>
#include <string_view>

#include "cluster/cluster.h"
#include "cluster/rows.h"
#include "commands/groups.h"
#include "server/observe/hot_keys.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"
#include "unit/temporary_directory.h"

namespace latchkey::tests {

namespace {

struct HotServer : ServerFixture {
  HotServer()
      : ServerFixture({commands::hotkeys_rows(), commands::string_batch_rows(),
                       commands::string_rows(), commands::transaction_rows()}),
        client(*this) {}
  std::string run(std::string_view line) { return client.run(line); }
  TestClient client;
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("HOTKEYS counts the bytes of each key's requests and replies", "[hotkeys]") {
  HotServer server;
  CHECK(server.run("HOTKEYS GET") == kNull);
  REQUIRE(server.run("HOTKEYS START METRICS 1 NET") == kOk);
  server.run("SET key value");  // 33 bytes, and 5 of the reply
  server.run("SET key value");
  server.run("MSET other 1 third 2");  // 50 bytes and 5, for two keys
  const std::string told = server.run("HOTKEYS GET");
  CHECK(has(told, bulk("tracking-active") + integer(1)));
  CHECK(has(told, bulk("by-net-bytes") + "*6\r\n" + bulk("key") + integer(76)));
  CHECK(has(told, bulk("other") + integer(27)));
  CHECK(has(told, bulk("third") + integer(27)));
  CHECK(has(told, bulk("net-bytes-all-commands-all-slots") + integer(131)));
  CHECK(has(told, bulk("selected-slots") + array({array({integer(0), integer(16383)})})));
  CHECK_FALSE(has(told, "by-cpu-time-us"));
}

TEST_CASE("HOTKEYS counts the commands of a transaction one by one", "[hotkeys]") {
  HotServer server;
  server.run("HOTKEYS START METRICS 1 NET");
  server.run("MULTI");
  server.run("SET a 1");
  server.run("SET b 1");
  server.run("SET a 1");
  server.run("EXEC");
  CHECK(
      has(server.run("HOTKEYS GET"), "*4\r\n" + bulk("a") + integer(64) + bulk("b") + integer(32)));
}

TEST_CASE("HOTKEYS ends when it is stopped or its time is over", "[hotkeys]") {
  HotServer server;
  CHECK(server.run("HOTKEYS STOP") == kNull);
  server.run("HOTKEYS START METRICS 1 NET DURATION 2");
  server.run("SET a 1");
  CHECK(server.run("HOTKEYS START METRICS 1 NET") ==
        error("ERR hotkey tracking session already in progress"));
  CHECK(server.run("HOTKEYS RESET") ==
        error("ERR hotkey tracking session in progress, stop tracking first"));
  server.advance_ms(3000);
  server.run("SET late 1");
  const std::string told = server.run("HOTKEYS GET");
  CHECK(has(told, bulk("tracking-active") + integer(0)));
  CHECK(has(told, bulk("collection-duration-ms") + integer(2000)));
  CHECK(has(told, bulk("a")));
  CHECK_FALSE(has(told, bulk("late")));
  CHECK(server.run("HOTKEYS STOP") == kNull);
  CHECK(server.run("HOTKEYS RESET") == kOk);
  CHECK(server.run("HOTKEYS GET") == kNull);
}

TEST_CASE("INFO tells of a session of HOTKEYS until it is reset", "[hotkeys]") {
  ServerFixture server({commands::hotkeys_rows(), commands::info_rows()});
  TestClient client(server);
  const auto told = [&] { return client.run("INFO hotkeys"); };
  CHECK(has(client.run("INFO"), "\r\n# Hotkeys\r\n"));
  CHECK(told() == bulk("# Hotkeys\r\n"));
  client.run("HOTKEYS START METRICS 1 CPU DURATION 2");
  CHECK(has(told(), "# Hotkeys\r\nhotkeys-tracking-active:1\r\nhotkeys-cmd-cpu-time:"));
  server.advance_ms(3000);
  CHECK(has(told(), "# Hotkeys\r\nhotkeys-tracking-active:0\r\nhotkeys-cmd-cpu-time:"));
  client.run("HOTKEYS RESET");
  CHECK(told() == bulk("# Hotkeys\r\n"));
  ServerFixture older({commands::info_rows()}, "emulate \"redis 8.0\"\n");
  CHECK_FALSE(has(TestClient(older).run("INFO everything"), "# Hotkeys"));
}

TEST_CASE("HOTKEYS START says what is wrong with its words", "[hotkeys]") {
  HotServer server;
  const auto refused = [&](const std::string& words, const std::string& text) {
    return server.run("HOTKEYS START " + words) == error("ERR " + text);
  };
  CHECK(refused("COUNT 5", "METRICS parameter is required"));
  CHECK(refused("METRICS 0 CPU", "METRICS count must be > 0 and <= 2"));
  CHECK(refused("METRICS 1 GPU", "METRICS no valid metrics passed. Supported: CPU|NET"));
  CHECK(refused("METRICS 2 GPU COUNT 5", "METRICS no valid metrics passed. Supported: CPU|NET"));
  CHECK(refused("METRICS 2 CPU COUNT 5", "syntax error"));
  CHECK(refused("METRICS 2 CPU", "METRICS count does not match number of metric types provided"));
  CHECK(refused("METRICS 2 CPU CPU", "METRICS CPU defined more than once!"));
  CHECK(refused("METRICS 1 CPU NET", "syntax error"));
  CHECK(refused("METRICS 1 CPU COUNT 65", "COUNT must be between 1 and 64"));
  CHECK(refused("METRICS 1 CPU DURATION 0", "DURATION must be between 1 and 1000000"));
  CHECK(refused("METRICS 1 CPU SAMPLE 0", "SAMPLE ratio must be positive"));
  CHECK(refused("METRICS 1 CPU SLOTS 1 0", "SLOTS parameter cannot be used in non-cluster mode"));
}

TEST_CASE("HOTKEYS forgets the cheap keys when there are too many", "[hotkeys]") {
  HotServer server;
  server.run("HOTKEYS START METRICS 1 NET COUNT 1");
  for (int i = 0; i < 50; ++i) server.run("SET hot 1");
  for (size_t i = 0; i < 3 * server::HotKeys::kMaxKeys; ++i)
    server.run("SET key" + std::to_string(i) + " 1");
  CHECK(has(server.run("HOTKEYS GET"), bulk("by-net-bytes") + "*2\r\n" + bulk("hot")));
}

TEST_CASE("HOTKEYS keeps no more of long names than it tells", "[hotkeys]") {
  HotServer server;
  server.run("HOTKEYS START METRICS 1 NET COUNT 2");
  const std::string hot(30'000, 'h');
  for (int i = 0; i < 50; ++i) server.run("GET " + hot);
  const size_t before = server.server.used_memory();
  for (int i = 0; i < 1000; ++i) server.run("GET " + std::string(30'000, 'k') + std::to_string(i));
  CHECK(server.server.used_memory() < before + 8 * server::HotKeys::kMaxNameBytes);
  CHECK(has(server.run("HOTKEYS GET"), bulk("by-net-bytes") + "*4\r\n" + bulk(hot)));
}

namespace {

// A node of a cluster that has all slots but the last.
struct HotNode {
  HotNode()
      : server({cluster::cluster_rows(), commands::debug_rows(), commands::hotkeys_rows(),
                commands::key_rows(), commands::string_rows()},
               "cluster-enabled yes\ndatabases 1\nport 7000\nenable-debug-command yes\n"
               "cluster-require-full-coverage no\ncluster-config-file " +
                   (directory.path() / "nodes.conf").string() + "\n") {
    node = std::make_shared<cluster::Cluster>(server.server);
    REQUIRE(node->start());
    server.server.add_layer(node);
    server.server.set_slot_gate(node.get());
    client = std::make_unique<TestClient>(server);
    REQUIRE(run("CLUSTER ADDSLOTSRANGE 0 16382") == kOk);
  }
  std::string run(std::string_view line) { return client->run(line); }

  TemporaryDirectory directory;
  ServerFixture server;
  std::shared_ptr<cluster::Cluster> node;
  std::unique_ptr<TestClient> client;
};

}  // namespace

TEST_CASE("HOTKEYS START refuses slots that are none, or not this node's", "[hotkeys]") {
  HotNode node;
  const auto refused = [&](const std::string& words, const std::string& text) {
    return node.run("HOTKEYS START METRICS 1 NET SLOTS " + words) == error("ERR " + text);
  };
  const std::string range = "SLOTS count must be between 1 and 16384";
  CHECK(refused("0", range));
  CHECK(refused("16385", range));
  CHECK(refused("x", range));
  CHECK(refused("2 5", "not enough slot numbers provided"));
  CHECK(refused("16384 1", "not enough slot numbers provided"));
  CHECK(refused("1 -1", "Invalid or out of range slot"));
  CHECK(refused("1 16384", "Invalid or out of range slot"));
  CHECK(refused("1 x", "Invalid or out of range slot"));
  CHECK(refused("2 5 5", "duplicate slot number"));
  CHECK(refused("1 16383", "slot 16383 not handled by this node"));
  CHECK(refused("1 5 SLOTS 1 6", "SLOTS parameter already specified"));
  CHECK(refused("1 5 6", "syntax error"));
  CHECK(node.run("HOTKEYS GET") == kNull);
}

TEST_CASE("HOTKEYS of some slots counts all calls, those of the slots, and a share of these",
          "[hotkeys]") {
  HotNode node;
  // "a" is in slot 15495, "b" in 3300, "c" in 7365.
  REQUIRE(node.run("HOTKEYS START METRICS 2 NET CPU SAMPLE 1 SLOTS 4 3300 15496 15495 0") == kOk);
  node.run("SET a 1");  // 27 bytes, and 5 of the reply
  node.run("SET b 1");
  node.run("SET c 1");
  std::string told = node.run("HOTKEYS GET");
  CHECK(has(told, bulk("tracking-active") + integer(1) + bulk("sample-ratio") + integer(1) +
                      bulk("selected-slots") +
                      array({array({integer(0)}), array({integer(3300)}),
                             array({integer(15495), integer(15496)})}) +
                      bulk("all-commands-selected-slots-us")));
  CHECK(has(told, bulk("net-bytes-all-commands-selected-slots") + integer(64) +
                      bulk("net-bytes-all-commands-all-slots") + integer(96)));
  CHECK(has(told, bulk("total-cpu-time-user-ms")));
  CHECK(has(told, bulk("total-cpu-time-sys-ms")));
  CHECK(has(told, bulk("total-net-bytes") + integer(64)));
  // Each key that was used, however fast.
  CHECK(has(told, bulk("by-cpu-time-us") + "*4\r\n"));
  CHECK(has(told, bulk("by-net-bytes") + "*4\r\n"));
  CHECK_FALSE(has(told, "sampled-commands"));
  CHECK_FALSE(has(told, bulk("c")));
  node.run("HOTKEYS STOP");
  node.run("HOTKEYS RESET");

  REQUIRE(node.run("HOTKEYS START METRICS 1 NET SAMPLE 1000000 SLOTS 1 15495") == kOk);
  node.run("SET a 1");
  told = node.run("HOTKEYS GET");
  CHECK(has(told, bulk("sampled-commands-selected-slots-us")));
  CHECK(has(told, bulk("net-bytes-sampled-commands-selected-slots")));
  CHECK(has(told, bulk("net-bytes-all-commands-selected-slots") + integer(32)));
  CHECK_FALSE(has(told, "cpu-time"));
}

TEST_CASE("HOTKEYS of a node tells of the slots that it has", "[hotkeys]") {
  HotNode node;
  REQUIRE(node.run("CLUSTER DELSLOTS 100") == kOk);
  REQUIRE(node.run("HOTKEYS START METRICS 1 NET") == kOk);
  CHECK(has(node.run("HOTKEYS GET"),
            bulk("selected-slots") +
                array({array({integer(0), integer(99)}), array({integer(101), integer(16382)})})));
}

TEST_CASE("What a node has counted by slots agrees with what is there", "[hotkeys]") {
  HotNode node;
  CHECK(node.run("DEBUG ALLOCSIZE-SLOTS-ASSERT 1") == kOk);
  CHECK(node.run("SET a 1") == kOk);
  CHECK(node.run("SET b 1") == kOk);
  CHECK(node.run("SET {a}b 1") == kOk);
  CHECK(node.run("CLUSTER COUNTKEYSINSLOT 15495") == integer(2));
  CHECK(node.run("DEL a {a}b") == integer(2));
  CHECK(node.run("CLUSTER COUNTKEYSINSLOT 15495") == integer(0));
  CHECK(node.run("DEBUG ALLOCSIZE-SLOTS-ASSERT 0") == kOk);
}

}  // namespace latchkey::tests
