// The source's side of a slot migration, over sockets and with the child that writes the snapshot:
// the test plays the destination.
#include "cluster/slot_migration/exporter.h"

#include <sys/wait.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cluster/cluster.h"
#include "cluster/slot_migration/slot_migration.h"
#include "persist/persistence.h"
#include "server/client/client.h"
#include "server/client/pause.h"
#include "unit/catch.h"
#include "unit/cluster/calling_node.h"
#include "unit/cluster/several_nodes.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

using server::PauseControl;

const std::string kTask(40, 'a');
const std::string kStreamEof = bulks({"CLUSTER", "SYNCSLOTS", "STREAM-EOF"});
// Microseconds for each key, after which a child that is not killed would be found.
const std::string kLong = "100000000";
const std::string kNoTask = error("ERR No such slot migration task waits for its snapshot");

// A connection from another node.
struct Caller : CallingNode {
  Caller(net::Loop& loop, ClusterNode& node) : CallingNode(loop, node.server.server) {
    authenticate(node.cluster->secret());
  }
};

// The first node has the slots up to 8191, the second the others, the third is a master without
// any. The second asks the first for slots.
struct Export {
  explicit Export(const std::string& settings = {}) : nodes(3, "save \"\"\n" + settings) {
    nodes.make_cluster(2);
    persistence =
        std::make_shared<persist::Persistence>(server().server, persist::ChildProcessParts{});
    server().server.add_layer(persistence);
    user.emplace(server());
    main.emplace(loop, source());
    snapshot.emplace(loop, source());
    user->run("SET {06S}a old");
    user->run("SET {Qi}a old");
  }

  ClusterNode& source() { return nodes[0]; }
  ServerFixture& server() { return nodes[0].server; }
  cluster::SlotMigration& migration() { return source().cluster->slot_migration(); }
  PauseControl& pauses() { return server().server.pauses(); }
  // The newest.
  const cluster::SlotTask& task() {
    const cluster::TaskTable& tasks = migration().tasks();
    return tasks.active().empty() ? tasks.archive().front() : *tasks.active().back();
  }
  std::string_view state() { return name_of(task().state); }
  const std::string& error_text() { return task().last_error; }

  void work(int64_t ms = 0) {
    server().advance_ms(ms);
    server().tick();
    turn(loop);
  }
  // The slot becomes that node's, as the bus would tell.
  void give(std::initializer_list<int> slots, size_t node) {
    cluster::Cluster& cluster = *source().cluster;
    for (const int slot : slots)
      cluster.nodes().assign(slot, *cluster.nodes().find(nodes[node].id()));
    cluster.commit();
  }

  std::string call(Caller& caller, size_t node, const std::string& id = kTask) {
    REQUIRE(caller.ask({"CLUSTER", "SYNCSLOTS", "CONF", "NODE-ID", nodes[node].id()}) == kOk);
    return caller.ask({"CLUSTER", "SYNCSLOTS", "SYNC", id, "0", "1"});
  }
  std::string attach(Caller& caller, const std::string& id = kTask) {
    return caller.ask({"CLUSTER", "SYNCSLOTS", "RDBCHANNEL", id});
  }
  void acknowledge(std::string_view state, uint64_t offset) {
    main->says(bulks({"CLUSTER", "SYNCSLOTS", "ACK", state, std::to_string(offset)}));
  }

  // To the point where it waits for the snapshot's channel.
  void begin() { REQUIRE(call(*main, 1) == status("RDBCHANNELSYNCSLOTS")); }
  // To the point where the child writes.
  void fork() {
    begin();
    REQUIRE(attach(*snapshot) == status("SLOTSSNAPSHOT"));
    work();
    REQUIRE(state() == "send-bulk-and-stream");
  }
  // Waits in the kernel for the end of the child, and has the server notice it.
  void finish_child() {
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(persistence->child().pid()), &info, WEXITED | WNOWAIT);
    work();
  }
  // To the point where the snapshot is sent.
  void stream() {
    fork();
    finish_child();
    REQUIRE(state() == "send-stream");
  }
  // To the point where the stream has ended, and writes are paused.
  void hand_over() {
    stream();
    acknowledge("wait-stream-eof", 0);
    work();
    work();
    REQUIRE(state() == "handoff");
  }

  net::Loop loop;
  Nodes nodes;
  std::shared_ptr<persist::Persistence> persistence;
  std::optional<TestClient> user;
  std::optional<Caller> main;
  std::optional<Caller> snapshot;
};

}  // namespace

