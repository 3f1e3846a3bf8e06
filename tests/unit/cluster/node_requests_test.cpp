// What nodes reply to requests about themselves and each other: DEBUG, HELP, SETSLOT with replicas,
// the end of a master, and the trimming of slots.
#include <memory>
#include <string>
#include <utility>

#include "cluster/cluster.h"
#include "cluster/rows.h"
#include "cluster/setslot.h"
#include "cluster/slot_jobs/slot_jobs.h"
#include "cluster/slot_migration/slot_migration.h"
#include "commands/groups.h"
#include "persist/aof/aof_dataset.h"
#include "persist/rdb/byte_stream.h"
#include "persist/rdb/rdb_file.h"
#include "persist/rdb/rdb_format.h"
#include "replication/replication.h"
#include "replication/rows.h"
#include "server/config/cluster_shutdown.h"
#include "server/process/shutdown.h"
#include "unit/catch.h"
#include "unit/cluster/calling_node.h"
#include "unit/cluster/played_node.h"
#include "unit/cluster/several_nodes.h"
#include "unit/persist/rdb/rdb_bytes.h"
#include "unit/propagation_recorder.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

constexpr char kWithDebug[] = "enable-debug-command yes\n";
const std::string kNoCluster =
    error("ERR Debug option only available for cluster mode enabled setup!");
const std::string kOutOfRange = error("ERR value is out of range");

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

// A replica as the test plays it, online.
struct PlayedReplica : TestClient {
  PlayedReplica(ClusterNode& node, const std::string& announcement) : TestClient(node.server) {
    node.server.server.commands().add(replication::sync_rows());
    CHECK(run("REPLCONF " + announcement) == kOk);
    run("PSYNC ? -1");
    node.snapshots->write("D");
    if (node.snapshots->end_writing()) node.server.tick();
    node.snapshots->end();
    node.server.tick();
    take_output();
  }
  // All that it was sent.
  void acknowledge(ClusterNode& node) {
    run("REPLCONF ACK " +
        std::to_string(node.server.server.layer<replication::Replication>().offset()));
    node.server.tick();
  }
};

// What the node shows as its moves of slots.
std::string moves(ClusterNode& node) {
  return cluster::moves_text(node.cluster->nodes());
}

// A string in a slot of another node, as it is left there when the slot goes.
void leave(server::Server& server, const std::string& key) {
  store::KeyRef place = server.database(0).find_for_write(key);
  server.database(0).set_string(place, "1");
}

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
  CHECK(jobs.hold_back.pause);
  CHECK_FALSE(jobs.hold_back.failover);
  CHECK(node.run("DEBUG SLOTMIGRATION PREVENT-PAUSE 0") == kOk);
  CHECK_FALSE(jobs.hold_back.pause);
  CHECK(node.run("DEBUG SLOTMIGRATION prevent-failover 1") == kOk);
  CHECK(jobs.hold_back.failover);
  CHECK_FALSE(jobs.hold_back.pause);
  CHECK(node.run("DEBUG SLOTMIGRATION PREVENT-FAILOVER 0") == kOk);
  CHECK_FALSE(jobs.hold_back.failover);
  CHECK(node.run("DEBUG SLOTMIGRATION PREVENT-NOTHING 1") == error("ERR syntax error"));
  CHECK(node.run("DEBUG SLOTMIGRATION PREVENT-PAUSE 2").starts_with("-ERR"));
  CHECK_FALSE(jobs.hold_back.pause);
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

// --- Moves of slots ------------------------------------------------------------------------------

TEST_CASE("A slot is moved when the replicas of Valkey have heard of it", "[cluster]") {
  Nodes nodes(2, "emulate \"valkey 9.1\"\n");
  nodes.make_cluster(2);
  ClusterNode& node = nodes[0];
  const std::string request = "CLUSTER SETSLOT 100 MIGRATING " + nodes[1].id();
  PlayedReplica replica(node, "listening-port 7777 capa psync2 version 9.1.0");
  CHECK(node.run(request).empty());
  CHECK(moves(node).empty());
  node.server.tick();
  CHECK(replica.take_output().find(
            bulks({"CLUSTER", "SETSLOT", "100", "MIGRATING", nodes[1].id()})) != std::string::npos);
  SECTION("they say so") {
    replica.acknowledge(node);
    CHECK(node.client->take_output() == kOk);
    CHECK(moves(node) == "100>" + nodes[1].id() + ",");
  }
  SECTION("they do not in two seconds") {
    node.server.advance_ms(1999);
    node.server.tick();
    CHECK(node.client->take_output().empty());
    node.server.advance_ms(1);
    node.server.tick();
    CHECK(node.client->take_output() == error("NOREPLICAS Not enough good replicas to write."));
    CHECK(moves(node).empty());
  }
  SECTION("meanwhile the node it goes to is gone") {
    node.cluster->remove(*node.cluster->nodes().find(nodes[1].id()));
    replica.acknowledge(node);
    CHECK(node.client->take_output() == error("ERR I don't know about node " + nodes[1].id()));
  }
}

