// DEBUG of a node, about its links and messages and the moves of slots; CLUSTER HELP.
#include <string>

#include "cluster/cluster.h"
#include "cluster/rows.h"
#include "cluster/slot_jobs/slot_jobs.h"
#include "commands/groups.h"
#include "unit/catch.h"
#include "unit/cluster/several_nodes.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

constexpr char kWithDebug[] = "enable-debug-command yes\n";
const std::string kNoCluster =
    error("ERR Debug option only available for cluster mode enabled setup!");

// Three masters that take DEBUG.
struct Debugged {
  explicit Debugged(size_t masters = 3) : nodes(masters, kWithDebug) {
    for (size_t i = 0; i < nodes.size(); ++i) {
      nodes[i].server.server.commands().add(commands::debug_rows());
      nodes[i].server.server.add_debug_subcommands(cluster::cluster_debug_subcommands());
    }
    nodes.make_cluster(masters);
  }
  // What `of` knows of the other node.
  cluster::Node& seen(size_t of, size_t other) {
    return *nodes[of].cluster->nodes().find(nodes[other].id());
  }
  Nodes nodes;
};

}  // namespace

TEST_CASE("DEBUG about the cluster needs one", "[cluster]") {
  ServerFixture server({commands::debug_rows()}, kWithDebug);
  server.server.add_debug_subcommands(cluster::cluster_debug_subcommands());
  TestClient client(server);
  CHECK(client.run("DEBUG INTERNAL_SECRET") == error("ERR Internal secret is missing"));
  for (const char* request :
       {"DEBUG CLOSE-CLUSTER-LINK-ON-PACKET-DROP 1", "DEBUG DISABLE-CLUSTER-RANDOM-PING 1",
        "DEBUG DISABLE-CLUSTER-RECONNECTION 1", "DEBUG CLUSTERLINK KILL ALL x",
        "DEBUG ASM-TRIM-METHOD none", "DEBUG ASM-FAILPOINT  ",
        "DEBUG SLOTMIGRATION PREVENT-PAUSE 1"}) {
    INFO(request);
    CHECK(client.run(request) == kNoCluster);
  }
  CHECK(client.run("DEBUG DROP-CLUSTER-PACKET-FILTER 0") == kOk);
}

TEST_CASE("DEBUG INTERNAL_SECRET is the same at all nodes of a cluster", "[cluster]") {
  Debugged test;
  const std::string secret = test.nodes[0].run("DEBUG INTERNAL_SECRET");
  CHECK(secret.starts_with(":"));
  CHECK(test.nodes[1].run("DEBUG INTERNAL_SECRET") == secret);
  CHECK(test.nodes[2].run("DEBUG INTERNAL_SECRET") == secret);
}

TEST_CASE("DEBUG DROP-CLUSTER-PACKET-FILTER throws away what other nodes say", "[cluster]") {
  Debugged test;
  ClusterNode& node = test.nodes[0];
  CHECK(node.run("DEBUG DROP-CLUSTER-PACKET-FILTER -3").starts_with("-ERR"));
  CHECK(node.run("DEBUG DROP-CLUSTER-PACKET-FILTER 11").starts_with("-ERR"));
  CHECK(node.run("DEBUG DROP-CLUSTER-PACKET-FILTER 10") == kOk);
  CHECK(node.run("DEBUG DROP-CLUSTER-PACKET-FILTER -2") == kOk);
  test.nodes.pass(4000);
  CHECK(test.seen(0, 1).has(cluster::kSuspect));
  CHECK(node.run("CLUSTER INFO").find("cluster_state:fail") != std::string::npos);
  CHECK(node.run("DEBUG DROP-CLUSTER-PACKET-FILTER -1") == kOk);
  test.nodes.pass(4000);
  // A ping whose answer was thrown away is sent again with a new link, for which there is no reason
  // as long as the other node is heard of at all.
  for (int i = 0; i < 60 && test.seen(0, 1).has(cluster::kSuspect); ++i) test.nodes.pass(1000);
  CHECK_FALSE(test.seen(0, 1).has(cluster::kSuspect | cluster::kFailing));
  CHECK(node.run("CLUSTER INFO").find("cluster_state:ok") != std::string::npos);
}

