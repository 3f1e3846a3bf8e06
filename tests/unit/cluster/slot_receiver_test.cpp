// The target's side of a migration of slots as Valkey 9 has it, over sockets: the test plays the
// source.
#include "cluster/slot_jobs/receiver.h"

#include <cstdint>
#include <string>
#include <string_view>

#include "cluster/slot_jobs/slot_jobs.h"
#include "unit/catch.h"
#include "unit/cluster/calling_node.h"
#include "unit/cluster/played_node.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

std::string sync(std::string_view what) {
  return bulks({"CLUSTER", "SYNCSLOTS", what});
}
std::string select(std::string_view number) {
  return bulks({"SELECT", number});
}

const std::string kJob(40, 'd');
const std::string kAck = sync("ACK");
// Keys with these tags are in the slots 0 and 1.
const std::string kSet0 = bulks({"SET", "{06S}a", "snapshot"});
const std::string kSet1 = bulks({"SET", "{Qi}a", "snapshot"});

// The played node has begun a job that brings the slots 0 and 1.
struct Receiving : NodeWithPeer {
  explicit Receiving(const std::string& settings = {})
      : NodeWithPeer("emulate \"valkey 9.1\"\ncluster-databases 16\n" + settings),
        user(server),
        source(loop, server) {
    REQUIRE(source.ask({"CLUSTER", "SYNCSLOTS", "ESTABLISH", "SOURCE", kPeer, "NAME", kJob,
                        "SLOTSRANGE", "0", "1"}) == kOk);
    // What follows is the receiver's.
    tick();
  }

  // The newest.
  const cluster::SlotJob& job() { return *jobs().jobs().all().front(); }
  std::string_view state() { return name_of(job().state); }
  bool owns(int slot) { return cluster.nodes().owner(slot) == &cluster.myself(); }
  size_t keys() {
    size_t count = 0;
    for (int i = 0; i < server.database_count(); ++i) count += server.database(i).size();
    return count;
  }
  std::string value_in(int database, std::string_view key) {
    char scratch[20];
    const store::KeyRef found = server.database(database).find(key, store::Keyspace::kPeek);
    return found ? std::string(found->string(scratch)) : "(none)";
  }

  // To the point where the keys come.
  void begin() {
    source.says(kAck);
    REQUIRE(state() == "receiving-snapshot");
  }
  // To the point where the writes since the snapshot come.
  void snapshot() {
    begin();
    source.says(kSet0 + kSet1 + sync("SNAPSHOT-EOF"));
    REQUIRE(state() == "waiting-for-paused");
    source.received();
  }
  // To the point where all has come.
  void pause() {
    snapshot();
    source.says(sync("PAUSED"));
    REQUIRE(state() == "failover-requested");
    source.received();
  }

  TestClient user;
  CallingNode source;
};

}  // namespace

TEST_CASE("A job receives the keys and then the writes, and takes the slots over",
          "[slot-receiver]") {
  Receiving scene;
  CHECK(scene.state() == "waiting-for-ack");
  CHECK(scene.source.received() == kAck);
  CHECK(scene.jobs().receives());
  const uint64_t before = scene.jobs().figures().received;
  std::string all = kAck;
  scene.source.says_slowly(kAck);
  CHECK(scene.state() == "receiving-snapshot");
  scene.source.says_slowly(kSet0 + select("3") + kSet1 + sync("snapshot-eof"));
  all += kSet0 + select("3") + kSet1 + sync("snapshot-eof");
  CHECK(scene.source.received() == sync("REQUEST-PAUSE"));
  CHECK(scene.state() == "waiting-for-paused");
  CHECK(scene.value_in(0, "{06S}a") == "snapshot");
  CHECK(scene.value_in(3, "{Qi}a") == "snapshot");
  // Nobody sees them yet.
  CHECK(scene.user.run("DBSIZE") == integer(0));

  // The writes begin with the first database again, and a sign of life changes nothing.
  const std::string writes = bulks({"SET", "{06S}a", "write"}) + kAck + select("3") +
                             bulks({"APPEND", "{Qi}a", " and more"}) + sync("PAUSED");
  scene.source.says_slowly(writes);
  all += writes;
  CHECK(scene.source.received() == sync("REQUEST-FAILOVER"));
  CHECK(scene.state() == "failover-requested");
  CHECK(scene.value_in(0, "{06S}a") == "write");
  CHECK(scene.value_in(3, "{06S}a") == "(none)");
  CHECK(scene.value_in(3, "{Qi}a") == "snapshot and more");
  CHECK(scene.jobs().figures().received - before == all.size());
  CHECK_FALSE(scene.owns(0));

  scene.source.says(sync("FAILOVER-GRANTED"));
  CHECK(scene.state() == "success");
  CHECK(scene.job().message.empty());
  CHECK(scene.owns(0));
  CHECK(scene.owns(1));
  CHECK_FALSE(scene.owns(2));
  CHECK(scene.cluster.myself().config_epoch > 7);
  CHECK(scene.source.is_over());
  CHECK(scene.user.run("DBSIZE") == integer(1));
  CHECK(scene.user.run("GET {06S}a") == bulk("write"));
  all += sync("FAILOVER-GRANTED");
  CHECK(scene.jobs().figures().received - before == all.size());
  CHECK_FALSE(scene.jobs().receives());
}

