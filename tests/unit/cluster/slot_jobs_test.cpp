// CLUSTER MIGRATESLOTS without sockets: what it refuses, what replicas are told, and what is sent
// of a slot.
#include "cluster/slot_jobs/slot_jobs.h"

#include <string>

#include "cluster/cluster.h"
#include "cluster/slot_migration/slot_snapshot.h"
#include "unit/catch.h"
#include "unit/cluster/several_nodes.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

struct Two {
  Two() : nodes(2) { nodes.make_cluster(2); }
  ClusterNode& first() { return nodes[0]; }
  ClusterNode& second() { return nodes[1]; }
  Nodes nodes;
};

class TextSink final : public persist::ByteSink {
 public:
  TextSink() : ByteSink(16) {}
  std::string text;

 private:
  int put(std::string_view bytes) override {
    text.append(bytes);
    return 0;
  }
};

}  // namespace

TEST_CASE("CLUSTER MIGRATESLOTS says which slots cannot leave", "[slot-jobs]") {
  Two two;
  const std::string other = two.second().cluster->myself().id;
  const auto migrate = [&](const std::string& words) {
    return two.first().run("CLUSTER MIGRATESLOTS " + words);
  };
  CHECK(migrate("FOO 0 1 NODE " + other) == error("ERR syntax error"));
  CHECK(migrate("SLOTSRANGE 0 1 NODE x") == error("ERR Invalid node name: x"));
  const std::string unknown(40, 'a');
  CHECK(migrate("SLOTSRANGE 0 1 NODE " + unknown) == error("ERR Unknown node name: " + unknown));
  CHECK(migrate("SLOTSRANGE 0 1 NODE " + two.first().cluster->myself().id) ==
        error("ERR Target node can not be this node."));
  CHECK(migrate("SLOTSRANGE 2 1 NODE " + other) ==
        error("ERR Start slot number 2 is greater than end slot number 1."));
  CHECK(two.first().client->run_words(
            {"CLUSTER", "MIGRATESLOTS", std::string_view("SLOTSRANGE\0", 11), "2", "1", "NODE",
             other}) == error("ERR Start slot number 2 is greater than end slot number 1."));
  CHECK(migrate("SLOTSRANGE 0 16384 NODE " + other) == error("ERR Invalid or out of range slot"));
  CHECK(migrate("SLOTSRANGE 0 2 1 3 NODE " + other) ==
        error("ERR Slot range 1-3 overlaps with previous range 0-2."));
  CHECK(migrate("SLOTSRANGE 16000 16000 NODE " + other) ==
        error("ERR Slots are not served by this node."));
  CHECK(migrate("SLOTSRANGE 0 1 NODE " + other + " SLOTSRANGE 1 1 NODE " + other) ==
        error("ERR Slot ranges in migrations overlap"));
  two.first().run("CLUSTER SETSLOT 30 MIGRATING " + other);
  CHECK(migrate("SLOTSRANGE 0 1 NODE " + other) == error("ERR Slots are being manually migrated"));
  CHECK(two.first().run("CLUSTER CANCELSLOTMIGRATIONS") == error("ERR No migrations ongoing"));
  CHECK(two.first().run("CLUSTER GETSLOTMIGRATIONS") == "*0\r\n");
}

TEST_CASE("a source is refused whose slots are not its own", "[slot-jobs]") {
  Two two;
  const std::string source = two.first().cluster->myself().id;
  const std::string name(40, 'b');
  const auto establish = [&](const std::string& from, const std::string& slots) {
    return two.second().run("CLUSTER SYNCSLOTS ESTABLISH SOURCE " + from + " NAME " + name +
                            " SLOTSRANGE " + slots);
  };
  CHECK(establish(source, "9000 9000") ==
        error("ERR Target node does not agree about current slot ownership"));
  CHECK(establish(std::string(40, 'c'), "1 1") ==
        error("ERR Target node does not know the source node"));
  CHECK(establish(two.second().cluster->myself().id, "9000 9000") ==
        error("ERR Source node is target node itself"));
  CHECK(two.second().run("CLUSTER SYNCSLOTS PAUSED") ==
        error("ERR CLUSTER SYNCSLOTS PAUSED should only be used by slot migration clients"));
  CHECK(two.second().run("CLUSTER SYNCSLOTS FINISH NAME " + name + " STATE SUCCESS") ==
        error("ERR No such slot migration job"));
  CHECK(two.second().cluster->slot_jobs().jobs().all().empty());
}

