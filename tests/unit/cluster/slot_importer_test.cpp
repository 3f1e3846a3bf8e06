// The destination's side of a slot migration, over sockets: the test plays the source.
#include "cluster/slot_migration/importer.h"

#include <cstdint>
#include <string>
#include <string_view>

#include "cluster/slot_migration/slot_migration.h"
#include "server/client/pause.h"
#include "unit/catch.h"
#include "unit/cluster/played_node.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

using server::PauseControl;

// Keys with these tags are in the slots 0 and 1.
const std::string kSet0 = bulks({"SET", "{06S}a", "snapshot"});
const std::string kSet1 = bulks({"SET", "{Qi}a", "snapshot"});
const std::string kSnapshotEof = bulks({"CLUSTER", "SYNCSLOTS", "SNAPSHOT-EOF"});
const std::string kStreamEof = bulks({"CLUSTER", "SYNCSLOTS", "STREAM-EOF"});
constexpr std::string_view kSync = "+RDBCHANNELSYNCSLOTS\r\n";
constexpr std::string_view kSlots = "+SLOTSSNAPSHOT\r\n";

std::string ack(std::string_view state, uint64_t offset) {
  return bulks({"CLUSTER", "SYNCSLOTS", "ACK", state, std::to_string(offset)});
}

// An import of the slots 0, 1 and 7 that has begun.
struct Import : NodeWithPeer {
  explicit Import(const std::string& settings = {}, std::string_view fail_channel = {},
                  std::string_view fail_state = {})
      : NodeWithPeer(settings) {
    REQUIRE(migration().set_fail_point(fail_channel, fail_state));
    id = migration().import(slots_of({0, 1, 7}));
    main = &accept();
  }

  const cluster::SlotTask& task() {
    const cluster::TaskTable& tasks = migration().tasks();
    return tasks.active().empty() ? tasks.archive().front() : *tasks.active().front();
  }
  PlayedChannel& accept() {
    return peer.accept([this] { return task().ended(); });
  }
  std::string_view state() { return name_of(task().state); }
  const std::string& error() { return task().last_error; }
  bool owns(int slot) { return cluster.nodes().owner(slot) == &cluster.myself(); }

  // To the point where the snapshot's channel is connected.
  void shake_hands() {
    main->says(kOk);
    main->says(kOk);
    main->says(kSync);
    snapshot = &accept();
  }
  // To the point where the keys come.
  void transfer() {
    shake_hands();
    snapshot->says(kOk);
    snapshot->says(kSlots);
  }
  // To the point where it waits for the end of the stream.
  void stream() {
    transfer();
    snapshot->says(kSet0 + kSet1 + kSnapshotEof);
    main->received();
  }

  std::string id;
  PlayedChannel* main = nullptr;
  PlayedChannel* snapshot = nullptr;
};

}  // namespace

