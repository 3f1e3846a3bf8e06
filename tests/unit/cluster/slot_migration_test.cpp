// Atomic slot migration without sockets: its commands, what is run of a stream, what is sent, and
// the deletion of keys of lost slots.
#include "cluster/slot_migration/slot_migration.h"

#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "cluster/rows.h"
#include "cluster/slot_migration/slot_snapshot.h"
#include "cluster/slot_migration/slot_stream.h"
#include "cluster/slot_migration/stream_runner.h"
#include "commands/groups.h"
#include "unit/catch.h"
#include "unit/cluster/several_nodes.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

using cluster::SlotSet;

// Keys with these tags are in the slots 0, 1 and 16383.
constexpr std::string_view kInSlot0 = "{06S}";
constexpr std::string_view kInSlot1 = "{Qi}";

SlotSet slots_of(std::initializer_list<int> slots) {
  SlotSet set;
  for (const int slot : slots) set.add(slot);
  return set;
}

// A node that serves the slots from 0 to 8191, and one that serves the others.
struct Two {
  Two() : nodes(2) { nodes.make_cluster(2); }
  ClusterNode& first() { return nodes[0]; }
  ClusterNode& second() { return nodes[1]; }
  Nodes nodes;
};

std::string key(std::string_view tag, std::string_view name) {
  return std::string(tag) + std::string(name);
}

bool runs(cluster::StreamRunner& runner, std::initializer_list<std::string_view> words) {
  return static_cast<bool>(runner.run(std::vector<std::string_view>(words)));
}

}  // namespace

TEST_CASE("CLUSTER MIGRATION IMPORT says which slots cannot be imported", "[slot-migration]") {
  Two two;
  const auto import = [&](const std::string& ranges) {
    return two.first().run("CLUSTER MIGRATION IMPORT " + ranges);
  };
  CHECK(import("1") == error("ERR wrong number of arguments for 'cluster|migration' command"));
  CHECK(import("1 2 3") == error("ERR wrong number of arguments for 'cluster|migration' command"));
  CHECK(import("9000 8999") ==
        error("ERR start slot number 9000 is greater than end slot number 8999"));
  CHECK(import("0 16384") == error("ERR Invalid or out of range slot"));
  CHECK(import("9000 9005 9005 9006") == error("ERR Slot 9005 specified multiple times"));
  CHECK(import("5 6") == error("ERR this node is already the owner of the slot range"));
  CHECK(import("8000 9000") == error("ERR slots belong to different source nodes"));
  CHECK(two.first().run("CLUSTER MIGRATION CANCEL ALL") == ":0\r\n");
  CHECK(two.first().run("CLUSTER MIGRATION STATUS ALL") == "*0\r\n");
  const std::string id = import("9000 9005 9006 9100");
  CHECK(id.starts_with("$40\r\n"));
  CHECK(import("9100 9101") == error("ERR overlapping import exists"));
  CHECK(two.first().run("CLUSTER SETSLOT 9000 STABLE") ==
        error("ERR Slot 9000 is in an active atomic slot migration."));
  CHECK(two.first().run("CLUSTER MIGRATION STATUS ALL").find("9000-9100") != std::string::npos);
  CHECK(two.first().run("CLUSTER MIGRATION CANCEL ALL") == ":1\r\n");
  CHECK(two.first().run("CLUSTER MIGRATION STATUS ALL").find("canceled") != std::string::npos);
}

TEST_CASE("the archive keeps the newest tasks, and one of each id", "[slot-migration]") {
  cluster::TaskTable tasks;
  for (const char* id : {"a", "b", "b", "c", "d"}) {
    cluster::SlotTask task;
    task.id = id;
    tasks.archive(tasks.add(task), 3);
  }
  REQUIRE(tasks.archive().size() == 3);
  CHECK(tasks.archive()[0].id == "d");
  CHECK(tasks.archive()[1].id == "c");
  CHECK(tasks.archive()[2].id == "b");
  CHECK(tasks.active().empty());
}

