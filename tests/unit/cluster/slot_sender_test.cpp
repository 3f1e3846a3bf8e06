// The source's side of a migration of slots as Valkey 9 has it, over sockets and with the child
// that writes the snapshot: the test plays the target.
#include "cluster/slot_jobs/sender.h"

#include <string>
#include <string_view>

#include "cluster/slot_jobs/slot_jobs.h"
#include "persist/persistence.h"
#include "server/client/pause.h"
#include "unit/catch.h"
#include "unit/cluster/calling_node.h"
#include "unit/cluster/played_node.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

using server::PauseControl;

std::string sync(std::string_view what) {
  return bulks({"CLUSTER", "SYNCSLOTS", what});
}

const std::string kAck = sync("ACK");
const std::string kSelect = bulks({"SELECT", "0"});
const std::string kOldKeys = kSelect + bulks({"SET", "foo", "old"});
constexpr char kLost[] =
    "Connection lost to target. Check CLUSTER GETSLOTMIGRATIONS on the target node for more "
    "information.";
// The slots of the keys "foo" and "{6ZJ}".
constexpr int kSlot = 12182;
constexpr int kOtherSlot = 16383;

// A job has begun by which the slot of "foo" goes to the played node.
struct Sending : NodeWithPeer {
  explicit Sending(const std::string& settings = {},
                   const std::string& edition = "emulate \"valkey 9.1\"\n")
      : NodeWithPeer(edition + settings), user(server) {
    REQUIRE(user.run("SET foo old") == kOk);
    REQUIRE(user.run("SET {6ZJ} stays") == kOk);
    target = &send({kSlot});
  }

  PlayedChannel& send(std::initializer_list<int> slots) {
    jobs().send(slots_of(slots), *cluster.nodes().find(kPeer));
    return peer.accept([this] { return job().ended(); });
  }
  // The newest.
  const cluster::SlotJob& job() { return *jobs().jobs().all().front(); }
  std::string_view state() { return name_of(job().state); }
  bool pauses_writes() { return server.pauses().pauses_for(PauseControl::Reason::kSlotHandoff); }
  // What is due by the time that has passed.
  void work(int64_t ms = 0) {
    pass(ms);
    turn(loop);
  }
  // Waits for the end of the child.
  void finish_child() {
    const persist::BackgroundChild& child = server.layer<persist::Persistence>().child();
    do {
      peer.wait_a_turn();
      server.tick();
    } while (child.running());
    turn(loop);
  }
  // To the point where the snapshot is sent.
  void replicate(PlayedChannel& channel) {
    channel.says(kOk);
    turn(loop);
    finish_child();
    REQUIRE(state() == "replicating");
    channel.received();
  }
  void replicate() { replicate(*target); }
  void pause() {
    replicate();
    target->says(sync("REQUEST-PAUSE"));
    REQUIRE(state() == "failover-paused");
  }
  void grant() {
    pause();
    target->says(sync("REQUEST-FAILOVER"));
    REQUIRE(state() == "failover-granted");
  }

  TestClient user;
  PlayedChannel* target = nullptr;
};

}  // namespace