TEST_CASE("DEBUG closes the link of a message that is thrown away, if that is said", "[cluster]") {
  Debugged test;
  CHECK(test.nodes[1].run("DEBUG CLOSE-CLUSTER-LINK-ON-PACKET-DROP 2").starts_with("-ERR"));
  const bool closes = GENERATE(true, false);
  CHECK(test.nodes[0].run("DEBUG DISABLE-CLUSTER-RECONNECTION 1") == kOk);
  CHECK(test.nodes[1].run(std::string("DEBUG CLOSE-CLUSTER-LINK-ON-PACKET-DROP ") +
                          (closes ? "1" : "0")) == kOk);
  // Of type 0 is PING. Without an answer the node would cut the link itself after a second.
  CHECK(test.nodes[1].run("DEBUG DROP-CLUSTER-PACKET-FILTER 0") == kOk);
  const cluster::Node& other = test.seen(0, 1);
  for (int i = 0; i < 30 && other.link != nullptr && other.ping_sent_ms == 0; ++i)
    test.nodes.pass(100);
  test.nodes.pass(200);
  CHECK((test.seen(0, 1).link == nullptr) == closes);
}

TEST_CASE("DEBUG CLUSTERLINK cuts the link to a node, from it, or both", "[cluster]") {
  Debugged test(2);
  ClusterNode& node = test.nodes[0];
  const std::string id = test.nodes[1].id();
  cluster::Node& other = test.seen(0, 1);
  REQUIRE(other.link != nullptr);
  REQUIRE(other.incoming != nullptr);
  CHECK(node.run("DEBUG CLUSTERLINK CUT ALL " + id) == error("ERR syntax error"));
  CHECK(node.run("DEBUG CLUSTERLINK KILL ALL x") == error("ERR Unknown node x"));
  CHECK(node.run("DEBUG CLUSTERLINK KILL BOTH " + id) == error("ERR Unknown direction BOTH"));
  REQUIRE(other.link != nullptr);
  REQUIRE(other.incoming != nullptr);
  SECTION("to it") {
    CHECK(node.run("DEBUG CLUSTERLINK kill to " + id) == kOk);
    CHECK(other.link == nullptr);
    CHECK(other.incoming != nullptr);
  }
  SECTION("from it") {
    CHECK(node.run("DEBUG CLUSTERLINK KILL FROM " + id) == kOk);
    CHECK(other.link != nullptr);
    CHECK(other.incoming == nullptr);
  }
  SECTION("both") {
    CHECK(node.run("DEBUG CLUSTERLINK KILL ALL " + id) == kOk);
    CHECK(other.link == nullptr);
    CHECK(other.incoming == nullptr);
    // And again, where there is nothing to cut.
    CHECK(node.run("DEBUG CLUSTERLINK KILL ALL " + id) == kOk);
  }
  test.nodes.pass(1500);
  CHECK(other.link != nullptr);
  CHECK(other.incoming != nullptr);
}

TEST_CASE("DEBUG DISABLE-CLUSTER-RECONNECTION leaves lost links as they are", "[cluster]") {
  Debugged test(2);
  ClusterNode& node = test.nodes[0];
  CHECK(node.run("DEBUG DISABLE-CLUSTER-RECONNECTION 2").starts_with("-ERR"));
  CHECK(node.run("DEBUG DISABLE-CLUSTER-RECONNECTION 1") == kOk);
  CHECK(node.run("DEBUG CLUSTERLINK KILL TO " + test.nodes[1].id()) == kOk);
  test.nodes.pass(500);
  CHECK(test.seen(0, 1).link == nullptr);
  CHECK(node.run("DEBUG DISABLE-CLUSTER-RECONNECTION 0") == kOk);
  test.nodes.pass(500);
  CHECK(test.seen(0, 1).link != nullptr);
}