TEST_CASE("A job fails when its source sends what does not belong there, and drops what has come",
          "[slot-receiver]") {
  Receiving scene;
  std::string want;
  SECTION("keys before the first sign of life") {
    scene.source.says(kSet0);
    want = "The source sends keys too early";
  }
  SECTION("the end of the keys before the first sign of life") {
    scene.source.says(sync("SNAPSHOT-EOF"));
    want = "The source sends SNAPSHOT-EOF too early";
  }
  SECTION("the pause before the end of the keys") {
    scene.begin();
    scene.source.says(kSet0 + sync("PAUSED"));
    want = "The source sends PAUSED too early";
  }
  SECTION("the grant before the pause") {
    scene.snapshot();
    scene.source.says(sync("FAILOVER-GRANTED"));
    want = "The source sends FAILOVER-GRANTED too early";
  }
  SECTION("the end of the keys twice") {
    scene.snapshot();
    scene.source.says(sync("SNAPSHOT-EOF"));
    want = "The source sends SNAPSHOT-EOF too early";
  }
  SECTION("another request of the protocol, of any length") {
    scene.begin();
    scene.source.says(sync("REQUEST-PAUSE" + std::string(100, 'x')));
    want = "The source sends an unexpected CLUSTER SYNCSLOTS REQUEST-PAUSE" + std::string(51, 'x');
  }
  SECTION("what is nearly the protocol") {
    scene.begin();
    scene.source.says(bulks({"CLUSTER", "SYNCSLOTS"}));
    want = "'cluster|syncslots' in the stream is no write";
  }
  SECTION("another request of the cluster") {
    scene.begin();
    scene.source.says(bulks({"CLUSTER", "KEYSLOT", "ack"}));
    want = "'cluster|keyslot' in the stream is no write";
  }
  SECTION("what only ends like it") {
    scene.begin();
    scene.source.says(bulks({"CONFIG", "SYNCSLOTS", "ack"}));
    want = "Unknown command in the stream: CONFIG";
  }
  SECTION("a write of other slots") {
    scene.snapshot();
    scene.source.says(bulks({"SET", "foo", "x"}));
    want = "'set' in the stream is for a slot that is not migrated";
  }
  SECTION("a write that fails, after which nothing is done") {
    scene.snapshot();
    scene.source.says(bulks({"LPUSH", "{06S}a", "x"}) + bulks({"SET", "{06S}b", "x"}));
    want = "'lpush' failed: WRONGTYPE Operation against a key holding the wrong kind of value";
  }
  SECTION("no request") {
    scene.begin();
    scene.source.says(kSet0 + "*1\r\n:5\r\n");
    want = "The source sends what is no request: Protocol error: expected '$', got ':'";
  }
  CHECK(scene.state() == "failed");
  CHECK(scene.job().message == want);
  turn(scene.loop);
  CHECK(scene.source.is_over());
  CHECK(scene.keys() == 0);
  CHECK_FALSE(scene.owns(0));
  CHECK_FALSE(scene.jobs().receives());
}

TEST_CASE("A job bears requests without words, and none that are too long", "[slot-receiver]") {
  Receiving scene("proto-max-bulk-len 1048576\n");
  scene.begin();
  scene.source.says("*0\r\n\r\n" + kSet0);
  CHECK(scene.state() == "receiving-snapshot");
  CHECK(scene.value_of("{06S}a") == "snapshot");
  scene.source.says("*3\r\n$3\r\nSET\r\n$6\r\n{06S}a\r\n$1048577\r\n");
  CHECK(scene.job().message ==
        "The source sends what is no request: Protocol error: invalid bulk length");
}

