// CLUSTER SLOT-STATS: what the requests of each slot have cost.
#include "cluster/slot_stats.h"

#include <filesystem>
#include <string>

#include "cluster/cluster.h"
#include "cluster/rows.h"
#include "commands/groups.h"
#include "unit/catch.h"
#include "unit/cluster/calling_node.h"
#include "unit/cluster/played_node.h"
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

TEST_CASE("SLOT-STATS counts what goes to each replica", "[slot_stats]") {
  NodeWithPeer node("cluster-slot-stats-enabled net\n");
  TestClient user(node.server);
  // The slot of the key "foo".
  const auto bytes_out = [&] {
    const std::string reply = user.run("CLUSTER SLOT-STATS SLOTSRANGE 12182 12182");
    const std::string_view name = "network-bytes-out\r\n:";
    return std::stoi(reply.substr(reply.find(name) + name.size()));
  };
  const auto cost_of = [&](const std::string& request) {
    const int before = bytes_out();
    const std::string reply = user.run(request);
    return bytes_out() - before - static_cast<int>(reply.size());
  };
  CHECK(cost_of("SET foo value") == 0);
  CallingNode first(node.loop, node.server);
  first.says(bulks({"PSYNC", "?", "-1"}));
  // 33 bytes; SELECT before it does not count.
  CHECK(cost_of("SET foo value") == 33);
  CHECK(cost_of("GET foo") == 0);
  CHECK(cost_of("EVAL return(redis.call('DEL',KEYS[1])) 1 foo") == 22);
  CallingNode second(node.loop, node.server);
  second.says(bulks({"PSYNC", "?", "-1"}));
  CHECK(cost_of("SET foo value") == 2 * 33);
  // Between MULTI, of 15 bytes, and EXEC, of 14.
  const int before = bytes_out();
  user.run("MULTI");
  user.run("SET foo value");
  user.run("SET foo other");
  CHECK(user.run("EXEC") == array({"+OK\r\n", "+OK\r\n"}));
  CHECK(bytes_out() - before == 14 + 2 * (15 + 33 + 33 + 14));
}

TEST_CASE("SLOT-STATS begins anew with a slot that comes", "[slot_stats]") {
  NodeWithPeer node("cluster-slot-stats-enabled net\n");
  TestClient user(node.server);
  CHECK(user.run("CLUSTER SETSLOT 0 IMPORTING " + NodeWithPeer::kPeer) == kOk);
  CHECK(user.run("ASKING") == kOk);
  CHECK(user.run("SET {06S}a value") == kOk);
  CHECK(user.run("SET foo value") == kOk);
  node.give(0, node.cluster.myself().id);
  CHECK(user.run("CLUSTER SLOT-STATS SLOTSRANGE 0 0") == network(0, 1, 0, 0));
  CHECK(user.run("CLUSTER SLOT-STATS SLOTSRANGE 12182 12182") == network(12182, 1, 33, 5));
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
