// CLUSTER SLOT-STATS: what the requests of each slot have cost.
#include "cluster/slot_stats.h"

#include <filesystem>
#include <string>

#include "cluster/cluster.h"
#include "cluster/rows.h"
#include "commands/groups.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

// A node that serves all slots. The slot of "FOO" is 3028, that of "bar" 5061.
struct Node {
  explicit Node(std::string_view enabled)
      : server({cluster::cluster_rows(), commands::config_rows(), commands::list_rows(),
                commands::list_wait_rows(), commands::pubsub_rows(), commands::string_rows(),
                commands::transaction_rows()},
               "cluster-enabled yes\ndatabases 1\nport 7000\ncluster-config-file " + path() +
                   "\ncluster-require-full-coverage no\ncluster-slot-stats-enabled " +
                   std::string(enabled) + "\n"),
        node(std::make_shared<cluster::Cluster>(server.server)) {
    REQUIRE(node->start());
    server.server.add_layer(node);
    server.server.set_slot_gate(node.get());
    client = std::make_unique<TestClient>(server);
    REQUIRE(run("CLUSTER ADDSLOTSRANGE 0 16383") == kOk);
    for (int i = 0; i < 100 && !node->is_up(); ++i) {
      server.advance_ms(100);
      node->tick();
    }
    REQUIRE(node->is_up());
  }
  ~Node() { std::filesystem::remove_all(directory); }
  std::string path() {
    char name[] = "/tmp/latchkey-slots-XXXXXX";
    directory = mkdtemp(name);
    return directory + "/nodes.conf";
  }
  std::string run(std::string_view line) { return client->run(line); }
  std::string of(int slot) {
    const std::string text = std::to_string(slot);
    return run("CLUSTER SLOT-STATS SLOTSRANGE " + text + " " + text);
  }

  std::string directory;
  ServerFixture server;
  std::shared_ptr<cluster::Cluster> node;
  std::unique_ptr<TestClient> client;
};

std::string network(int slot, int keys, int in, int out) {
  return array({array({integer(slot), "*6\r\n" + bulk("key-count") + integer(keys) +
                                          bulk("network-bytes-in") + integer(in) +
                                          bulk("network-bytes-out") + integer(out)})});
}

}  // namespace

TEST_CASE("SLOT-STATS counts bytes by the slots of keys", "[slot_stats]") {
  Node node("net");
  node.run("SET FOO value");
  CHECK(node.of(3028) == network(3028, 1, 33, 5));
  node.run("GET bar");
  CHECK(node.of(5061) == network(5061, 0, 22, 5));
  CHECK(node.run("CONFIG RESETSTAT") == kOk);
  CHECK(node.of(3028) == network(3028, 1, 0, 0));
}

TEST_CASE("SLOT-STATS counts a transaction as a whole", "[slot_stats]") {
  Node node("net");
  TestClient other(node.server);
  other.run("MULTI");
  other.run("SET FOO value");
  CHECK(node.of(3028) == network(3028, 0, 0, 0));
  other.run("EXEC");
  // 15 bytes of MULTI, 33, and 14 of EXEC; "*1" and "+OK".
  CHECK(node.of(3028) == network(3028, 1, 62, 9));
}

TEST_CASE("SLOT-STATS counts a client that waits when it is served", "[slot_stats]") {
  Node node("net");
  TestClient waiting(node.server);
  waiting.run("BLPOP FOO 0");
  CHECK(node.of(3028) == network(3028, 0, 0, 0));
  node.run("RPUSH FOO value");
  // 31 bytes and 35 of the requests, 24 and 4 of the replies.
  CHECK(node.of(3028) == network(3028, 0, 66, 28));
}

TEST_CASE("SLOT-STATS counts what subscribers of a shard's channel are sent", "[slot_stats]") {
  Node node("net");
  TestClient listener(node.server);
  listener.run("SSUBSCRIBE FOO");
  CHECK(node.of(3028) == network(3028, 0, 30, 34));
  node.run("CONFIG RESETSTAT");
  node.run("SPUBLISH FOO hello");
  CHECK(node.of(3028) == network(3028, 0, 38, 4 + 38));
  CHECK(listener.take_output().size() == 38);
}

TEST_CASE("SLOT-STATS begins anew for slots that come and go", "[slot_stats]") {
  Node node("net");
  node.run("GET FOO");
  REQUIRE(node.run("CLUSTER DELSLOTS 3028") == kOk);
  CHECK(node.of(3028) == "*0\r\n");
  REQUIRE(node.run("CLUSTER ADDSLOTS 3028") == kOk);
  CHECK(node.of(3028) == network(3028, 0, 0, 0));
}

TEST_CASE("SLOT-STATS ORDERBY names the slots with the most or the least", "[slot_stats]") {
  Node node("net mem");
  node.run("SET FOO value");
  node.run("SET bar value");
  node.run("GET bar");
  const std::string most = node.run("CLUSTER SLOT-STATS ORDERBY network-bytes-in LIMIT 2");
  CHECK(most.starts_with("*2\r\n*2\r\n:5061\r\n"));
  CHECK(most.find("*2\r\n:3028\r\n") != std::string::npos);
  CHECK(node.run("CLUSTER SLOT-STATS ORDERBY key-count ASC LIMIT 1")
            .starts_with("*1\r\n*2\r\n:0\r\n"));
  CHECK(node.run("CLUSTER SLOT-STATS ORDERBY memory-bytes LIMIT 1").find(":0\r\n") >
        node.run("CLUSTER SLOT-STATS ORDERBY memory-bytes LIMIT 1").find("memory-bytes"));
  CHECK(node.run("CLUSTER SLOT-STATS ORDERBY cpu-usec") ==
        error("ERR Unrecognized sort metric for ORDERBY."));
  CHECK(node.run("CLUSTER SLOT-STATS ORDERBY key-count LIMIT 0") ==
        error("ERR Limit has to lie in between 1 and 16384 (maximum number of slots)."));
  CHECK(node.run("CLUSTER SLOT-STATS ORDERBY key-count ASC DESC") ==
        error("ERR Multiple filters of the same type are disallowed."));
  CHECK(node.run("CLUSTER SLOT-STATS SLOTSRANGE 2 1") ==
        error("ERR Start slot number 2 is greater than end slot number 1"));
  CHECK(node.run("CLUSTER SLOT-STATS SLOTSRANGE 0 16384") ==
        error("ERR Invalid or out of range slot"));
}

TEST_CASE("What SLOT-STATS counts may change, but memory cannot be asked for later",
          "[slot_stats]") {
  Node node("yes");
  CHECK(node.run("CONFIG GET cluster-slot-stats-enabled") ==
        bulks({"cluster-slot-stats-enabled", "yes"}));
  CHECK(node.run("CONFIG SET cluster-slot-stats-enabled no") == kOk);
  node.run("SET FOO value");
  CHECK(node.of(3028) ==
        array({array({integer(3028), "*2\r\n" + bulk("key-count") + integer(1)})}));
  CHECK(node.run("CONFIG SET cluster-slot-stats-enabled mem")
            .ends_with("memory tracking cannot be enabled at runtime\r\n"));
  CHECK(node.client->run_words({"CONFIG", "SET", "cluster-slot-stats-enabled", "net cpu"}) == kOk);
  CHECK(node.run("CONFIG GET cluster-slot-stats-enabled") ==
        bulks({"cluster-slot-stats-enabled", "cpu net"}));
  CHECK(node.run("CONFIG SET cluster-slot-stats-enabled foo")
            .ends_with("argument(s) must be one of the following: no, yes, cpu, net, mem\r\n"));
}

}  // namespace latchkey::tests