TEST_CASE("A job whose connection goes fails, and drops what has come", "[slot-receiver]") {
  Receiving scene;
  SECTION("before the first sign of life") {
    scene.source.hangs_up();
  }
  SECTION("among the keys") {
    scene.begin();
    scene.source.says(kSet0);
    scene.source.hangs_up();
  }
  SECTION("when all has come") {
    scene.pause();
    scene.source.hangs_up();
  }
  SECTION("by the hand of somebody") {
    scene.snapshot();
    CHECK(scene.user.run("CLIENT KILL SKIPME yes") == integer(1));
    turn(scene.loop);
  }
  CHECK(scene.state() == "failed");
  CHECK(scene.job().message ==
        "Connection lost to source. Check CLUSTER GETSLOTMIGRATIONS on the source node for more "
        "information.");
  turn(scene.loop);
  CHECK(scene.source.is_over());
  CHECK(scene.keys() == 0);
  CHECK_FALSE(scene.owns(0));
}

TEST_CASE(
    "A receiver gives a sign of life once a second, and waits for one as long as "
    "repl-timeout says",
    "[slot-receiver]") {
  Receiving scene("repl-timeout 10\ntimeout 1\n");
  SECTION("once a second, which what else it says is, too") {
    scene.source.received();
    scene.tick(999);
    CHECK(scene.source.received().empty());
    scene.tick(1);
    CHECK(scene.source.received() == kAck);
    scene.tick(500);
    scene.snapshot();
    scene.tick(999);
    CHECK(scene.source.received().empty());
    scene.tick(1);
    CHECK(scene.source.received() == kAck);
  }
  SECTION("since it has been heard of") {
    scene.pass(9'000);
    scene.source.says(kAck);
    // The `timeout` of clients is not for it.
    for (int i = 0; i < 10; ++i) {
      scene.tick(1'000);
      scene.server.tick();
    }
    CHECK(scene.state() == "receiving-snapshot");
    scene.tick(1);
    CHECK(scene.state() == "failed");
    CHECK(scene.job().message == "Timed out after too long with no interaction");
    turn(scene.loop);
    CHECK(scene.source.is_over());
  }
}

TEST_CASE("A receiver that may not take slots waits until it may", "[slot-receiver]") {
  Receiving scene;
  scene.pause();
  scene.jobs().prevented.failover = true;
  scene.source.says(sync("FAILOVER-GRANTED"));
  scene.tick();
  CHECK(scene.state() == "failover-granted");
  CHECK_FALSE(scene.owns(0));
  scene.jobs().prevented.failover = false;
  scene.tick();
  CHECK(scene.state() == "success");
  CHECK(scene.owns(0));
}

TEST_CASE("A receiver may take no slot before it is granted", "[slot-receiver]") {
  Receiving scene;
  scene.pause();
  scene.tick();
  CHECK(scene.state() == "failover-requested");
  CHECK_FALSE(scene.owns(0));
}

TEST_CASE("Slots that are not the source's any more are not taken from it", "[slot-receiver]") {
  Receiving scene;
  scene.pause();
  // Nobody has been told of it yet.
  scene.cluster.nodes().assign(1, *scene.cluster.nodes().find(NodeWithPeer::kThird));
  scene.source.says(sync("FAILOVER-GRANTED"));
  CHECK(scene.state() == "failed");
  CHECK(scene.job().message == "Slots are no longer owned by source node");
  CHECK_FALSE(scene.owns(0));
  turn(scene.loop);
  CHECK(scene.keys() == 0);
}

TEST_CASE("A receiver waits while something else is in the middle", "[slot-receiver]") {
  Receiving scene;
  scene.begin();
  const uint32_t state =
      GENERATE(server::kStateBusy, server::kStateLoading, server::kStateAsyncLoading);
  scene.server.set_state(state, true);
  scene.source.says(kSet0);
  CHECK(scene.keys() == 0);
  CHECK(scene.jobs().figures().input_bytes == kSet0.size());
  // What comes meanwhile is a sign of life.
  scene.pass(5'000);
  scene.source.says(kSet1);
  CHECK(scene.job().last_contact_ms == scene.server.machine_ms());
  CHECK(scene.keys() == 0);
  scene.server.set_state(state, false);
  while (scene.keys() < 2) scene.peer.wait_a_turn();
  CHECK(scene.jobs().figures().input_bytes == 0);
  CHECK(scene.state() == "receiving-snapshot");
}

TEST_CASE("A receiver applies much in pieces, between which others are served", "[slot-receiver]") {
  Receiving scene;
  scene.begin();
  // One write of a hundred thousand bytes after the other, of which a piece has three.
  std::string much;
  for (int i = 0; i < 80; ++i)
    much += bulks({"APPEND", "{06S}a", std::string(100'000, static_cast<char>('a' + i % 26))});
  size_t steps = 0;
  size_t size = 0;
  const auto count_steps = [&] {
    const store::KeyRef found = scene.database().find("{06S}a", store::Keyspace::kPeek);
    const size_t now = found ? found->string_size() : 0;
    CHECK(now - size <= 300'000);
    steps += now != size ? 1 : 0;
    size = now;
  };
  std::string_view left = much;
  scene.source.says_some(&left);
  while (size < 8'000'000) {
    scene.loop.run_once();
    count_steps();
    scene.source.says_some(&left);
    CHECK(scene.jobs().figures().input_bytes <= (5 << 20));
  }
  CHECK(left.empty());
  CHECK(steps >= 26);
  CHECK(scene.jobs().figures().input_bytes == 0);
  scene.source.says(sync("SNAPSHOT-EOF"));
  CHECK(scene.state() == "waiting-for-paused");
}

TEST_CASE("No rollback deletes what a job brings or has brought", "[slot-receiver]") {
  Receiving scene;
  CHECK(scene.user.run("CHECKPOINT CREATE") == bulk("checkpoint-1"));
  scene.pause();
  CHECK(scene.user.run("CHECKPOINT ROLLBACK") ==
        error("ERR CHECKPOINT ROLLBACK is not possible while slots of other nodes are imported, "
              "whose keys it would delete"));
  scene.source.says(sync("FAILOVER-GRANTED"));
  REQUIRE(scene.owns(0));
  CHECK(scene.user.run("CHECKPOINT ROLLBACK") ==
        error("ERR Slots have come from other nodes since the checkpoint: a rollback would delete "
              "their keys. DROP the checkpoint"));
  CHECK(scene.value_of("{06S}a") == "snapshot");
}

TEST_CASE("Jobs that write while writes are paused fail, each of them", "[slot-receiver]") {
  Receiving scene;
  CallingNode other(scene.loop, scene.server);
  REQUIRE(other.ask({"CLUSTER", "SYNCSLOTS", "ESTABLISH", "SOURCE", NodeWithPeer::kPeer, "NAME",
                     std::string(40, 'e'), "SLOTSRANGE", "7", "7"}) == kOk);
  scene.tick();
  scene.source.says(kAck);
  other.says(kAck);
  CHECK(scene.user.run("CLIENT PAUSE 100000 WRITE") == kOk);
  scene.source.says(kSet0);
  // The key is in slot 7.
  other.says(bulks({"SET", "{ffD}a", "snapshot"}));
  for (const auto& job : scene.jobs().jobs().all()) {
    CHECK(name_of(job->state) == "failed");
    CHECK(job->message == "Writes are paused");
  }
  CHECK(scene.user.run("CLIENT UNPAUSE") == kOk);
  CHECK(scene.keys() == 0);
}

TEST_CASE("A manual failover of the target ends its jobs, and none begins until it is over",
          "[slot-receiver]") {
  Receiving scene;
  scene.snapshot();
  cluster::Node& replica = *scene.cluster.nodes().find(NodeWithPeer::kThird);
  scene.cluster.nodes().make_replica(replica, &scene.cluster.myself());
  scene.cluster.manual_failover().requested(replica);
  CHECK(scene.state() == "failed");
  CHECK(scene.job().message == "A failover occurred during slot import");
  CHECK_FALSE(scene.jobs().receives());

  CallingNode other(scene.loop, scene.server);
  const auto establish = [&] {
    return other.ask({"CLUSTER", "SYNCSLOTS", "ESTABLISH", "SOURCE", NodeWithPeer::kPeer, "NAME",
                      std::string(40, 'e'), "SLOTSRANGE", "7", "7"});
  };
  CHECK(establish() == error("ERR Target node is being replaced by its replica"));
  scene.cluster.manual_failover().reset();
  CHECK(establish() == kOk);
}

}  // namespace latchkey::tests
