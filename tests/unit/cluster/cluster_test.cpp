// A node of a cluster as its clients meet it.
#include "cluster/cluster.h"

#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "base/file.h"
#include "cluster/rows.h"
#include "commands/groups.h"
#include "script/engine.h"
#include "script/rows.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

constexpr std::string_view kCrossSlot =
    "-CROSSSLOT Keys in request don't hash to the same slot\r\n";
constexpr std::string_view kNotServed = "-CLUSTERDOWN Hash slot not served\r\n";
constexpr std::string_view kDown = "-CLUSTERDOWN The cluster is down\r\n";

// A directory of its own, gone with it.
struct Directory {
  Directory() {
    char name[] = "/tmp/latchkey-cluster-XXXXXX";
    path = mkdtemp(name);
  }
  ~Directory() { std::filesystem::remove_all(path); }
  std::string file() const { return path + "/nodes.conf"; }
  std::string path;
};

struct Node {
  explicit Node(const Directory& directory, std::string_view settings = {})
      : server({cluster::cluster_rows(), commands::client_rows(), commands::config_rows(),
                commands::connection_rows(), commands::database_rows(), commands::key_rows(),
                commands::list_rows(), commands::list_wait_rows(), commands::pubsub_rows(),
                commands::set_rows(), commands::sort_rows(), commands::string_batch_rows(),
                commands::string_rows(), commands::transaction_rows(), script::script_rows()},
               "cluster-enabled yes\ndatabases 1\nport 7000\ncluster-config-file " +
                   directory.file() + "\n" + std::string(settings)) {
    server.server.add_layer(std::make_shared<script::Engine>(server.server));
    node = std::make_shared<cluster::Cluster>(server.server);
    started = node->start();
    if (!started) return;
    server.server.add_layer(node);
    server.server.set_slot_gate(node.get());
    client = std::make_unique<TestClient>(server);
  }
  std::string run(std::string_view line) { return client->run(line); }
  std::string eval(std::string_view script, std::string_view key = {}) {
    std::string reply = key.empty() ? client->run_words({"EVAL", script, "0"})
                                    : client->run_words({"EVAL", script, "1", key});
    return reply.substr(0, reply.find(" script: "));
  }

  ServerFixture server;
  std::shared_ptr<cluster::Cluster> node;
  bool started = false;
  std::unique_ptr<TestClient> client;
};

// One that serves all slots.
struct WholeNode : Node {
  using Node::Node;
  explicit WholeNode(const Directory& directory, std::string_view settings = {})
      : Node(directory, settings) {
    run("CLUSTER ADDSLOTSRANGE 0 16383");
  }
};

}  // namespace

TEST_CASE("a new node serves no slots", "[cluster]") {
  const Directory directory;
  Node node(directory);
  CHECK(node.run("GET a") == kNotServed);
  CHECK(node.run("EVAL return(1) 1 a") == kNotServed);
  CHECK(node.run("PING") == status("PONG"));
  CHECK(node.run("CLUSTER SLOTS") == "*0\r\n");
  CHECK(node.run("CLUSTER INFO").find("cluster_state:fail") != std::string::npos);
}

TEST_CASE("a protected bus keeps its TLS", "[cluster]") {
  const Directory directory;
  Node plain(directory);
  CHECK(plain.run("CONFIG SET cluster-bus-port-protected-mode yes") ==
        error("ERR CONFIG SET failed (possibly related to argument "
              "'cluster-bus-port-protected-mode') - can't enable cluster-bus-port-protected-mode "
              "while tls-cluster is disabled"));
  CHECK(plain.run("CONFIG GET cluster-bus-port-protected-mode") ==
        bulks({"cluster-bus-port-protected-mode", "no"}));
  const Directory other;
  Node secure(other, "tls-cluster yes\n");
  CHECK(secure.run("CONFIG SET cluster-bus-port-protected-mode yes") == kOk);
  CHECK(secure.run("CONFIG SET tls-cluster no") ==
        error("ERR CONFIG SET failed (possibly related to argument 'tls-cluster') - can't disable "
              "tls-cluster while cluster-bus-port-protected-mode is enabled"));
  CHECK(secure.run("CONFIG GET tls-cluster") == bulks({"tls-cluster", "yes"}));
  const std::string log = other.path + "/log";
  secure.server.log.set_level(base::LogLevel::kWarning);
  secure.server.log.set_file(log);
  CHECK(secure.run("CONFIG SET cluster-bus-port-protected-mode no") == kOk);
  CHECK_FALSE(std::filesystem::exists(log));
  CHECK(secure.run("CONFIG SET tls-cluster no") == kOk);
  CHECK(base::read_file(log).value_or("").find("The cluster bus port is not authenticated") !=
        std::string::npos);
}