TEST_CASE("DEBUG DISABLE-CLUSTER-RANDOM-PING leaves only pings that are due", "[cluster]") {
  Debugged test;
  // So none are due in the time of the test.
  for (size_t i = 0; i < test.nodes.size(); ++i)
    CHECK(test.nodes[i].run("CONFIG SET cluster-node-timeout 60000") == kOk);
  const auto pings = [&] {
    const std::string text = test.nodes[0].run("CLUSTER INFO");
    const std::string name = "cluster_stats_messages_ping_sent:";
    return std::stoull(text.substr(text.find(name) + name.size()));
  };
  const auto sent_in_ten_seconds = [&](const std::string& disabled) {
    CHECK(test.nodes[0].run("DEBUG DISABLE-CLUSTER-RANDOM-PING " + disabled) == kOk);
    const auto before = pings();
    test.nodes.pass(10'000);
    return pings() - before;
  };
  const auto usual = sent_in_ten_seconds("0");
  const auto few = sent_in_ten_seconds("1");
  CHECK(usual >= 5);
  CHECK(few == 0);
  CHECK(test.nodes[0].run("DEBUG DISABLE-CLUSTER-RANDOM-PING 2").starts_with("-ERR"));
}

TEST_CASE("DEBUG SLOTMIGRATION keeps jobs from pausing writes, and from taking slots",
          "[cluster]") {
  Debugged test(2);
  ClusterNode& node = test.nodes[0];
  const cluster::SlotJobs& jobs = node.cluster->slot_jobs();
  CHECK(node.run("DEBUG SLOTMIGRATION PREVENT-PAUSE 1") == kOk);
  CHECK(jobs.prevented.pause);
  CHECK_FALSE(jobs.prevented.failover);
  CHECK(node.run("DEBUG SLOTMIGRATION PREVENT-PAUSE 0") == kOk);
  CHECK_FALSE(jobs.prevented.pause);
  CHECK(node.run("DEBUG SLOTMIGRATION prevent-failover 1") == kOk);
  CHECK(jobs.prevented.failover);
  CHECK_FALSE(jobs.prevented.pause);
  CHECK(node.run("DEBUG SLOTMIGRATION PREVENT-FAILOVER 0") == kOk);
  CHECK_FALSE(jobs.prevented.failover);
  CHECK(node.run("DEBUG SLOTMIGRATION PREVENT-NOTHING 1") == error("ERR syntax error"));
  CHECK(node.run("DEBUG SLOTMIGRATION PREVENT-PAUSE 2").starts_with("-ERR"));
  CHECK_FALSE(jobs.prevented.pause);
}

TEST_CASE("DEBUG ASM-FAILPOINT is refused for channels and states that do not exist", "[cluster]") {
  Debugged test(2);
  CHECK(test.nodes[0].run("DEBUG ASM-FAILPOINT import-main-channel accumulate-buffer") == kOk);
  CHECK(test.nodes[0].run("DEBUG ASM-FAILPOINT  ") == kOk);
  CHECK(test.nodes[0].run("DEBUG ASM-FAILPOINT import-main-channel nonsense") ==
        error("ERR Failed to set ASM fail point"));
}

TEST_CASE("CLUSTER HELP names all subcommands", "[cluster]") {
  Nodes nodes(1);
  const std::string help = nodes[0].run("CLUSTER HELP");
  for (const char* name :
       {"ADDSLOTS <slot> [<slot> ...]", "COUNTKEYSINSLOT <slot>", "FAILOVER [FORCE|TAKEOVER]",
        "GETSLOTMIGRATIONS", "MIGRATION STATUS (ID <task>|ALL)", "REPLICATE NO ONE",
        "SETSLOT <slot> (IMPORTING <node>|MIGRATING <node>|NODE <node>|STABLE)", "SLOTS", "HELP"})
    CHECK(help.find(status(name)) != std::string::npos);
}

}  // namespace latchkey::tests