TEST_CASE("An import fetches the keys and then the writes, and takes the slots over",
          "[slot-importer]") {
  Import import;
  const std::string login = bulks({"AUTH", "internal connection", import.cluster.secret()});
  CHECK(import.main->received() == login);
  CHECK(import.state() == "auth-reply");
  import.main->says(kOk);
  CHECK(import.main->received() ==
        bulks({"CLUSTER", "SYNCSLOTS", "CONF", "NODE-ID", import.cluster.myself().id}));
  CHECK(import.state() == "handshake-reply");
  import.main->says(kOk);
  CHECK(import.main->received() ==
        bulks({"CLUSTER", "SYNCSLOTS", "SYNC", import.id, "0", "1", "7", "7"}));
  CHECK(import.state() == "syncslots-reply");
  CHECK(import.peer.connections() == 1);
  import.main->says(kSync);
  CHECK(import.state() == "accumulate-buffer");
  PlayedChannel& snapshot = import.accept();
  CHECK(snapshot.received() == login);
  snapshot.says(kOk);
  CHECK(snapshot.received() == bulks({"CLUSTER", "SYNCSLOTS", "RDBCHANNEL", import.id}));
  snapshot.says(kSlots);
  CHECK(name_of(import.task().snapshot) == "rdbchannel-transfer");

  // A write that was made after the snapshot may come before its key.
  const std::string write = bulks({"SET", "{06S}a", "stream"});
  import.main->says(write);
  CHECK(import.migration().figures().input_bytes == write.size());
  CHECK(import.value_of("{06S}a") == "(none)");
  snapshot.says(bulks({"CLUSTER", "SYNCSLOTS", "CONF", "SLOT-INFO", "0:1:0"}) + kSet0 + kSet1);
  CHECK(import.value_of("{06S}a") == "snapshot");
  CHECK(import.database().visible_size() == 0);
  snapshot.says(kSnapshotEof);
  CHECK(snapshot.is_over());
  CHECK(import.value_of("{06S}a") == "stream");
  CHECK(import.state() == "wait-stream-eof");
  CHECK(import.main->received() == ack("wait-stream-eof", write.size()));
  import.main->says(bulks({"DEL", "{Qi}a"}));
  CHECK(import.database().size() == 1);
  CHECK_FALSE(import.owns(0));
  CHECK(import.cluster.myself().config_epoch < 7);

  import.main->says(kStreamEof);
  CHECK(import.main->is_over());
  CHECK(import.state() == "completed");
  CHECK(import.error().empty());
  CHECK(import.migration().tasks().active().empty());
  CHECK((import.owns(0) && import.owns(1) && import.owns(7)));
  CHECK_FALSE(import.owns(2));
  CHECK(import.cluster.myself().config_epoch == 8);
  CHECK(import.database().visible_size() == 1);
  CHECK(import.value_of("{06S}a") == "stream");
}