TEST_CASE("The patience of SETSLOT with replicas can be said", "[cluster]") {
  Nodes nodes(2, "emulate \"valkey 9.1\"\n");
  nodes.make_cluster(2);
  ClusterNode& node = nodes[0];
  PlayedReplica replica(node, "listening-port 7777 capa psync2 version 9.1.0");
  const std::string request = "CLUSTER SETSLOT 100 MIGRATING " + nodes[1].id() + " TIMEOUT ";
  const std::string few = error("NOREPLICAS Not enough good replicas to write.");
  SECTION("a while") {
    CHECK(node.run(request + "50").empty());
    node.server.advance_ms(49);
    node.server.tick();
    CHECK(node.client->take_output().empty());
    node.server.advance_ms(1);
    node.server.tick();
    CHECK(node.client->take_output() == few);
  }
  SECTION("as long as it takes") {
    CHECK(node.run(request + "0").empty());
    node.server.advance_ms(5000);
    node.server.tick();
    CHECK(node.client->take_output().empty());
    replica.acknowledge(node);
    CHECK(node.client->take_output() == kOk);
  }
  SECTION("nothing that makes sense") {
    CHECK(node.run(request + "-1") == error("ERR timeout is negative"));
    CHECK(node.run(request + "x") == error("ERR timeout is not an integer or out of range"));
    CHECK(node.run("CLUSTER SETSLOT 100 MIGRATING " + nodes[1].id() + " TIMEOUT") ==
          error("ERR Missing timeout value"));
  }
}

TEST_CASE("Replicas that do not tell their version are not waited for", "[cluster]") {
  Nodes nodes(2, "emulate \"valkey 9.1\"\n");
  nodes.make_cluster(2);
  PlayedReplica replica(nodes[0], "listening-port 7777 capa psync2");
  CHECK(nodes[0].run("CLUSTER SETSLOT 100 MIGRATING " + nodes[1].id()) == kOk);
  CHECK(moves(nodes[0]) == "100>" + nodes[1].id() + ",");
}

TEST_CASE("SETSLOT says what it cannot do", "[cluster]") {
  Nodes nodes(3);
  nodes.make_cluster(2);
  nodes[2].run("CLUSTER REPLICATE " + nodes[1].id());
  nodes.pass(3000);
  ClusterNode& node = nodes[0];
  const std::string other = nodes[1].id();
  const std::string invalid =
      error("ERR Invalid CLUSTER SETSLOT action or number of arguments. Try CLUSTER HELP");
  CHECK(node.run("CLUSTER SETSLOT 100 NODE") == invalid);
  CHECK(node.run("CLUSTER SETSLOT 100 STABLE x") == invalid);
  CHECK(node.run("CLUSTER SETSLOT 100 MOVING " + other) == invalid);
  CHECK(node.run("CLUSTER SETSLOT 100 MIGRATING " + other + " x") == invalid);
  CHECK(node.run("CLUSTER SETSLOT 16384 STABLE") == error("ERR Invalid or out of range slot"));
  CHECK(node.run("CLUSTER SETSLOT 9000 MIGRATING " + other) ==
        error("ERR I'm not the owner of hash slot 9000"));
  CHECK(node.run("CLUSTER SETSLOT 100 IMPORTING " + other) ==
        error("ERR I'm already the owner of hash slot 100"));
  CHECK(node.run("CLUSTER SETSLOT 100 MIGRATING x") == error("ERR I don't know about node x"));
  CHECK(node.run("CLUSTER SETSLOT 100 NODE x") == error("ERR Unknown node x"));
  CHECK(node.run("CLUSTER SETSLOT 100 NODE " + nodes[2].id()) ==
        error("ERR Target node is not a master"));
  CHECK(nodes[2].run("CLUSTER SETSLOT 100 STABLE") ==
        error("ERR Please use SETSLOT only with masters."));
  CHECK(moves(node).empty());
}

TEST_CASE("The moves of slots that stand in a dataset are taken over as far as they make sense",
          "[cluster]") {
  Nodes nodes(2);
  nodes.make_cluster(2);
  ClusterNode& node = nodes[0];
  const std::string other = nodes[1].id();
  cluster::add_moves("100>" + other + ",bad,16384>" + other + ",7>nobody,8>" + node.id() + ",x<" +
                         other + ",9000<" + other + ",0>" + other,
                     &node.cluster->nodes());
  CHECK(moves(node) == "9000<" + other + ",0>" + other + ",100>" + other + ",");
  cluster::add_moves("", &node.cluster->nodes());
  CHECK(moves(node) == "9000<" + other + ",0>" + other + ",100>" + other + ",");
}

TEST_CASE("A slot that its node has given up belongs to the one that imports it, in Valkey",
          "[cluster]") {
  for (const bool valkey : {true, false}) {
    INFO(valkey);
    Nodes nodes(2, valkey ? "emulate \"valkey 9.1\"\n" : "");
    nodes.make_cluster(2);
    const std::string other = nodes[1].id();
    CHECK(nodes[0].run("CLUSTER SETSLOT 15495 IMPORTING " + other) == kOk);
    nodes.pass(1500);
    CHECK(nodes[0].cluster->nodes().owner(15495)->id == other);
    CHECK(nodes[1].run("CLUSTER DELSLOTS 15495") == kOk);
    nodes.pass(3000);
    const cluster::Node* const owner = nodes[0].cluster->nodes().owner(15495);
    const bool is_mine = owner != nullptr && owner->id == nodes[0].id();
    CHECK(is_mine == valkey);
    CHECK(moves(nodes[0]).empty() == valkey);
    // The other slots of that node stay.
    CHECK(nodes[0].cluster->nodes().owner(15494)->id == other);
  }
}

// --- Nodes about each other ----------------------------------------------------------------------

TEST_CASE("A node that has forgotten who it was is not at its address any more", "[cluster]") {
  for (const bool valkey : {true, false}) {
    INFO(valkey);
    Nodes nodes(3, valkey ? "emulate \"valkey 9.1\"\n" : "");
    nodes.make_cluster(2);
    const std::string former = nodes[2].id();
    CHECK(nodes[2].run("CLUSTER RESET HARD") == kOk);
    REQUIRE(nodes[2].id() != former);
    nodes.pass(1500);
    const cluster::Node* const lost = nodes[0].cluster->nodes().find(former);
    REQUIRE(lost != nullptr);
    CHECK(lost->has(cluster::kNoAddress));
    CHECK(lost->address.ip.empty());
    CHECK(lost->has(cluster::kFailing) == valkey);
    CHECK(nodes[0].run("CLUSTER NODES").find(former + " :0@0 ") != std::string::npos);
  }
}