TEST_CASE("An export sends the keys and then the writes, and ends when the slots are gone",
          "[slot-exporter]") {
  Export scene;
  scene.begin();
  CHECK(scene.state() == "wait-rdbchannel");
  CHECK(scene.attach(*scene.snapshot, std::string(40, 'x')) == kNoTask);
  CHECK(scene.attach(*scene.snapshot) == status("SLOTSSNAPSHOT"));
  CHECK(scene.state() == "wait-bgsave-start");
  scene.work();
  CHECK(scene.state() == "send-bulk-and-stream");
  const std::string write = bulks({"SET", "{06S}a", "new"});
  CHECK(scene.user->run("SET {06S}a new") == kOk);
  CHECK(scene.user->run("SET {bar}a stays") == kOk);
  scene.finish_child();
  CHECK(scene.state() == "send-stream");
  CHECK(name_of(scene.task().snapshot) == "completed");
  const std::string keys = scene.snapshot->received();
  CHECK(keys.find(bulks({"SET", "{06S}a", "old"})) != std::string::npos);
  CHECK(keys.find(bulks({"SET", "{Qi}a", "old"})) != std::string::npos);
  CHECK(keys.find("new") == std::string::npos);
  CHECK(keys.ends_with(bulks({"CLUSTER", "SYNCSLOTS", "SNAPSHOT-EOF"})));
  CHECK(scene.main->received() == write);
  // The other node closes it when it has the snapshot.
  scene.snapshot->hangs_up();
  scene.work();
  CHECK(scene.state() == "send-stream");

  scene.acknowledge("streaming-buffer", write.size());
  scene.work();
  CHECK(scene.state() == "send-stream");
  CHECK_FALSE(scene.pauses().pauses_for(PauseControl::Reason::kSlotHandoff));
  scene.acknowledge("wait-stream-eof", write.size());
  scene.work();
  CHECK(scene.state() == "handoff-prep");
  CHECK(scene.pauses().pauses_for(PauseControl::Reason::kSlotHandoff));
  CHECK(scene.main->received().empty());
  scene.work();
  CHECK(scene.state() == "handoff");
  CHECK(scene.main->received() == kStreamEof);

  scene.main->hangs_up();
  scene.work(300);
  CHECK(scene.state() == "handoff");
  CHECK(scene.pauses().pauses_for(PauseControl::Reason::kSlotHandoff));
  scene.give({0, 1}, 1);
  CHECK(scene.state() == "completed");
  CHECK(scene.error_text().empty());
  CHECK(scene.task().write_pause_ms == 300);
  CHECK_FALSE(scene.pauses().pauses_for(PauseControl::Reason::kSlotHandoff));
  CHECK(scene.migration().tasks().active().empty());
}

TEST_CASE(
    "An export is complete also with the last slots of its node, which follows the other then",
    "[slot-exporter]") {
  Export scene;
  scene.hand_over();
  cluster::Cluster& source = *scene.source().cluster;
  cluster::Node& dest = *source.nodes().find(scene.nodes[1].id());
  for (int slot = 0; slot < store::kKeySlots; ++slot) source.nodes().assign(slot, dest);
  source.replicate_from(dest);
  source.commit();
  CHECK(scene.server().server.is_replica());
  CHECK(scene.state() == "completed");
  CHECK(scene.error_text().empty());
}