TEST_CASE("a node serves when all slots are there, or those it has if that is enough",
          "[cluster]") {
  const Directory directory;
  WholeNode node(directory);
  CHECK(node.run("SET a 1") == kOk);
  CHECK(node.run("CLUSTER INFO").find("cluster_state:ok") != std::string::npos);
  node.run("CLUSTER DELSLOTS 100");
  CHECK(node.run("GET a") == kDown);
  node.run("CONFIG SET cluster-allow-reads-when-down yes");
  CHECK(node.run("GET a") == bulk("1"));
  CHECK(node.run("SET a 2") ==
        error("CLUSTERDOWN The cluster is down and only accepts read commands"));
  CHECK(node.run("SPUBLISH a x") == integer(0));
  node.run("CONFIG SET cluster-require-full-coverage no");
  CHECK(node.run("SET a 2") == kOk);
}

TEST_CASE("the keys of a request must be in one slot", "[cluster]") {
  const Directory directory;
  WholeNode node(directory);
  CHECK(node.run("MGET a b") == kCrossSlot);
  CHECK(node.run("MGET {a}1 {a}2") == array({std::string(kNull), std::string(kNull)}));
  CHECK(node.run("SSUBSCRIBE a b") == kCrossSlot);
  CHECK(node.run("RENAME a b") == kCrossSlot);
}

TEST_CASE("so must those of a transaction", "[cluster]") {
  const Directory directory;
  WholeNode node(directory);
  node.run("MULTI");
  CHECK(node.run("GET a") == kQueued);
  CHECK(node.run("GET b") == kQueued);
  CHECK(node.run("EXEC") == kCrossSlot);
  CHECK(node.run("EXEC") == error("ERR EXEC without MULTI"));
  node.run("MULTI");
  CHECK(node.run("MGET a b") == kCrossSlot);
  CHECK(node.run("EXEC") == error("EXECABORT Transaction discarded because of previous errors."));
}

TEST_CASE("a script keeps to one slot if it declares anything", "[cluster]") {
  const Directory directory;
  WholeNode node(directory);
  const std::string several =
      "-ERR Script attempted to access keys that do not hash to the same slot";
  CHECK(node.eval("redis.call('set','a',1) redis.call('set','b',1) return 1") == integer(1));
  CHECK(node.eval("#!lua\nredis.call('get','a') return redis.call('get','b')") == several);
  CHECK(node.eval("#!lua\nreturn redis.call('get','b')", "a") == several);
  CHECK(node.eval("#!lua flags=allow-cross-slot-keys\nredis.call('get','a') return "
                  "redis.call('get','b')") == bulk("1"));
  CHECK(node.eval("return redis.call('mget','a','b')") ==
        "-ERR Command 'mget' in script attempted to access keys that don't hash to the same slot");
  CHECK(node.eval("#!lua flags=no-cluster\nreturn 1") ==
        error("ERR Can not run script on cluster, 'no-cluster' flag is set."));
  node.run("CLUSTER DELSLOTS 100");
  CHECK(node.eval("return redis.call('get','a')") ==
        "-ERR Script attempted to execute a command while the cluster is down");
}

TEST_CASE("who waits for a slot that goes, or listens to it, is told", "[cluster]") {
  const Directory directory;
  WholeNode node(directory);
  node.run("CONFIG SET cluster-require-full-coverage no");
  TestClient listener(node.server, 3);
  TestClient waiter(node.server);
  TestClient patient(node.server);
  listener.run("SSUBSCRIBE a");
  listener.run("SSUBSCRIBE b");
  CHECK(waiter.run("BLPOP {a}list 0").empty());
  CHECK(patient.run("BLPOP {b}list 0").empty());
  CHECK(node.run("CLUSTER DELSLOTS 15495") == kOk);
  CHECK(listener.take_output() == ">3\r\n" + bulk("sunsubscribe") + bulk("a") + integer(1));
  CHECK(waiter.take_output() == kNotServed);
  CHECK(patient.take_output().empty());
  node.run("RPUSH {b}list x");
  CHECK(patient.take_output() == bulks({"{b}list", "x"}));
}