TEST_CASE("MEET of a node that is known, and of oneself, ends with the handshake", "[cluster]") {
  Nodes nodes(2);
  nodes.make_cluster(2);
  const auto known = [&] {
    const std::string text = nodes[0].run("CLUSTER INFO");
    const std::string name = "cluster_known_nodes:";
    return std::stoi(text.substr(text.find(name) + name.size()));
  };
  CHECK(nodes[0].run("CLUSTER MEET 127.0.0.1 7001") == kOk);
  CHECK(nodes[0].run("CLUSTER MEET 127.0.0.1 7000") == kOk);
  CHECK(known() > 2);
  nodes.pass(1000);
  CHECK(known() == 2);
  CHECK(nodes[0].run("CLUSTER NODES").find("handshake") == std::string::npos);
  CHECK(nodes[0].run("CLUSTER MEET 127.0.0.1 x") == error("ERR Invalid base port specified: x"));
  CHECK(nodes[0].run("CLUSTER MEET 127.0.0.1 7001 x") ==
        error("ERR Invalid bus port specified: x"));
  for (const char* port : {"0", "65536", "-1", "99999999999"})
    CHECK(nodes[0].run(std::string("CLUSTER MEET 127.0.0.1 ") + port) ==
          error(std::string("ERR Invalid node address specified: 127.0.0.1:") + port));
}

TEST_CASE("A node that says it is elsewhere is looked for there", "[cluster]") {
  Nodes nodes(2);
  nodes.make_cluster(2);
  cluster::Node& other = *nodes[0].cluster->nodes().find(nodes[1].id());
  const auto says = [&](cluster::MessageType type, const std::string& ip, int port) {
    cluster::Message message = nodes[1].cluster->message(type);
    message.address.ip = ip;
    message.address.port = port;
    std::string bytes = cluster::encode(message);
    nodes[0].cluster->bus().accept(nullptr).on_input(bytes);
  };
  says(cluster::MessageType::kPing, "127.0.0.1", 7001);
  CHECK(other.link != nullptr);
  says(cluster::MessageType::kPing, "127.0.0.2", 7009);
  CHECK(other.address.ip == "127.0.0.2");
  CHECK(other.address.port == 7009);
  CHECK(other.link == nullptr);
}

TEST_CASE("A node that seems gone is looked for where others see it", "[cluster]") {
  Nodes nodes(3);
  nodes.make_cluster(3);
  cluster::Node& lost = *nodes[0].cluster->nodes().find(nodes[2].id());
  const auto told = [&](const std::string& ip, uint16_t flags) {
    cluster::Message message = nodes[1].cluster->message(cluster::MessageType::kPing);
    cluster::NodeAddress address = lost.address;
    address.ip = ip;
    message.gossip.push_back({.id = nodes[2].id(), .address = address, .flags = flags});
    std::string bytes = cluster::encode(message);
    nodes[0].cluster->bus().accept(nullptr).on_input(bytes);
    return lost.address.ip;
  };
  // It is in order, as far as this node knows.
  CHECK(told("127.0.0.2", cluster::kMaster) == "127.0.0.1");
  lost.set(cluster::kSuspect);
  CHECK(told("127.0.0.2", cluster::kMaster | cluster::kNoAddress) == "127.0.0.1");
  CHECK(told("127.0.0.2", cluster::kMaster | cluster::kSuspect) == "127.0.0.1");
  CHECK(told("127.0.0.1", cluster::kMaster) == "127.0.0.1");
  CHECK(lost.link != nullptr);
  CHECK(told("127.0.0.2", cluster::kMaster) == "127.0.0.2");
  CHECK(lost.link == nullptr);
}

TEST_CASE("CLUSTER SLOTS tells replicas that have data, and what clients prefer", "[cluster]") {
  Nodes nodes(3);
  nodes.make_cluster(2);
  REQUIRE(nodes[2].run("CLUSTER REPLICATE " + nodes[1].id()) == kOk);
  nodes.pass(3000);
  cluster::Node& replica = *nodes[0].cluster->nodes().find(nodes[2].id());
  const auto is_told = [&] {
    return nodes[0].run("CLUSTER SLOTS").find(bulk(nodes[2].id())) != std::string::npos;
  };
  replica.offset = 0;
  CHECK_FALSE(is_told());
  replica.offset = 1;
  CHECK(is_told());
  replica.set(cluster::kFailing);
  CHECK_FALSE(is_told());
  replica.set(cluster::kFailing, false);

  const auto endpoint = [&](const std::string& first, const std::string& rest) {
    return nodes[0]
               .run("CLUSTER SLOTS")
               .find(array({first, integer(7001), bulk(nodes[1].id()), rest})) != std::string::npos;
  };
  CHECK(endpoint(bulk("127.0.0.1"), array({})));
  nodes[1].run("CONFIG SET cluster-announce-hostname here.com");
  nodes.pass(3000);
  CHECK(endpoint(bulk("127.0.0.1"), bulks({"hostname", "here.com"})));
  nodes[0].run("CONFIG SET cluster-preferred-endpoint-type hostname");
  CHECK(endpoint(bulk("here.com"), bulks({"ip", "127.0.0.1"})));
  nodes[0].run("CONFIG SET cluster-preferred-endpoint-type unknown-endpoint");
  CHECK(endpoint(std::string(kNull), bulks({"ip", "127.0.0.1", "hostname", "here.com"})));

  const std::string replicas = nodes[0].run("CLUSTER REPLICAS " + nodes[1].id());
  CHECK(replicas.starts_with("*1\r\n$"));
  CHECK(replicas.find(nodes[2].id() + " 127.0.0.1:7002@17002") != std::string::npos);
  CHECK(nodes[0].run("CLUSTER REPLICAS " + nodes[0].id()) == array({}));
  CHECK(nodes[0].run("CLUSTER REPLICAS " + nodes[2].id()) ==
        error("ERR The specified node is not a master"));
  CHECK(nodes[0].run("CLUSTER REPLICAS x") == error("ERR Unknown node x"));
}