TEST_CASE("An export takes one connection for its snapshot", "[slot-exporter]") {
  Export scene;
  Caller other(scene.loop, scene.source());
  CHECK(scene.attach(other) == kNoTask);
  scene.begin();
  CHECK(scene.attach(*scene.snapshot) == status("SLOTSSNAPSHOT"));
  CHECK(scene.attach(other) == kNoTask);
  // It is a node's connection like before: it has replies.
  CHECK(other.ask({"CLUSTER", "SYNCSLOTS", "NONSENSE"}) == error("ERR syntax error"));
  CHECK_FALSE(other.is_over());
  // And the one that was taken has none.
  CHECK(scene.snapshot->ask({"CLUSTER", "SYNCSLOTS", "NONSENSE"}).empty());
  scene.work();
  CHECK(scene.snapshot->is_over());
  CHECK(scene.error_text() ==
        "RDB channel - Connection lost (state: wait-bgsave-start, rdb_channel_state: "
        "rdbchannel-transfer)");
}

TEST_CASE("An export is complete only where it has ended, and all slots went to whom asked",
          "[slot-exporter]") {
  Export scene;
  SECTION("before the snapshot") {
    scene.begin();
    scene.give({0, 1}, 1);
  }
  SECTION("before the end of the stream") {
    scene.stream();
    scene.give({0, 1}, 1);
  }
  SECTION("at another node, before the end of the stream") {
    scene.stream();
    scene.give({0, 1}, 2);
  }
  SECTION("at another node") {
    scene.hand_over();
    scene.give({0, 1}, 2);
  }
  SECTION("one of them at another node") {
    scene.hand_over();
    scene.give({0}, 2);
  }
  SECTION("one of them not yet") {
    scene.hand_over();
    scene.give({0}, 1);
  }
  CHECK(scene.state() == "canceled");
  CHECK(scene.error_text().starts_with("Cancelled due to slots configuration updated (state: "));
  CHECK_FALSE(scene.pauses().pauses_for(PauseControl::Reason::kSlotHandoff));
  CHECK(scene.migration().tasks().active().empty());
  scene.work();
  CHECK(scene.main->is_over());
}

TEST_CASE("Slots of other tasks that move leave an export alone", "[slot-exporter]") {
  Export scene;
  scene.stream();
  scene.give({2}, 2);
  CHECK(scene.state() == "send-stream");
}

TEST_CASE("An export that has failed is shown as canceled once its slots went elsewhere",
          "[slot-exporter]") {
  Export scene;
  scene.stream();
  scene.snapshot->hangs_up();
  scene.main->hangs_up();
  REQUIRE(scene.state() == "failed");
  CHECK(scene.error_text() ==
        "Main and RDB channel clients are disconnected. (state: send-stream, rdb_channel_state: "
        "completed)");
  scene.give({2}, 2);
  CHECK(scene.state() == "failed");
  scene.give({0}, 2);
  CHECK(scene.state() == "canceled");
  CHECK(scene.error_text().starts_with("Cancelled due to slots configuration updated (state: "));
}

TEST_CASE("An export whose connections go fails", "[slot-exporter]") {
  Export scene;
  std::string want;
  SECTION("the main one, which is alone") {
    scene.begin();
    scene.main->hangs_up();
    want =
        "Main and RDB channel clients are disconnected. (state: wait-rdbchannel, "
        "rdb_channel_state: none)";
  }
  SECTION("the main one") {
    scene.begin();
    scene.attach(*scene.snapshot);
    scene.main->hangs_up();
    want =
        "Main channel - Connection lost (state: wait-bgsave-start, rdb_channel_state: "
        "rdbchannel-transfer)";
  }
  SECTION("the snapshot's, before the child has begun") {
    scene.begin();
    scene.attach(*scene.snapshot);
    scene.snapshot->hangs_up();
    want =
        "RDB channel - Connection lost (state: wait-bgsave-start, rdb_channel_state: "
        "rdbchannel-transfer)";
  }
  SECTION("the child") {
    REQUIRE(scene.user->run("CONFIG SET rdb-key-save-delay " + kLong) == kOk);
    scene.fork();
    scene.persistence->child().kill();
    scene.finish_child();
    want =
        "RDB channel - Failed to send slots snapshot (state: send-bulk-and-stream, "
        "rdb_channel_state: rdbchannel-transfer)";
  }
  CHECK(scene.state() == "failed");
  CHECK(scene.error_text() == want);
  scene.work();
  CHECK(scene.main->is_over());
  CHECK((scene.snapshot->is_over() || want.find("_state: none") != std::string::npos));
}

