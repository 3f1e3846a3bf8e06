// Replicas that fetch the dataset by a connection of its own, in the forms of Redis and of Valkey.
#include <string>

#include "replication/replication.h"
#include "unit/catch.h"
#include "unit/replication/master_fixture.h"

namespace latchkey::tests {

namespace {

const std::string kSelect0 = bulks({"SELECT", "0"});

// A replica that has been told to fetch the dataset by an RDB channel, and that channel.
struct TwoConnections {
  explicit TwoConnections(Master& master) : main(master), channel(master) {
    main.run("REPLCONF listening-port 7777 capa eof capa psync2 capa rdb-channel-repl");
    const std::string answer = main.run("PSYNC ? -1");
    REQUIRE(answer.starts_with("+RDBCHANNELSYNC "));
    main_id = answer.substr(16, answer.size() - 18);
  }
  std::string connect_channel() {
    CHECK(channel.run("REPLCONF capa eof rdb-only 1 rdb-channel 1 main-ch-client-id " + main_id +
                      " listening-port 7777") == kOk);
    return channel.run("PSYNC ? -1");
  }
  TestClient main;
  TestClient channel;
  std::string main_id;
};

}  // namespace

TEST_CASE(
    "a replica may fetch the dataset by a channel of its own, and gets the stream meanwhile") {
  Master master("repl-diskless-sync-delay 0");
  TestClient user(master);
  user.run("SET before 1");
  TwoConnections replica(master);
  CHECK(master.info("connected_slaves") == "1");
  CHECK(master.info("slave0").find("state=wait_bgsave") != std::string::npos);

  const std::string reply = replica.connect_channel();
  const std::string line = "+FULLRESYNC " + master.server.replication_id() + " " +
                           std::to_string(master.replication->offset()) + "\r\n";
  REQUIRE(reply.starts_with(line + "$EOF:"));
  const std::string mark = reply.substr(line.size() + 5, 40);
  CHECK(master.info("connected_slaves") == "1");
  CHECK(master.info("slave0").find("state=send_bulk_and_stream") != std::string::npos);
  CHECK(user.run("CLIENT LIST").find("flags=SC") != std::string::npos);

  user.run("SET meanwhile 2");
  master.tick();
  CHECK(replica.main.take_output() == kSelect0 + bulks({"SET", "meanwhile", "2"}));
  CHECK(master.finish_sync(replica.channel, "DATASET") == "DATASET" + mark);
  CHECK(master.info("slave0").find("state=online") == std::string::npos);

  // It has loaded what it got.
  replica.main.run("REPLCONF ACK 0");
  master.tick();
  CHECK(master.info("slave0").find("state=online") != std::string::npos);
  CHECK(user.run("CLIENT LIST").find("flags=SC") == std::string::npos);
  user.run("SET after 3");
  master.tick();
  CHECK(replica.main.take_output() == bulks({"SET", "after", "3"}));
}

TEST_CASE("an RDB channel is for a replica that waits for one") {
  Master master("repl-diskless-sync-delay 0");
  TestClient stranger(master);
  CHECK(stranger.run("REPLCONF main-ch-client-id 77") == "-ERR Unrecognized RDB client id: 77\r\n");
  CHECK(stranger.run("REPLCONF rdb-channel 2") ==
        "-ERR value is out of range, value must between 0 and 1\r\n");
  TwoConnections replica(master);
  replica.main->close();
  CHECK(stranger.run("REPLCONF main-ch-client-id " + replica.main_id) ==
        "-ERR Unrecognized RDB client id: " + replica.main_id + "\r\n");
}

TEST_CASE("replicas with and without an RDB channel do not share a snapshot") {
  Master master("repl-diskless-sync-delay 5");
  TwoConnections first(master);
  first.connect_channel();
  TestClient second(master);
  second.run("REPLCONF capa eof capa psync2");
  second.run("PSYNC ? -1");
  master.advance_seconds(6);
  CHECK(master.snapshots->begun == 1);
  CHECK(second.take_output().find("FULLRESYNC") == std::string::npos);
  master.finish_sync(first.channel, "D");
  master.tick();
  CHECK(master.snapshots->begun == 2);
  CHECK(second.take_output().find("FULLRESYNC") != std::string::npos);
}

TEST_CASE("a snapshot whose RDB channel has gone is abandoned") {
  Master master("repl-diskless-sync-delay 0");
  TwoConnections replica(master);
  replica.connect_channel();
  replica.channel->close();
  CHECK(master.snapshots->abandoned == 1);
}

TEST_CASE("a replica whose RDB channel never comes is dropped in the end") {
  Master master("repl-timeout 10");
  TwoConnections replica(master);
  master.advance_seconds(8);
  CHECK(master.info("connected_slaves") == "1");
  master.advance_seconds(4);
  CHECK(master.info("connected_slaves") == "0");
}

TEST_CASE("there is no RDB channel where datasets go by file, or the setting says so") {
  Master by_file("repl-diskless-sync no");
  Master without("repl-rdb-channel no");
  for (Master* master : {&by_file, &without}) {
    TestClient replica(*master);
    replica.run("REPLCONF capa eof capa psync2 capa rdb-channel-repl");
    CHECK(replica.run("PSYNC ? -1").find("RDBCHANNELSYNC") == std::string::npos);
  }
}

namespace {

// The same in Valkey's form.
struct DualConnections {
  explicit DualConnections(Master& master) : main(master), channel(master) {
    main.run("REPLCONF listening-port 7777 capa eof capa psync2 capa dual-channel");
    REQUIRE(main.run("PSYNC ? -1") == "+DUALCHANNELSYNC\r\n");
    REQUIRE(channel.run("REPLCONF capa eof rdb-only 1 rdb-channel 1 listening-port 7777") == kOk);
    announced = channel.run("SYNC");
    id = std::to_string(channel->id);
  }
  std::string join(Master& master, uint64_t offset) {
    CHECK(main.run("REPLCONF set-rdb-client-id " + id) == kOk);
    return main.run("PSYNC " + master.server.replication_id() + " " + std::to_string(offset + 1));
  }
  TestClient main;
  TestClient channel;
  std::string announced;
  std::string id;
};

}  // namespace

TEST_CASE("in Valkey's form the channel holds the stream until the main connection asks for it") {
  Master master("repl-diskless-sync-delay 0\nrepl-backlog-size 16384");
  TestClient user(master);
  user.run("SET before 1");
  DualConnections replica(master);
  const uint64_t offset = master.replication->offset();
  const std::string line = "$ENDOFF:" + std::to_string(offset) + " " +
                           master.server.replication_id() + " 0 " + replica.id + "\r\n$EOF:";
  REQUIRE(replica.announced.starts_with(line));
  const std::string mark = replica.announced.substr(line.size(), 40);
  CHECK(master.replication->count_waiting_channels() == 1);
  // More than the backlog is for.
  const std::string large(10'000, 'x');
  for (int i = 0; i < 10; ++i) {
    user.run_words({"SET", "key", large});
    master.tick();
  }
  CHECK(master.finish_sync(replica.channel, "DATASET") == "DATASET" + mark);
  // The replica has all, and closes the channel.
  replica.channel->on_end_of_input();
  CHECK(master.replication->count_waiting_channels() == 1);
  user.run("SET last 2");
  master.tick();
  std::string stream = kSelect0;
  for (int i = 0; i < 10; ++i) stream += bulks({"SET", "key", large});
  CHECK(replica.join(master, offset) == "+CONTINUE " + master.server.replication_id() + "\r\n" +
                                            stream + bulks({"SET", "last", "2"}));
  CHECK(master.replication->count_waiting_channels() == 0);
  CHECK(master.info("slave0").find("state=send_bulk_and_stream") != std::string::npos);
  replica.main.run("REPLCONF ACK 0");
  master.tick();
  CHECK(master.info("slave0").find("state=online") != std::string::npos);
  CHECK(master.replication->replicas().size() == 1);
}

TEST_CASE("a channel that no main connection joins is freed in the end") {
  Master master("repl-diskless-sync-delay 0");
  DualConnections replica(master);
  master.finish_sync(replica.channel, "DATASET");
  replica.channel->on_end_of_input();
  master.advance_seconds(58);
  CHECK(master.replication->count_waiting_channels() == 1);
  master.advance_seconds(4);
  CHECK(master.replication->count_waiting_channels() == 0);
  CHECK(replica.main.run("REPLCONF set-rdb-client-id " + replica.id) ==
        "-ERR Unrecognized RDB client id " + replica.id + "\r\n");
}

TEST_CASE("a channel of Valkey's form that ends before the dataset is gone at once") {
  Master master("repl-diskless-sync-delay 0");
  DualConnections replica(master);
  replica.channel->on_end_of_input();
  CHECK(master.snapshots->abandoned == 1);
  CHECK(master.replication->count_waiting_channels() == 0);
}

TEST_CASE("who may use Valkey's form of the RDB channel") {
  Master without("repl-rdb-channel no");
  TestClient channel(without);
  channel.run("REPLCONF capa eof rdb-only 1 rdb-channel 1");
  CHECK(channel.run("SYNC") == "-ERR Dual channel replication is not enabled\r\n");
  Master master("repl-diskless-sync-delay 0");
  // Of both forms it is Redis's.
  TestClient knows_both(master);
  knows_both.run("REPLCONF capa eof capa dual-channel capa rdb-channel-repl");
  CHECK(knows_both.run("PSYNC ? -1").starts_with("+RDBCHANNELSYNC"));
  DualConnections replica(master);
  TestClient stranger(master);
  CHECK(stranger.run("REPLCONF set-rdb-client-id " + replica.id) ==
        "-ERR Unrecognized RDB client id " + replica.id + "\r\n");
  // What cannot be continued is begun anew.
  CHECK(replica.main.run("PSYNC " + std::string(40, 'f') + " 1") == "+DUALCHANNELSYNC\r\n");
}

}  // namespace latchkey::tests
