// How a replica receives its master's dataset: by which connections, what breaks off, what a disk
// that fails leaves, and what a file tells of the place in the stream.
#include <filesystem>
#include <string>

#include "persist/rdb/rdb_file.h"
#include "replication/replica_role.h"
#include "unit/catch.h"
#include "unit/faulty_disk.h"
#include "unit/replication/played_master.h"

namespace latchkey::tests {

namespace {

namespace fs = std::filesystem;
using replication::ReplicaRole;

// What the master says on the RDB channel; what is left of the stream that came with it is lost.
std::string says_on_channel(ReplicaServer& replica, std::string bytes) {
  replication::MasterConnection& channel = *replica.replica_role().channel();
  if (channel.stage() == replication::MasterConnection::Stage::kConnecting)
    channel.connected(nullptr);
  channel.on_input(bytes);
  std::string heard = replica.replica_role().channel() != nullptr ? channel.out().take_all() : "";
  replica.server.tasks().resume_ready();
  return heard;
}

// A replica that fetches the dataset by Valkey's form of the RDB channel.
struct DualFollower : ReplicaServer {
  DualFollower() : master(*this), user(*this) {
    ReplicaServer source;
    TestClient author(source);
    author.run("SET name theirs");
    dataset = source.dataset();
    user.run("REPLICAOF master 6379");
    master.accept();
    master.says("+DUALCHANNELSYNC\r\n");
    REQUIRE(replica_role().channel() != nullptr);
    says_on_channel(*this, "+OK\r\n");
  }
  void bring_dataset() {
    says_on_channel(*this, "$" + std::to_string(dataset.size()) + "\r\n" + dataset);
  }
  PlayedMaster master;
  TestClient user;
  std::string dataset;
};

}  // namespace

TEST_CASE("REPLICAOF brings the master's dataset in the place of the server's own") {
  ReplicaServer source;
  TestClient author(source);
  author.run("SET name theirs");
  author.run("SET late gone PX 1");
  source.advance_ms(10);

  ReplicaServer replica;
  replica.advance_ms(10);
  PlayedMaster master(replica);
  TestClient user(replica);
  user.run("SET name ours");
  user.run("SET other ours");
  CHECK(user.run("REPLICAOF master 6379") == kOk);
  CHECK(replica.info("role") == "slave");
  CHECK(replica.info("master_link_status") == "down");
  CHECK(user.run("GET name") == bulk("ours"));
  CHECK(master.give_dataset(source.dataset()) == bulks({"REPLCONF", "ACK", "100"}));
  CHECK(replica.info("master_link_status") == "up");
  CHECK(replica.info("master_replid") == kId);
  CHECK(replica.info("master_repl_offset") == "100");
  CHECK(user.run("GET name") == bulk("theirs"));
  CHECK(user.run("EXISTS other") == integer(0));
  // What has expired is there until the master says otherwise, and is not shown.
  CHECK(user.run("DBSIZE") == integer(2));
  CHECK(user.run("GET late") == kNull);
}

TEST_CASE("A dataset whose end is marked is loaded as well") {
  ReplicaServer source;
  TestClient author(source);
  author.run("SET name theirs");
  ReplicaServer replica;
  PlayedMaster master(replica);
  TestClient user(replica);
  user.run("REPLICAOF master 6379");
  master.accept();
  master.says("+FULLRESYNC " + kId + " 7\r\n");
  master.says("\n\n$EOF:" + kMark + "\r\n");
  CHECK(replica.info("master_sync_in_progress") == "1");
  master.says(source.dataset());
  master.says(kMark);
  CHECK(user.run("GET name") == bulk("theirs"));
  CHECK(replica.info("master_repl_offset") == "7");
}

TEST_CASE("The dataset may come by a connection of its own") {
  ReplicaServer source;
  TestClient author(source);
  author.run("SET name theirs");
  ReplicaServer replica;
  PlayedMaster master(replica);
  TestClient user(replica);
  user.run("REPLICAOF master 6379");
  master.accept();
  master.says("+RDBCHANNELSYNC 17\r\n");
  REQUIRE(replica.replica_role().channel() != nullptr);
  CHECK(user.run("ROLE").find("connecting") != std::string::npos);
  replication::MasterConnection& channel = *replica.replica_role().channel();
  const auto on_channel = [&](std::string bytes) {
    channel.on_input(bytes);
    replica.server.tasks().resume_ready();
  };
  channel.connected(nullptr);
  CHECK(user.run("ROLE").find("handshake") != std::string::npos);
  on_channel("+OK\r\n");
  on_channel("+FULLRESYNC " + kId + " 100\r\n");
  CHECK(user.run("ROLE").find("sync") != std::string::npos);
  const std::string dataset = source.dataset();
  on_channel("$" + std::to_string(dataset.size()) + "\r\n" + dataset);
  CHECK(replica.replica_role().channel() == nullptr);
  CHECK(replica.info("master_link_status") == "up");
  CHECK(master.received() == bulks({"REPLCONF", "ACK", "100"}));
  master.sends(bulks({"SET", "key", "value"}));
  CHECK(user.run("GET name") == bulk("theirs"));
  CHECK(user.run("GET key") == bulk("value"));
}

TEST_CASE("What comes of the stream before the dataset is in place is kept") {
  ReplicaServer source;
  TestClient author(source);
  author.run("SET name theirs");
  ReplicaServer replica;
  PlayedMaster master(replica);
  TestClient user(replica);
  user.run("REPLICAOF master 6379");
  master.accept();
  master.says("+FULLRESYNC " + kId + " 100\r\n");
  const std::string dataset = source.dataset();
  std::string transfer = "$" + std::to_string(dataset.size()) + "\r\n" + dataset;
  replication::MasterConnection& link = *replica.replica_role().link();
  CHECK(link.on_input(transfer) == transfer.size());
  std::string stream = bulks({"SET", "key", "value"});
  CHECK(link.on_input(stream) == 0);
  CHECK(user.run("ROLE").find("sync") != std::string::npos);
  replica.server.tasks().resume_ready();
  master.sends(stream);
  CHECK(user.run("GET name") == bulk("theirs"));
  CHECK(user.run("GET key") == bulk("value"));
}

TEST_CASE("A link or an RDB channel that breaks is begun anew, both of them") {
  ReplicaServer replica;
  PlayedMaster master(replica);
  TestClient user(replica);
  user.run("REPLICAOF master 6379");
  for (const bool link_breaks : {false, true}) {
    REQUIRE(replica.replica_role().link() != nullptr);
    master.accept();
    master.says("+RDBCHANNELSYNC 17\r\n");
    REQUIRE(replica.replica_role().channel() != nullptr);
    replication::MasterConnection* broken =
        link_breaks ? replica.replica_role().link() : replica.replica_role().channel();
    broken->on_end_of_input();
    // The stream had begun, so that the break of the link is one of the transfer.
    CHECK((replica.replica_role().link() != nullptr) == link_breaks);
    CHECK(replica.replica_role().link() != broken);
    CHECK(replica.replica_role().channel() == nullptr);
    replica.advance_seconds(2);
  }
}

TEST_CASE("A full resynchronisation that breaks off is begun anew at once, but not in a hot loop") {
  ReplicaServer replica;
  PlayedMaster master(replica);
  TestClient user(replica);
  user.run("REPLICAOF master 6379");
  const auto break_off = [&] {
    master.accept();
    master.says("+FULLRESYNC " + kId + " 100\r\n");
    master.says("$1000\r\nREDIS");
    replica.replica_role().link()->on_end_of_input();
  };
  replica.advance_ms(19);
  break_off();
  CHECK(replica.replica_role().link() == nullptr);
  replica.advance_seconds(2);
  REQUIRE(replica.replica_role().link() != nullptr);
  CHECK_FALSE(replica.logged("Reconnecting to MASTER master:6379 after failure"));
  replica.advance_ms(20);
  break_off();
  CHECK(replica.replica_role().link() != nullptr);
  CHECK(replica.logged("Reconnecting to MASTER master:6379 after failure"));
}

TEST_CASE("The stream may be joined before the dataset is there, and after it was loaded") {
  const std::string stream = bulks({"SET", "key", "value"});
  for (const bool joins_first : {true, false}) {
    DualFollower f;
    CHECK(says_on_channel(f, "\n$ENDOFF:100 " + kId + " 0 5\r\n").empty());
    CHECK(f.master.received() == bulks({"REPLCONF", "set-rdb-client-id", "5"}));
    CHECK(f.master.says("+OK\r\n") == bulks({"PSYNC", kId, "101"}));
    if (joins_first) f.master.says("+CONTINUE\r\n");
    f.bring_dataset();
    CHECK(f.user.run("GET name") == bulk("theirs"));
    if (!joins_first) {
      CHECK(f.info("master_link_status") == "down");
      CHECK(f.master.says("+CONTINUE\r\n") == bulks({"REPLCONF", "ACK", "100"}));
      CHECK(f.logged("Psync established after rdb load"));
    }
    CHECK(f.info("master_link_status") == "up");
    CHECK(f.replica_role().channel() == nullptr);
    f.master.sends(stream);
    CHECK(f.user.run("GET key") == bulk("value"));
    CHECK(f.server.replication_offset() == 100 + static_cast<int64_t>(stream.size()));
  }
}

TEST_CASE("A stream that is not joined is asked for again, from the end of the dataset on") {
  DualFollower f;
  says_on_channel(f, "$ENDOFF:100 " + kId + " 0 5\r\n");
  f.master.says("+OK\r\n");
  f.bring_dataset();
  f.replica_role().link()->on_end_of_input();
  CHECK(f.replica_role().link() == nullptr);
  f.advance_seconds(2);
  CHECK(f.master.accept() == bulks({"PSYNC", kId, "101"}));
  f.master.says("+CONTINUE\r\n");
  CHECK(f.info("master_link_status") == "up");
  CHECK(f.user.run("GET name") == bulk("theirs"));
}

TEST_CASE("A history that was renamed while the dataset came goes on by its new name") {
  for (const bool joins_first : {true, false}) {
    DualFollower f;
    says_on_channel(f, "$ENDOFF:100 " + kId + " 0 5\r\n");
    f.master.says("+OK\r\n");
    if (joins_first) f.master.says("+CONTINUE " + kOtherId + "\r\n");
    f.bring_dataset();
    if (!joins_first) f.master.says("+CONTINUE " + kOtherId + "\r\n");
    CHECK(f.info("master_replid") == kOtherId);
    CHECK(f.info("master_repl_offset") == "100");
  }
}

TEST_CASE("A place that nobody waits for, or a bad one, ends both connections") {
  DualFollower bad;
  says_on_channel(bad, "$ENDOFF:-7 " + kId + " 0 5\r\n");
  CHECK(bad.replica_role().link() == nullptr);
  CHECK(bad.replica_role().channel() == nullptr);
  DualFollower refused;
  says_on_channel(refused, "$ENDOFF:100 " + kId + " 0 5\r\n");
  refused.master.says("+OK\r\n");
  refused.master.says("+FULLRESYNC " + kId + " 200\r\n");
  CHECK(refused.replica_role().link() == nullptr);
  CHECK(refused.replica_role().channel() == nullptr);
}

TEST_CASE("A dataset that cannot be read leaves the replica empty, and is asked for anew") {
  LinkedReplica f;
  f.master.sends(bulks({"SET", "key", "value"}));
  f.master.hangs_up();
  std::string damaged = empty_dataset();
  damaged[damaged.size() - 12] = static_cast<char>(0x7f);
  f.master.give_dataset(damaged);
  CHECK(f.info("master_link_status") == "down");
  CHECK(f.user.run("DBSIZE") == integer(0));
  f.advance_seconds(2);
  CHECK(f.master.accept() == bulks({"PSYNC", "?", "-1"}));
}

TEST_CASE("A master's dataset takes the place of the former one, or not, when the disk fails",
          "[durable-files]") {
  ReplicaServer source;
  TestClient(source).run("SET name theirs");
  const std::string dataset = source.dataset();
  const std::string former = empty_dataset();
  const size_t count = fail_each_call([&](const Trial& trial) {
    TemporaryDirectory directory;
    directory.write("dump.rdb", former);
    FaultyDisk disk(directory.path());
    bool is_up = false;
    {
      ReplicaServer replica(directory.setting(), disk);
      TestClient user(replica);
      user.run("SET name ours");
      PlayedMaster master(replica);
      user.run("REPLICAOF master 6379");
      disk.fail(trial.fault);
      master.give_dataset(dataset);
      is_up = replica.info("master_link_status") == "up";
      CAPTURE(told(trial, disk), is_up);
      CHECK((is_up || disk.has_failed()));
      if (is_up) CHECK(user.run("GET name") == bulk("theirs"));
      if (!is_up) CHECK(replica.logged("MASTER <-> REPLICA"));
      if (trial.fault.kind == FaultKind::kOnce && !is_up) {
        replica.advance_seconds(2);
        master.give_dataset(dataset);
        CHECK(replica.info("master_link_status") == "up");
        CHECK(user.run("GET name") == bulk("theirs"));
        CHECK(files_with(directory.path(), "temp-").empty());
      }
      disk.cut_power();
    }
    disk.restore(trial.lost);
    CAPTURE(told(trial, disk), is_up);
    const std::string found = directory.read("dump.rdb");
    CHECK((found == dataset || (found == former && !is_up)));
    return disk.has_failed();
  });
  CHECK(count > 20);
}

TEST_CASE("A master that announces nonsense in the place of a dataset is left") {
  const std::string announced = GENERATE(as<std::string>(), "$-5\r\n", "$x\r\n", "$EOF:short\r\n",
                                         "+OK\r\n", "-ERR no\r\n", "*3\r\n");
  ReplicaServer replica;
  PlayedMaster master(replica);
  TestClient user(replica);
  user.run("REPLICAOF master 6379");
  master.accept();
  master.says("+FULLRESYNC " + kId + " 100\r\n");
  master.says(announced);
  CHECK(replica.replica_role().link() == nullptr);
  CHECK(replica.info("master_link_status") == "down");
  replica.advance_seconds(2);
  CHECK(replica.replica_role().link() != nullptr);
}

TEST_CASE("What a replica has saved tells its place, and it goes on from there when it is back") {
  LinkedReplica f;
  f.master.sends(bulks({"SELECT", "4"}) + bulks({"SET", "key", "value"}));
  CHECK(f.user.run("SAVE") == kOk);
  const std::string next = std::to_string(f.server.replication_offset() + 1);

  ReplicaServer again("replicaof master 6379\n");
  fs::copy_file(f.path() / "dump.rdb", again.path() / "dump.rdb");
  CHECK(again.persistence->loading().load_at_start() == persist::Loading::Result::kDone);
  REQUIRE(again.persistence->loading().place_at_start());
  again.replication->resume_from(*again.persistence->loading().place_at_start());
  again.advance_seconds(2);
  PlayedMaster master(again);
  CHECK(master.accept() == bulks({"PSYNC", kId, next}));
  master.says("+CONTINUE\r\n");
  master.sends(bulks({"APPEND", "key", "more"}));
  TestClient user(again);
  user.run("SELECT 4");
  CHECK(user.run("GET key") == bulk("valuemore"));
}

TEST_CASE("A dump file whose place in the stream cannot be counted on from tells none") {
  for (const std::string offset : {"9223372036854775807", "4611686018427387905"}) {
    for (const std::string role : {"", "replicaof master 6379\n"}) {
      ReplicaServer again(role);
      persist::WriteOptions options;
      options.aux = {{"repl-stream-db", "0"}, {"repl-id", kOtherId}, {"repl-offset", offset}};
      again.write("dump.rdb", again.dataset(options));
      persist::Loading& loading = again.persistence->loading();
      CHECK(loading.load_at_start() == persist::Loading::Result::kDone);
      if (loading.place_at_start()) again.replication->resume_from(*loading.place_at_start());
      CHECK(again.server.replication_offset() == 0);
      CHECK(again.info("master_replid") != kOtherId);
      CHECK(again.info("master_replid2") != kOtherId);
    }
  }
}

TEST_CASE("Replicas of a master that is back go on, and hear of what has expired meanwhile") {
  ReplicaServer before;
  TestClient user(before);
  TestClient follower(before);
  follower.run("PSYNC ? -1");
  user.run("SET key value PX 100");
  user.run("SET other value");
  before.tick();
  CHECK(user.run("SAVE") == kOk);
  const std::string id = before.info("master_replid");
  const std::string next = std::to_string(before.server.replication_offset() + 1);

  ReplicaServer again;
  fs::copy_file(before.path() / "dump.rdb", again.path() / "dump.rdb");
  again.advance_ms(500);
  persist::Loading& loading = again.persistence->loading();
  CHECK(loading.load_at_start() == persist::Loading::Result::kDone);
  REQUIRE(loading.place_at_start());
  again.replication->resume_from(*loading.place_at_start(), loading.take_dropped_at_start());
  CHECK(again.info("role") == "master");
  CHECK(again.info("master_replid2") == id);
  TestClient back(again);
  back.run("REPLCONF capa psync2");
  CHECK(back.run("PSYNC " + id + " " + next) == "+CONTINUE " + again.info("master_replid") +
                                                    "\r\n" + bulks({"SELECT", "0"}) +
                                                    bulks({"DEL", "key"}));
}

}  // namespace latchkey::tests