TEST_CASE("An export ends its child with itself", "[slot-exporter]") {
  Export scene("rdb-key-save-delay " + kLong + "\n");
  scene.fork();
  CHECK(scene.migration().cancel(kTask) == 1);
  CHECK(scene.state() == "canceled");
  REQUIRE(scene.user->run("CONFIG SET rdb-key-save-delay 0") == kOk);
  // What its child says comes too late, also for an attempt of the same id.
  Caller again(scene.loop, scene.source());
  Caller more(scene.loop, scene.source());
  REQUIRE(scene.call(again, 1) == status("RDBCHANNELSYNCSLOTS"));
  REQUIRE(scene.attach(more) == status("SLOTSSNAPSHOT"));
  CHECK(scene.state() == "wait-bgsave-start");
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(scene.persistence->child().pid()), &info, WEXITED | WNOWAIT);
  scene.persistence->child().poll();
  CHECK_FALSE(scene.persistence->child().running());
  CHECK(scene.state() == "wait-bgsave-start");
  scene.work();
  CHECK(scene.state() == "send-bulk-and-stream");
  scene.finish_child();
  CHECK(scene.state() == "send-stream");
}

TEST_CASE("An export waits for another child to end", "[slot-exporter]") {
  Export scene;
  REQUIRE(scene.persistence->child().start({.kind = persist::ChildKind::kRdbToDisk,
                                            .work = [](persist::ChildProgress&) { return true; },
                                            .ended = [](const persist::ChildEnd&) {}}));
  scene.begin();
  REQUIRE(scene.attach(*scene.snapshot) == status("SLOTSSNAPSHOT"));
  scene.source().cluster->end_turn();
  CHECK(scene.state() == "wait-bgsave-start");
  scene.finish_child();
  CHECK(scene.state() == "send-bulk-and-stream");
}

TEST_CASE("An export pauses writes when the other node lags little", "[slot-exporter]") {
  Export scene("cluster-slot-migration-handoff-max-lag-bytes 100\n");
  scene.stream();
  const std::string write = bulks({"SET", "{06S}a", std::string(150, 'x')});
  scene.user->run("SET {06S}a " + std::string(150, 'x'));
  scene.work();
  REQUIRE(scene.main->received() == write);
  scene.acknowledge("wait-stream-eof", write.size() - 101);
  scene.work();
  CHECK(scene.state() == "send-stream");
  scene.acknowledge("wait-stream-eof", write.size() - 100);
  scene.work();
  CHECK(scene.state() == "handoff-prep");
  CHECK(scene.pauses().pauses_for(PauseControl::Reason::kSlotHandoff));
}

TEST_CASE("An export does not end the stream before what is in the middle", "[slot-exporter]") {
  Export scene;
  scene.stream();
  scene.acknowledge("wait-stream-eof", 1000);
  scene.work();
  REQUIRE(scene.state() == "handoff-prep");
  scene.server().server.set_state(server::kStateBusy, true);
  scene.source().cluster->end_turn();
  CHECK(scene.state() == "handoff-prep");
  scene.server().server.set_state(server::kStateBusy, false);
  scene.source().cluster->end_turn();
  CHECK(scene.state() == "handoff");
}

