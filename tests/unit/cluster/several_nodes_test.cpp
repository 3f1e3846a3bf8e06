// Several nodes of one cluster: what they come to know of each other, and what their clients see.
#include "unit/cluster/several_nodes.h"

#include <string>

#include "base/file.h"
#include "cluster/nodes_text.h"
#include "replication/replica_role.h"
#include "server/config/cluster_shutdown.h"
#include "server/process/shutdown.h"
#include "unit/catch.h"

namespace latchkey::tests {

namespace {

std::string info(ClusterNode& node, const std::string& field) {
  const std::string text = node.run("CLUSTER INFO");
  const size_t at = text.find(field + ":");
  return text.substr(at + field.size() + 1, text.find("\r\n", at) - at - field.size() - 1);
}

// What `node` shows of `other`.
std::string flags(ClusterNode& node, ClusterNode& other) {
  const cluster::Node* const found = node.cluster->nodes().find(other.id());
  return found == nullptr ? "unknown" : cluster::flags_text(found->flags);
}

bool is_owner(ClusterNode& node, int slot, ClusterNode& owner) {
  const cluster::Node* const found = node.cluster->nodes().owner(slot);
  return found != nullptr && found->id == owner.id();
}

// The key "a" is in this slot, which is the third of three masters' and the second of two.
constexpr int kSlotOfA = 15495;

}  // namespace

TEST_CASE("nodes that meet come to know all of their cluster", "[cluster]") {
  Nodes nodes(4);
  nodes.make_cluster(3);
  for (size_t i = 0; i < nodes.size(); ++i) {
    CHECK(info(nodes[i], "cluster_known_nodes") == "4");
    CHECK(info(nodes[i], "cluster_state") == "ok");
    CHECK(info(nodes[i], "cluster_size") == "3");
    CHECK(is_owner(nodes[i], kSlotOfA, nodes[2]));
    CHECK(nodes[i].cluster->secret_hash() == nodes[0].cluster->secret_hash());
  }
  CHECK(nodes[0].run("CLUSTER NODES").find("handshake") == std::string::npos);
  CHECK(nodes[0].run("CLUSTER SET-CONFIG-EPOCH 7") ==
        error("ERR The user can assign a config epoch only when the node does not know any other "
              "node."));
}

TEST_CASE("a cluster serves as soon as all slots are given, however long it had none",
          "[cluster]") {
  Nodes nodes(3);
  nodes.pass(5000);
  nodes[0].run("CLUSTER MEET 127.0.0.1 7001");
  nodes[0].run("CLUSTER MEET 127.0.0.1 7002");
  nodes.pass(5000);
  nodes[0].run("CLUSTER ADDSLOTSRANGE 0 5000");
  nodes[1].run("CLUSTER ADDSLOTSRANGE 5001 10000");
  nodes[2].run("CLUSTER ADDSLOTSRANGE 10001 16383");
  nodes.pass(1000);
  for (size_t i = 0; i < nodes.size(); ++i) CHECK(info(nodes[i], "cluster_state") == "ok");
}

TEST_CASE("a slot that a node imports from itself gets a newer claim", "[cluster]") {
  Nodes nodes(2);
  nodes.make_cluster(2);
  const uint64_t epoch = nodes[0].cluster->myself().config_epoch;
  CHECK(nodes[0].run("CLUSTER SETSLOT 9000 IMPORTING " + nodes[0].id()) == kOk);
  CHECK(nodes[0].run("CLUSTER NODES").find(" [9000-<-" + nodes[0].id() + "]") != std::string::npos);
  CHECK(nodes[0].run("CLUSTER SETSLOT 9000 NODE " + nodes[0].id()) == kOk);
  CHECK(nodes[0].cluster->myself().config_epoch > epoch);
  nodes.pass(2000);
  for (size_t i = 0; i < nodes.size(); ++i) CHECK(is_owner(nodes[i], 9000, nodes[0]));
}

TEST_CASE("clients are sent to the node that serves the slot", "[cluster]") {
  Nodes nodes(3);
  nodes.make_cluster(3);
  CHECK(nodes[0].run("SET a 1") == error("MOVED 15495 127.0.0.1:7002"));
  CHECK(nodes[2].run("SET a 1") == kOk);
  nodes[2].run("CONFIG SET cluster-announce-hostname here.com");
  nodes.pass(3000);
  nodes[0].run("CONFIG SET cluster-preferred-endpoint-type hostname");
  CHECK(nodes[0].run("GET a") == error("MOVED 15495 here.com:7002"));
  CHECK(nodes[0].run("SET b 1") == kOk);
  CHECK(nodes[1].run("GET a") == error("MOVED 15495 127.0.0.1:7002"));
  nodes[0].run("CONFIG SET cluster-preferred-endpoint-type unknown-endpoint");
  CHECK(nodes[0].run("GET a") == error("MOVED 15495 :7002"));
}

TEST_CASE("nodes tell each other the ports for clients and their zones", "[cluster]") {
  Nodes nodes(3);
  nodes.make_cluster(3);
  nodes[2].run("CONFIG SET cluster-announce-client-port 6402");
  nodes[2].run("CONFIG SET availability-zone zone-c");
  nodes.pass(3000);
  CHECK(nodes[0].run("SET a 1") == error("MOVED 15495 127.0.0.1:6402"));
  CHECK(nodes[0].run("CLUSTER NODES").find(nodes[2].id() + " 127.0.0.1:6402@") !=
        std::string::npos);
  for (const auto* command : {"CLUSTER SLOTS", "CLUSTER SHARDS"}) {
    INFO(command);
    const std::string reply = nodes[0].run(command);
    CHECK(reply.find(":6402\r\n") != std::string::npos);
    CHECK(reply.find("$17\r\navailability-zone\r\n$6\r\nzone-c\r\n") != std::string::npos);
  }
  // A zone that would damage the file of nodes is not told, and none takes the old one's place.
  nodes[2].run("CONFIG SET cluster-announce-client-port 0");
  nodes[2].run("CONFIG SET availability-zone zone=c");
  nodes.pass(3000);
  CHECK(nodes[0].run("SET a 1") == error("MOVED 15495 127.0.0.1:7002"));
  CHECK(nodes[0].run("CLUSTER SLOTS").find("zone") == std::string::npos);
}

TEST_CASE("a slot that is moved is served by both nodes meanwhile", "[cluster]") {
  Nodes nodes(2);
  nodes.make_cluster(2);
  nodes[1].run("SET a 1");
  CHECK(nodes[0].run("CLUSTER SETSLOT 15495 IMPORTING " + nodes[1].id()) == kOk);
  CHECK(nodes[1].run("CLUSTER SETSLOT 15495 MIGRATING " + nodes[0].id()) == kOk);
  CHECK(nodes[1].run("GET a") == bulk("1"));
  CHECK(nodes[1].run("GET {a}new") == error("ASK 15495 127.0.0.1:7000"));
  CHECK(nodes[1].run("MGET a {a}new") ==
        error("TRYAGAIN Multiple keys request during rehashing of slot"));
  CHECK(nodes[0].run("SET {a}new 2") == error("MOVED 15495 127.0.0.1:7001"));
  CHECK(nodes[0].run("ASKING") == kOk);
  CHECK(nodes[0].run("SET {a}new 2") == kOk);
  // It was said of one request.
  CHECK(nodes[0].run("GET {a}new") == error("MOVED 15495 127.0.0.1:7001"));
  nodes[0].run("ASKING");
  CHECK(nodes[0].run("MULTI") == kOk);
  CHECK(nodes[0].run("GET {a}new") == kQueued);
  CHECK(nodes[0].run("EXEC") == array({bulk("2")}));
  CHECK(nodes[1].run("CLUSTER SETSLOT 15495 NODE " + nodes[0].id()) ==
        error("ERR Can't assign hashslot 15495 to a different node while I still hold keys for "
              "this hash slot."));
  nodes[1].run("DEL a");
  CHECK(nodes[0].run("CLUSTER SETSLOT 15495 NODE " + nodes[0].id()) == kOk);
  CHECK(nodes[1].run("CLUSTER SETSLOT 15495 NODE " + nodes[0].id()) == kOk);
  nodes.pass(1000);
  CHECK(nodes[0].run("GET {a}new") == bulk("2"));
  CHECK(nodes[1].run("GET a") == error("MOVED 15495 127.0.0.1:7000"));
  CHECK(nodes[1].run("CLUSTER NODES").find("->-") == std::string::npos);
}

TEST_CASE("keys of a slot that is moved are looked for in the database they are asked of",
          "[cluster]") {
  Nodes nodes(2, "cluster-databases 4\n");
  nodes.make_cluster(2);
  ClusterNode& source = nodes[1];
  source.run("SET a 1");
  source.run("SELECT 1");
  source.run("SET {a}b 1");
  source.run("SELECT 0");
  CHECK(nodes[0].run("CLUSTER SETSLOT 15495 IMPORTING " + source.id()) == kOk);
  CHECK(source.run("CLUSTER SETSLOT 15495 MIGRATING " + nodes[0].id()) == kOk);
  const auto exec = [&](std::initializer_list<std::string_view> lines) {
    source.run("MULTI");
    for (const std::string_view line : lines) source.run(line);
    return source.run("EXEC");
  };
  CHECK(exec({"EXISTS a", "SELECT 1", "EXISTS {a}b", "SELECT 0"}) ==
        array({integer(1), std::string(kOk), integer(1), std::string(kOk)}));
  CHECK(exec({"EXISTS a", "SELECT 9", "EXISTS a"}) ==
        array({integer(1), error("ERR DB index is out of range"), integer(1)}));
  const std::string again = error("TRYAGAIN Multiple keys request during rehashing of slot");
  CHECK(exec({"EXISTS a", "SELECT 1", "EXISTS a"}) == again);
  CHECK(source.run("EXISTS a") == integer(1));
  // What brings a key to another database has to wait.
  CHECK(source.run("MOVE a 2") == again);
  CHECK(nodes[0].run("MOVE a 2") == again);
  CHECK(source.run("COPY a a DB 2 REPLACE") == again);
  CHECK(source.run("COPY a a REPLACE DB 0 DB 2") == again);
  CHECK(source.run("COPY a a REPLACE DB") == error("ERR syntax error"));
  source.run("SELECT 1");
  CHECK(source.run("COPY {a}b {a}b DB 1") ==
        error("ERR source and destination objects are the same"));
}

TEST_CASE("a newer owner wins, and the keys of the former one go", "[cluster]") {
  Nodes nodes(2);
  nodes.make_cluster(2);
  nodes[1].run("SET a 1");
  TestClient waiting(nodes[1].server);
  CHECK(waiting.run("BLPOP {a}list 0").empty());
  nodes[1].server.events();
  nodes[0].run("CLUSTER BUMPEPOCH");
  nodes[0].run("CLUSTER SETSLOT 15495 NODE " + nodes[0].id());
  nodes.pass(2000);
  CHECK(is_owner(nodes[1], kSlotOfA, nodes[0]));
  CHECK(nodes[1].run("DBSIZE") == integer(0));
  // A change without a name: the key lives on elsewhere.
  CHECK(nodes[1].server.events() == " a");
  CHECK(waiting.take_output() == error("MOVED 15495 127.0.0.1:7000"));
}

TEST_CASE("a node that most masters do not reach is failing, until it is back", "[cluster]") {
  Nodes nodes(4);
  nodes.make_cluster(3);
  nodes.cut_off(3);
  nodes.pass(6000);
  CHECK(flags(nodes[0], nodes[3]) == "master,fail");
  CHECK(info(nodes[0], "cluster_state") == "ok");
  nodes.cut_off(3, false);
  nodes.pass(4000);
  CHECK(flags(nodes[0], nodes[3]) == "master");

  nodes.cut_off(2);
  nodes.pass(6000);
  CHECK(flags(nodes[0], nodes[2]) == "master,fail");
  CHECK(info(nodes[0], "cluster_state") == "fail");
  CHECK(nodes[0].run("GET b") == error("CLUSTERDOWN The cluster is down"));
}

TEST_CASE("a node that reaches few masters suspects them, and serves nothing", "[cluster]") {
  Nodes nodes(3, "cluster-require-full-coverage no\n");
  nodes.make_cluster(3);
  nodes.cut_off(1);
  nodes.cut_off(2);
  nodes.pass(6000);
  CHECK(flags(nodes[0], nodes[1]) == "master,fail?");
  CHECK(info(nodes[0], "cluster_state") == "fail");
  nodes.cut_off(1, false);
  nodes.pass(6000);
  CHECK(flags(nodes[0], nodes[1]) == "master");
  CHECK(flags(nodes[0], nodes[2]) == "master,fail");
  CHECK(nodes[0].run("CLUSTER COUNT-FAILURE-REPORTS " + nodes[2].id()) == integer(1));
  CHECK(info(nodes[0], "cluster_state") == "ok");
}

TEST_CASE("a replica says where its master is, and takes its place when it fails", "[cluster]") {
  Nodes nodes(4);
  nodes.make_cluster(3);
  CHECK(nodes[3].run("CLUSTER REPLICATE " + nodes[2].id()) == kOk);
  nodes.synchronize(3);
  nodes.pass(3000);
  CHECK(flags(nodes[0], nodes[3]) == "slave");
  CHECK(nodes[3].cluster->myself().shard_id == nodes[2].cluster->myself().shard_id);
  CHECK(nodes[3].run("CLUSTER REPLICATE " + nodes[2].id()) == kOk);
  CHECK(nodes[0].run("CLUSTER REPLICATE " + nodes[3].id()) ==
        error("ERR I can only replicate a master, not a replica."));
  CHECK(nodes[3].run("CLUSTER SETSLOT 1 STABLE") ==
        error("ERR Please use SETSLOT only with masters."));
  CHECK(nodes[3].run("GET a") == error("MOVED 15495 127.0.0.1:7002"));
  nodes[3].run("READONLY");
  CHECK(nodes[3].run("GET a") == kNull);
  CHECK(nodes[3].run("SET a 1") == error("MOVED 15495 127.0.0.1:7002"));
  nodes[3].run("READWRITE");
  CHECK(nodes[3].run("GET a") == error("MOVED 15495 127.0.0.1:7002"));

  // Its master has long been silent.
  nodes[3].run("CONFIG SET cluster-replica-validity-factor 0");
  nodes.cut_off(2);
  // A first election may come too early for a master that has not heard of the failure.
  nodes.pass(30'000);
  CHECK(flags(nodes[3], nodes[3]) == "myself,master");
  CHECK(is_owner(nodes[0], kSlotOfA, nodes[3]));
  CHECK(info(nodes[0], "cluster_state") == "ok");
  CHECK(nodes[3].run("SET a 1") == kOk);

  // The former master comes back as its replica.
  nodes.cut_off(2, false);
  nodes.pass(6000);
  CHECK(flags(nodes[2], nodes[2]) == "myself,slave");
  CHECK(flags(nodes[0], nodes[2]) == "slave");
  CHECK(nodes[2].run("GET a") == error("MOVED 15495 127.0.0.1:7003"));
}

TEST_CASE("a replica goes to another master when it is told to", "[cluster]") {
  Nodes nodes(4);
  nodes.make_cluster(3);
  for (const size_t master : {2, 1}) {
    CHECK(nodes[3].run("CLUSTER REPLICATE " + nodes[master].id()) == kOk);
    nodes.pass(3000);
    const server::ConfigValues& settings = nodes[3].server.server.settings();
    CHECK(settings.replicaof_host == "127.0.0.1");
    CHECK(settings.replicaof_port == 7000 + static_cast<int>(master));
  }
}

TEST_CASE("a node that does not answer the first message is given up after the timeout",
          "[cluster]") {
  Nodes nodes(1);
  CHECK(nodes[0].run("CLUSTER MEET 127.0.0.1 7999") == kOk);
  CHECK(nodes[0].cluster->nodes().all().size() == 2);
  nodes.pass(2000);
  CHECK(nodes[0].cluster->nodes().all().size() == 2);
  nodes.pass(100);
  CHECK(nodes[0].cluster->nodes().all().size() == 1);
}

TEST_CASE("a replica that shall not take over does not, nor one whose data is old", "[cluster]") {
  Nodes nodes(4);
  nodes.make_cluster(3);
  nodes[3].run("CLUSTER REPLICATE " + nodes[2].id());
  nodes.synchronize(3);
  nodes.pass(40'000);
  nodes.cut_off(2);
  nodes.pass(10'000);
  CHECK(flags(nodes[3], nodes[3]) == "myself,slave");
  nodes[3].run("CONFIG SET cluster-replica-validity-factor 0");
  nodes[3].run("CONFIG SET cluster-replica-no-failover yes");
  nodes.pass(10'000);
  CHECK(flags(nodes[3], nodes[3]) == "myself,slave,nofailover");
}

TEST_CASE("a replica takes over because it is told to", "[cluster]") {
  Nodes nodes(4);
  nodes.make_cluster(3);
  nodes[3].run("CLUSTER REPLICATE " + nodes[2].id());
  nodes.pass(3000);
  CHECK(nodes[2].run("CLUSTER FAILOVER") ==
        error("ERR You should send CLUSTER FAILOVER to a replica"));
  SECTION("by the votes of the masters, with its master's help") {
    nodes.synchronize(3);
    CHECK(nodes[3].run("CLUSTER FAILOVER") == kOk);
    nodes.carry();
    CHECK((nodes[2].server.server.state() & server::kStatePaused) != 0);
    nodes.pass(4000);
    CHECK((nodes[2].server.server.state() & server::kStatePaused) == 0);
  }
  SECTION("by the votes alone") {
    CHECK(nodes[3].run("CLUSTER FAILOVER FORCE") == kOk);
    nodes.pass(4000);
  }
  SECTION("or by nobody's") {
    CHECK(nodes[3].run("CLUSTER FAILOVER TAKEOVER") == kOk);
    nodes.pass(2000);
  }
  CHECK(flags(nodes[3], nodes[3]) == "myself,master");
  CHECK(flags(nodes[2], nodes[2]) == "myself,slave");
  CHECK(is_owner(nodes[0], kSlotOfA, nodes[3]));
}

TEST_CASE("a replica takes the offset at which its master paused once, and only when it has asked",
          "[cluster]") {
  Nodes nodes(4);
  nodes.make_cluster(3);
  nodes[3].run("CLUSTER REPLICATE " + nodes[2].id());
  nodes.synchronize(3);
  nodes.pass(3000);
  cluster::Cluster& replica = *nodes[3].cluster;
  cluster::ManualFailover& failover = replica.manual_failover();
  const cluster::Node& master = *replica.myself().master;
  const cluster::Node* const other = replica.nodes().find(nodes[0].id());
  REQUIRE(other != nullptr);
  cluster::Message paused;
  paused.message_flags = cluster::kWritesPaused;
  paused.offset = replica.offset();
  cluster::Message elsewhere = paused;
  elsewhere.offset = paused.offset + 1000;
  const auto is_ready = [&] {
    failover.tick();
    return failover.may_begin();
  };
  SECTION("not before it has asked") {
    failover.receive_offset(master, paused);
    CHECK_FALSE(is_ready());
    failover.begin(/*force=*/false);
    CHECK_FALSE(is_ready());
  }
  SECTION("from its master, with writes paused") {
    failover.begin(/*force=*/false);
    failover.receive_offset(*other, paused);
    CHECK_FALSE(is_ready());
    cluster::Message running = paused;
    running.message_flags = 0;
    failover.receive_offset(master, running);
    CHECK_FALSE(is_ready());
    failover.receive_offset(master, paused);
    CHECK(is_ready());
  }
  SECTION("once: a later one is not waited for") {
    failover.begin(/*force=*/false);
    failover.receive_offset(master, paused);
    failover.receive_offset(master, elsewhere);
    CHECK(is_ready());
  }
  SECTION("and it may be further by then: what came since is no write") {
    failover.begin(/*force=*/false);
    failover.receive_offset(master, paused);
    nodes[3].server.server.set_replication_offset(static_cast<int64_t>(paused.offset) + 14);
    CHECK(is_ready());
  }
  SECTION("and an offset that it has not reached is waited for") {
    failover.begin(/*force=*/false);
    failover.receive_offset(master, elsewhere);
    failover.receive_offset(master, paused);
    CHECK_FALSE(is_ready());
  }
}

TEST_CASE("a replica without its master's dataset takes over only by force", "[cluster]") {
  Nodes nodes(4);
  nodes.make_cluster(3);
  nodes[3].run("CLUSTER REPLICATE " + nodes[2].id());
  nodes.pass(3000);
  // A master that has not written says the same.
  REQUIRE(nodes[3].cluster->offset() == nodes[2].cluster->offset());
  CHECK(nodes[3].run("CLUSTER FAILOVER") == kOk);
  nodes.pass(2000);
  REQUIRE(flags(nodes[3], nodes[3]) == "myself,slave");
  SECTION("or when it has got it") {
    nodes.synchronize(3);
  }
  SECTION("with that") {
    CHECK(nodes[3].run("CLUSTER FAILOVER FORCE") == kOk);
  }
  nodes.pass(2000);
  CHECK(flags(nodes[3], nodes[3]) == "myself,master");
}

TEST_CASE("a master with a busy script tells no offset, because that goes on to write",
          "[cluster]") {
  Nodes nodes(4);
  nodes.make_cluster(3);
  nodes[3].run("CLUSTER REPLICATE " + nodes[2].id());
  nodes.synchronize(3);
  nodes.pass(3000);
  server::Server& master = nodes[2].server.server;
  master.set_state(server::kStateBusy, true);
  CHECK(nodes[3].run("CLUSTER FAILOVER") == kOk);
  nodes.pass(2000);
  CHECK((master.state() & server::kStatePaused) != 0);
  CHECK_FALSE(nodes[3].cluster->manual_failover().may_begin());
  CHECK(flags(nodes[3], nodes[3]) == "myself,slave");
  master.set_state(server::kStateBusy, false);
  nodes.pass(2000);
  CHECK(flags(nodes[3], nodes[3]) == "myself,master");
}

TEST_CASE("a replica that was told to take over does not wait when its master fails", "[cluster]") {
  Nodes nodes(4);
  nodes.make_cluster(3);
  nodes[3].run("CLUSTER REPLICATE " + nodes[2].id());
  nodes.synchronize(3);
  nodes[3].run("CONFIG SET cluster-replica-validity-factor 0");
  nodes.pass(3000);
  nodes.cut_off(2);
  nodes.pass(1000);
  CHECK(nodes[3].run("CLUSTER FAILOVER") == kOk);
  for (int steps = 0; steps < 40 && flags(nodes[3], nodes[2]) != "master,fail"; ++steps)
    nodes.pass(100);
  CHECK(flags(nodes[3], nodes[2]) == "master,fail");
  // By itself it would wait for half a second at least.
  nodes.pass(300);
  CHECK(flags(nodes[3], nodes[3]) == "myself,master");
}

TEST_CASE("a node is forgotten by all, and does not come back by what is told of it", "[cluster]") {
  Nodes nodes(4);
  nodes.make_cluster(3);
  nodes.cut_off(3);
  CHECK(nodes[0].run("CLUSTER FORGET " + nodes[3].id()) == kOk);
  CHECK(nodes[0].run("CLUSTER FORGET " + nodes[3].id()) == kOk);
  nodes.pass(5000);
  CHECK(flags(nodes[1], nodes[3]) == "unknown");
  CHECK(flags(nodes[2], nodes[3]) == "unknown");
  CHECK(nodes[0].run("CLUSTER FORGET " + nodes[0].id()) ==
        error("ERR I tried hard but I can't forget myself..."));
  CHECK(nodes[0].run("CLUSTER FORGET x") == error("ERR Unknown node x"));
}

TEST_CASE("a node that is reset knows nobody", "[cluster]") {
  Nodes nodes(3);
  nodes.make_cluster(2);
  nodes[2].run("CLUSTER REPLICATE " + nodes[1].id());
  nodes.pass(2000);
  const std::string id = nodes[2].id();
  CHECK(nodes[2].run("CLUSTER RESET HARD") == kOk);
  CHECK(nodes[2].id() != id);
  CHECK(info(nodes[2], "cluster_known_nodes") == "1");
  CHECK(flags(nodes[2], nodes[2]) == "myself,master");
  CHECK_FALSE(nodes[2].server.server.is_replica());
}

TEST_CASE("a node is empty when all of its databases are", "[cluster]") {
  Nodes nodes(3, "databases 4\ncluster-databases 4\n");
  nodes.make_cluster(2);
  nodes[0].run("SELECT 1");
  REQUIRE(nodes[0].run("SET {06S}a 1") == kOk);
  nodes[0].run("SELECT 0");
  CHECK(nodes[0].run("CLUSTER RESET") ==
        error("ERR CLUSTER RESET can't be called with master nodes containing keys"));
  CHECK(nodes[0].run("CLUSTER DELSLOTSRANGE 0 8191") == kOk);
  CHECK(nodes[0].run("CLUSTER REPLICATE " + nodes[1].id()) ==
        error("ERR To set a master the node must be empty and without assigned slots."));

  nodes[2].run("CLUSTER REPLICATE " + nodes[1].id());
  nodes.pass(2000);
  for (const char* leaving : {"CLUSTER RESET", "CLUSTER REPLICATE NO ONE"}) {
    INFO(leaving);
    server::Server& replica = nodes[2].server.server;
    TestClient master(replica);
    master->set(server::kClientMaster);
    for (const char* request : {"SET {06S}a 1", "SELECT 1", "SET {06S}b 2"}) master.run(request);
    REQUIRE(replica.database(1).size() == 1);
    REQUIRE(nodes[2].cluster->myself().is_replica());
    CHECK(nodes[2].run(leaving) == kOk);
    for (const auto& database : replica.databases()) CHECK(database->empty());
    nodes[2].run("CLUSTER MEET 127.0.0.1 7001");
    nodes.pass(4000);
    nodes[2].run("CLUSTER REPLICATE " + nodes[1].id());
    nodes.pass(2000);
  }
}

TEST_CASE("the nodes that a replica forgets learn that it is of no shard of theirs", "[cluster]") {
  Nodes nodes(3);
  nodes.make_cluster(2);
  nodes[2].run("CLUSTER REPLICATE " + nodes[1].id());
  nodes.pass(3000);
  CHECK(nodes[2].run("CLUSTER RESET SOFT") == kOk);
  nodes.pass(3000);
  const std::string shard = nodes[2].cluster->myself().shard_id;
  for (const size_t other : {0, 1}) {
    const cluster::Node* known = nodes[other].cluster->nodes().find(nodes[2].id());
    REQUIRE(known != nullptr);
    CHECK(known->shard_id == shard);
    CHECK(known->is_master());
  }
  // What it no longer knows it does not tell the secret of its cluster.
  CHECK(info(nodes[2], "cluster_known_nodes") == "1");
}

TEST_CASE("a replica becomes a master of nobody by REPLICATE NO ONE", "[cluster]") {
  Nodes nodes(3);
  nodes.make_cluster(2);
  CHECK(nodes[0].run("CLUSTER REPLICATE NO ONE") == kOk);
  CHECK(flags(nodes[0], nodes[0]) == "myself,master");
  CHECK(is_owner(nodes[1], 0, nodes[0]));
  nodes[2].run("CLUSTER REPLICATE " + nodes[1].id());
  nodes.pass(3000);
  const std::string shard = nodes[2].cluster->myself().shard_id;
  CHECK(nodes[2].run("CLUSTER REPLICATE NO TWO").starts_with("-ERR unknown subcommand"));
  CHECK(nodes[2].run("CLUSTER REPLICATE no one") == kOk);
  CHECK(flags(nodes[2], nodes[2]) == "myself,master");
  CHECK_FALSE(nodes[2].server.server.is_replica());
  CHECK(nodes[2].cluster->myself().shard_id != shard);
  CHECK(nodes[2].run("DBSIZE") == integer(0));
  nodes.pass(3000);
  CHECK(flags(nodes[0], nodes[2]) == "master");
  CHECK(info(nodes[2], "cluster_known_nodes") == "3");
  CHECK(is_owner(nodes[0], kSlotOfA, nodes[1]));
}

TEST_CASE("a shutdown that shall be safe is refused by a master with slots", "[cluster]") {
  Nodes nodes(3);
  nodes.make_cluster(2);
  using Outcome = server::Shutdown::Outcome;
  const auto request = [&](size_t index, unsigned flags) {
    return nodes[index].server.server.shutdown().request(flags);
  };
  CHECK(request(0, server::kShutdownSafe).error() == "ERR Errors trying to SHUTDOWN. Check logs.");
  CHECK(*request(0, server::kShutdownSafe | server::kShutdownForce) == Outcome::kEnds);
  CHECK(*request(1, 0) == Outcome::kEnds);
  CHECK(*request(2, server::kShutdownSafe) == Outcome::kEnds);
}

TEST_CASE("Valkey tells how many nodes are gone and how many bytes went by the bus", "[cluster]") {
  Nodes nodes(4, "emulate \"valkey 9.1\"\n");
  nodes.make_cluster(3);
  CHECK(info(nodes[0], "cluster_nodes_pfail") == "0");
  CHECK(info(nodes[0], "cluster_stats_pubsub_bytes_sent") == "0");
  CHECK(std::stoull(info(nodes[0], "cluster_stats_bytes_sent")) > 2256);
  CHECK(std::stoull(info(nodes[0], "cluster_stats_bytes_received")) > 2256);
  nodes[0].run("PUBLISH hello world");
  // To each of three, behind the header the lengths and the words.
  CHECK(info(nodes[0], "cluster_stats_pubsub_bytes_sent") == std::to_string(3 * (2256 + 8 + 10)));
  nodes.carry();
  CHECK(info(nodes[1], "cluster_stats_pubsub_bytes_received") == std::to_string(2256 + 8 + 10));
  nodes[0].run("CONFIG RESETSTAT");
  CHECK(info(nodes[0], "cluster_stats_bytes_sent") == "0");
  CHECK(info(nodes[0], "cluster_stats_messages_sent") == "0");
  nodes.cut_off(2);
  nodes.cut_off(3);
  nodes.pass(10'000);
  CHECK(info(nodes[0], "cluster_nodes_fail") == "2");
  CHECK(info(nodes[0], "cluster_voting_nodes_fail") == "1");
}

TEST_CASE("only a master may have its replicas replace it", "[cluster]") {
  Nodes nodes(3);
  nodes.make_cluster(2);
  nodes[2].run("CLUSTER REPLICATE " + nodes[1].id());
  nodes.pass(3000);
  const std::string request = "CLUSTER FAILOVER FORCE REPLICAID " + nodes[2].id();
  CHECK(nodes[2].run(request) == error("ERR unknown subcommand or wrong number of arguments for "
                                       "'FAILOVER'. Try CLUSTER HELP."));
  TestClient master(nodes[2].server);
  master->set(server::kClientMaster);
  // What comes by the stream is not answered.
  master.run("CLUSTER FAILOVER FORCE REPLICAID " + nodes[0].id());
  CHECK_FALSE(nodes[2].cluster->manual_failover().active());
  master.run(request);
  CHECK(nodes[2].cluster->manual_failover().may_begin());
  nodes.pass(4000);
  CHECK(flags(nodes[2], nodes[2]) == "myself,master");
  CHECK(is_owner(nodes[0], kSlotOfA, nodes[2]));
}

TEST_CASE("messages reach listeners at other nodes, those of a shard only its own", "[cluster]") {
  Nodes nodes(4);
  nodes.make_cluster(3);
  nodes[3].run("CLUSTER REPLICATE " + nodes[2].id());
  nodes.pass(3000);
  TestClient far(nodes[1].server, 3);
  TestClient near(nodes[3].server, 3);
  far.run("SUBSCRIBE news");
  near.run("SSUBSCRIBE a");
  CHECK(nodes[0].run("PUBLISH news x") == integer(0));
  CHECK(nodes[2].run("SPUBLISH a y") == integer(0));
  nodes.carry();
  CHECK(far.take_output() == ">3\r\n" + bulk("message") + bulk("news") + bulk("x"));
  CHECK(near.take_output() == ">3\r\n" + bulk("smessage") + bulk("a") + bulk("y"));
  CHECK(nodes[1].run("CLUSTER INFO").find("publishshard_received") == std::string::npos);
}

TEST_CASE("masters that have the same epoch part", "[cluster]") {
  Nodes nodes(2);
  nodes[0].run("CLUSTER ADDSLOTSRANGE 0 8191");
  nodes[1].run("CLUSTER ADDSLOTSRANGE 8192 16383");
  nodes[0].run("CLUSTER MEET 127.0.0.1 7001");
  nodes.pass(3000);
  CHECK(nodes[0].cluster->myself().config_epoch != nodes[1].cluster->myself().config_epoch);
}

TEST_CASE("each node has a link to each other one and one from it", "[cluster]") {
  Nodes nodes(3);
  nodes.make_cluster(3);
  CHECK(nodes[0].run("CLUSTER LINKS").starts_with("*4\r\n"));
  nodes[0].cluster->bus().drop(*nodes[0].cluster->nodes().find(nodes[1].id())->link);
  CHECK(nodes[0].run("CLUSTER LINKS").starts_with("*3\r\n"));
  nodes.pass(1000);
  CHECK(nodes[0].run("CLUSTER LINKS").starts_with("*4\r\n"));
}

TEST_CASE("a link by which nonsense comes is dropped", "[cluster]") {
  Nodes nodes(2);
  nodes.make_cluster(2);
  cluster::Bus& bus = nodes[0].cluster->bus();
  const size_t links = bus.size();
  cluster::Link& link = bus.accept(nullptr);
  CHECK(bus.size() == links + 1);
  std::string nonsense = "GET / HTTP/1.1\r\n\r\n";
  link.on_input(nonsense);
  CHECK(bus.size() == links);
}

TEST_CASE("a replica whose master has others goes to one that has lost its own", "[cluster]") {
  Nodes nodes(6);
  nodes.make_cluster(3);
  nodes[3].run("CLUSTER REPLICATE " + nodes[0].id());
  nodes[4].run("CLUSTER REPLICATE " + nodes[0].id());
  nodes[5].run("CLUSTER REPLICATE " + nodes[1].id());
  nodes.pass(3000);
  TestClient third(nodes[3].server, 3);
  TestClient fourth(nodes[4].server, 3);
  // In a slot of the first master.
  for (TestClient* reader : {&third, &fourth}) reader->run("SSUBSCRIBE b");
  nodes.cut_off(5);
  nodes.pass(30'000);
  const size_t left = nodes[0].cluster->myself().replicas.size();
  CHECK(left == 1);
  CHECK(nodes[1].cluster->myself().working_replicas() == 1);
  // Messages of the shard that it has left no longer come to it.
  const bool third_went = nodes[3].cluster->myself().master->id == nodes[1].id();
  CHECK((third_went ? third : fourth).take_output() ==
        ">3\r\n" + bulk("sunsubscribe") + bulk("b") + integer(0));
  CHECK((third_went ? fourth : third).take_output().empty());
}

TEST_CASE("a node is known by its name in the log, or else by its address", "[cluster]") {
  cluster::Node node;
  node.id = std::string(40, 'a');
  node.address = {.ip = "::1", .port = 7000};
  CHECK(cluster::title(node) == node.id + " ([::1]:7000)");
  node.address = {.ip = "10.0.0.1", .port = 0, .bus_port = 17001, .tls_port = 7001};
  CHECK(cluster::title(node) == node.id + " (10.0.0.1:7001)");
  node.human_name = "one";
  CHECK(cluster::title(node) == node.id + " (one)");
}

TEST_CASE("messages tell of as many nodes as cluster-message-gossip-perc says", "[cluster]") {
  Nodes nodes(10);
  nodes.make_cluster(2);
  const auto told = [&] {
    cluster::Link& link = *nodes[0].cluster->nodes().find(nodes[1].id())->link;
    nodes.carry();
    link.take_output();
    nodes[0].cluster->gossip().send(link, cluster::MessageType::kPing);
    const auto message = cluster::decode(link.take_output());
    return message ? message->gossip.size() : 0;
  };
  CHECK(told() == 3);
  nodes[0].run("CONFIG SET cluster-message-gossip-perc 80");
  CHECK(told() == 8);
  nodes[0].run("CONFIG SET cluster-message-gossip-perc 100");
  CHECK(told() == 8);
}

TEST_CASE("a node goes on without its file if that is said, and writes it with the next change",
          "[cluster]") {
  Nodes nodes(2);
  nodes.make_cluster(2);
  server::Server& server = nodes[0].server.server;
  const std::string path = server.settings().cluster_config_file;
  std::filesystem::remove(path);
  std::filesystem::create_directories(path + "/in-the-way");
  nodes[0].run("CONFIG SET cluster-config-save-behavior best-effort");
  CHECK(nodes[0].run("CLUSTER BUMPEPOCH").starts_with("+"));
  nodes.pass(200);
  CHECK_FALSE(server.stop_requested());
  std::filesystem::remove_all(path);
  nodes[0].run("CLUSTER DELSLOTS 0");
  CHECK(std::filesystem::is_regular_file(path));

  std::filesystem::remove(path);
  std::filesystem::create_directories(path + "/in-the-way");
  nodes[0].run("CONFIG SET cluster-config-save-behavior sync");
  nodes[0].run("CLUSTER DELSLOTS 1");
  nodes.pass(200);
  CHECK(server.stop_requested());
}

TEST_CASE("a node that does not know another one is introduced to it again", "[cluster]") {
  for (const std::string edition : {"valkey 8.1", "valkey 9.1", "redis 8.6"}) {
    INFO(edition);
    Nodes nodes(2, "emulate \"" + edition + "\"\n");
    nodes.make_cluster(2);
    nodes[1].cluster->remove(*nodes[1].cluster->nodes().find(nodes[0].id()));
    nodes.pass(1000);
    CHECK(flags(nodes[1], nodes[0]) == "unknown");
    nodes.pass(5000);
    CHECK(flags(nodes[1], nodes[0]) == (edition == "redis 8.6" ? "unknown" : "master"));
  }
}

TEST_CASE("Valkey hears of other nodes from one that introduces itself", "[cluster]") {
  for (const bool valkey : {true, false}) {
    INFO(valkey);
    Nodes nodes(4, valkey ? "emulate \"valkey 9.1\"\n" : "");
    nodes.make_cluster(2);
    cluster::Cluster& stranger = *nodes[3].cluster;
    stranger.reset(/*hard=*/false);
    cluster::Message message = nodes[0].cluster->message(cluster::MessageType::kMeet);
    message.gossip.push_back({.id = nodes[1].id(),
                              .address = nodes[1].cluster->myself().address,
                              .flags = cluster::kMaster});
    const auto dialect = valkey ? cluster::Dialect::kValkey : cluster::Dialect::kRedis;
    std::string bytes = cluster::encode(message, cluster::FirstPort::kPlain, dialect);
    stranger.bus().accept(nullptr).on_input(bytes);
    CHECK((stranger.nodes().find(nodes[1].id()) != nullptr) == valkey);
  }
}

TEST_CASE("a message that is damaged behind its header is counted", "[cluster]") {
  Nodes nodes(1);
  cluster::Message message = nodes[0].cluster->message(cluster::MessageType::kMeet);
  message.sender = std::string(40, 'a');
  std::string bytes = cluster::encode(message);
  constexpr size_t kCountOfGossip = 14;
  bytes[kCountOfGossip] = 100;
  nodes[0].cluster->bus().accept(nullptr).on_input(bytes);
  CHECK(info(nodes[0], "cluster_stats_messages_meet_received") == "1");
  CHECK(nodes[0].cluster->bus().size() == 0);
}

TEST_CASE("a replica of Valkey goes with the last slot that its master moves", "[cluster]") {
  const bool follows = GENERATE(true, false);
  Nodes nodes(3, "emulate \"valkey 9.1\"\n");
  nodes[0].run("CLUSTER ADDSLOTSRANGE 0 16382");
  nodes[1].run("CLUSTER ADDSLOTS 16383");
  nodes[0].run("CLUSTER SET-CONFIG-EPOCH 1");
  nodes[1].run("CLUSTER SET-CONFIG-EPOCH 2");
  nodes[0].run("CLUSTER MEET 127.0.0.1 7001");
  nodes[0].run("CLUSTER MEET 127.0.0.1 7002");
  nodes.pass(3000);
  REQUIRE(nodes[2].run("CLUSTER REPLICATE " + nodes[1].id()) == kOk);
  nodes.pass(1000);
  nodes[2].run(std::string("CONFIG SET cluster-allow-replica-migration ") +
               (follows ? "yes" : "no"));
  TestClient master(nodes[2].server);
  master->set(server::kClientMaster);
  master.run("CLUSTER SETSLOT 16383 NODE " + nodes[0].id());
  const cluster::Node& myself = nodes[2].cluster->myself();
  REQUIRE(myself.master != nullptr);
  CHECK(myself.master->id == (follows ? nodes[0] : nodes[1]).id());
  // What that means for the link to the master waits for the end of the turn.
  const replication::ReplicaRole& role =
      nodes[2].server.server.layer<replication::Replication>().replica_role();
  CHECK(role.port() == 7001);
  nodes.carry();
  CHECK(role.port() == (follows ? 7000 : 7001));
}

TEST_CASE("Valkey moves no slot from a node to itself", "[cluster]") {
  Nodes nodes(2, "emulate \"valkey 9.1\"\n");
  nodes.make_cluster(2);
  const std::string myself = error("ERR Target node is myself");
  CHECK(nodes[1].run("CLUSTER SETSLOT 15495 MIGRATING " + nodes[1].id()) == myself);
  CHECK(nodes[0].run("CLUSTER SETSLOT 15495 IMPORTING " + nodes[0].id()) == myself);
}

TEST_CASE("moves of slots are shown in the order of the slots", "[cluster]") {
  Nodes nodes(2);
  nodes.make_cluster(2);
  CHECK(nodes[1].run("CLUSTER SETSLOT 15495 MIGRATING " + nodes[0].id()) == kOk);
  CHECK(nodes[1].run("CLUSTER SETSLOT 0 IMPORTING " + nodes[0].id()) == kOk);
  const std::string shown = "[0-<-" + nodes[0].id() + "] [15495->-" + nodes[0].id() + "]";
  CHECK(nodes[1].run("CLUSTER NODES").find(shown) != std::string::npos);
}

TEST_CASE("the log tells who takes a failed node's place in moves of slots", "[cluster]") {
  Nodes nodes(3);
  nodes.make_cluster(2);
  REQUIRE(nodes[2].run("CLUSTER REPLICATE " + nodes[1].id()) == kOk);
  nodes.pass(3000);
  CHECK(nodes[0].run("CLUSTER SETSLOT 15495 IMPORTING " + nodes[1].id()) == kOk);
  CHECK(nodes[0].run("CLUSTER SETSLOT 0 MIGRATING " + nodes[1].id()) == kOk);
  const std::string log = nodes.directory() + "/log";
  nodes[0].server.log.set_level(base::LogLevel::kNotice);
  nodes[0].server.log.set_file(log);
  CHECK(nodes[2].run("CLUSTER FAILOVER TAKEOVER") == kOk);
  nodes.pass(3000);
  REQUIRE(flags(nodes[0], nodes[1]) == "slave");
  nodes[0].server.log.set_level(base::LogLevel::kNothing);
  const std::string told = base::read_file(log).value_or("");
  const cluster::Node& successor = *nodes[0].cluster->nodes().find(nodes[2].id());
  const std::string whom =
      " to node " + cluster::title(successor) + " in shard " + successor.shard_id + ".";
  CHECK(told.find("Failover occurred in migration source. Update importing source for slot 15495" +
                  whom) != std::string::npos);
  CHECK(told.find("Failover occurred in migration target. Slot 0 is now being migrated" + whom) !=
        std::string::npos);
  const std::string shown = "[0->-" + nodes[2].id() + "] [15495-<-" + nodes[2].id() + "]";
  CHECK(nodes[0].run("CLUSTER NODES").find(shown) != std::string::npos);
}

TEST_CASE("links that were lost are opened again, unless a test says otherwise", "[cluster]") {
  Nodes nodes(2);
  nodes.make_cluster(2);
  const cluster::Node& other = *nodes[0].cluster->nodes().find(nodes[1].id());
  for (const bool reconnects : {false, true}) {
    nodes[0].cluster->heartbeat().reconnect(reconnects);
    nodes[0].cluster->bus().drop_links(*nodes[0].cluster->nodes().find(nodes[1].id()));
    nodes.pass(500);
    CHECK((other.link != nullptr) == reconnects);
  }
}

}  // namespace latchkey::tests
