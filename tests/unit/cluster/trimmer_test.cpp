// The deletion of keys of slots that are gone, and keys that are hidden meanwhile.
#include <string>

#include "cluster/cluster.h"
#include "cluster/slot_migration/slot_migration.h"
#include "commands/groups.h"
#include "persist/aof/aof_dataset.h"
#include "persist/rdb/byte_stream.h"
#include "persist/rdb/rdb_file.h"
#include "unit/catch.h"
#include "unit/cluster/played_node.h"
#include "unit/cluster/several_nodes.h"
#include "unit/propagation_recorder.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

constexpr char kWithDebug[] = "enable-debug-command yes\n";
constexpr std::string_view kSlotsHaveCome =
    "ERR Slots have come from other nodes since the checkpoint: a rollback would delete their "
    "keys. "
    "DROP the checkpoint";
// Of the key foo.
constexpr int kSlotOfFoo = 12182;

}  // namespace

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
  SECTION("without a word to who listens for deletions") {
    TestClient listener(scene.server);
    CHECK(user.run("CONFIG SET notify-keyspace-events KEA") == kOk);
    listener.run("PSUBSCRIBE __key*");
    listener.take_output();
    CHECK(method("active") == kOk);
    CHECK(user.run("TRIMSLOTS RANGES 1 0 1") == kOk);
    CHECK(scene.database().size() == 0);
    CHECK(listener.take_output().empty());
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
    node.cluster->slot_migration().trimmer().schedule(slots_of({0, 1, 2}), /*propagates=*/true);
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
  REQUIRE(node.cluster->slot_migration().master_task_received(std::string(40, 'a') +
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
  REQUIRE(migration.master_task_received(task + "connecting:0-0"));
  node.server.events();
  for (int i = 0; i < 50; ++i) {
    node.server.advance_ms(100);
    node.server.tick();
  }
  CHECK(node.server.events().empty());
  REQUIRE(migration.master_task_received(task + "completed:0-0"));
  for (int i = 0; i < 600; ++i) {
    node.server.advance_ms(100);
    node.server.tick();
  }
  CHECK(node.server.events() == "hexpired {06S}h");
  CHECK(node.run("HGETALL {06S}h") == bulks({"g", "2"}));
}

TEST_CASE("Keys that a rollback brings back in a slot of another node are deleted",
          "[slot-migration]") {
  const std::string edition = GENERATE("", "emulate \"valkey 9.1\"\n", "emulate \"redis 7.0\"\n");
  NodeWithPeer scene(edition);
  TestClient user(scene.server);
  CHECK(user.run("SET foo 1") == kOk);
  CHECK(user.run("CHECKPOINT CREATE") == bulk("checkpoint-1"));
  SECTION("that had been deleted before") {
    CHECK(user.run("DEL foo") == integer(1));
  }
  SECTION("that went with the slot") {}
  scene.give(kSlotOfFoo, scene.kPeer);
  CHECK(user.run("CHECKPOINT ROLLBACK") == kOk);
  CHECK(user.run("DBSIZE") == integer(0));
  scene.pass(1000);
  CHECK(scene.database().size() == 0);
}

TEST_CASE("Replicas are told again to delete what a rollback brings back while keys are deleted",
          "[slot-migration]") {
  const auto [edition, deletes] = GENERATE(table<std::string, std::string>({
      {"", "TRIMSLOTS RANGES 1 12182 12182"},
      {"emulate \"valkey 9.1\"\n", "CLUSTER FLUSHSLOT 12182 ASYNC"},
      {"emulate \"redis 8.0\"\n", "DEL foo"},
  }));
  NodeWithPeer scene(kWithDebug + edition);
  TestClient user(scene.server);
  CHECK(user.run("SET foo 1") == kOk);
  CHECK(user.run("CHECKPOINT CREATE") == bulk("checkpoint-1"));
  CHECK(user.run("SET foo 2") == kOk);
  // Begins, and deletes nothing yet.
  CHECK(user.run("DEBUG ASM-TRIM-METHOD active -1") == kOk);
  PropagationRecorder stream(scene.server);
  scene.give(kSlotOfFoo, NodeWithPeer::kPeer);
  scene.migration().trim_lost(slots_of({kSlotOfFoo}));
  scene.tick();
  CHECK(stream.take().ends_with(deletes));
  CHECK(scene.migration().trimmer().covers(kSlotOfFoo));
  CHECK(user.run("CHECKPOINT ROLLBACK") == kOk);
  scene.tick();
  const std::string told = stream.take();
  CHECK(told.find("RESTORE foo") != std::string::npos);
  CHECK(told.ends_with(deletes + "; EXEC"));
  CHECK(user.run("DEBUG ASM-TRIM-METHOD active 0") == kOk);
  scene.pass(1000);
  scene.migration().trimmer().work();
  CHECK(scene.database().size() == 0);
  CHECK_FALSE(scene.migration().trimmer().any());
}

TEST_CASE("No rollback goes back over the return of a slot from another node", "[slot-migration]") {
  NodeWithPeer scene;
  TestClient user(scene.server);
  const std::string& me = scene.cluster.myself().id;
  CHECK(user.run("SET foo 1") == kOk);
  CHECK(user.run("CHECKPOINT CREATE") == bulk("checkpoint-1"));
  scene.give(kSlotOfFoo, NodeWithPeer::kPeer);
  scene.migration().trim_unowned();
  SECTION("which gives it") {
    scene.give(kSlotOfFoo, me);
  }
  SECTION("whose it is no more before it is assigned anew") {
    CHECK(user.run("CLUSTER DELSLOTS 12182") == kOk);
    CHECK(user.run("CLUSTER ADDSLOTS 12182") == kOk);
  }
  SECTION("that this node forgets") {
    scene.cluster.remove(*scene.cluster.nodes().find(NodeWithPeer::kPeer));
    CHECK(user.run("CLUSTER ADDSLOTS 12182") == kOk);
  }
  leave(scene.server, "foo");
  leave(scene.server, "{foo}new");
  CHECK(user.run("CHECKPOINT ROLLBACK") == error(kSlotsHaveCome));
  CHECK(scene.database().size() == 2);

  // A checkpoint that knows of what has come brings it back, and the older one still does not.
  CHECK(user.run("CHECKPOINT CREATE") == bulk("checkpoint-2"));
  leave(scene.server, "{foo}newer");
  CHECK(user.run("CHECKPOINT ROLLBACK") == kOk);
  CHECK(scene.database().size() == 2);
  CHECK(user.run("CHECKPOINT DROP") == kOk);
  CHECK(user.run("CHECKPOINT ROLLBACK") == error(kSlotsHaveCome));
}

TEST_CASE("A rollback goes back over slots that no other node has had", "[slot-migration]") {
  NodeWithPeer scene;
  TestClient user(scene.server);
  CHECK(user.run("SET foo 1") == kOk);
  CHECK(user.run("CHECKPOINT CREATE") == bulk("checkpoint-1"));
  SECTION("assigned by hand") {
    CHECK(user.run("CLUSTER DELSLOTS 12182") == kOk);
    CHECK(user.run("CLUSTER ADDSLOTS 12182") == kOk);
  }
  SECTION("whose move is given up") {
    CHECK(user.run("CLUSTER SETSLOT 12182 MIGRATING " + NodeWithPeer::kPeer) == kOk);
    CHECK(user.run("CLUSTER SETSLOT 12182 STABLE") == kOk);
  }
  SECTION("while others move between other nodes") {
    scene.give(0, NodeWithPeer::kThird);
  }
  leave(scene.server, "{foo}new");
  CHECK(user.run("CHECKPOINT ROLLBACK") == kOk);
  CHECK(scene.database().size() == 1);
  CHECK(scene.value_of("foo") == "1");
}

TEST_CASE("No rollback deletes keys that come one by one with a slot", "[slot-migration]") {
  NodeWithPeer scene;
  TestClient user(scene.server);
  const std::string peer = NodeWithPeer::kPeer;
  CHECK(user.run("CHECKPOINT CREATE") == bulk("checkpoint-1"));
  CHECK(user.run("CLUSTER SETSLOT 0 IMPORTING " + peer) == kOk);
  CHECK(user.run("CHECKPOINT ROLLBACK") ==
        error("ERR CHECKPOINT ROLLBACK is not possible while slots of other nodes are imported, "
              "whose keys it would delete"));
  SECTION("and takes back what it did not become") {
    CHECK(user.run("CLUSTER SETSLOT 0 STABLE") == kOk);
    CHECK(user.run("CHECKPOINT ROLLBACK") == kOk);
  }
  SECTION("which it has") {
    CHECK(user.run("CLUSTER SETSLOT 0 NODE " + scene.cluster.myself().id) == kOk);
    CHECK(user.run("CHECKPOINT ROLLBACK") == error(kSlotsHaveCome));
    // Nor does it when the slot has gone again: keys of others are not kept.
    scene.give(0, peer);
    CHECK(user.run("CHECKPOINT ROLLBACK") == kOk);
  }
}

}  // namespace latchkey::tests