TEST_CASE("a node has one database", "[cluster]") {
  const Directory directory;
  WholeNode node(directory);
  CHECK(node.run("SELECT 1") == error("ERR SELECT is not allowed in cluster mode"));
  CHECK(node.run("SELECT 0") == kOk);
  CHECK(node.run("SWAPDB 0 1") == error("ERR SWAPDB is not allowed in cluster mode"));
  CHECK(node.run("MOVE a 1") == error("ERR MOVE is not allowed in cluster mode"));
  CHECK(node.run("COPY a {a}1 DB 1") == error("ERR DB index is out of range"));
}

TEST_CASE("a node has as many databases as cluster-databases says", "[cluster]") {
  const Directory directory;
  WholeNode node(directory, "cluster-databases 3\n");
  CHECK(node.run("SET {06S}a 1") == kOk);
  CHECK(node.run("MOVE {06S}a 2") == integer(1));
  CHECK(node.run("SELECT 3") == error("ERR DB index is out of range"));
  CHECK(node.run("SWAPDB 0 1") == error("ERR SWAPDB is not allowed in cluster mode"));
  CHECK(node.run("CLUSTER COUNTKEYSINSLOT 0") == integer(0));
  CHECK(node.run("SELECT 2") == kOk);
  CHECK(node.run("CLUSTER COUNTKEYSINSLOT 0") == integer(1));
  CHECK(node.run("COPY {06S}a {06S}b DB 1") == integer(1));
  CHECK(node.run("CLUSTER FLUSHSLOTS") ==
        error("ERR DB must be empty to perform CLUSTER FLUSHSLOTS."));
  CHECK(node.run("CLUSTER FLUSHSLOT 0 SYNC") == kOk);
  CHECK(node.run("DBSIZE") == integer(0));
  CHECK(node.run("CLUSTER FLUSHSLOTS") == kOk);
}

TEST_CASE("CLUSTERSCAN visits all slots that are served, and then names the next one",
          "[cluster]") {
  const Directory directory;
  Node node(directory);
  node.run("CONFIG SET cluster-require-full-coverage no");
  node.run("CLUSTER ADDSLOTSRANGE 0 1 3 3 100 16383");
  for (int i = 0; i < 100; ++i) node.run("SET {06S}" + std::to_string(i) + " v");
  node.run("SET {Qi}a v");
  CHECK(node.run("CLUSTERSCAN 0") == array({bulk("0-{06S}-0"), "*0\r\n"}));
  std::string cursor = "0-{06S}-0";
  std::string keys;
  int calls = 0;
  while (!cursor.starts_with("0-{5L5}")) {
    const std::string reply = node.run("CLUSTERSCAN " + cursor + " COUNT 10");
    REQUIRE(reply.starts_with("*2\r\n$"));
    const size_t begin = reply.find("\r\n", 4) + 2;
    cursor = reply.substr(begin, reply.find("\r\n", begin) - begin);
    keys += reply;
    REQUIRE(++calls < 100);
    if (calls == 1) REQUIRE(cursor.find("-{06S}-") == 6);
    if (cursor.starts_with("0-") && calls == 1) break;
  }
  CHECK(calls > 3);
  for (int i = 0; i < 100; ++i)
    CHECK(keys.find("\r\n{06S}" + std::to_string(i) + "\r\n") != std::string::npos);
  CHECK(keys.find("\r\n{Qi}a\r\n") != std::string::npos);
  CHECK(node.run("CLUSTERSCAN 0-{4Iu}-0 SLOT 3") == array({bulk("0"), "*0\r\n"}));
  CHECK(node.run("CLUSTERSCAN x-{06S}-77 SLOT 1") ==
        error("ERR Cursor slot mismatch with SLOT argument"));
  CHECK(node.run("CLUSTERSCAN 0-{06S}") == error("ERR Invalid cursor"));
}