TEST_CASE("Valkey tells how many nodes are suspected", "[cluster]") {
  Nodes nodes(3, "emulate \"valkey 9.1\"\n");
  nodes.make_cluster(2);
  const auto has = [&](const std::string& line) {
    return nodes[0].run("CLUSTER INFO").find(line + "\r\n") != std::string::npos;
  };
  CHECK(has("cluster_nodes_pfail:0"));
  nodes[0].cluster->nodes().find(nodes[2].id())->set(cluster::kSuspect);
  CHECK(has("cluster_nodes_pfail:1"));
  CHECK(has("cluster_voting_nodes_pfail:0"));
  nodes[0].cluster->nodes().find(nodes[1].id())->set(cluster::kSuspect);
  CHECK(has("cluster_nodes_pfail:2"));
  CHECK(has("cluster_voting_nodes_pfail:1"));
  CHECK(has("cluster_nodes_fail:0"));
}

TEST_CASE("A node with slots or keys becomes nobody's replica", "[cluster]") {
  Nodes nodes(2);
  nodes.make_cluster(1);
  CHECK(nodes[0].run("CLUSTER REPLICATE " + nodes[1].id()) ==
        error("ERR To set a master the node must be empty and without assigned slots."));
  leave(nodes[1].server.server, "a");
  CHECK(nodes[1].run("CLUSTER REPLICATE " + nodes[0].id()) ==
        error("ERR To set a master the node must be empty and without assigned slots."));
  nodes[1].server.database().clear(/*lazily=*/false);
  CHECK(nodes[1].run("CLUSTER REPLICATE " + nodes[0].id()) == kOk);
  // What it has of its master goes when it is nobody's replica any more.
  leave(nodes[1].server.server, "a");
  CHECK(nodes[1].run("CLUSTER REPLICATE NO ONE") == kOk);
  CHECK(nodes[1].run("DBSIZE") == integer(0));
}

TEST_CASE("A replica needs force to replace a master that it does not reach", "[cluster]") {
  Nodes nodes(2);
  nodes.make_cluster(1);
  REQUIRE(nodes[1].run("CLUSTER REPLICATE " + nodes[0].id()) == kOk);
  nodes.pass(1000);
  const std::string down = error("ERR Master is down or failed, please use CLUSTER FAILOVER FORCE");
  CHECK(nodes[0].run("CLUSTER FAILOVER") ==
        error("ERR You should send CLUSTER FAILOVER to a replica"));
  CHECK(nodes[1].run("CLUSTER FAILOVER NOW") == error("ERR syntax error"));
  cluster::Node& master = *nodes[1].cluster->nodes().find(nodes[0].id());
  master.set(cluster::kFailing);
  CHECK(nodes[1].run("CLUSTER FAILOVER") == down);
  master.set(cluster::kFailing, false);
  nodes[1].cluster->bus().drop_links(master);
  CHECK(nodes[1].run("CLUSTER FAILOVER") == down);
  CHECK_FALSE(nodes[1].cluster->handover().active());
  CHECK(nodes[1].run("CLUSTER FAILOVER FORCE") == kOk);
  CHECK(nodes[1].cluster->handover().active());
}