TEST_CASE("An export ends the stream when all of it has left", "[slot-exporter]") {
  Export scene;
  scene.stream();
  const int size = 1;
  REQUIRE(setsockopt(scene.main->client().connection()->descriptor(), SOL_SOCKET, SO_SNDBUF, &size,
                     sizeof size) == 0);
  scene.user->run("SET {06S}a " + std::string(300'000, 'x'));
  scene.acknowledge("wait-stream-eof", 1'000'000);
  scene.work();
  REQUIRE(scene.state() == "handoff-prep");
  scene.work();
  REQUIRE(scene.main->client().pending_output() > 0);
  CHECK(scene.state() == "handoff-prep");
  while (scene.main->client().pending_output() > 0) scene.main->received();
  scene.work();
  CHECK(scene.state() == "handoff");
  CHECK(scene.main->received().ends_with(kStreamEof));
}

TEST_CASE("An export waits for another node as long as the configuration says", "[slot-exporter]") {
  Export scene(
      "repl-timeout 10\ncluster-slot-migration-sync-buffer-drain-timeout 25000\n"
      "cluster-slot-migration-write-pause-timeout 3000\n");
  std::string want;
  SECTION("for the snapshot's channel") {
    scene.begin();
    scene.work(10'000);
    REQUIRE(scene.state() == "wait-rdbchannel");
    scene.work(1);
    want = "RDB channel - Connection timeout (state: wait-rdbchannel, rdb_channel_state: none)";
  }
  SECTION("for a sign of life") {
    scene.stream();
    scene.work(9'000);
    scene.acknowledge("streaming-buffer", 0);
    scene.work(10'000);
    REQUIRE(scene.state() == "send-stream");
    scene.work(1);
    want = "Main channel - Connection timeout (state: send-stream, rdb_channel_state: completed)";
  }
  SECTION("for it to catch up") {
    scene.stream();
    for (int i = 0; i < 5; ++i) {
      scene.work(5'000);
      scene.acknowledge("streaming-buffer", 0);
    }
    REQUIRE(scene.state() == "send-stream");
    scene.work(1);
    want = "Sync buffer drain timeout (state: send-stream, rdb_channel_state: completed)";
  }
  SECTION("for the bus to tell who has the slots") {
    scene.hand_over();
    scene.main->hangs_up();
    scene.work(2'999);
    REQUIRE(scene.state() == "handoff");
    REQUIRE(scene.pauses().pauses_for(PauseControl::Reason::kSlotHandoff));
    scene.work(1);
    want = "Server paused timeout (state: handoff, rdb_channel_state: completed)";
    CHECK(scene.task().write_pause_ms == 3'000);
  }
  CHECK(scene.state() == "failed");
  CHECK(scene.error_text() == want);
  CHECK_FALSE(scene.pauses().pauses_for(PauseControl::Reason::kSlotHandoff));
}

TEST_CASE("The directive timeout closes no connection of an export", "[slot-exporter]") {
  Export scene("timeout 1\nrdb-key-save-delay " + kLong + "\n");
  scene.fork();
  // While it waits for the snapshot, the other node says nothing.
  Caller idle(scene.loop, scene.source());
  for (int i = 0; i < 10; ++i) scene.work(500);
  CHECK(idle.is_over());
  CHECK_FALSE(scene.main->is_over());
  CHECK_FALSE(scene.snapshot->is_over());
  CHECK(scene.state() == "send-bulk-and-stream");
}

TEST_CASE("An export fails when its output waits for repl-timeout", "[slot-exporter]") {
  Export scene("repl-timeout 10\nclient-output-buffer-limit replica 0 0 0\n");
  scene.stream();
  const int size = 1;
  REQUIRE(setsockopt(scene.main->client().connection()->descriptor(), SOL_SOCKET, SO_SNDBUF, &size,
                     sizeof size) == 0);
  // More than the other node's socket has room for.
  scene.user->run("SET {06S}a " + std::string(16'000'000, 'x'));
  scene.work();
  REQUIRE(scene.main->client().pending_output() > 0);
  SECTION("and has its time again when some was taken") {
    for (int i = 0; i < 3; ++i) {
      scene.acknowledge("streaming-buffer", 0);
      scene.work(9'000);
      REQUIRE(scene.state() == "send-stream");
      scene.main->received();
      // The socket takes more, which is seen in the next turn.
      scene.work();
      scene.work();
      REQUIRE(scene.main->client().pending_output() > 0);
    }
  }
  SECTION("and has its time again once all was taken") {
    scene.acknowledge("streaming-buffer", 0);
    scene.work(9'000);
    while (scene.main->client().pending_output() > 0) scene.main->received();
    scene.acknowledge("streaming-buffer", 0);
    scene.work(9'000);
    scene.user->run("SET {06S}a " + std::string(16'000'000, 'x'));
    scene.work();
    REQUIRE(scene.main->client().pending_output() > 0);
  }
  scene.acknowledge("streaming-buffer", 0);
  scene.work(10'000);
  REQUIRE(scene.state() == "send-stream");
  scene.acknowledge("streaming-buffer", 0);
  scene.work(1);
  CHECK(scene.state() == "failed");
  CHECK(scene.error_text() ==
        "Main channel - Connection timeout (state: send-stream, rdb_channel_state: completed)");
}

TEST_CASE("An export whose output exceeds the limit of replicas fails", "[slot-exporter]") {
  Export scene("client-output-buffer-limit replica 100000 0 0\nrepl-backlog-size 16384\n");
  scene.stream();
  scene.user->run("SET {06S}a " + std::string(99'000, 'x'));
  scene.work();
  CHECK(scene.state() == "send-stream");
  scene.main->received();
  scene.work();
  scene.main->received();
  const std::string more = "SET {06S}a " + std::string(150'000, 'x');
  scene.user->run(more);
  scene.work();
  CHECK(scene.state() == "failed");
  CHECK(scene.main->is_over());
  CHECK(scene.server().server.stats().output_buffer_limit_disconnections == 1);
}

TEST_CASE("An export ends with a write of keys within and without its slots", "[slot-exporter]") {
  Export scene;
  scene.fork();
  scene.server().server.propagation().add(0, {"DEL", "{06S}a", "{bar}a"});
  scene.user->run("PING");
  scene.finish_child();
  CHECK(scene.state() == "canceled");
  CHECK(scene.error_text().starts_with(
      "Cancelled due to A write of keys in several slots (cross slot) (state: "));
}

TEST_CASE("An export is not begun where it cannot be", "[slot-exporter]") {
  Export scene;
  const std::string not_ready =
      error("NOTREADY Cluster is not ready to migrate slots, please retry later");
  const std::string busy = error("NOTREADY Another slot migration task is already in progress");
  cluster::Cluster& cluster = *scene.source().cluster;
  SECTION("by a node that is no other master") {
    const std::string text = error("ERR The node that asks is no other master of the cluster");
    CHECK(scene.main->ask({"CLUSTER", "SYNCSLOTS", "SYNC", kTask, "0", "1"}) == text);
    CHECK(scene.call(*scene.main, 0) == text);
    cluster::Node& third = *cluster.nodes().find(scene.nodes[2].id());
    cluster.nodes().make_replica(third, &cluster.myself());
    CHECK(scene.call(*scene.main, 2) == text);
  }
  SECTION("while clients are paused") {
    scene.pauses().pause(PauseControl::Reason::kClient, PauseControl::Kind::kWrites,
                         PauseControl::kForEver);
    CHECK(scene.call(*scene.main, 1) == not_ready);
  }
  SECTION("while slots are moved by hand") {
    scene.user->run("CLUSTER SETSLOT 30 MIGRATING " + scene.nodes[1].id());
    CHECK(scene.call(*scene.main, 1) ==
          error("ERR all slot states must be STABLE to start a slot migration task."));
  }
  SECTION("while another node is sent slots, which goes on") {
    scene.begin();
    Caller other(scene.loop, scene.source());
    CHECK(scene.call(other, 2, std::string(40, 'd')) == busy);
    CHECK(scene.state() == "wait-rdbchannel");
    CHECK_FALSE(scene.main->is_over());
  }
  SECTION("with a damaged id") {
    CHECK(scene.call(*scene.main, 1, "short") == error("ERR Invalid task id"));
  }
  SECTION("where it is to fail on purpose") {
    REQUIRE(scene.migration().set_fail_point("migrate-main-channel", "none"));
    CHECK(scene.call(*scene.main, 1) == not_ready);
  }
  CHECK(scene.migration().tasks().archive().empty());
}

TEST_CASE("A node that asks anew ends its former export", "[slot-exporter]") {
  Export scene;
  scene.begin();
  Caller again(scene.loop, scene.source());
  CHECK(scene.call(again, 1, std::string(40, 'd')) == status("RDBCHANNELSYNCSLOTS"));
  REQUIRE(scene.migration().tasks().archive().size() == 1);
  const cluster::SlotTask& former = scene.migration().tasks().archive().front();
  CHECK(former.id == kTask);
  CHECK(former.last_error ==
        "Cancelled due to new migration requested (state: wait-rdbchannel, rdb_channel_state: "
        "none)");
  CHECK(scene.task().id == std::string(40, 'd'));
  CHECK(scene.state() == "wait-rdbchannel");
  scene.work();
  CHECK(scene.main->is_over());
  CHECK_FALSE(again.is_over());
}

TEST_CASE("DEBUG ASM-FAILPOINT has an export fail in each of its states", "[slot-exporter]") {
  const auto run = [](Export& scene) {
    scene.begin();
    scene.attach(*scene.snapshot);
    scene.work();
    if (scene.persistence->child().running()) scene.finish_child();
    if (scene.state() != "send-stream") return;
    scene.acknowledge("wait-stream-eof", 0);
    scene.work();
    scene.work();
  };
  for (const char* state :
       {"wait-rdbchannel", "wait-bgsave-start", "send-bulk-and-stream", "send-stream", "handoff"}) {
    INFO(state);
    Export scene;
    REQUIRE(scene.migration().set_fail_point("migrate-main-channel", state));
    run(scene);
    CHECK(scene.state() == "failed");
    CHECK(scene.error_text().starts_with(
        "Main channel - Failed on purpose (state: " + std::string(state) + ","));
    CHECK(scene.main->is_over());
    CHECK_FALSE(scene.pauses().pauses_for(PauseControl::Reason::kSlotHandoff));
  }
  for (const char* state :
       {"wait-bgsave-start", "send-bulk-and-stream", "send-stream", "handoff-prep"}) {
    INFO(state);
    Export scene;
    REQUIRE(scene.migration().set_fail_point("migrate-rdb-channel", state));
    run(scene);
    CHECK(scene.state() == "failed");
    CHECK(scene.error_text().starts_with(
        "RDB channel - Failed on purpose (state: " + std::string(state) + ","));
    CHECK_FALSE(scene.pauses().pauses_for(PauseControl::Reason::kSlotHandoff));
  }
  // Here the export waits, and writes are not paused.
  Export scene;
  REQUIRE(scene.migration().set_fail_point("migrate-main-channel", "handoff-prep"));
  run(scene);
  CHECK(scene.state() == "send-stream");
  CHECK_FALSE(scene.pauses().pauses_for(PauseControl::Reason::kSlotHandoff));
}

TEST_CASE("An export ends with what it was begun for", "[slot-exporter]") {
  Export scene;
  scene.stream();
  std::string want;
  SECTION("the dataset is flushed") {
    scene.user->run("FLUSHALL");
    scene.work();
    want = "Cancelled due to flush of the dataset (";
  }
  SECTION("the node that has asked is forgotten") {
    cluster::Cluster& cluster = *scene.source().cluster;
    scene.migration().node_removed(*cluster.nodes().find(scene.nodes[1].id()));
    want = "Cancelled due to node deleted (";
  }
  SECTION("the node that has asked reports that it has failed") {
    scene.main->ask({"CLUSTER", "SYNCSLOTS", "FAIL", "reason"});
    CHECK(scene.state() == "failed");
    CHECK(scene.error_text().starts_with("Main channel - Connection lost ("));
    return;
  }
  CHECK(scene.state() == "canceled");
  CHECK(scene.error_text().starts_with(want));
  CHECK(scene.main->is_over());
}

}  // namespace latchkey::tests