TEST_CASE("SORT keeps to the slot of its key", "[cluster]") {
  const Directory directory;
  WholeNode node(directory);
  node.run("RPUSH {a}list 1");
  const auto denied = [](const std::string& option) {
    return error("ERR " + option +
                 " option of SORT denied in Cluster mode when keys formed by the pattern may be in "
                 "different slots.");
  };
  CHECK(node.run("SORT {a}list BY b*") == denied("BY"));
  CHECK(node.run("SORT {a}list GET b*") == denied("GET"));
  CHECK(node.run("SORT {a}list BY nosort GET #") == bulks({"1"}));
  CHECK(node.run("SORT {a}list BY {a}w*") == bulks({"1"}));
}

TEST_CASE("SORT of Redis 7.0 has no patterns in a cluster", "[cluster]") {
  const Directory directory;
  WholeNode node(directory, "emulate \"redis 7.0\"\n");
  node.run("RPUSH {a}list 2 1");
  const std::string no_get = error("ERR GET option of SORT denied in Cluster mode.");
  CHECK(node.run("SORT {a}list BY {a}w*") ==
        error("ERR BY option of SORT denied in Cluster mode."));
  CHECK(node.run("SORT {a}list GET {a}x*") == no_get);
  CHECK(node.run("SORT {a}list GET #") == no_get);
  CHECK(node.run("SORT {a}list BY nosort") == bulks({"2", "1"}));
}

TEST_CASE("CLUSTER INFO tells of slot migrations from Redis 8.4 on", "[cluster]") {
  const auto tells = [](std::string_view settings) {
    const Directory directory;
    WholeNode node(directory, settings);
    return node.run("CLUSTER INFO").find("cluster_slot_migration_") != std::string::npos;
  };
  CHECK(tells({}));
  CHECK(tells("emulate \"redis 8.6\"\n"));
  CHECK_FALSE(tells("emulate \"redis 8.0\"\n"));
}

TEST_CASE("keys are counted and named by slot", "[cluster]") {
  const Directory directory;
  WholeNode node(directory);
  node.run("MSET {a}1 x {a}2 y");
  node.run("SET b z");
  CHECK(node.run("CLUSTER KEYSLOT {a}1") == integer(15495));
  CHECK(node.run("CLUSTER COUNTKEYSINSLOT 15495") == integer(2));
  CHECK(node.run("CLUSTER GETKEYSINSLOT 3300 10") == bulks({"b"}));
  CHECK(node.run("CLUSTER GETKEYSINSLOT 15495 1").starts_with("*1\r\n$4\r\n{a}"));
  CHECK(node.run("CLUSTER GETKEYSINSLOT 15495 0") == "*0\r\n");
  CHECK(node.run("CLUSTER FLUSHSLOTS") ==
        error("ERR DB must be empty to perform CLUSTER FLUSHSLOTS."));
}

TEST_CASE("slots are given and taken all or none", "[cluster]") {
  const Directory directory;
  Node node(directory);
  CHECK(node.run("CLUSTER ADDSLOTS 1 2 1") == error("ERR Slot 1 specified multiple times"));
  CHECK(node.run("CLUSTER ADDSLOTS 1 x") == error("ERR Invalid or out of range slot"));
  CHECK(node.node->myself().slots.empty());
  CHECK(node.run("CLUSTER ADDSLOTSRANGE 1 3 7 7") == kOk);
  CHECK(node.run("CLUSTER ADDSLOTSRANGE 5 4") ==
        error("ERR start slot number 5 is greater than end slot number 4"));
  CHECK(node.run("CLUSTER ADDSLOTS 0 3") == error("ERR Slot 3 is already busy"));
  CHECK(node.run("CLUSTER DELSLOTS 2") == kOk);
  CHECK(node.run("CLUSTER DELSLOTSRANGE 1 2") == error("ERR Slot 2 is already unassigned"));
  CHECK(node.node->myself().slots.text() == " 1 3 7");
  const std::string me = node.node->myself().id;
  CHECK(node.run("CLUSTER SETSLOT 2 NODE " + me) == kOk);
  CHECK(node.run("CLUSTER NODES") ==
        bulk(me + " :7000@17000 myself,master - 0 0 0 connected 1-3 7\n"));
}

