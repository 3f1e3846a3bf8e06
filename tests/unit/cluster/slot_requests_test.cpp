// What a node replies to requests about jobs and tasks that move slots, and what it takes from its
// master about them.
#include <string>

#include "cluster/cluster.h"
#include "cluster/slot_jobs/slot_jobs.h"
#include "cluster/slot_migration/slot_migration.h"
#include "persist/rdb/byte_stream.h"
#include "persist/rdb/rdb_file.h"
#include "persist/rdb/rdb_format.h"
#include "unit/catch.h"
#include "unit/cluster/calling_node.h"
#include "unit/cluster/played_node.h"
#include "unit/cluster/several_nodes.h"
#include "unit/persist/rdb/rdb_bytes.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

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
        error("ERR slot migration not allowed on replica."));
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

TEST_CASE("What a master imports is hidden by its replicas, as long as they are its replicas",
          "[slot-migration]") {
  Nodes nodes(3);
  nodes.make_cluster(2);
  nodes[2].run("CLUSTER REPLICATE " + nodes[0].id());
  nodes.pass(2000);
  TestClient master(nodes[2].server);
  master->set(server::kClientMaster);
  master.run("SET {06S}a 1");
  master.run("CLUSTER SYNCSLOTS CONF ASM-TASK " + std::string(40, 'a') +
             ":x:y:import:connecting:0-0");
  CHECK(nodes[2].run("DBSIZE") == integer(0));
  nodes.pass(2000);
  CHECK(nodes[2].run("DBSIZE") == integer(0));
  CHECK(nodes[2].run("CLUSTER REPLICATE " + nodes[1].id()) == kOk);
  nodes.pass(2000);
  CHECK(nodes[2].run("DBSIZE") == integer(1));
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

}  // namespace latchkey::tests
