// What nodes reply to requests about themselves and each other: SETSLOT with replicas, addresses,
// the end of a master.
#include <string>

#include "cluster/cluster.h"
#include "cluster/setslot.h"
#include "replication/replication.h"
#include "replication/rows.h"
#include "server/config/cluster_shutdown.h"
#include "server/process/shutdown.h"
#include "unit/catch.h"
#include "unit/cluster/several_nodes.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

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

}  // namespace

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

TEST_CASE("A slot is moved as well for a client that wants no reply", "[cluster]") {
  Nodes nodes(2, "emulate \"valkey 9.1\"\n");
  nodes.make_cluster(2);
  ClusterNode& node = nodes[0];
  PlayedReplica replica(node, "listening-port 7777 capa psync2 version 9.1.0");
  node.run(std::string("CLIENT REPLY ") + GENERATE("OFF", "SKIP"));
  node.run("CLUSTER SETSLOT 100 MIGRATING " + nodes[1].id());
  node.server.tick();
  CHECK(moves(node).empty());
  replica.acknowledge(node);
  CHECK(moves(node) == "100>" + nodes[1].id() + ",");
  CHECK(node.client->take_output().empty());
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
  SECTION("longer than time lasts") {
    CHECK(node.run(request + "9223372036854775807").empty());
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
  CHECK_FALSE(nodes[1].cluster->manual_failover().active());
  CHECK(nodes[1].run("CLUSTER FAILOVER FORCE") == kOk);
  CHECK(nodes[1].cluster->manual_failover().active());
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

}  // namespace latchkey::tests