TEST_CASE("ranges of slots that are named again and again are refused at the first", "[cluster]") {
  const Directory directory;
  Node node(directory);
  // They would be 16 billion slots.
  std::string ranges;
  for (int i = 0; i < 1'000'000; ++i) ranges += " 1 16383";
  CHECK(node.run("CLUSTER ADDSLOTSRANGE" + ranges) == error("ERR Slot 1 specified multiple times"));
  CHECK(node.run("CLUSTER DELSLOTSRANGE" + ranges) == error("ERR Slot 1 is already unassigned"));
  CHECK(node.run("CLUSTER ADDSLOTSRANGE" + ranges + " 2 1") ==
        error("ERR start slot number 2 is greater than end slot number 1"));
  CHECK(node.node->myself().slots.empty());
}

TEST_CASE("the file is written when what it says has changed, or on request", "[cluster]") {
  const Directory directory;
  Node node(directory);
  node.run("CLUSTER ADDSLOTS 1");
  // A file is replaced by another one.
  const auto number = [&] {
    struct stat status {};
    REQUIRE(stat(directory.file().c_str(), &status) == 0);
    return status.st_ino;
  };
  const auto before = number();
  CHECK(node.run("CLUSTER SETSLOT 1 STABLE") == kOk);
  CHECK(number() == before);
  CHECK(node.run("CLUSTER SAVECONFIG") == kOk);
  const auto saved = number();
  CHECK(saved != before);
  CHECK(node.run("CLUSTER DELSLOTS 1") == kOk);
  CHECK(number() != saved);
}

TEST_CASE("a node is who it was when it comes again, and keeps its slots", "[cluster]") {
  const Directory directory;
  std::string id;
  {
    Node node(directory);
    id = node.node->myself().id;
    node.run("CLUSTER ADDSLOTSRANGE 5 9");
    CHECK(node.run("CLUSTER BUMPEPOCH") == status("BUMPED 1"));
    CHECK(node.run("CLUSTER BUMPEPOCH") == status("STILL 1"));
  }
  Node again(directory);
  REQUIRE(again.started);
  CHECK(again.node->myself().id == id);
  CHECK(again.node->myself().config_epoch == 1);
  CHECK(again.node->myself().slots.text() == " 5-9");
  CHECK(again.run("CLUSTER RESET HARD") == kOk);
  CHECK(again.node->myself().id != id);
  CHECK(again.node->myself().config_epoch == 0);
  CHECK(again.node->myself().slots.empty());
}

TEST_CASE("two nodes do not share a file, and a damaged one is refused", "[cluster]") {
  const Directory directory;
  {
    Node first(directory);
    CHECK_FALSE(Node(directory).started);
    // The lock goes along when the file is written anew.
    first.run("CLUSTER ADDSLOTS 1");
    CHECK_FALSE(Node(directory).started);
  }
  REQUIRE(base::write_file(directory.file(), "nonsense\n"));
  CHECK_FALSE(Node(directory).started);
}

TEST_CASE("slots whose keys were loaded are taken if they are nobody's", "[cluster]") {
  const Directory directory;
  Node node(directory);
  store::KeyRef ref = node.server.database().find_for_write("a");
  node.server.database().set_string(ref, "1");
  CHECK(node.node->claim_loaded_slots());
  CHECK(node.node->myself().slots.text() == " 15495");
}

TEST_CASE("what needs other nodes is refused without them, and all of it without a cluster",
          "[cluster]") {
  const Directory directory;
  Node node(directory);
  const std::string me = node.node->myself().id;
  for (const auto* address : {"nowhere 7001", "127.0.0.1 0", "127.0.0.1 65536"})
    CHECK(
        node.run(std::string("CLUSTER MEET ") + address).starts_with("-ERR Invalid node address"));
  CHECK(node.run("CLUSTER FORGET x") == error("ERR Unknown node x"));
  CHECK(node.run("CLUSTER REPLICATE " + me) == error("ERR Can't replicate myself"));
  CHECK(node.run("CLUSTER REPLICAS " + me) == "*0\r\n");
  CHECK(node.run("CLUSTER FAILOVER") == error("ERR You should send CLUSTER FAILOVER to a replica"));
  CHECK(node.run("READONLY") == kOk);
  CHECK(node.run("CLIENT LIST").find(" flags=r ") != std::string::npos);

  ServerFixture alone({cluster::cluster_rows()});
  TestClient client(alone);
  for (const auto* request : {"CLUSTER INFO", "CLUSTER KEYSLOT a", "READONLY", "ASKING"})
    CHECK(client.run(request) == error("ERR This instance has cluster support disabled"));
}

}  // namespace latchkey::tests
