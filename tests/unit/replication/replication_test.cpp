#include "replication/replication.h"

#include <unistd.h>

#include <string>

#include "server/memory_limit.h"
#include "server/observe/memory_report.h"
#include "unit/catch.h"
#include "unit/replication/master_fixture.h"

namespace latchkey::tests {

namespace {

std::string request(std::initializer_list<std::string_view> words) {
  return bulks(words);
}
const std::string kSelect0 = request({"SELECT", "0"});

}  // namespace

TEST_CASE("SYNC gives the dataset as a bulk, then what happened since its snapshot") {
  Master master;
  TestClient user(master);
  user.run("SET before 1");
  TestClient replica(master);
  CHECK(replica.run("SYNC").empty());
  user.run("SET meanwhile 2");
  CHECK(master.finish_sync(replica, "DATASET") ==
        "$7\r\nDATASET" + kSelect0 + request({"SET", "meanwhile", "2"}));
  user.run("SET after 3");
  master.tick();
  CHECK(replica.take_output() == request({"SET", "after", "3"}));
}

TEST_CASE("PSYNC of a new replica names the history and the offset of the snapshot") {
  Master master;
  TestClient first(master);
  first.run("SYNC");
  master.finish_sync(first, "D");
  TestClient user(master);
  user.run("SET key 1");
  TestClient replica(master);
  const auto offset = std::to_string(master.replication->offset());
  CHECK(offset != "0");
  CHECK(replica.run("PSYNC ? -1") ==
        "+FULLRESYNC " + master.server.replication_id() + " " + offset + "\r\n");
  CHECK(master.snapshots->place.offset == master.replication->offset());
  CHECK(master.snapshots->place.replication_id == master.server.replication_id());
}

TEST_CASE("the backlog is no part of the dataset") {
  Master master;
  TestClient replica(master);
  replica.run("SYNC");
  master.finish_sync(replica, "D");
  const server::MemoryReport memory = server::measure_memory(master.server);
  const size_t backlog = master.server.figures().replication().backlog_memory;
  CHECK(backlog > 0);
  CHECK(memory.buffers == backlog);
  server::MemoryReport without = memory;
  without.buffers = 0;
  CHECK(memory.overhead() - without.overhead() == backlog);
}
TEST_CASE("a stream has its SELECT anew behind each snapshot, for all who follow") {
  Master master;
  Follower first(master);
  TestClient user(master);
  user.run("SET a 1");
  master.tick();
  CHECK(first.take_output() == kSelect0 + request({"SET", "a", "1"}));
  TestClient second(master);
  second.run("SYNC");
  user.run("SET b 2");
  CHECK(master.finish_sync(second, "D") == "$1\r\nD" + kSelect0 + request({"SET", "b", "2"}));
  CHECK(first.take_output() == kSelect0 + request({"SET", "b", "2"}));
}

TEST_CASE("replicas that come while a file is written share it") {
  Master master;
  TestClient user(master);
  TestClient first(master);
  first.run("SYNC");
  user.run("SET a 1");
  TestClient second(master);
  CHECK(second.run("PSYNC ? -1") == "+FULLRESYNC " + master.server.replication_id() + " 0\r\n");
  user.run("SET b 2");
  const std::string expected =
      "$1\r\nD" + kSelect0 + request({"SET", "a", "1"}) + request({"SET", "b", "2"});
  CHECK(master.finish_sync(first, "D") == expected);
  CHECK(second.take_output() == expected);
  CHECK(master.snapshots->begun == 1);
}

TEST_CASE("a replica that knows the mark gets the dataset by pipe, and the stream behind its ACK") {
  Master master("repl-diskless-sync-delay 0");
  TestClient user(master);
  TestClient replica(master);
  replica.run("REPLCONF capa eof capa psync2");
  const std::string reply = replica.run("PSYNC ? -1");
  const std::string line = "+FULLRESYNC " + master.server.replication_id() + " 0\r\n";
  REQUIRE(reply.starts_with(line + "$EOF:"));
  const std::string mark = reply.substr(line.size() + 5, 40);
  CHECK(reply == line + "$EOF:" + mark + "\r\n");

  master.snapshots->write("HALF");
  master.tick();
  CHECK(replica.take_output() == "HALF");
  user.run("SET key 1");
  CHECK(master.finish_sync(replica, "REST") == "REST" + mark);
  CHECK(master.info("slave0").starts_with("ip=?,port=0,state=online"));
  user.run("SET key 2");
  master.tick();
  CHECK(replica.take_output().empty());

  CHECK(replica.run("REPLCONF ACK 0").empty());
  user.run("SET key 3");  // in the turn of the acknowledgement: behind what is held
  master.tick();
  CHECK(replica.take_output() == kSelect0 + request({"SET", "key", "1"}) +
                                     request({"SET", "key", "2"}) + request({"SET", "key", "3"}));
}

TEST_CASE("snapshots by pipe wait for more replicas, so long or until there are enough") {
  Master master("repl-diskless-sync-delay 3\nrepl-diskless-sync-max-replicas 2");
  TestClient first(master);
  first.run("REPLCONF capa eof");
  CHECK(first.run("PSYNC ? -1").empty());
  master.advance_seconds(2);
  CHECK(first.take_output() == "\n\n");
  CHECK(master.snapshots->begun == 0);
  SECTION("long enough") {
    master.advance_seconds(1);
    CHECK(master.snapshots->begun == 1);
  }
  SECTION("enough of them") {
    TestClient second(master);
    second.run("REPLCONF capa eof");
    second.run("PSYNC ? -1");
    master.tick();
    CHECK(master.snapshots->begun == 1);
    CHECK(second.take_output().starts_with("+FULLRESYNC "));
    CHECK(first.take_output().starts_with("+FULLRESYNC "));
  }
}

TEST_CASE("a slow reader of a pipe is not sent more than it takes") {
  Master master("repl-diskless-sync-delay 0");
  TestClient replica(master);
  replica.run("REPLCONF capa eof");
  replica.run("PSYNC ? -1");
  constexpr size_t kPiece = 32 * 1024;
  const std::string piece(kPiece, 'x');
  size_t written = 0;
  for (int i = 0; i < 20; ++i) {
    if (replica->out().size() > 256 * 1024) break;
    master.snapshots->write(piece);
    written += piece.size();
    master.tick();
  }
  master.snapshots->write(piece);
  written += piece.size();
  master.tick();
  CHECK(replica->out().size() < written);
  std::string got = replica.take_output();
  got += master.finish_sync(replica, "");
  CHECK(got.size() == written + 40);
}

TEST_CASE("a replica that comes back goes on where it was") {
  Master master;
  TestClient user(master);
  std::string offset;
  {
    Follower replica(master);
    user.run("SET a 1");
    master.tick();
    offset = std::to_string(master.replication->offset() + 1);
    replica->close();
    master.tick();
  }
  user.run("SET b 2");
  const std::string id = master.server.replication_id();
  TestClient again(master);
  again.run("REPLCONF capa psync2");
  CHECK(again.run("PSYNC " + id + " " + offset) ==
        "+CONTINUE " + id + "\r\n" + request({"SET", "b", "2"}));
  user.run("SET c 3");
  master.tick();
  CHECK(again.take_output() == request({"SET", "c", "3"}));
  CHECK(master.server.figures().replication().partial_syncs == 1);
  CHECK(master.server.figures().replication().refused_partial_syncs == 0);

  SECTION("one of old without the id") {
    TestClient old(master);
    CHECK(old.run("PSYNC " + id + " " + std::to_string(master.replication->offset() + 1)) ==
          "+CONTINUE\r\n");
  }
  SECTION("but not with another history, or behind the end") {
    TestClient other(master);
    CHECK(other.run("PSYNC 0123456789012345678901234567890123456789 " + offset)
              .starts_with("+FULLRESYNC "));
    TestClient ahead(master);
    CHECK(ahead.run("PSYNC " + id + " " + std::to_string(master.replication->offset() + 2))
              .starts_with("+FULLRESYNC "));
    CHECK(master.server.figures().replication().refused_partial_syncs == 2);
    CHECK(master.server.figures().replication().full_syncs == 3);
  }
  SECTION("nor when the backlog has forgotten") {
    user.run_words({"SET", "large", std::string(40000, 'x')});
    user.run("CONFIG SET repl-backlog-size 16384");
    master.tick();
    again.take_output();
    master.tick();
    TestClient late(master);
    CHECK(late.run("PSYNC " + id + " " + offset).starts_with("+FULLRESYNC "));
  }
}

TEST_CASE("a snapshot that fails ends the connections of those who waited for it") {
  Master master("repl-diskless-sync-delay 0");
  TestClient by_file(master);
  SECTION("on disk") {
    by_file.run("SYNC");
    master.snapshots->end(false);
    CHECK(by_file->has(server::kClientClosing));
  }
  SECTION("by pipe") {
    by_file.run("REPLCONF capa eof");
    by_file.run("PSYNC ? -1");
    master.snapshots->end(false);
    CHECK(by_file->has(server::kClientClosing));
  }
  SECTION("when it cannot begin") {
    master.snapshots->fail_to_begin = true;
    CHECK(by_file.run("SYNC") == "-BGSAVE failed, replication can't continue\r\n");
    CHECK(by_file->has(server::kClientCloseAfterReply));
  }
  CHECK(master.info("connected_slaves") == (by_file->has(server::kClientClosing) ? "0" : "1"));
}

TEST_CASE("a snapshot nobody waits for any more is abandoned, unless there are save points") {
  const bool saves = GENERATE(false, true);
  Master master(saves ? "save 900 1" : "save \"\"");
  TestClient replica(master);
  TestClient other(master);
  replica.run("SYNC");
  other.run("SYNC");
  replica->close();
  CHECK(master.snapshots->abandoned == 0);
  other->close();
  CHECK(master.snapshots->abandoned == (saves ? 0 : 1));
}

TEST_CASE("an rdb-only replica gets the dataset and no stream") {
  Master master;
  TestClient user(master);
  TestClient replica(master);
  replica.run("REPLCONF rdb-only 1");
  replica.run("SYNC");
  user.run("SET a 1");
  CHECK(master.finish_sync(replica, "D") == "$1\r\nD");
  CHECK(replica->has(server::kClientCloseAfterReply));
}

TEST_CASE("replicas are pinged, and those who wait get newlines") {
  Master master("repl-ping-replica-period 2");
  Follower replica(master);
  replica.take_output();
  TestClient waiting(master);
  waiting.run("SYNC");
  master.advance_seconds(4);
  CHECK(replica.take_output() == request({"ping"}) + request({"ping"}));
  CHECK(waiting.take_output() == "\n\n\n\n");
}

TEST_CASE("replicas are pinged at every period of the server's, whenever they came") {
  Master master("repl-ping-replica-period 3");
  master.advance_seconds(20);
  Follower replica(master);
  replica.take_output();
  master.advance_seconds(1);
  CHECK(replica.take_output() == request({"ping"}));
  master.advance_seconds(2);
  CHECK(replica.take_output().empty());
  master.advance_seconds(1);
  CHECK(replica.take_output() == request({"ping"}));
}

TEST_CASE("a replica that is silent for too long is dropped, one without acknowledgements is not") {
  Master master("repl-timeout 5");
  Follower replica(master);
  TestClient plain(master);
  plain.run("SYNC");
  master.finish_sync(plain, "D");
  master.advance_seconds(4);
  replica.run("REPLCONF ACK 1");
  master.advance_seconds(5);
  CHECK(master.info("connected_slaves") == "2");
  CHECK(master.info("slave0") == "ip=?,port=7777,state=online,offset=1,lag=5,io-thread=0");
  master.advance_seconds(1);
  CHECK(master.info("connected_slaves") == "1");
}

TEST_CASE("a replica that sends empty lines while it loads its dataset is not dropped") {
  Master master("repl-timeout 5");
  Follower replica(master);
  replica.run("REPLCONF ACK 1");
  for (int i = 0; i < 3; ++i) {
    master.advance_seconds(4);
    REQUIRE(master.info("connected_slaves") == "1");
    CHECK(replica.send("\n").find('-') == std::string::npos);
  }
  // The time is another, the offset is not.
  CHECK(master.info("slave0") == "ip=?,port=7777,state=online,offset=1,lag=0,io-thread=0");
  master.advance_seconds(6);
  CHECK(master.info("connected_slaves") == "0");
}

TEST_CASE("a master whose clock is set back goes on with its work of every second") {
  constexpr int64_t kBackMs = -3'600'000;
  SECTION("it pings, and drops silent replicas") {
    Master master("repl-ping-replica-period 1\nrepl-timeout 5");
    Follower replica(master);
    master.advance_seconds(1);
    master.step_ms(kBackMs);
    master.tick();
    replica.run("REPLCONF ACK 1");
    replica.take_output();
    master.advance_seconds(2);
    CHECK(replica.take_output().find("ping") != std::string::npos);
    master.advance_seconds(6);
    CHECK(master.info("connected_slaves") == "0");
  }
  SECTION("it begins a snapshot that waits for more replicas") {
    Master master("repl-diskless-sync-delay 3");
    TestClient replica(master);
    replica.run("REPLCONF capa eof capa psync2");
    replica.run("PSYNC ? -1");
    master.advance_seconds(1);
    CHECK(master.snapshots->begun == 0);
    master.step_ms(kBackMs);
    master.tick();
    CHECK(master.snapshots->begun == 0);
    master.advance_seconds(2);
    CHECK(master.snapshots->begun == 1);
  }
}

TEST_CASE("the backlog goes when there were no replicas for long, and the history with it") {
  Master master("repl-backlog-ttl 10");
  TestClient user(master);
  {
    Follower replica(master);
    replica->close();
    master.tick();
  }
  const std::string id = master.server.replication_id();
  master.advance_seconds(10);
  CHECK(master.info("repl_backlog_active") == "1");
  CHECK(master.server.propagation().wanted());
  master.advance_seconds(1);
  CHECK(master.info("repl_backlog_active") == "0");
  CHECK_FALSE(master.server.propagation().wanted());
  CHECK(master.server.replication_id() != id);
}

TEST_CASE("a file that was made for replicas alone is removed when they have it") {
  const std::string del = "repl-diskless-sync no\nrdb-del-sync-files yes\n";
  const auto remains = [](const std::string& settings) {
    Master master(settings);
    TestClient replica(master);
    REQUIRE(replica.run("PSYNC ? -1").starts_with("+FULLRESYNC"));
    CHECK(master.finish_sync(replica, "DATASET") == "$7\r\nDATASET");
    return access(master.snapshots->path().c_str(), F_OK) == 0;
  };
  CHECK_FALSE(remains(del + "save \"\""));
  CHECK(remains(del + "save \"\"\nappendonly yes"));
  CHECK(remains(del + "save 60 1"));
  CHECK(remains("repl-diskless-sync no\nsave \"\""));
}

TEST_CASE("WAIT ends when enough replicas have acknowledged what the client wrote") {
  Master master;
  Follower first(master);
  Follower second(master);
  TestClient user(master);
  CHECK(user.run("WAIT 0 0") == integer(2));
  user.run("SET a 1");
  const std::string offset = std::to_string(master.replication->offset());
  CHECK(user.run("WAIT 2 0").empty());
  first.take_output();
  master.tick();
  CHECK(first.take_output() ==
        kSelect0 + request({"SET", "a", "1"}) + request({"REPLCONF", "GETACK", "*"}));
  first.run("REPLCONF ACK " + offset);
  master.tick();
  CHECK(user.take_output().empty());
  second.run("REPLCONF ACK " + offset);
  master.tick();
  CHECK(user.take_output() == integer(2));
  CHECK(user.run("WAIT 2 0") == integer(2));
}

TEST_CASE("WAIT tells how many there were when its time is over, and at once in a transaction") {
  Master master;
  Follower replica(master);
  TestClient user(master);
  user.run("SET a 1");
  CHECK(user.run("WAIT 1 100").empty());
  master.advance_ms(100);
  master.tick();
  CHECK(user.take_output() == integer(0));
  user.run("MULTI");
  user.run("WAIT 1 0");
  CHECK(user.run("EXEC") == array({integer(0)}));
}

TEST_CASE("writes are refused while there are fewer good replicas than wanted") {
  Master master("min-replicas-to-write 1\nmin-replicas-max-lag 3");
  TestClient user(master);
  const std::string refusal = error("NOREPLICAS Not enough good replicas to write.");
  CHECK(user.run("SET a 1") == refusal);
  Follower replica(master);
  CHECK(user.run("SET a 1") == kOk);
  CHECK(master.info("min_slaves_good_slaves") == "1");
  master.advance_seconds(4);
  CHECK(user.run("SET a 1") == refusal);
  replica.run("REPLCONF ACK 1");
  master.advance_seconds(1);
  CHECK(user.run("SET a 1") == kOk);
}

TEST_CASE("SHUTDOWN waits for replicas to catch up, and nothing is written meanwhile") {
  Master master("shutdown-timeout 5");
  Follower replica(master);
  TestClient user(master);
  TestClient other(master);
  user.run("SET a 1");
  CHECK(user.run("SHUTDOWN").empty());
  CHECK(other.run("SHUTDOWN").empty());
  TestClient writer(master);
  CHECK(writer.run("SET a 2").empty());
  master.tick();
  CHECK_FALSE(master.server.stop_requested());

  SECTION("until they have") {
    replica.run("REPLCONF ACK " + std::to_string(master.replication->offset()));
    master.tick();
    CHECK(master.server.stop_requested());
  }
  SECTION("until the time is over") {
    master.advance_seconds(4);
    CHECK_FALSE(master.server.stop_requested());
    master.advance_seconds(1);
    CHECK(master.server.stop_requested());
  }
  SECTION("until it is asked to end at once") {
    TestClient third(master);
    CHECK(third.run("SHUTDOWN NOW").empty());
    CHECK(master.server.stop_requested());
  }
  SECTION("or until somebody thinks better of it") {
    TestClient third(master);
    CHECK(third.run("SHUTDOWN ABORT") == kOk);
    const std::string failed = error("ERR Errors trying to SHUTDOWN. Check logs.");
    CHECK(user.take_output() == failed);
    CHECK(other.take_output() == failed);
    CHECK(third.run("SHUTDOWN ABORT") == error("ERR No shutdown in progress."));
    CHECK_FALSE(master.server.stop_requested());
  }
}

TEST_CASE("a client that wants no replies hears nothing of a shutdown that is called off") {
  Master master("shutdown-timeout 5");
  Follower replica(master);
  TestClient user(master);
  user.run("SET a 1");
  user.run("CLIENT REPLY OFF");
  CHECK(user.run("SHUTDOWN").empty());
  master.tick();
  TestClient third(master);
  CHECK(third.run("SHUTDOWN ABORT") == kOk);
  CHECK(user.take_output().empty());
  CHECK(user.run("CLIENT REPLY ON") == kOk);
  CHECK(third.run("INFO errorstats").find("errorstat_ERR:count=1") != std::string::npos);
}

TEST_CASE("SHUTDOWN waits for replicas that have not got their dataset yet") {
  Master master("shutdown-timeout 5");
  TestClient user(master);
  TestClient replica(master);
  replica.run("PSYNC ? -1");
  user.run("SET a 1");
  CHECK(user.run("SHUTDOWN").empty());
  master.tick();
  CHECK_FALSE(master.server.stop_requested());
  master.finish_sync(replica, "D");
  master.tick();
  CHECK_FALSE(master.server.stop_requested());
  replica.run("REPLCONF ACK " + std::to_string(master.replication->offset()));
  master.tick();
  CHECK(master.server.stop_requested());
}

TEST_CASE("a replica that asks for a reply is disconnected") {
  Master master;
  Follower replica(master);
  SECTION("of a command without keys") {
    replica.run("PING");
  }
  SECTION("of one that reads") {
    replica.run("GET key");
  }
  SECTION("of none there is") {
    replica.run("NOSUCH");
  }
  CHECK(replica->has(server::kClientClosing));
}

TEST_CASE("a replica that does not read is dropped at its limit, whatever it waits for") {
  Master master("client-output-buffer-limit replica 100k 0 0\nrepl-backlog-size 16k");
  TestClient user(master);
  TestClient replica(master);
  replica.run("SYNC");
  const std::string value(40'000, 'x');
  for (int i = 0; i < 2; ++i) {
    user.run_words({"SET", "key", value});
    master.tick();
  }
  CHECK_FALSE(replica->has(server::kClientClosing));
  user.run_words({"SET", "key", value});
  master.tick();
  CHECK(master.info("connected_slaves") == "0");
}

TEST_CASE("published messages go to replicas") {
  Master master;
  Follower replica(master);
  TestClient user(master);
  user.run("PUBLISH channel message");
  master.tick();
  CHECK(replica.take_output() == kSelect0 + request({"PUBLISH", "channel", "message"}));
}

TEST_CASE("ROLE, INFO and CLIENT LIST know the replicas") {
  Master master;
  TestClient user(master);
  CHECK(user.run("ROLE") == array({bulk("master"), integer(0), "*0\r\n"}));
  Follower replica(master);
  user.run("SET a 1");
  replica.run("REPLCONF ACK 5");
  const auto offset = static_cast<int64_t>(master.replication->offset());
  CHECK(user.run("ROLE") ==
        array({bulk("master"), integer(offset), array({bulks({"?", "7777", "5"})})}));
  CHECK(master.info("slave0") == "ip=?,port=7777,state=online,offset=5,lag=0,io-thread=0");
  CHECK(master.info("role") == "master");
  CHECK(master.info("master_repl_offset") == std::to_string(offset));
  CHECK(master.info("repl_backlog_first_byte_offset") == "1");
  CHECK(user.run("CLIENT LIST TYPE replica").find(" flags=S ") != std::string::npos);
}

TEST_CASE("a replica that asks for the clock gets it by the stream") {
  Master master;
  Follower replica(master);
  master.server.data_clock().freeze();
  const std::string now = std::to_string(master.server.data_clock().wall_us());
  CHECK(replica.run("REPLCONF CLOCK ?").empty());
  master.tick();
  CHECK(replica.take_output() == request({"REPLCONF", "CLOCK", "frozen:" + now + ":1"}));
}

TEST_CASE("REPLCONF refuses what it does not know") {
  Master master;
  TestClient client(master);
  CHECK(client.run("REPLCONF CLOCK ?") ==
        error("ERR REPLCONF CLOCK is only for connections between master and replica"));
  CHECK(client.run("REPLCONF one") == error("ERR syntax error"));
  CHECK(client.run("REPLCONF version 8") == error("ERR Unrecognized REPLCONF option: version"));
  CHECK(client.run("REPLCONF capa whatever") == kOk);
  CHECK(client.run("REPLCONF rdb-only 2") ==
        error("ERR value is out of range, value must between 0 and 1"));
  CHECK(client.run("REPLCONF rdb-filter-only keys") ==
        error("ERR Unsupported rdb-filter-only option: keys"));
  CHECK(client.run("REPLCONF ACK 1").empty());
  CHECK(client.run("REPLCONF GETACK *").empty());
  client.run("REPLCONF rdb-filter-only functions");
  CHECK(client.run("SYNC") == error("ERR Filtered replica requires EOF capability"));
}

TEST_CASE("what waits for slow replicas does not count as memory that eviction could free") {
  Master master("repl-backlog-size 20000");
  TestClient replica(master);
  replica.run("SYNC");
  const size_t before = master.server.memory_limit().not_counted();
  TestClient user(master);
  user.run("SET key " + std::string(100'000, 'x'));
  master.tick();
  CHECK(master.server.memory_limit().not_counted() >= before + 80'000);
  replica->close();
  CHECK(master.server.memory_limit().not_counted() < before + 40'000);
}

TEST_CASE("what waits for slow replicas is kept once, and stays of use to those who come back") {
  Master master("repl-backlog-size 20000\nsave \"\"");
  TestClient user(master);
  Follower fast(master);
  TestClient slow(master);
  TestClient as_slow(master);
  for (TestClient* replica : {&slow, &as_slow}) replica->run("SYNC");
  const std::string id = master.server.replication_id();
  const uint64_t offset = master.replication->offset();
  fast->close();
  for (int i = 0; i < 5; ++i) {
    user.run("SET key " + std::string(100'000, 'x'));
    master.tick();
  }
  CHECK(master.server.figures().replication().buffers_memory < 700'000);
  CHECK(master.server.figures().replication().backlog_memory < 200'000);

  const std::string from = std::to_string(offset + 1);
  TestClient back(master);
  const std::string reply = back.run("PSYNC " + id + " " + from);
  CHECK(reply.starts_with("+CONTINUE\r\n"));
  CHECK(reply.size() > 500'000);
  slow->close();
  CHECK(master.server.figures().replication().buffers_memory > 500'000);
  as_slow->close();
  CHECK(master.server.figures().replication().buffers_memory < 100'000);
  TestClient late(master);
  CHECK(late.run("PSYNC " + id + " " + from).starts_with("+FULLRESYNC "));
}

TEST_CASE("a replica over its limit leaves while others are still to be served") {
  Master master(
      "repl-backlog-size 20000\nclient-output-buffer-limit \"replica 1000 0 0\"\nsave \"\"");
  TestClient user(master);
  TestClient slow(master);
  TestClient as_slow(master);
  for (TestClient* replica : {&slow, &as_slow}) replica->run("SYNC");
  const uint64_t ids[] = {slow->id, as_slow->id};
  user.run("SET key " + std::string(300'000, 'x'));
  master.tick();
  for (const uint64_t id : ids) CHECK(master.server.clients().find(id) == nullptr);
  CHECK(master.snapshots->abandoned == 1);
}

TEST_CASE("DEBUG REPLICATE sends replicas words that are not run") {
  Master master("enable-debug-command yes");
  TestClient user(master);
  Follower replica(master);
  CHECK(user.run("DEBUG REPLICATE no-such-command key") == "+OK\r\n");
  master.tick();
  CHECK(replica.take_output() == request({"no-such-command", "key"}));
}

TEST_CASE("DEBUG sets where a synchronization stops, and how long a channel is held") {
  Master master("enable-debug-command yes\n");
  TestClient client(master);
  const server::DebugSettings& settings = master.server.debug_settings();
  using Pause = server::ReplicationPause;
  for (const auto& [words, pause] :
       {std::pair<const char*, Pause>{"REPL-PAUSE after-fork", Pause::kAfterFork},
        {"REPL-PAUSE before-rdb-channel", Pause::kBeforeRdbChannel},
        {"REPL-PAUSE on-streaming-repl-buf", Pause::kOnStreaming},
        {"REPL-PAUSE clear", Pause::kNone},
        {"PAUSE-AFTER-FORK 1", Pause::kAfterFork},
        {"PAUSE-AFTER-FORK 0", Pause::kNone},
        {"PAUSE-AFTER-FORK 2", Pause::kAfterFork}}) {
    INFO(words);
    CHECK(client.run("DEBUG " + std::string(words)) == kOk);
    CHECK(settings.replication_pause == pause);
  }
  CHECK(client.run("DEBUG REPL-PAUSE now") ==
        error("ERR unknown subcommand or wrong number of arguments for 'repl-pause'. Try DEBUG "
              "HELP."));
  CHECK(client.run("DEBUG PAUSE-AFTER-FORK x") ==
        error("ERR value is not an integer or out of range"));
  CHECK(settings.replication_pause == Pause::kAfterFork);
  CHECK(client.run("DEBUG DELAY-RDB-CLIENT-FREE-SECONDS 7") == kOk);
  CHECK(settings.rdb_channel_grace_s == 7);
  CHECK(client.run("DEBUG DELAY-RDB-CLIENT-FREE-SECONDS -1").starts_with("-ERR"));
  CHECK(client.run("DEBUG DELAY-RDB-CLIENT-FREE-SECONDS 2147483648").starts_with("-ERR"));
  CHECK(settings.rdb_channel_grace_s == 7);
  CHECK(client.run("DEBUG DELAY-RDB-CLIENT-FREE-SECONDS 2147483647") == kOk);
}

TEST_CASE("PSYNC and REPLCONF refuse what no replica says") {
  Master master;
  TestClient replica(master);
  CHECK(replica.run("PSYNC ? one") == error("ERR value is not an integer or out of range"));
  // As long as the longest name of a host, and one byte more.
  const std::string longest(255, 'h');
  CHECK(replica.run("REPLCONF ip-address " + longest) == kOk);
  CHECK(replica.run("REPLCONF ip-address " + longest + "h") ==
        error("ERR REPLCONF ip-address provided by replica instance is too long: 256 bytes"));
  CHECK(replica.run("REPLCONF set-cluster-node-id x") ==
        error("ERR Unrecognized REPLCONF option: set-cluster-node-id"));
  Master valkey("emulate \"valkey 9.1\"\n");
  TestClient other(valkey);
  CHECK(other.run("REPLCONF set-cluster-node-id x") ==
        error("ERR This instance has cluster support disabled"));
  CHECK(other.run("REPLCONF version 9.1.0") == kOk);
}

TEST_CASE("A client with replies that have not left is not made a replica") {
  Master master;
  TestClient replica(master);
  replica->reply.ok();
  CHECK(replica.run("PSYNC ? -1") ==
        std::string(kOk) + error("ERR SYNC and PSYNC are invalid with pending output"));
  CHECK(replica.run("PSYNC ? -1").starts_with("+FULLRESYNC "));
}

TEST_CASE("Valkey tells of each replica what it is") {
  Master master("emulate \"valkey 9.1\"\n");
  Follower follower(master);
  CHECK(master.info("slave0").ends_with(",type=replica"));
  CHECK(master.info("slave0").find("state=online") != std::string::npos);
  Master redis;
  Follower other(redis);
  CHECK(redis.info("slave0").find("type=") == std::string::npos);
}

}  // namespace latchkey::tests