TEST_CASE("only who knows the secret of the nodes may use SYNCSLOTS", "[slot-migration]") {
  Two two;
  ClusterNode& node = two.first();
  TestClient peer(node.server);
  CHECK(peer.run_words({"AUTH", "internal connection", std::string(40, 'x')}) ==
        error("WRONGPASS invalid internal password"));
  CHECK(peer.run_words({"AUTH", "internal connection", ""}) ==
        error("WRONGPASS invalid internal password"));
  CHECK(peer.run("CLUSTER SYNCSLOTS CONF NODE-ID " + two.second().id()) ==
        error("ERR CLUSTER SYNCSLOTS subcommands are only allowed for internal clients"));
  TestClient known(node.server);
  CHECK(known.run_words({"AUTH", "internal connection", node.cluster->secret()}) == kOk);
  CHECK(known.run("CLUSTER SYNCSLOTS NONSENSE") == error("ERR syntax error"));
  CHECK(known.run("CLUSTER SYNCSLOTS CONF NODE-ID x") == error("ERR Unknown node x"));
  const std::string sync = "CLUSTER SYNCSLOTS SYNC " + std::string(40, 'a');
  // It has not said who it is.
  CHECK(known.run(sync + " 0 1").starts_with("-ERR The node that asks"));
  CHECK(known.run("CLUSTER SYNCSLOTS CONF NODE-ID " + two.second().id()) == kOk);
  CHECK(known.run(sync + " 0 9000") == error("ERR This node is not the owner of the slots"));
  CHECK(known.run(sync + " 0 1 1 2") == error("ERR Slot 1 specified multiple times"));
  CHECK(known.run("CLUSTER SYNCSLOTS RDBCHANNEL " + std::string(40, 'a'))
            .starts_with("-ERR No such"));
  CHECK(known.run(sync + " 0 1") == "+RDBCHANNELSYNCSLOTS\r\n");
  // On a stream nothing is replied: what is wrong ends it.
  CHECK(known.run("CLUSTER SYNCSLOTS NONSENSE").empty());
  CHECK(node.run("CLUSTER MIGRATION STATUS ALL").find("failed") != std::string::npos);
}

TEST_CASE("of another node's stream only writes to the migrated slots are run",
          "[slot-migration]") {
  Two two;
  ClusterNode& node = two.second();
  server::Client& client = node.server.server.clients().add_internal();
  cluster::StreamRunner runner(node.server.server, client, slots_of({0}));
  CHECK(runs(runner, {"SET", "{06S}a", "1"}));
  CHECK(runs(runner, {"SELECT", "0"}));
  CHECK(runs(runner, {"MULTI"}));
  CHECK(runs(runner, {"EXEC"}));
  CHECK(runs(runner, {"PING"}));
  store::Keyspace& db = node.server.database();
  CHECK(db.exists("{06S}a"));
  // What has expired here is not gone before the source says so.
  const std::string past = std::to_string(node.server.server.now_ms() - 1);
  CHECK(runs(runner, {"SET", "{06S}a", "1", "PXAT", past}));
  CHECK(runs(runner, {"SET", "{06S}a", "12", "XX", "KEEPTTL"}));
  const store::KeyRef kept =
      db.find("{06S}a", store::Keyspace::kPeek | store::Keyspace::kEvenExpired);
  REQUIRE(kept);
  CHECK(kept->integer() == 12);
  CHECK(runs(runner, {"SET", "{06S}a", "12"}));

  CHECK_FALSE(runs(runner, {"SET", "{Qi}a", "1"}));
  CHECK_FALSE(runs(runner, {"MSET", "{06S}a", "1", "{Qi}a", "1"}));
  CHECK_FALSE(runs(runner, {"GET", "{06S}a"}));
  CHECK_FALSE(runs(runner, {"SET", "{06S}a"}));
  CHECK_FALSE(runs(runner, {"SELECT", "1"}));
  CHECK_FALSE(runs(runner, {"FLUSHALL"}));
  CHECK_FALSE(runs(runner, {"CONFIG", "SET", "maxmemory", "1"}));
  CHECK_FALSE(runs(runner, {"NONSENSE"}));
  CHECK_FALSE(runs(runner, {"LPUSH", "{06S}a", "1"}));
  CHECK_FALSE(db.exists("{Qi}a"));
  CHECK(db.exists("{06S}a"));
}

TEST_CASE("a stream of slots has the writes to them, as they are propagated", "[slot-migration]") {
  Two two;
  ClusterNode& node = two.first();
  std::string sent;
  bool crossed = false;
  cluster::SlotStream stream(
      node.server.server, slots_of({0}),
      [&](int database, std::string_view request) {
        CHECK(database == 0);
        sent += request;
      },
      [&] { crossed = true; });
  node.run("SET {06S}a 1");
  node.run("SET {Qi}a 1");
  node.run("GET {06S}a");
  node.run("MULTI");
  node.run("SET {06S}b 1");
  node.run("DEL {06S}a");
  node.run("EXEC");
  CHECK(sent ==
        "*3\r\n$3\r\nSET\r\n$6\r\n{06S}a\r\n$1\r\n1\r\n"
        "*3\r\n$3\r\nSET\r\n$6\r\n{06S}b\r\n$1\r\n1\r\n"
        "*2\r\n$3\r\nDEL\r\n$6\r\n{06S}a\r\n");
  CHECK_FALSE(crossed);
  node.server.server.propagation().add(0, {"DEL", "{06S}b", "{Qi}a"});
  CHECK(crossed);
  sent.clear();
  node.run("SET {06S}a 1");
  CHECK(sent.empty());
}