TEST_CASE("A job sends the keys and then the writes, and ends when the target has the slots",
          "[slot-sender]") {
  Sending scene;
  CHECK(scene.target->received() ==
        bulks({"CLUSTER", "SYNCSLOTS", "ESTABLISH", "SOURCE", scene.cluster.myself().id, "NAME",
               scene.job().name, "SLOTSRANGE", "12182", "12182"}));
  CHECK(scene.state() == "reading-establish-response");
  scene.target->says_slowly(kOk);
  scene.finish_child();
  CHECK(scene.state() == "replicating");
  CHECK(scene.target->received() == kAck + kOldKeys + sync("SNAPSHOT-EOF"));
  CHECK(scene.user.run("SET {6ZJ} stays") == kOk);
  CHECK(scene.user.run("SET foo new") == kOk);
  CHECK(scene.user.run("SET foo newer") == kOk);
  CHECK(scene.target->received() ==
        kSelect + bulks({"SET", "foo", "new"}) + bulks({"SET", "foo", "newer"}));
  scene.target->says_slowly(kAck + sync("REQUEST-PAUSE"));
  CHECK(scene.target->received() == sync("PAUSED"));
  CHECK(scene.state() == "failover-paused");
  CHECK(scene.pauses_writes());
  scene.target->says_slowly(sync("request-failover"));
  CHECK(scene.target->received() == sync("FAILOVER-GRANTED"));
  CHECK(scene.state() == "failover-granted");
  scene.target->hangs_up();
  scene.work(1'000);
  CHECK(scene.state() == "failover-granted");
  CHECK(scene.pauses_writes());
  scene.give(kSlot, NodeWithPeer::kPeer);
  CHECK(scene.state() == "success");
  CHECK(scene.job().message.empty());
  CHECK_FALSE(scene.pauses_writes());
}

TEST_CASE("A job succeeds only where it was granted, and all slots went to its target",
          "[slot-sender]") {
  Sending scene;
  SECTION("before the target has answered") {
    scene.give(kSlot, NodeWithPeer::kPeer);
  }
  SECTION("before it was granted") {
    scene.pause();
    scene.give(kSlot, NodeWithPeer::kPeer);
  }
  SECTION("at another node") {
    scene.grant();
    scene.give(kSlot, NodeWithPeer::kThird);
  }
  SECTION("at nobody") {
    scene.grant();
    scene.cluster.nodes().unassign(kSlot);
    scene.cluster.commit();
  }
  CHECK(scene.state() == "failed");
  CHECK(scene.job().message == "Slots are no longer owned by myself");
  CHECK_FALSE(scene.pauses_writes());
  turn(scene.loop);
  CHECK(scene.target->is_over());
}

TEST_CASE("A job succeeds also with the last slots of its node, which follows the target then",
          "[slot-sender]") {
  Sending scene;
  scene.grant();
  cluster::Node& target = *scene.cluster.nodes().find(NodeWithPeer::kPeer);
  for (int slot = 0; slot < store::kKeySlots; ++slot) scene.cluster.nodes().assign(slot, target);
  scene.cluster.replicate_from(target);
  scene.cluster.commit();
  CHECK(scene.server.is_replica());
  CHECK(scene.state() == "success");
  CHECK(scene.job().message.empty());
}

TEST_CASE("A job whose slots went to its target only in part has failed", "[slot-sender]") {
  Sending scene;
  PlayedChannel& target = scene.send({kOtherSlot, kOtherSlot - 1});
  scene.replicate(target);
  target.says(sync("REQUEST-PAUSE"));
  target.says(sync("REQUEST-FAILOVER"));
  REQUIRE(scene.state() == "failover-granted");
  SECTION("whichever the others are with") {
    scene.give(kOtherSlot, NodeWithPeer::kPeer);
    CHECK(scene.state() == "failed");
  }
  SECTION("but in whole it has succeeded") {
    cluster::NodeTable& nodes = scene.cluster.nodes();
    nodes.assign(kOtherSlot - 1, *nodes.find(NodeWithPeer::kPeer));
    scene.give(kOtherSlot, NodeWithPeer::kPeer);
    CHECK(scene.state() == "success");
  }
  CHECK(name_of(scene.jobs().jobs().all().back()->state) == "reading-establish-response");
}

TEST_CASE("A job that is refused fails with what the target says", "[slot-sender]") {
  SECTION("the handshake") {
    Sending scene;
    scene.target->says("-ERR no\r\n");
    CHECK(scene.state() == "failed");
    CHECK(scene.job().message == "Received error during handshake to target: -ERR no\r\n");
  }
  SECTION("a password") {
    Sending scene("primaryauth secret\n");
    CHECK(scene.target->received() == bulks({"AUTH", "secret"}));
    CHECK(scene.state() == "connecting");
    scene.target->says("-WRONGPASS no\r\n");
    CHECK(scene.state() == "failed");
    CHECK(scene.job().message == "Failed to AUTH to target node: -WRONGPASS no");
  }
  SECTION("not a password, but the handshake") {
    Sending scene("primaryauth secret\nprimaryuser anna\n");
    CHECK(scene.target->received() == bulks({"AUTH", "anna", "secret"}));
    scene.target->says(kOk);
    CHECK(scene.target->received().find("ESTABLISH") != std::string::npos);
    scene.target->says("-ERR no\r\n");
    CHECK(scene.job().message == "Received error during handshake to target: -ERR no\r\n");
  }
  SECTION("by a line without end") {
    Sending scene;
    scene.target->says(std::string(60'000, 'x'));
    scene.target->says(std::string(5'536, 'x'));
    REQUIRE(scene.state() == "reading-establish-response");
    scene.target->says("x");
    CHECK(scene.state() == "failed");
    CHECK(scene.job().message == "The target sends no line");
  }
  SECTION("by no connection") {
    NodeWithPeer node("emulate \"valkey 9.1\"\n");
    node.peer.stops_listening();
    node.jobs().send(slots_of({kSlot}), *node.cluster.nodes().find(NodeWithPeer::kPeer));
    const cluster::SlotJob& job = *node.jobs().jobs().all().front();
    while (!job.ended()) node.peer.wait_a_turn();
    CHECK(job.message == "Unable to connect to target node: Connection refused");
  }
}

TEST_CASE("A job fails when its connection goes, or brings what does not belong there",
          "[slot-sender]") {
  Sending scene;
  std::string want;
  SECTION("it is closed at the handshake") {
    scene.target->hangs_up();
    want = kLost;
  }
  SECTION("it is closed before the grant") {
    scene.pause();
    scene.target->hangs_up();
    want = kLost;
  }
  SECTION("it is killed") {
    scene.replicate();
    CHECK(scene.user.run("CLIENT KILL SKIPME yes") == integer(1));
    turn(scene.loop);
    want = kLost;
  }
  SECTION("it brings a command") {
    scene.replicate();
    scene.target->says(bulks({"SET", "foo", "x"}));
    want = "The target sends an unexpected request: SET";
  }
  SECTION("it brings a request that is not due") {
    scene.replicate();
    scene.target->says(sync("REQUEST-FAILOVER"));
    want = "The target sends an unexpected request: CLUSTER";
  }
  SECTION("it brings a request twice") {
    scene.pause();
    scene.target->says(sync("REQUEST-PAUSE"));
    want = "The target sends an unexpected request: CLUSTER";
  }
  SECTION("it brings no request") {
    scene.replicate();
    scene.target->says("*1\r\n:5\r\n");
    want = "The target sends what is no request: Protocol error: expected '$', got ':'";
  }
  SECTION("it brings none right behind its reply") {
    scene.target->says(std::string(kOk) + "*1\r\n:5\r\n");
    want = "The target sends what is no request: Protocol error: expected '$', got ':'";
  }
  SECTION("it brings a long one") {
    scene.replicate();
    scene.target->says("*1\r\n$1025\r\n");
    want = "The target sends what is no request: Protocol error: invalid bulk length";
  }
  CHECK(scene.state() == "failed");
  CHECK(scene.job().message == want);
  CHECK(scene.target->is_over());
  CHECK_FALSE(scene.pauses_writes());
}

TEST_CASE("A job keeps writes while its child sends the keys", "[slot-sender]") {
  Sending scene;
  // More than the system takes.
  const std::string much(16 << 20, 'x');
  CHECK(scene.user.run("SET foo " + much) == kOk);
  scene.target->received();
  scene.target->reads(false);
  scene.target->says(kOk);
  scene.work();
  REQUIRE(scene.state() == "snapshotting");
  CHECK(scene.user.run("SET foo new") == kOk);
  const std::string write = kSelect + bulks({"SET", "foo", "new"});
  CHECK(scene.jobs().waiting_bytes(scene.job()) == write.size());
  CHECK(scene.jobs().figures().output_bytes == write.size());
  scene.target->says(sync("REQUEST-PAUSE"));
  CHECK(scene.state() == "snapshotting");
  CHECK_FALSE(scene.pauses_writes());
  // Nothing else may come between the keys.
  scene.work(1'000);
  scene.target->reads(true);
  scene.finish_child();
  REQUIRE(scene.job().message.empty());
  CHECK(scene.state() == "failover-paused");
  CHECK(scene.pauses_writes());
  const std::string all =
      kAck + kSelect + bulks({"SET", "foo", much}) + sync("SNAPSHOT-EOF") + write + sync("PAUSED");
  std::string heard = scene.target->received();
  while (heard.size() < all.size() && !scene.target->is_over()) heard += scene.target->received();
  CHECK((heard == all));
}

TEST_CASE("A job whose child is killed fails", "[slot-sender]") {
  Sending scene("rdb-key-save-delay 100000000\n");
  scene.target->says(kOk);
  turn(scene.loop);
  REQUIRE(scene.state() == "snapshotting");
  SECTION("by somebody") {
    scene.server.layer<persist::Persistence>().child().kill();
    scene.finish_child();
    CHECK(scene.state() == "failed");
    CHECK(scene.job().message == "Failed to send the snapshot of the slots");
  }
  SECTION("by its own end") {
    CHECK(scene.user.run("CLUSTER CANCELSLOTMIGRATIONS") == kOk);
    scene.finish_child();
    CHECK(scene.state() == "cancelled");
    CHECK(scene.job().message.empty());
    CHECK_FALSE(scene.server.layer<persist::Persistence>().child().running());
  }
}

TEST_CASE("A job waits for another node as long as the configuration says", "[slot-sender]") {
  Sending scene("repl-timeout 10\ncluster-manual-failover-timeout 3000\n");
  std::string want = "Timed out after too long with no interaction";
  SECTION("for an answer") {
    scene.work(10'000);
    REQUIRE(scene.state() == "reading-establish-response");
    scene.work(1);
  }
  SECTION("for a sign of life") {
    scene.replicate();
    scene.work(9'000);
    scene.target->says(kAck);
    scene.work(10'000);
    REQUIRE(scene.state() == "replicating");
    scene.work(1);
  }
  SECTION("for the request of the slots") {
    scene.pause();
    scene.work(3'000);
    REQUIRE(scene.state() == "failover-paused");
    scene.work(1);
    want = "Unpaused before migration completed";
  }
  SECTION("twice that time for the bus to tell who has the slots") {
    scene.grant();
    scene.target->hangs_up();
    scene.work(6'000);
    REQUIRE(scene.state() == "failover-granted");
    scene.work(1);
    want = "Unpaused before migration completed";
  }
  CHECK(scene.state() == "failed");
  CHECK(scene.job().message == want);
  CHECK_FALSE(scene.pauses_writes());
}

TEST_CASE("A job gives a sign of life once a second", "[slot-sender]") {
  Sending scene;
  scene.replicate();
  scene.work(999);
  CHECK(scene.target->received().empty());
  scene.work(1);
  CHECK(scene.target->received() == kAck);
  scene.work();
  CHECK(scene.target->received().empty());
}

TEST_CASE("A job that may not pause writes waits until it may", "[slot-sender]") {
  Sending scene;
  SECTION("as DEBUG has it") {
    scene.jobs().prevented.pause = true;
    scene.replicate();
    scene.target->says(sync("REQUEST-PAUSE"));
    CHECK(scene.state() == "waiting-to-pause");
    CHECK_FALSE(scene.pauses_writes());
    scene.jobs().prevented.pause = false;
  }
  SECTION("for a script") {
    scene.replicate();
    scene.server.set_state(server::kStateBusy, true);
    scene.target->says(sync("REQUEST-PAUSE"));
    CHECK(scene.state() == "waiting-to-pause");
    scene.server.set_state(server::kStateBusy, false);
  }
  SECTION("for another job") {
    scene.pause();
    PlayedChannel& second = scene.send({kOtherSlot});
    scene.replicate(second);
    second.says(sync("REQUEST-PAUSE"));
    CHECK(scene.state() == "waiting-to-pause");
    scene.target->hangs_up();
    REQUIRE(scene.jobs().jobs().all().back()->ended());
  }
  scene.work();
  CHECK(scene.state() == "failover-paused");
  CHECK(scene.pauses_writes());
}

// Latchkey has both kinds of migration: of Valkey to one node, of Redis to another.
TEST_CASE("Writes stay paused for a job or an export when the other one ends", "[slot-sender]") {
  Sending scene({}, {});
  scene.replicate();
  const std::string task(40, 'a');
  CallingNode main(scene.loop, scene.server);
  CallingNode snapshot(scene.loop, scene.server);
  main.authenticate(scene.cluster.secret());
  snapshot.authenticate(scene.cluster.secret());
  REQUIRE(main.ask({"CLUSTER", "SYNCSLOTS", "CONF", "NODE-ID", NodeWithPeer::kThird}) == kOk);
  const std::string slot = std::to_string(kOtherSlot);
  REQUIRE(main.ask({"CLUSTER", "SYNCSLOTS", "SYNC", task, slot, slot}) ==
          status("RDBCHANNELSYNCSLOTS"));
  // The child may have sent some of the snapshot already.
  REQUIRE(snapshot.ask({"CLUSTER", "SYNCSLOTS", "RDBCHANNEL", task})
              .starts_with(status("SLOTSSNAPSHOT")));
  scene.finish_child();
  main.says(bulks({"CLUSTER", "SYNCSLOTS", "ACK", "wait-stream-eof", "0"}));
  scene.work();
  scene.work();
  const cluster::TaskTable& tasks = scene.migration().tasks();
  REQUIRE(tasks.active().size() == 1);
  REQUIRE(name_of(tasks.active().front()->state) == "handoff");
  scene.target->says(sync("REQUEST-PAUSE"));
  REQUIRE(scene.state() == "failover-paused");
  SECTION("the job ends") {
    scene.target->hangs_up();
    REQUIRE(scene.state() == "failed");
    CHECK(scene.pauses_writes());
    CHECK(scene.user.run("SET {6ZJ} late").empty());
    scene.migration().cancel_all("test");
  }
  SECTION("the export ends") {
    scene.migration().cancel_all("test");
    REQUIRE(tasks.active().empty());
    CHECK(scene.pauses_writes());
    CHECK(scene.user.run("SET foo late").empty());
    scene.target->hangs_up();
    REQUIRE(scene.state() == "failed");
  }
  CHECK_FALSE(scene.pauses_writes());
}

TEST_CASE("A job ends with what it was begun for", "[slot-sender]") {
  Sending scene;
  scene.replicate();
  SECTION("the dataset is flushed") {
    CHECK(scene.user.run("FLUSHALL") == kOk);
    scene.work();
    CHECK(scene.state() == "failed");
    CHECK(scene.job().message == "Data was flushed");
  }
  SECTION("a write has keys within and without its slots") {
    scene.server.propagation().add(0, {"DEL", "foo", "{6ZJ}"});
    scene.user.run("PING");
    scene.work();
    CHECK(scene.state() == "failed");
    CHECK(scene.job().message == "A write of keys in several slots");
  }
  CHECK(scene.jobs().sends() == false);
}

TEST_CASE("A job whose writes exceed the limit of replicas fails", "[slot-sender]") {
  Sending scene("rdb-key-save-delay 100000000\nclient-output-buffer-limit replica 1000 0 0\n");
  scene.target->says(kOk);
  turn(scene.loop);
  REQUIRE(scene.state() == "snapshotting");
  const size_t frame = (kSelect + bulks({"SET", "foo", std::string(900, 'x')})).size() - 900;
  CHECK(scene.user.run("SET foo " + std::string(1'000 - frame, 'x')) == kOk);
  REQUIRE(scene.jobs().waiting_bytes(scene.job()) == 1'000);
  scene.work();
  CHECK(scene.state() == "snapshotting");
  CHECK(scene.user.run("SET foo x") == kOk);
  scene.work();
  CHECK(scene.state() == "failed");
  CHECK(scene.job().message == kLost);
}

}  // namespace latchkey::tests