TEST_CASE("A master that leaves names the replica that has all of its writes", "[cluster]") {
  Nodes nodes(3, "emulate \"valkey 9.1\"\n");
  nodes.make_cluster(2);
  REQUIRE(nodes[2].run("CLUSTER REPLICATE " + nodes[1].id()) == kOk);
  nodes.pass(3000);
  ClusterNode& master = nodes[1];
  const std::string wanted = bulks({"CLUSTER", "FAILOVER", "FORCE", "REPLICAID", nodes[2].id()});
  const auto leaves = [&](unsigned flags) {
    CHECK(master.server.server.shutdown().request(flags));
    master.server.advance_ms(60'000);
    master.server.tick();
  };
  SECTION("it is known by its address") {
    PlayedReplica replica(master, "listening-port 7002 ip-address 127.0.0.1 capa psync2");
    master.run("SET a 1");
    master.server.tick();
    replica.acknowledge(master);
    leaves(server::kShutdownFailover);
    CHECK(replica.take_output().find(wanted) != std::string::npos);
  }
  SECTION("it is known by its id") {
    PlayedReplica replica(master,
                          "listening-port 1 set-cluster-node-id " + nodes[2].id() + " capa psync2");
    replica.acknowledge(master);
    leaves(server::kShutdownFailover);
    CHECK(replica.take_output().find(wanted) != std::string::npos);
  }
  SECTION("it has not all") {
    PlayedReplica replica(master, "listening-port 7002 ip-address 127.0.0.1 capa psync2");
    replica.acknowledge(master);
    master.run("SET a 1");
    master.server.tick();
    leaves(server::kShutdownFailover);
    CHECK(replica.take_output().find("REPLICAID") == std::string::npos);
  }
  SECTION("it is another one") {
    PlayedReplica replica(master, "listening-port 7003 ip-address 127.0.0.1 capa psync2");
    replica.acknowledge(master);
    leaves(server::kShutdownFailover);
    CHECK(replica.take_output().find("REPLICAID") == std::string::npos);
  }
  SECTION("nobody has asked for it") {
    PlayedReplica replica(master, "listening-port 7002 ip-address 127.0.0.1 capa psync2");
    replica.acknowledge(master);
    leaves(0);
    CHECK(replica.take_output().find("REPLICAID") == std::string::npos);
  }
}

TEST_CASE("A replica says by its id which node it is", "[cluster]") {
  Nodes nodes(1, "emulate \"valkey 9.1\"\n");
  nodes[0].server.server.commands().add(replication::sync_rows());
  TestClient replica(nodes[0].server);
  const std::string unknown(40, 'x');
  CHECK(replica.run("REPLCONF set-cluster-node-id " + unknown) ==
        error("ERR Unknown node " + unknown));
  CHECK(replica.run("REPLCONF set-cluster-node-id " + nodes[0].id()) == kOk);
}

// --- Jobs and tasks ------------------------------------------------------------------------------

TEST_CASE("CLUSTER MIGRATESLOTS says more of what cannot leave", "[slot-jobs]") {
  Nodes nodes(3);
  nodes.make_cluster(2);
  const std::string other = nodes[1].id();
  const auto migrate = [&](size_t index, const std::string& words) {
    return nodes[index].run("CLUSTER MIGRATESLOTS " + words);
  };
  CHECK(migrate(0, "SLOTSRANGE 0 NODE " + other) == error("ERR Invalid or out of range slot"));
  CHECK(migrate(0, "SLOTSRANGE 0 1 5") == error("ERR No end slot for final slot range"));
  CHECK(migrate(0, "SLOTSRANGE NODE " + other) == error("ERR No slot ranges specified"));
  CHECK(migrate(0, "SLOTSRANGE 0 1 TO " + other) == error("ERR syntax error"));
  CHECK(migrate(0, "SLOTSRANGE 8191 8192 NODE " + other) ==
        error("ERR Requested slots span multiple shards"));
  nodes[0].run("CLUSTER DELSLOTS 5");
  CHECK(migrate(0, "SLOTSRANGE 4 6 NODE " + other) == error("ERR Slot 5 has no node served."));
  nodes[0].run("CLUSTER SETSLOT 9000 IMPORTING " + other);
  CHECK(migrate(0, "SLOTSRANGE 0 1 NODE " + other) ==
        error("ERR Slots are being manually imported"));
  nodes[0].run("CLUSTER SETSLOT 9000 STABLE");
  REQUIRE(nodes[2].run("CLUSTER REPLICATE " + other) == kOk);
  CHECK(migrate(2, "SLOTSRANGE 9000 9000 NODE " + nodes[0].id()) ==
        error("ERR Slot migration can only be used on primary nodes."));
}

TEST_CASE("A job is shown with its nodes, and its slots move by nothing else", "[slot-jobs]") {
  NodeWithPeer scene("emulate \"valkey 9.1\"\n");
  TestClient user(scene.server);
  const std::string third = NodeWithPeer::kThird;
  CHECK(user.run("CLUSTER MIGRATESLOTS SLOTSRANGE 9000 9001 NODE " + third) == kOk);
  const std::string shown = user.run("CLUSTER GETSLOTMIGRATIONS");
  CHECK(shown.starts_with("*1\r\n*24\r\n$4\r\nname\r\n$40\r\n"));
  CHECK(shown.find(bulk("operation") + bulk("EXPORT") + bulk("slot_ranges") + bulk("9000-9001") +
                   bulk("target_node") + bulk(third) + bulk("source_node") +
                   bulk(scene.cluster.myself().id)) != std::string::npos);
  CHECK(shown.find(bulk("message") + bulk("") + bulk("cow_size") + integer(0) +
                   bulk("remaining_repl_size") + integer(0)) != std::string::npos);
  CHECK(user.run("CLUSTER MIGRATESLOTS SLOTSRANGE 9001 9002 NODE " + third) ==
        error("ERR I am already migrating slot 9001."));
  CHECK(user.run("CLUSTER SETSLOT 9000 STABLE") == error("ERR Slot export in progress."));
  CHECK(user.run("CLUSTER CANCELSLOTMIGRATIONS") == kOk);
  CHECK(user.run("CLUSTER GETSLOTMIGRATIONS").find(bulk("state") + bulk("cancelled")) !=
        std::string::npos);
  CHECK(user.run("CLUSTER CANCELSLOTMIGRATIONS") == error("ERR No migrations ongoing"));
}

TEST_CASE("What a node cannot receive is refused with the reason", "[slot-jobs]") {
  NodeWithPeer scene("emulate \"valkey 9.1\"\n");
  TestClient user(scene.server);
  const std::string name(40, 'd');
  const auto establish = [&](CallingNode& from, std::string_view slot) {
    return from.ask({"CLUSTER", "SYNCSLOTS", "ESTABLISH", "SOURCE", NodeWithPeer::kPeer, "NAME",
                     name, "SLOTSRANGE", slot, slot});
  };
  CallingNode source(scene.loop, scene.server);
  user.run("CLUSTER SETSLOT 5 IMPORTING " + NodeWithPeer::kPeer);
  CHECK(establish(source, "0") == error("ERR Slots are being manually imported"));
  user.run("CLUSTER SETSLOT 5 STABLE");
  user.run("CLUSTER SETSLOT 9000 MIGRATING " + NodeWithPeer::kPeer);
  CHECK(establish(source, "0") == error("ERR Slots are being manually migrated"));
  user.run("CLUSTER SETSLOT 9000 STABLE");
  // Keys that are left, and no connection.
  leave(scene.server, "{06S}a");
  CHECK(establish(source, "0") == error("ERR Target node has keys of the slots"));
  scene.database().clear(/*lazily=*/false);
  CHECK(user.run("CLUSTER SYNCSLOTS ESTABLISH SOURCE " + NodeWithPeer::kPeer + " NAME " + name +
                 " SLOTSRANGE 0 0") == error("ERR Slots cannot come over this connection"));
  // The words in any order, once each.
  CHECK(user.run("CLUSTER SYNCSLOTS ESTABLISH SOURCE " + NodeWithPeer::kPeer + " SLOTSRANGE 0 0") ==
        error("ERR syntax error"));
  CHECK(user.run("CLUSTER SYNCSLOTS ESTABLISH SLOTSRANGE 0 0 NAME " + name + " SOURCE x") ==
        error("ERR syntax error"));
  CHECK(user.run("CLUSTER SYNCSLOTS ESTABLISH SLOTSRANGE 0 0 SLOTSRANGE 1 1 NAME " + name +
                 " SOURCE " + NodeWithPeer::kPeer) == error("ERR syntax error"));
  CHECK(source.ask({"CLUSTER", "SYNCSLOTS", "ESTABLISH", "SLOTSRANGE", "0", "0", "NAME", name,
                    "SOURCE", NodeWithPeer::kPeer}) == kOk);
  CHECK(user.run("CLUSTER SETSLOT 5 STABLE") == error("ERR Slot import in progress."));
  // A dataset tells of it, in the form of Valkey.
  std::string file;
  persist::StringSink sink(file);
  persist::WriteOptions options;
  options.version = persist::kValkeyRdbVersion;
  options.compress = false;
  REQUIRE(persist::write_dataset(sink, scene.server, options));
  CHECK(file.find(byte(0xf3) + rdb_string(name) + byte(1) + byte(0) + byte(0)) !=
        std::string::npos);
  CallingNode another(scene.loop, scene.server);
  CHECK(another.ask({"CLUSTER", "SYNCSLOTS", "ESTABLISH", "SLOTSRANGE", "0", "0", "NAME",
                     std::string(40, 'e'), "SOURCE", NodeWithPeer::kPeer}) ==
        error("ERR Slot is already being imported on the target by a different migration"));
  CHECK(another.ask({"CLUSTER", "SYNCSLOTS", "ESTABLISH", "SLOTSRANGE", "1", "1", "NAME", name,
                     "SOURCE", NodeWithPeer::kPeer}) ==
        error("ERR Slot migration with that name exists"));
}

TEST_CASE("A replica takes from its master what jobs begin and how they end", "[slot-jobs]") {
  Nodes nodes(2, "emulate \"valkey 9.1\"\n");
  nodes.make_cluster(1);
  REQUIRE(nodes[1].run("CLUSTER REPLICATE " + nodes[0].id()) == kOk);
  nodes.pass(1000);
  ClusterNode& node = nodes[1];
  const std::string name(40, 'b');
  const std::string establish = "CLUSTER SYNCSLOTS ESTABLISH SOURCE " + std::string(40, 'c') +
                                " NAME " + name + " SLOTSRANGE 0 1";
  CHECK(node.run(establish) == error("ERR Slot migration can only be used on primary nodes."));
  TestClient master(node.server);
  master->set(server::kClientMaster);
  master.run(establish);
  const auto& jobs = node.cluster->slot_jobs().jobs().all();
  REQUIRE(jobs.size() == 1);
  CHECK(jobs.front()->name == name);
  CHECK(jobs.front()->state == cluster::JobState::kOnPrimary);
  master.run("CLUSTER SYNCSLOTS ACK");
  master.run("CLUSTER SYNCSLOTS FINISH NAME " + name + " STATE DONE");
  master.run("CLUSTER SYNCSLOTS FINISH NAME x STATE SUCCESS");
  master.run("CLUSTER SYNCSLOTS FINISH NAME " + name + " STATUS SUCCESS");
  CHECK(jobs.front()->state == cluster::JobState::kOnPrimary);
  const bool success = GENERATE(true, false);
  master.run("CLUSTER SYNCSLOTS FINISH STATE " + std::string(success ? "success" : "failed") +
             " NAME " + name + " MESSAGE why");
  CHECK(jobs.front()->state ==
        (success ? cluster::JobState::kSuccess : cluster::JobState::kFailed));
  CHECK(jobs.front()->message == "why");
}

TEST_CASE("CLUSTER MIGRATION says what it does not understand", "[slot-migration]") {
  Nodes nodes(3);
  nodes.make_cluster(2);
  REQUIRE(nodes[2].run("CLUSTER REPLICATE " + nodes[1].id()) == kOk);
  CHECK(nodes[2].run("CLUSTER MIGRATION IMPORT 0 1") ==
        error("ERR CLUSTER MIGRATION IMPORT not allowed on replica."));
  CHECK(nodes[0].run("CLUSTER SETSLOT 9000 IMPORTING " + nodes[1].id()) == kOk);
  CHECK(nodes[0].run("CLUSTER MIGRATION IMPORT 9001 9001") ==
        error("ERR all slot states must be STABLE to start a slot migration task."));
  CHECK(nodes[0].run("CLUSTER SETSLOT 9000 STABLE") == kOk);
  CHECK(nodes[1].run("CLUSTER DELSLOTS 9005") == kOk);
  nodes.pass(2000);
  nodes[0].cluster->nodes().unassign(9005);
  CHECK(nodes[0].run("CLUSTER MIGRATION IMPORT 9005 9005") == error("ERR slot has no owner: 9005"));
  CHECK(nodes[0].run("CLUSTER MIGRATION CANCEL ID") ==
        error("ERR wrong number of arguments for 'cluster|migration' command"));
  CHECK(nodes[0].run("CLUSTER MIGRATION CANCEL ALL x") ==
        error("ERR wrong number of arguments for 'cluster|migration' command"));
  CHECK(nodes[0].run("CLUSTER MIGRATION CANCEL SOME") == error("ERR unknown argument"));
  CHECK(nodes[0].run("CLUSTER MIGRATION STOP 1") == error("ERR unknown argument"));
  CHECK(nodes[0].run("CLUSTER MIGRATION CANCEL ID x") == integer(0));
  CHECK(nodes[0].run("CLUSTER MIGRATION STATUS ID x") == array({}));
}

TEST_CASE("A stream that brings nonsense about a migration ends", "[slot-migration]") {
  Nodes nodes(2);
  nodes.make_cluster(2);
  TestClient master(nodes[0].server);
  master->set(server::kClientMaster);
  const std::string task = std::string(40, 'a') + ":x:y:import:connecting:0-0";
  // A master tells of its own tasks.
  nodes[0].run("SET {06S}a 1");
  master.run("CLUSTER SYNCSLOTS CONF ASM-TASK " + task);
  CHECK(nodes[0].run("DBSIZE") == integer(0));
  TestClient known(nodes[0].server);
  REQUIRE(known.run_words({"AUTH", "internal connection", nodes[0].cluster->secret()}) == kOk);
  CHECK(known.run("CLUSTER SYNCSLOTS CONF ASM-TASK " + task) == error("ERR syntax error"));
  CHECK(known.run("CLUSTER SYNCSLOTS CONF SLOT-INFO 0:1:1") == kOk);
  CHECK(known.run("CLUSTER SYNCSLOTS CONF SLOT-INFO") ==
        error("ERR wrong number of arguments for 'cluster|syncslots' command"));
  CHECK(known.run("CLUSTER SYNCSLOTS SYNC short 0 1") == error("ERR Invalid task id"));
  CHECK(known.run("CLUSTER SYNCSLOTS SYNC " + std::string(40, 'a') + " 0") ==
        error("ERR wrong number of arguments for 'cluster|syncslots' command"));
  CHECK(known.run("CLUSTER SYNCSLOTS CONF NODE-ID " + nodes[1].id()) == kOk);
  REQUIRE(known.run("CLUSTER SYNCSLOTS SYNC " + std::string(40, 'b') + " 0 1") ==
          "+RDBCHANNELSYNCSLOTS\r\n");
  CHECK(known.run("CLUSTER SYNCSLOTS ACK send-bulk-and-stream -1").empty());
  CHECK(nodes[0].run("CLUSTER MIGRATION STATUS ALL").find("failed") != std::string::npos);
}

// --- Trimming ------------------------------------------------------------------------------------

TEST_CASE("Keys of slots that are gone are deleted as DEBUG ASM-TRIM-METHOD says",
          "[slot-migration]") {
  NodeWithPeer scene(kWithDebug);
  TestClient user(scene.server);
  const cluster::Trimmer& trimmer = scene.migration().trimmer();
  for (const char* key : {"{06S}a", "{06S}b", "{06S}c", "{Qi}a", "{Qi}b"}) leave(scene.server, key);
  const auto method = [&](const std::string& words) {
    return user.run("DEBUG ASM-TRIM-METHOD " + words);
  };
  CHECK(method("slowly") == error("ERR Failed to set ASM trim method"));
  CHECK(method("active x").starts_with("-ERR"));
  SECTION("not at all") {
    CHECK(method("none") == kOk);
    CHECK(user.run("TRIMSLOTS RANGES 1 0 1") == kOk);
    CHECK(scene.database().size() == 5);
    CHECK(user.run("DBSIZE") == integer(5));
    CHECK(method("default") == kOk);
    CHECK(user.run("TRIMSLOTS RANGES 1 0 1") == kOk);
    CHECK(scene.database().size() == 0);
    CHECK(trimmer.figures().started == 0);
  }
  SECTION("in the background") {
    CHECK(method("bg") == kOk);
    CHECK(user.run("TRIMSLOTS RANGES 1 0 0") == kOk);
    CHECK(scene.database().size() == 2);
    CHECK(trimmer.figures().started == 0);
    CHECK(trimmer.figures().completed == 0);
  }
  SECTION("one after the other") {
    CHECK(method("active") == kOk);
    CHECK(user.run("TRIMSLOTS RANGES 1 0 1") == kOk);
    CHECK(scene.database().size() == 0);
    CHECK(trimmer.figures().started == 1);
    CHECK(trimmer.figures().completed == 1);
    CHECK(trimmer.figures().keys == 5);
    CHECK(trimmer.figures().trimmed == 5);
    CHECK(trimmer.figures().running == 0);
  }
  SECTION("with a pause behind each") {
    CHECK(method("active 1000000000") == kOk);
    CHECK(user.run("TRIMSLOTS RANGES 1 0 1") == kOk);
    CHECK(scene.database().size() == 4);
    CHECK(user.run("DBSIZE") == integer(0));
    CHECK(trimmer.figures().running == 1);
    CHECK(trimmer.figures().keys == 5);
    CHECK(trimmer.figures().trimmed == 1);
    CHECK(trimmer.figures().completed == 0);
  }
}

TEST_CASE("What is not deleted yet is hidden, and finished when its slot is needed",
          "[slot-migration]") {
  NodeWithPeer scene(kWithDebug);
  TestClient user(scene.server);
  const cluster::Trimmer& trimmer = scene.migration().trimmer();
  for (const char* key : {"{06S}a", "{06S}b", "{06S}c", "{Qi}a", "{Qi}b"}) leave(scene.server, key);
  REQUIRE(user.run("DEBUG ASM-TRIM-METHOD active -1") == kOk);
  REQUIRE(user.run("TRIMSLOTS RANGES 1 0 1") == kOk);
  CHECK(scene.database().size() == 5);
  CHECK(user.run("DBSIZE") == integer(0));
  CHECK(user.run("RANDOMKEY") == kNull);
  CHECK(trimmer.figures().running == 1);
  CHECK(trimmer.covers(0));
  CHECK(trimmer.covers(1));
  CHECK_FALSE(trimmer.covers(2));
  // No file has these keys.
  std::string file;
  persist::StringSink sink(file);
  persist::WriteOptions options;
  persist::WriteOptions::Tally tally;
  options.tally = &tally;
  REQUIRE(persist::write_dataset(sink, scene.server, options));
  CHECK(tally.saved == 0);
  CHECK(tally.skipped == 5);
  std::string requests;
  persist::StringSink request_sink(requests);
  uint64_t skipped = 0;
  REQUIRE(persist::write_dataset_as_requests(
      request_sink, scene.server, {.timestamp = false, .skipped = &skipped, .after_key = {}}));
  CHECK(skipped == 5);
  CHECK(requests.find("{06S}") == std::string::npos);
  SECTION("a slot after the other is needed") {
    CHECK(user.run("CLUSTER SETSLOT 0 IMPORTING " + NodeWithPeer::kPeer) == kOk);
    CHECK(scene.database().size() == 2);
    CHECK_FALSE(trimmer.covers(0));
    CHECK(trimmer.figures().completed == 0);
    CHECK(user.run("CLUSTER SETSLOT 1 IMPORTING " + NodeWithPeer::kPeer) == kOk);
    CHECK(scene.database().size() == 0);
    CHECK_FALSE(trimmer.covers(1));
    CHECK(trimmer.figures().running == 0);
    CHECK(trimmer.figures().completed == 1);
    CHECK(trimmer.figures().trimmed == 5);
  }
  SECTION("nothing may be deleted") {
    REQUIRE(user.run("CLIENT PAUSE 100000 WRITE") == kOk);
    CHECK(user.run("CLUSTER SETSLOT 0 IMPORTING " + NodeWithPeer::kPeer) ==
          error("ERR There is a pending trim job for slot 0"));
    CHECK(scene.database().size() == 5);
    REQUIRE(user.run("CLIENT UNPAUSE") == kOk);
    CHECK(user.run("CLUSTER SETSLOT 0 IMPORTING " + NodeWithPeer::kPeer) == kOk);
  }
}

TEST_CASE("Replicas of every release are told of slots that are trimmed in words that they have",
          "[slot-migration]") {
  const auto told = [](const std::string& edition) {
    Nodes nodes(2, edition);
    nodes.make_cluster(2);
    ClusterNode& node = nodes[1];
    leave(node.server.server, "{06S}a");
    leave(node.server.server, "{Qi}a");
    PropagationRecorder stream(node.server);
    node.cluster->slot_migration().trimmer().schedule(slots_of({0, 1, 2}), /*tell_replicas=*/true);
    CHECK(node.server.database().size() == 0);
    node.server.tick();
    return stream.take();
  };
  CHECK(told("") == "TRIMSLOTS RANGES 1 0 1");
  CHECK(told("emulate \"valkey 9.1\"\n") == "CLUSTER FLUSHSLOT 0 ASYNC; CLUSTER FLUSHSLOT 1 ASYNC");
  CHECK(told("emulate \"redis 8.0\"\n").find("DEL {06S}a; DEL {Qi}a") != std::string::npos);
}

// --- Keys that are not seen ----------------------------------------------------------------------

TEST_CASE("RANDOMKEY finds the one key among many of a slot that is imported", "[slot-migration]") {
  Nodes nodes(1);
  ClusterNode& node = nodes[0];
  node.run("CLUSTER ADDSLOTSRANGE 0 16383");
  for (int i = 0; i < 5000; ++i) leave(node.server.server, "{06S}" + std::to_string(i));
  REQUIRE(node.cluster->slot_migration().told_of_task(std::string(40, 'a') +
                                                      ":x:y:import:connecting:0-0"));
  CHECK(node.run("RANDOMKEY") == kNull);
  leave(node.server.server, "{Qi}a");
  for (int i = 0; i < 20; ++i) CHECK(node.run("RANDOMKEY") == bulk("{Qi}a"));
}

TEST_CASE("Fields of hashes in a slot that is imported expire when they are seen",
          "[slot-migration]") {
  Nodes nodes(1);
  ClusterNode& node = nodes[0];
  node.server.server.commands().add(commands::hash_rows());
  node.server.server.commands().add(commands::hash_deadline_rows());
  node.run("CLUSTER ADDSLOTSRANGE 0 16383");
  nodes.pass(3000);
  REQUIRE(node.run("HSET {06S}h f 1 g 2") == integer(2));
  REQUIRE(node.run("HPEXPIRE {06S}h 100 FIELDS 1 f") == array({integer(1)}));
  cluster::SlotMigration& migration = node.cluster->slot_migration();
  const std::string task = std::string(40, 'a') + ":x:y:import:";
  REQUIRE(migration.told_of_task(task + "connecting:0-0"));
  node.server.events();
  for (int i = 0; i < 50; ++i) {
    node.server.advance_ms(100);
    node.server.tick();
  }
  CHECK(node.server.events().empty());
  REQUIRE(migration.told_of_task(task + "completed:0-0"));
  for (int i = 0; i < 600; ++i) {
    node.server.advance_ms(100);
    node.server.tick();
  }
  CHECK(node.server.events() == "hexpired {06S}h");
  CHECK(node.run("HGETALL {06S}h") == bulks({"g", "2"}));
}

}  // namespace latchkey::tests