TEST_CASE("keys of slots that are imported are not seen", "[slot-migration]") {
  Two two;
  ClusterNode& node = two.first();
  node.run("SET " + key(kInSlot0, "a") + " 1");
  node.run("SET " + key(kInSlot1, "a") + " 1");
  cluster::SlotMigration& migration = node.cluster->slot_migration();
  const std::string task = std::string(40, 'a') + ":x:y:import:";
  REQUIRE(migration.master_task_received(task + "connecting:0-0 5-7"));
  CHECK(node.run("DBSIZE") == ":1\r\n");
  CHECK(node.run("KEYS *") == "*1\r\n$5\r\n{Qi}a\r\n");
  CHECK(node.run("KEYS {06S}a") == "*0\r\n");
  CHECK(node.run("SCAN 0 COUNT 100").find("{06S}a") == std::string::npos);
  CHECK(node.run("RANDOMKEY") == "$5\r\n{Qi}a\r\n");
  CHECK(node.run("CLUSTER COUNTKEYSINSLOT 0") == ":0\r\n");
  CHECK(node.run("CLUSTER GETKEYSINSLOT 0 10") == "*0\r\n");
  store::Keyspace& db = node.server.database();
  store::KeyRef ref = db.find_for_write("{06S}a");
  db.set_deadline(ref, node.server.server.now_ms() + 10);
  node.server.advance_ms(5000);
  node.server.server.tick();
  CHECK(db.size() == 2);
  REQUIRE(migration.master_task_received(task + "completed:0-0 5-7"));
  CHECK(node.run("DBSIZE") == ":2\r\n");
  for (const char* damaged : {"", "a:b:c", "a:b:c:import:connecting:x",
                              "a:b:c:import:connecting:3-1", "a:b:c:nonsense:connecting:1-2"})
    CHECK_FALSE(migration.master_task_received(damaged));
  CHECK(node.run("DBSIZE") == ":2\r\n");
}

TEST_CASE("TRIMSLOTS deletes the keys of slots that are not served here", "[slot-migration]") {
  Two two;
  ClusterNode& node = two.second();
  const auto put = [&](const std::string& name) {
    store::Keyspace& db = node.server.database();
    store::KeyRef ref = db.find_for_write(name);
    db.set_string(ref, "1");
  };
  for (int i = 0; i < 300; ++i) put(key(kInSlot0, std::to_string(i)));
  put(key(kInSlot1, "a"));
  CHECK(node.run("TRIMSLOTS RANGES 1") ==
        error("ERR wrong number of arguments for 'trimslots' command"));
  CHECK(node.run("TRIMSLOTS UNKNOWN 1 1 2") == error("ERR missing ranges argument"));
  CHECK(node.run("TRIMSLOTS RANGES 2 0") ==
        error("ERR wrong number of arguments for 'trimslots' command"));
  CHECK(node.run("TRIMSLOTS RANGES 2 0 0 1") == error("ERR invalid number of ranges"));
  CHECK(node.run("TRIMSLOTS RANGES 0 0 0") == error("ERR invalid number of ranges"));
  CHECK(node.run("TRIMSLOTS RANGES 1 0 16384") == error("ERR Invalid or out of range slot"));
  CHECK(node.run("TRIMSLOTS RANGES 1 9000 9000") ==
        error("ERR the slot 9000 is served by this node"));
  CHECK(node.server.database().size() == 301);
  CHECK(node.run("TRIMSLOTS RANGES 1 0 0") == kOk);
  CHECK(node.server.database().size() == 1);
}

TEST_CASE("a snapshot of slots makes the same keys elsewhere", "[slot-migration]") {
  Two two;
  ClusterNode& node = two.first();
  node.run("SET {06S}a text");
  node.run("SET {06S}n 17 PX 100000");
  for (int i = 0; i < 1000; ++i) node.run("RPUSH {06S}long " + std::to_string(i));
  node.run("RPUSH {06S}short 1 2 3");
  node.run("SET {Qi}a other");
  std::string bytes;
  size_t keys = 0;
  {
    persist::StringSink sink(bytes);
    REQUIRE(cluster::write_slot_snapshot(sink, node.server.server, slots_of({0}), [&] { ++keys; }));
  }
  CHECK(keys == 4);
  CHECK(bytes.find("{Qi}a") == std::string::npos);
  CHECK(bytes.ends_with("SNAPSHOT-EOF\r\n"));
  CHECK(bytes.find("SLOT-INFO\r\n$5\r\n0:4:1\r\n") != std::string::npos);
}

TEST_CASE("DEBUG ASM-FAILPOINT knows its channels and states", "[slot-migration]") {
  Two two;
  cluster::SlotMigration& migration = two.first().cluster->slot_migration();
  CHECK(migration.set_fail_point("import-main-channel", "accumulate-buffer"));
  CHECK(migration.set_fail_point("migrate-main-channel", "none"));
  CHECK(migration.set_fail_point("", ""));
  CHECK_FALSE(migration.set_fail_point("import-main-channel", "nonsense"));
  CHECK_FALSE(migration.set_fail_point("nonsense", "none"));
}

}  // namespace latchkey::tests