TEST_CASE("An import understands replies however they are split", "[slot-importer]") {
  Import import;
  const std::string write = bulks({"SET", "{06S}a", "stream"});
  SECTION("in bytes") {
    for (const std::string_view reply : {kOk, kOk, kSync}) import.main->says_slowly(reply);
    import.snapshot = &import.accept();
    import.main->says_slowly(write);
    for (const std::string_view reply : {kOk, kSlots}) import.snapshot->says_slowly(reply);
    import.snapshot->says_slowly(kSet0 + kSnapshotEof);
    import.main->says_slowly(kStreamEof);
  }
  SECTION("all at once, with the stream behind them") {
    import.main->says("+OK\r\n+OK\r\n+RDBCHANNELSYNCSLOTS\r\n" + write);
    import.snapshot = &import.accept();
    CHECK(import.migration().figures().input_bytes == write.size());
    CHECK(import.migration().figures().most_input_bytes == write.size());
    import.snapshot->says("+OK\r\n+SLOTSSNAPSHOT\r\n" + kSet0 + kSnapshotEof);
    import.main->says(kStreamEof);
  }
  SECTION("with empty lines around them, and line feeds only") {
    import.main->says("\r\n\n+OK\n\n+OK\n");
    CHECK(import.state() == "syncslots-reply");
    import.main->says("\n+RDBCHANNELSYNCSLOTS\n");
    import.snapshot = &import.accept();
    import.main->says("\r\n\n" + write + "\r\n");
    import.snapshot->says("\n+OK\n\n+SLOTSSNAPSHOT\n\n" + kSet0 + "\n" + kSnapshotEof);
    import.main->says("\n" + kStreamEof);
  }
  SECTION("a write of which a part has come when the snapshot ends") {
    import.transfer();
    import.main->says(write.substr(0, 20));
    import.snapshot->says(kSet0 + kSnapshotEof);
    CHECK(import.state() == "wait-stream-eof");
    CHECK(import.value_of("{06S}a") == "snapshot");
    import.main->says(write.substr(20) + kStreamEof);
  }
  SECTION("more writes than are applied in a turn") {
    import.transfer();
    const std::string much = bulks({"SET", "{06S}a", std::string(200'000, 'x')});
    const std::string kept = much + much + much + much + write + bulks({"SET", "{Qi}a", "last"});
    import.main->says(kept);
    while (import.migration().figures().input_bytes < kept.size()) import.peer.wait_a_turn();
    import.snapshot->says(kSnapshotEof);
    turn(import.loop, 20);
    CHECK(import.value_of("{Qi}a") == "last");
    import.main->says(kStreamEof);
  }
  SECTION("the end of the stream among what was kept") {
    import.shake_hands();
    import.main->says(write + kStreamEof);
    import.snapshot->says("+OK\r\n+SLOTSSNAPSHOT\r\n" + kSet0 + kSnapshotEof);
  }
  CHECK(import.error().empty());
  CHECK(import.state() == "completed");
  CHECK(import.owns(0));
  CHECK(import.value_of("{06S}a") == "stream");
}

TEST_CASE("An import that is refused fails with what the source says", "[slot-importer]") {
  Import import;
  SECTION("at AUTH") {
    import.main->says("-WRONGPASS no\r\n");
    CHECK(import.error() ==
          "Main channel - AUTH was refused: -WRONGPASS no (state: auth-reply, rdb_channel_state: "
          "none)");
  }
  SECTION("at CONF") {
    import.main->says("+OK\r\n-ERR Unknown node\r\n");
    CHECK(import.error() ==
          "Main channel - SYNCSLOTS CONF was refused: -ERR Unknown node (state: handshake-reply, "
          "rdb_channel_state: none)");
  }
  SECTION("at SYNC") {
    import.main->says("+OK\r\n+OK\r\n");
    import.main->says("-ERR no\r\n");
    CHECK(import.error() ==
          "Main channel - SYNCSLOTS SYNC was refused: -ERR no (state: syncslots-reply, "
          "rdb_channel_state: none)");
  }
  SECTION("at AUTH, by the reply to another request") {
    import.main->says("+RDBCHANNELSYNCSLOTS\r\n");
    CHECK(import.error() ==
          "Main channel - AUTH was refused: +RDBCHANNELSYNCSLOTS (state: auth-reply, "
          "rdb_channel_state: none)");
  }
  SECTION("at AUTH of the snapshot's channel") {
    import.shake_hands();
    import.snapshot->says("-WRONGPASS no\r\n");
    CHECK(import.error() ==
          "RDB channel - AUTH was refused: -WRONGPASS no (state: accumulate-buffer, "
          "rdb_channel_state: auth-reply)");
  }
  SECTION("at RDBCHANNEL") {
    import.shake_hands();
    import.snapshot->says("+OK\r\n");
    import.snapshot->says("-ERR no\r\n");
    CHECK(import.error() ==
          "RDB channel - SYNCSLOTS RDBCHANNEL was refused: -ERR no (state: accumulate-buffer, "
          "rdb_channel_state: rdbchannel-reply)");
  }
  CHECK(import.state() == "failed");
  CHECK(import.main->is_over());
  CHECK((import.snapshot == nullptr || import.snapshot->is_over()));
  CHECK(import.migration().tasks().active().size() == 1);
}

TEST_CASE("An import that the source cannot serve yet is tried again later", "[slot-importer]") {
  Import import;
  import.main->says("+OK\r\n+OK\r\n-NOTREADY later\r\n");
  CHECK(import.main->is_over());
  CHECK(import.state() == "failed");
  CHECK(import.error() ==
        "The source node is not ready (state: syncslots-reply, rdb_channel_state: none)");
  import.tick(499);
  CHECK(import.state() == "failed");
  CHECK(import.peer.connections() == 1);
  import.tick(501);
  import.main = &import.accept();
  CHECK(import.task().retries == 1);
  CHECK(import.error().empty());
  import.stream();
  import.main->says(kStreamEof);
  CHECK(import.state() == "completed");
  CHECK(import.task().id == import.id);
}

TEST_CASE("An import bears no line without end", "[slot-importer]") {
  Import import;
  const std::string_view text = " (state: auth-reply, rdb_channel_state: none)";
  SECTION("on the main channel") {
    import.main->says(std::string(60'000, 'x'));
    import.main->says(std::string(5'536, 'x'));
    REQUIRE(import.state() == "auth-reply");
    import.main->says("x");
    CHECK(import.error() ==
          "Main channel - The reply is no line of any sensible length" + std::string(text));
  }
  SECTION("on the snapshot's") {
    import.shake_hands();
    import.snapshot->says(std::string(60'000, 'x'));
    import.snapshot->says(std::string(5'536, 'x'));
    REQUIRE(import.state() == "accumulate-buffer");
    import.snapshot->says("x");
    CHECK(import.error().starts_with(
        "RDB channel - The reply is no line of any sensible length (state: accumulate-buffer"));
  }
  CHECK(import.state() == "failed");
}

TEST_CASE("An import whose connection goes fails, and drops what has come", "[slot-importer]") {
  Import import;
  SECTION("the main one, before the snapshot") {
    import.main->hangs_up();
    CHECK(import.error() ==
          "Main channel - Connection closed by the other node (state: auth-reply, "
          "rdb_channel_state: none)");
  }
  SECTION("the main one, while the snapshot comes") {
    import.transfer();
    import.snapshot->says(kSet0);
    REQUIRE(import.database().size() == 1);
    import.main->hangs_up();
    CHECK(import.error() ==
          "Main channel - Connection closed by the other node (state: accumulate-buffer, "
          "rdb_channel_state: rdbchannel-transfer)");
    CHECK(import.snapshot->is_over());
  }
  SECTION("the snapshot's, before its end") {
    import.transfer();
    import.snapshot->says(kSet0);
    import.snapshot->hangs_up();
    CHECK(import.error() ==
          "RDB channel - Connection closed by the other node (state: accumulate-buffer, "
          "rdb_channel_state: rdbchannel-transfer)");
    CHECK(import.main->is_over());
  }
  SECTION("the main one, before the end of the stream") {
    import.stream();
    REQUIRE(import.database().size() == 2);
    import.main->hangs_up();
    CHECK(import.error() ==
          "Main channel - Connection closed by the other node (state: wait-stream-eof, "
          "rdb_channel_state: completed)");
  }
  CHECK(import.state() == "failed");
  turn(import.loop);
  CHECK(import.database().size() == 0);
  CHECK_FALSE(import.owns(0));
  CHECK_FALSE(import.database().hidden_slots()->is_importing(0));
}

TEST_CASE("An import says when it cannot connect", "[slot-importer]") {
  NodeWithPeer node;
  node.peer.stops_listening();
  node.migration().import(slots_of({0}));
  const cluster::SlotTask& task = *node.migration().tasks().active().front();
  while (task.state == cluster::TaskState::kConnecting) node.peer.wait_a_turn();
  CHECK(name_of(task.state) == "failed");
  CHECK(task.last_error ==
        "Main channel - Failed to connect: Connection refused (state: connecting, "
        "rdb_channel_state: none)");
}

TEST_CASE("An import fails when the source sends what does not belong there", "[slot-importer]") {
  Import import;
  std::string want;
  SECTION("a key of another slot") {
    import.transfer();
    import.snapshot->says(kSet0 + bulks({"SET", "{6ZJ}a", "1"}) + kSnapshotEof);
    want = "RDB channel - 'set' in the stream is for a slot that is not migrated (";
  }
  SECTION("a write of another slot") {
    import.stream();
    import.main->says(bulks({"SET", "{6ZJ}a", "1"}) + kStreamEof);
    want = "Main channel - 'set' in the stream is for a slot that is not migrated (";
  }
  SECTION("the end of the stream on the snapshot's channel") {
    import.transfer();
    import.snapshot->says(kStreamEof);
    want = "RDB channel - Unexpected CLUSTER SYNCSLOTS STREAM-EOF (";
  }
  SECTION("the end of the snapshot on the main channel") {
    import.stream();
    import.main->says(kSnapshotEof + kStreamEof);
    want = "Main channel - Unexpected CLUSTER SYNCSLOTS SNAPSHOT-EOF (";
  }
  SECTION("another word of the protocol") {
    import.stream();
    import.main->says(bulks({"CLUSTER", "SYNCSLOTS", "NONSENSE"}) + kStreamEof);
    want = "Main channel - Unexpected CLUSTER SYNCSLOTS NONSENSE (";
  }
  SECTION("another command of the cluster") {
    import.stream();
    import.main->says(bulks({"CLUSTER", "RESET", "HARD"}) + kStreamEof);
    want = "Main channel - 'cluster|reset' in the stream is no write (";
  }
  SECTION("no request") {
    import.stream();
    import.main->says("*1\r\n:5\r\n" + kStreamEof);
    want = "Main channel - Protocol error: expected '$', got ':' (";
  }
  INFO(import.error());
  CHECK(import.error().substr(0, want.size()) == want);
  CHECK(import.state() == "failed");
  turn(import.loop);
  CHECK(import.database().size() == 0);
  CHECK_FALSE(import.owns(0));
}

TEST_CASE("DEBUG ASM-FAILPOINT has an import fail in each of its states", "[slot-importer]") {
  const auto run = [](Import& import) {
    import.main->says(kOk);
    import.main->says(kOk);
    import.main->says(kSync);
    // Where the second connection is to fail it may have done so already.
    if (import.state() == "failed" && import.task().snapshot == cluster::SnapshotState::kNone)
      return;
    import.snapshot = &import.accept();
    import.snapshot->says(kOk);
    import.snapshot->says(kSlots);
    import.snapshot->says(kSet0 + kSnapshotEof);
    import.main->says(kStreamEof);
  };
  for (const char* state : {"connecting", "auth-reply", "handshake-reply", "syncslots-reply",
                            "accumulate-buffer", "streaming-buffer", "wait-stream-eof"}) {
    INFO(state);
    Import import({}, "import-main-channel", state);
    run(import);
    CHECK(import.state() == "failed");
    CHECK(import.error().starts_with(
        "Main channel - Failed on purpose (state: " + std::string(state) + ","));
    CHECK(import.main->is_over());
    if (state == std::string_view("accumulate-buffer")) CHECK(import.peer.connections() == 1);
    if (state == std::string_view("connecting")) CHECK(import.main->received().empty());
  }
  for (const char* state :
       {"connecting", "auth-reply", "rdbchannel-reply", "rdbchannel-transfer"}) {
    INFO(state);
    Import import({}, "import-rdb-channel", state);
    run(import);
    CHECK(import.state() == "failed");
    CHECK(import.error() ==
          "RDB channel - Failed on purpose (state: accumulate-buffer, rdb_channel_state: " +
              std::string(state) + ")");
    REQUIRE(import.snapshot != nullptr);
    CHECK(import.snapshot->is_over());
    if (state == std::string_view("connecting")) CHECK(import.snapshot->received().empty());
  }
}

TEST_CASE("An import waits for a silent source as long as repl-timeout says", "[slot-importer]") {
  Import import("repl-timeout 10\n");
  std::string want = "Main channel - Connection timeout (state: ";
  SECTION("for a reply") {
    import.tick(10'000);
    REQUIRE(import.state() == "auth-reply");
    import.tick(1);
    want += "auth-reply, rdb_channel_state: none)";
  }
  SECTION("for a reply, since it has said something") {
    import.pass(9'000);
    import.main->says(kOk);
    import.tick(10'000);
    REQUIRE(import.state() == "handshake-reply");
    import.tick(1);
    want += "handshake-reply, rdb_channel_state: none)";
  }
  SECTION("for the rest of the snapshot, while the stream is silent") {
    import.transfer();
    import.pass(9'000);
    import.snapshot->says(kSet0);
    import.tick(10'000);
    REQUIRE(import.state() == "accumulate-buffer");
    import.main->says(bulks({"SET", "{06S}a", "stream"}));
    import.tick(1);
    want =
        "RDB channel - Connection timeout (state: accumulate-buffer, rdb_channel_state: "
        "rdbchannel-transfer)";
  }
  SECTION("for the end of the stream") {
    import.stream();
    import.tick(10'000);
    REQUIRE(import.state() == "wait-stream-eof");
    import.tick(1);
    want += "wait-stream-eof, rdb_channel_state: completed)";
  }
  CHECK(import.state() == "failed");
  CHECK(import.error() == want);
}

TEST_CASE("An import tells once a second, and after much, what it has applied", "[slot-importer]") {
  Import import;
  import.transfer();
  import.main->received();
  import.tick(5'000);
  CHECK(import.main->received().empty());
  import.snapshot->says(kSnapshotEof);
  CHECK(import.main->received() == ack("wait-stream-eof", 0));
  import.tick(999);
  CHECK(import.main->received().empty());
  import.tick(1);
  CHECK(import.main->received() == ack("wait-stream-eof", 0));
  import.main->says(kSet0);
  CHECK(import.main->received().empty());
  import.tick(1'000);
  CHECK(import.main->received() == ack("wait-stream-eof", kSet0.size()));
  const auto applied_to = [&](size_t size) {
    const std::string frame = bulks({"SET", "{06S}a", std::string(100'000, 'x')});
    return bulks({"SET", "{06S}a", std::string(size - (frame.size() - 100'000), 'x')});
  };
  import.main->says(applied_to(512 * 1024 - 1));
  while (import.database().find("{06S}a", store::Keyspace::kPeek)->string_size() < 1'000)
    import.peer.wait_a_turn();
  CHECK(import.main->received().empty());
  import.main->says(bulks({"DEL", "{06S}a"}));
  CHECK(import.main->received() ==
        ack("wait-stream-eof", kSet0.size() + 512 * 1024 - 1 + bulks({"DEL", "{06S}a"}).size()));
}

TEST_CASE("An import leaves the stream with the source when its buffer is full",
          "[slot-importer]") {
  Import import("replica-full-sync-buffer-limit 1000\n");
  import.transfer();
  const std::string first = bulks({"SET", "{06S}a", std::string(800, 'x')});
  const std::string second = bulks({"APPEND", "{06S}a", std::string(800, 'y')});
  const std::string rest = bulks({"APPEND", "{06S}a", "end"});
  import.main->says(first);
  CHECK(import.migration().figures().input_bytes == first.size());
  import.main->says(second);
  CHECK(import.migration().figures().input_bytes == first.size() + second.size());
  import.main->says(rest);
  CHECK(import.migration().figures().input_bytes == first.size() + second.size());
  import.snapshot->says(kSnapshotEof);
  turn(import.loop, 10);
  CHECK(import.value_of("{06S}a") == std::string(800, 'x') + std::string(800, 'y') + "end");
  CHECK(import.migration().figures().input_bytes == 0);
  CHECK(import.migration().figures().most_input_bytes == first.size() + second.size());
  import.main->says(kStreamEof);
  CHECK(import.state() == "completed");
  CHECK(import.migration().figures().most_input_bytes == first.size() + second.size());
}

TEST_CASE("The buffer of an import is the one of replicas unless it has its own",
          "[slot-importer]") {
  Import import("client-output-buffer-limit replica 2000 0 0\n");
  import.transfer();
  const std::string some = bulks({"SET", "{06S}a", std::string(1'900, 'x')});
  REQUIRE(some.size() < 2'000);
  import.main->says(some);
  import.main->says(some);
  const size_t kept = import.migration().figures().input_bytes;
  CHECK(kept == 2 * some.size());
  import.main->says(some);
  CHECK(import.migration().figures().input_bytes == kept);
}

TEST_CASE("Nothing is imported while clients are paused, which ends the import",
          "[slot-importer]") {
  Import import;
  import.transfer();
  import.server.pauses().pause(PauseControl::Reason::kClient, PauseControl::Kind::kWrites,
                               PauseControl::kForEver);
  import.snapshot->says(kSet0);
  CHECK(import.database().size() == 0);
  CHECK(import.state() == "accumulate-buffer");
  import.tick();
  CHECK(import.state() == "canceled");
  CHECK(import.error() ==
        "Cancelled due to client pause (state: accumulate-buffer, rdb_channel_state: "
        "rdbchannel-transfer)");
  CHECK(import.main->is_over());
  CHECK(import.snapshot->is_over());
  import.migration().import(slots_of({0}));
  import.tick();
  CHECK(import.peer.connections() == 2);
  import.server.pauses().unpause(PauseControl::Reason::kClient);
  import.tick();
  import.accept();
  CHECK(import.peer.connections() == 3);
}

TEST_CASE("An import ends with what it was begun for", "[slot-importer]") {
  Import import;
  import.transfer();
  import.snapshot->says(kSet0);
  std::string want;
  bool goes_on = false;
  SECTION("the slots are another master's") {
    import.give(7, NodeWithPeer::kThird);
    want = "Cancelled due to slots configuration updated (";
  }
  SECTION("the slots have another master of the same shard") {
    import.cluster.nodes().find(NodeWithPeer::kThird)->shard_id =
        import.cluster.nodes().find(NodeWithPeer::kPeer)->shard_id;
    import.give(7, NodeWithPeer::kThird);
    want = "The source node was replaced by a failover (";
    goes_on = true;
  }
  SECTION("the slots are nobody's for a time") {
    import.cluster.nodes().unassign(7);
    import.cluster.commit();
    CHECK(import.state() == "accumulate-buffer");
    import.give(0, NodeWithPeer::kThird);
    want = "Cancelled due to slots configuration updated (";
  }
  SECTION("the source is forgotten") {
    import.cluster.remove(*import.cluster.nodes().find(NodeWithPeer::kPeer));
    want = "Cancelled due to node deleted (";
  }
  SECTION("the user cancels it") {
    CHECK(import.migration().cancel(std::string(40, '0')) == 0);
    CHECK(import.migration().cancel(import.id) == 1);
    want = "Cancelled due to user request (";
  }
  SECTION("the dataset is flushed") {
    CHECK(TestClient(import.server).run("FLUSHALL") == kOk);
    import.server.tick();
    want = "Cancelled due to flush of the dataset (";
  }
  INFO(import.error());
  CHECK(import.error().starts_with(want));
  CHECK(import.state() == (goes_on ? "failed" : "canceled"));
  CHECK(import.migration().tasks().active().size() == (goes_on ? 1 : 0));
  turn(import.loop);
  CHECK(import.main->is_over());
  CHECK(import.snapshot->is_over());
  CHECK(import.database().size() == 0);
}

TEST_CASE("Slots that went elsewhere at the last moment are not taken over", "[slot-importer]") {
  Import import;
  import.stream();
  // Nobody has been told of it yet.
  import.cluster.nodes().assign(7, *import.cluster.nodes().find(NodeWithPeer::kThird));
  import.main->says(kStreamEof);
  CHECK(import.state() == "canceled");
  CHECK(import.error() ==
        "Cancelled due to slots configuration updated (state: takeover, rdb_channel_state: "
        "completed)");
  CHECK_FALSE(import.owns(0));
  turn(import.loop);
  CHECK(import.database().size() == 0);
}

TEST_CASE("No rollback deletes what an import brings or has brought", "[slot-importer]") {
  Import import;
  TestClient user(import.server);
  CHECK(user.run("CHECKPOINT CREATE") == bulk("checkpoint-1"));
  import.stream();
  CHECK(user.run("CHECKPOINT ROLLBACK") ==
        error("ERR CHECKPOINT ROLLBACK is not possible while slots of other nodes are imported, "
              "whose keys it would delete"));
  CHECK(import.value_of("{06S}a") == "snapshot");
  import.main->says(kStreamEof);
  REQUIRE(import.owns(0));
  CHECK(user.run("CHECKPOINT ROLLBACK") ==
        error("ERR Slots have come from other nodes since the checkpoint: a rollback would delete "
              "their keys. DROP the checkpoint"));
  CHECK(import.value_of("{06S}a") == "snapshot");

  // A checkpoint that knows of them brings them back.
  CHECK(user.run("CHECKPOINT CREATE") == bulk("checkpoint-2"));
  CHECK(user.run("SET {06S}a changed") == kOk);
  CHECK(user.run("CHECKPOINT ROLLBACK") == kOk);
  CHECK(import.value_of("{06S}a") == "snapshot");
}

TEST_CASE("A rollback undoes what an import had brought that has ended", "[slot-importer]") {
  Import import;
  TestClient user(import.server);
  CHECK(user.run("CHECKPOINT CREATE") == bulk("checkpoint-1"));
  import.stream();
  CHECK(user.run("CLUSTER MIGRATION CANCEL ALL") == integer(1));
  CHECK(user.run("CHECKPOINT ROLLBACK") == kOk);
  CHECK(import.value_of("{06S}a") == "(none)");
}

}  // namespace latchkey::tests