TEST_CASE("a replica hides what its master imports, and drops what came in vain", "[slot-jobs]") {
  Two two;
  ClusterNode& node = two.second();
  cluster::SlotJobs& jobs = node.cluster->slot_jobs();
  store::Keyspace& db = node.server.database();
  const std::string name(40, 'b');
  cluster::SlotJobs::Establishment told{.source = "", .name = name, .slots = {}};
  told.slots.add(0);
  for (const bool success : {false, true}) {
    jobs.master_job_began(told);
    store::KeyRef place = db.find("{06S}a", store::Keyspace::kPeek);
    db.set_string(place, "1");
    CHECK(db.size() == 1);
    CHECK(db.visible_size() == 0);
    CHECK(node.run("SCAN 0") == array({bulk("0"), "*0\r\n"}));
    CHECK_FALSE(jobs.master_job_ended(std::string(40, 'x'), success, ""));
    CHECK(jobs.master_job_ended(name, success, success ? "" : "why"));
    CHECK(db.visible_size() == (success ? 1 : 0));
    CHECK(jobs.jobs().all().front()->state ==
          (success ? cluster::JobState::kSuccess : cluster::JobState::kFailed));
  }
  CHECK(jobs.jobs().all().back()->message == "why");
}

TEST_CASE("one call of SCAN passes the keys of a slot that is imported", "[slot-jobs]") {
  Two two;
  ClusterNode& node = two.second();
  store::Keyspace& db = node.server.database();
  const std::string name(40, 'b');
  cluster::SlotJobs::Establishment told{.source = "", .name = name, .slots = {}};
  told.slots.add(0);
  node.cluster->slot_jobs().master_job_began(told);
  for (int i = 0; i < 2000; ++i) {
    const std::string key = "{06S}" + std::to_string(i);
    store::KeyRef place = db.find(key, store::Keyspace::kPeek);
    db.set_string(place, "1");
  }
  REQUIRE(node.run("SET {6ZJ}a 1") == kOk);
  CHECK(node.run("SCAN 0") == array({bulk("0"), bulks({"{6ZJ}a"})}));
}

TEST_CASE("the table of jobs keeps the newest of those that have ended", "[slot-jobs]") {
  cluster::JobTable table;
  const auto add = [&](const std::string& name, cluster::JobState state) {
    table.add({.name = name, .slots = {}, .state = state});
  };
  add("old", cluster::JobState::kFailed);
  add("runs", cluster::JobState::kReplicating);
  add("new", cluster::JobState::kSuccess);
  CHECK(table.any_active());
  CHECK(table.find("runs") != nullptr);
  CHECK(table.find("new") == nullptr);
  table.trim(1);
  REQUIRE(table.all().size() == 2);
  CHECK(table.all().front()->name == "new");
  CHECK(table.all().back()->name == "runs");
  table.trim(0);
  CHECK(table.all().size() == 1);
}

TEST_CASE("a slot is sent as the requests that make its keys", "[slot-jobs]") {
  Two two;
  ClusterNode& node = two.first();
  node.run("SET {06S}a 1");
  node.run("SET {Qi}b 1");
  TextSink sink;
  cluster::SlotSet slots;
  slots.add(0);
  int keys = 0;
  CHECK(cluster::write_slot_requests(sink, node.server.server, slots, [&] { ++keys; }));
  CHECK(sink.text ==
        "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*3\r\n$3\r\nSET\r\n$6\r\n{06S}a\r\n$1\r\n1\r\n");
  CHECK(keys == 1);
}

TEST_CASE("a replica knows by the dataset which slots are coming to its master", "[slot-jobs]") {
  Nodes nodes(3, "emulate \"valkey 9.1\"\n");
  nodes.make_cluster(2);
  nodes[2].run("CLUSTER REPLICATE " + nodes[1].id());
  cluster::Cluster& replica = *nodes[2].cluster;
  const std::string name(40, 'a');
  const server::DatasetSlots told = {.moves = {}, .imports = {{.name = name, .ranges = {{0, 7}}}}};
  const auto is_hidden = [&](int slot) {
    return nodes[2].server.database().hidden_slots()->is_importing(slot);
  };
  replica.adopt_slots(told);
  CHECK(is_hidden(7));
  CHECK_FALSE(is_hidden(8));
  REQUIRE(replica.slots_in_dataset().imports.size() == 1);
  CHECK(replica.slots_in_dataset().imports[0].name == name);
  CHECK(replica.slots_in_dataset().imports[0].ranges == told.imports[0].ranges);
  CHECK(nodes[2].run("CLUSTER GETSLOTMIGRATIONS").find(name) != std::string::npos);
  SECTION("and by the next one that they are not any more") {
    replica.adopt_slots({});
    CHECK_FALSE(is_hidden(7));
    CHECK(replica.slots_in_dataset().imports.empty());
  }
  SECTION("but a master has its own jobs") {
    nodes[0].cluster->adopt_slots(told);
    CHECK(nodes[0].cluster->slots_in_dataset().imports.empty());
  }
}

}  // namespace latchkey::tests
