// A replica's role: the stream it applies, what it serves, what it is when its link breaks, its
// master changes or it is promoted, and the replicas of its own.
#include "replication/replica_role.h"

#include <filesystem>
#include <string>

#include "unit/catch.h"
#include "unit/replication/played_master.h"

namespace latchkey::tests {

namespace fs = std::filesystem;
using replication::ReplicaRole;

TEST_CASE("The stream is applied, counted, and acknowledged each second") {
  LinkedReplica f;
  const std::string set = bulks({"SELECT", "2"}) + bulks({"SET", "key", "value"});
  f.master.sends(set);
  CHECK(f.user.run("GET key") == kNull);
  f.user.run("SELECT 2");
  CHECK(f.user.run("GET key") == bulk("value"));
  CHECK(f.server.replication_offset() == 100 + static_cast<int64_t>(set.size()));
  CHECK(f.master.received().empty());
  f.advance_seconds(2);
  const std::string offset = std::to_string(f.server.replication_offset());
  CHECK(f.master.received().find(bulks({"REPLCONF", "ACK", offset})) != std::string::npos);
}

TEST_CASE("GETACK is answered with what came before it") {
  LinkedReplica f;
  const std::string set = bulks({"SET", "key", "value"});
  f.master.sends(set + bulks({"REPLCONF", "GETACK", "*"}) + bulks({"SET", "key", "other"}));
  CHECK(f.master.received() == bulks({"REPLCONF", "ACK", std::to_string(100 + set.size())}));
}

TEST_CASE("Requests of the stream come in pieces") {
  LinkedReplica f;
  const std::string set = bulks({"SET", "key", "value"});
  for (const char byte : set) f.master.sends(std::string(1, byte));
  CHECK(f.user.run("GET key") == bulk("value"));
  CHECK(f.server.replication_offset() == 100 + static_cast<int64_t>(set.size()));
}

TEST_CASE("REPLICAOF wants a master that has a name") {
  LinkedReplica f;
  CHECK(f.user.run_words({"REPLICAOF", "", "6379"}) == error("ERR Invalid master host"));
  CHECK(f.user.run("REPLICAOF NO ONE") == kOk);
  CHECK(f.user.run_words({"REPLICAOF", "", "6379"}) == error("ERR Invalid master host"));
  CHECK(f.user.run("SET key value") == kOk);
}

TEST_CASE("Clients of a replica read and do not write") {
  LinkedReplica f;
  f.master.sends(bulks({"SET", "key", "value"}));
  CHECK(f.user.run("GET key") == bulk("value"));
  const std::string refused = error("READONLY You can't write against a read only replica.");
  CHECK(f.user.run("SET key other") == refused);
  f.user.run("MULTI");
  CHECK(f.user.run("SET key other") == refused);
  CHECK(f.user.run("EXEC") == error("EXECABORT Transaction discarded because of previous errors."));
  CHECK(f.user.run_words({"EVAL_RO", "return redis.call('get', KEYS[1])", "1", "key"}) ==
        bulk("value"));
  CHECK(f.user.run_words({"EVAL", "return redis.call('del', KEYS[1])", "1", "key"})
            .starts_with("-READONLY You can't write against a read only replica. script: "));
  f.user.run("CONFIG SET replica-read-only no");
  CHECK(f.user.run("SET key other") == kOk);
  CHECK(f.server.replication_offset() ==
        100 + static_cast<int64_t>(bulks({"SET", "key", "value"}).size()));
}

TEST_CASE("A replica hides what has expired, and leaves it to the master to remove it") {
  LinkedReplica f;
  const std::string deadline = std::to_string(f.now_ms() + 50);
  f.master.sends(bulks({"SET", "key", "value", "PXAT", deadline}));
  f.advance_ms(60);
  f.tick();
  CHECK(f.user.run("GET key") == kNull);
  CHECK(f.user.run("TTL key") == integer(-2));
  CHECK(f.user.run("DBSIZE") == integer(1));
  // The master has seen it alive.
  f.master.sends(bulks({"APPEND", "key", "more"}) + bulks({"PERSIST", "key"}));
  CHECK(f.user.run("GET key") == bulk("valuemore"));
  f.master.sends(bulks({"DEL", "key"}));
  CHECK(f.user.run("DBSIZE") == integer(0));
}

TEST_CASE("Without a link a replica serves what it has, unless it must not") {
  LinkedReplica f;
  f.master.sends(bulks({"SET", "key", "value"}));
  f.master.hangs_up();
  CHECK(f.user.run("GET key") == bulk("value"));
  f.user.run("CONFIG SET replica-serve-stale-data no");
  const std::string refused =
      error("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.");
  CHECK(f.user.run("GET key") == refused);
  CHECK(f.user.run("PING") == refused);
  CHECK(f.user.run("MULTI") == kOk);
  CHECK(f.user.run("GET key") == refused);
  CHECK(f.user.run("EXEC") == error("EXECABORT Transaction discarded because of previous errors."));
  CHECK(f.info("role") == "slave");
}

TEST_CASE("INFO counts attempts to reach the master, and the time without it") {
  ReplicaServer f;
  PlayedMaster master(f);
  TestClient user(f);
  const auto counts = [&] {
    return f.info("master_current_sync_attempts") + " of " + f.info("master_total_sync_attempts");
  };
  user.run("REPLICAOF master 6379");
  f.advance_seconds(3);
  CHECK(f.info("total_disconnect_time_sec") == "0");
  master.give_dataset(empty_dataset());
  CHECK(f.info("total_disconnect_time_sec") == "0");
  CHECK(counts() == "1 of 1");
  master.hangs_up();
  CHECK(counts() == "1 of 2");
  f.advance_seconds(2);
  CHECK(f.info("total_disconnect_time_sec") == "2");
  master.accept();
  master.says("+CONTINUE\r\n");
  CHECK(counts() == "1 of 2");
  CHECK(f.info("total_disconnect_time_sec") == "2");

  // The time as a master counts when there is a link again.
  user.run("REPLICAOF NO ONE");
  f.advance_seconds(4);
  user.run("REPLICAOF other 6379");
  CHECK(counts() == "1 of 1");
  CHECK(f.info("total_disconnect_time_sec") == "2");
  f.replica_role().link()->on_disconnect();
  CHECK(f.replica_role().link() == nullptr);
  f.advance_seconds(1);
  f.tick();
  CHECK(counts() == "2 of 2");
  master.give_dataset(empty_dataset());
  CHECK(f.info("total_disconnect_time_sec") == "7");
}

TEST_CASE("A broken link is taken up where the stream was") {
  LinkedReplica f;
  const std::string set = bulks({"SELECT", "3"}) + bulks({"SET", "key", "value"});
  f.master.sends(set);
  const auto next = std::to_string(101 + set.size());
  f.master.hangs_up();
  CHECK(f.logged("Caching the disconnected master state."));
  CHECK(f.master.accept() == bulks({"PSYNC", kId, next}));
  f.master.says("+CONTINUE\r\n");
  CHECK(f.info("master_link_status") == "up");
  // The database that was selected is selected still.
  f.master.sends(bulks({"SET", "other", "value"}));
  f.user.run("SELECT 3");
  CHECK(f.user.run("GET other") == bulk("value"));
}

TEST_CASE("A transaction that the link broke in comes anew as a whole") {
  LinkedReplica f;
  const std::string before = bulks({"SET", "key", "1"});
  f.master.sends(before + bulks({"MULTI"}) + bulks({"INCR", "key"}));
  CHECK(f.user.run("GET key") == bulk("1"));
  f.master.hangs_up();
  CHECK(f.master.accept() == bulks({"PSYNC", kId, std::to_string(101 + before.size())}));
  f.master.says("+CONTINUE\r\n");
  const std::string unit = bulks({"MULTI"}) + bulks({"INCR", "key"}) + bulks({"EXEC"});
  f.master.sends(unit);
  CHECK(f.user.run("GET key") == bulk("2"));
  CHECK(f.server.replication_offset() == 100 + static_cast<int64_t>(before.size() + unit.size()));
}

TEST_CASE("What is no request ends the link, and nothing is gone on from") {
  LinkedReplica f;
  SECTION("words of the inline kind") {
    f.master.sends("SET key value\r\n");
    CHECK(f.logged("Receiving inline protocol from master"));
  }
  SECTION("broken lengths") {
    f.master.sends("*2\r\n$3\r\nGET\r\n$x\r\n");
  }
  CHECK(f.user.run("EXISTS key") == integer(0));
  CHECK(f.info("master_link_status") == "down");
  CHECK(f.master.accept() == bulks({"PSYNC", "?", "-1"}));
}

TEST_CASE("A request of the stream that fails is told in the log, and the stream goes on") {
  LinkedReplica f;
  f.master.sends(bulks({"SET", "key", "text"}) + bulks({"INCR", "key"}) +
                 bulks({"SET", "key", "other"}));
  CHECK(
      f.logged("== CRITICAL == This replica is sending an error to its master: 'value is not an "
               "integer or out of range' after processing the command 'incr'"));
  CHECK(f.user.run("GET key") == bulk("other"));
  CHECK(f.master.received().empty());
}

TEST_CASE("A replica that is promoted goes on under another name, and covers the one before") {
  LinkedReplica f;
  f.master.sends(bulks({"SET", "key", "value"}));
  const int64_t offset = f.server.replication_offset();
  CHECK(f.user.run("REPLICAOF NO ONE") == kOk);
  CHECK(f.info("role") == "master");
  CHECK(f.info("master_replid") != kId);
  CHECK(f.info("master_replid2") == kId);
  CHECK(f.info("second_repl_offset") == std::to_string(offset + 1));
  CHECK(f.user.run("SET key mine") == kOk);
  f.tick();
  // One that followed the same master finds what it lacks.
  TestClient other(f);
  other.run("REPLCONF listening-port 1 capa psync2");
  const std::string reply = other.run("PSYNC " + kId + " " + std::to_string(offset + 1));
  CHECK(reply == "+CONTINUE " + f.info("master_replid") + "\r\n" + bulks({"SELECT", "0"}) +
                     bulks({"SET", "key", "mine"}));
  TestClient ahead(f);
  CHECK(ahead.run("PSYNC " + kId + " " + std::to_string(offset + 2)).starts_with("+CONTINUE") ==
        false);
}

TEST_CASE("A master that becomes a replica asks for what follows its own stream") {
  ReplicaServer replica;
  PlayedMaster master(replica);
  TestClient user(replica);
  user.run("SET key value");
  user.run("REPLICAOF master 6379");
  const std::string id = replica.info("master_replid");
  CHECK(master.accept() ==
        bulks({"PSYNC", id, std::to_string(replica.server.replication_offset() + 1)}));
  master.says("+CONTINUE " + kOtherId + "\r\n");
  CHECK(user.run("GET key") == bulk("value"));
  CHECK(replica.info("master_replid") == kOtherId);
  CHECK(replica.info("master_replid2") == id);
}

TEST_CASE("Replicas of a replica get the master's bytes as they came") {
  LinkedReplica f;
  TestClient below(f);
  below.run("REPLCONF listening-port 7777 capa psync2");
  CHECK(below.run("PSYNC " + kId + " 101") == "+CONTINUE " + kId + "\r\n");
  const std::string bytes = bulks({"SELECT", "5"}) + bulks({"SET", "key", "value"}) +
                            bulks({"PING"}) + bulks({"DEL", "nothing"});
  f.master.sends(bytes);
  f.tick();
  CHECK(below.take_output() == bytes);
  // And not what happens here besides.
  f.user.run("CONFIG SET replica-read-only no");
  f.user.run("SET local value");
  f.advance_seconds(20);
  CHECK(below.take_output().empty());
}

TEST_CASE("A replica asks its master for the clock when a replica of its own comes") {
  LinkedReplica f;
  const std::string question = bulks({"REPLCONF", "CLOCK", "?"});
  TestClient below(f);
  const auto join = [&](TestClient& replica) {
    f.master.received();
    replica.run("REPLCONF listening-port 7777 capa psync2 capa clock");
    replica.run("PSYNC " + kId + " " + std::to_string(f.replication->offset() + 1));
    f.tick();
    return f.master.received();
  };
  SECTION("if the master has told of one") {
    f.master.sends(bulks({"REPLCONF", "CLOCK", "frozen:1000000000000000:1"}));
    CHECK(join(below).find(question) != std::string::npos);
    // A replica of the replica below asks by way of it.
    CHECK(below.run("REPLCONF CLOCK ?").empty());
    f.tick();
    CHECK(f.master.received().find(question) != std::string::npos);
    // The answer goes down to all of them as it came.
    below.take_output();
    const std::string answer = bulks({"REPLCONF", "CLOCK", "frozen:1000000030000000:1"});
    f.master.sends(answer);
    f.tick();
    CHECK(below.take_output() == answer);
  }
  SECTION("not if it may be one that knows nothing of it") {
    f.server.data_clock().freeze();
    CHECK(join(below).find(question) == std::string::npos);
  }
  SECTION("not if the clock is that of the machine") {
    f.master.sends(bulks({"REPLCONF", "CLOCK", "wall"}));
    CHECK(join(below).find(question) == std::string::npos);
  }
}

TEST_CASE("Replicas of a replica are let go when the history is another") {
  LinkedReplica f;
  TestClient below(f);
  below.run("PSYNC " + kId + " 101");
  CHECK(f.info("connected_slaves") == "1");
  SECTION("because the master is another") {
    f.master.hangs_up();
    f.master.accept();
    f.master.says("+CONTINUE " + kOtherId + "\r\n");
  }
  SECTION("because the dataset comes anew") {
    f.master.hangs_up();
    f.master.give_dataset(empty_dataset(), 500);
  }
  SECTION("because there is no master any more") {
    f.user.run("REPLICAOF NO ONE");
  }
  CHECK(f.info("connected_slaves") == "0");
}

TEST_CASE("A replica without a link takes on none") {
  LinkedReplica f;
  f.master.hangs_up();
  TestClient below(f);
  CHECK(below.run("PSYNC ? -1") ==
        error("NOMASTERLINK Can't SYNC while not connected with my master"));
}

TEST_CASE("Waiting clients are let go when the server becomes a replica") {
  ReplicaServer replica;
  TestClient waiting(replica);
  CHECK(waiting.run("BLPOP list 0").empty());
  TestClient user(replica);
  user.run("REPLICAOF master 6379");
  CHECK(waiting.take_output() ==
        error("UNBLOCKED force unblock from blocking operation, instance state changed (master -> "
              "replica?)"));
  CHECK(waiting->has(server::kClientCloseAfterReply));
}

TEST_CASE("Waiting clients of Valkey follow the master who can") {
  ReplicaServer replica("emulate \"valkey 9.1\"\n");
  const std::string unblocked = error(
      "UNBLOCKED force unblock from blocking operation, instance state changed (master -> "
      "replica?)");
  TestClient plain(replica);
  TestClient reader(replica);
  TestClient follower(replica);
  TestClient reading_follower(replica);
  reader->set(server::kClientReadsAnywhere);
  follower.run("CLIENT CAPA redirect");
  reading_follower.run("CLIENT CAPA redirect");
  reading_follower->set(server::kClientReadsAnywhere);
  for (TestClient* client : {&plain, &reader, &follower, &reading_follower})
    CHECK(client->run("BLPOP list 0").empty());
  TestClient user(replica);
  user.run("REPLICAOF master 6379");
  CHECK(plain.take_output() == unblocked);
  CHECK(reader.take_output() == unblocked);
  CHECK(follower.take_output() == error("REDIRECT master:6379"));
  CHECK(reading_follower.take_output() == error("REDIRECT master:6379"));
  CHECK_FALSE(follower->has(server::kClientCloseAfterReply));
}

TEST_CASE("Clients of Valkey that wait for what a replica may read wait on") {
  ReplicaServer replica("emulate \"valkey 9.1\"\n");
  TestClient plain(replica);
  TestClient reader(replica);
  TestClient follower(replica);
  reader->set(server::kClientReadsAnywhere);
  follower.run("CLIENT CAPA redirect");
  for (TestClient* client : {&plain, &reader, &follower})
    CHECK(client->run("XREAD BLOCK 0 STREAMS stream 0").empty());
  TestClient user(replica);
  user.run("REPLICAOF master 6379");
  CHECK(plain.take_output().starts_with("-UNBLOCKED"));
  CHECK(follower.take_output() == error("REDIRECT master:6379"));
  CHECK(reader.take_output().empty());
  CHECK(reader->has(server::kClientBlocked));
  user.run("REPLICAOF NO ONE");
  user.run("XADD stream 1-1 a b");
  CHECK(reader.take_output().find("1-1") != std::string::npos);
}

TEST_CASE("ROLE tells how far the link is") {
  ReplicaServer replica;
  PlayedMaster master(replica);
  TestClient user(replica);
  const auto role = [&](std::string_view state, int64_t offset) {
    return array({bulk("slave"), bulk("master"), integer(6379), bulk(state), integer(offset)});
  };
  user.run("REPLICAOF master 6379");
  CHECK(user.run("ROLE") == role("connecting", -1));
  master.accept();
  CHECK(user.run("ROLE") == role("handshake", -1));
  master.says("+FULLRESYNC " + kId + " 100\r\n");
  CHECK(user.run("ROLE") == role("sync", -1));
  const std::string dataset = empty_dataset();
  master.says("$" + std::to_string(dataset.size()) + "\r\n" + dataset);
  CHECK(user.run("ROLE") == role("connected", 100));
  CHECK(user.run("WAIT 0 0").starts_with("-ERR WAIT cannot be used with replica instances."));
  CHECK(user.run("REPLICAOF master 6379") == status("OK Already connected to specified master"));
}

TEST_CASE("A master whose dataset broke off is told a version of Valkey, which it may lack") {
  ReplicaServer f;
  TestClient user(f);
  PlayedMaster master(f);
  const auto introduces_itself = [&] {
    f.replica_role().link()->connected(nullptr);
    return master.says("+PONG\r\n");
  };
  const std::string version = bulk("version") + bulk("9.0.0");
  user.run("REPLICAOF master 6379");
  CHECK(introduces_itself().find(version) == std::string::npos);
  // Before it began with a dataset, this says nothing.
  f.replica_role().link()->on_disconnect();
  f.advance_seconds(1);
  f.tick();
  CHECK(introduces_itself().find(version) == std::string::npos);
  master.says("+OK\r\n+OK\r\n+FULLRESYNC " + kId + " 100\r\n");
  f.replica_role().link()->on_disconnect();
  f.advance_seconds(1);
  f.tick();
  CHECK(introduces_itself().find(version) != std::string::npos);
  user.run("REPLICAOF other 6379");
  CHECK(introduces_itself().find(version) == std::string::npos);
}

TEST_CASE("A master that is silent for too long is left, and tried again") {
  LinkedReplica f("repl-timeout 5\n");
  f.advance_seconds(5);
  CHECK(f.info("master_link_status") == "up");
  f.advance_seconds(2);
  CHECK(f.logged("MASTER timeout: no data nor PING received..."));
  CHECK(f.info("master_link_status") == "down");
  REQUIRE(f.replica_role().link() != nullptr);
  f.advance_seconds(7);
  CHECK(f.logged("Timeout connecting to the MASTER..."));
}

TEST_CASE("A replica whose clock is set forward stays with its master") {
  LinkedReplica f("repl-timeout 5\n");
  f.step_ms(3'600'000);
  f.advance_seconds(2);
  CHECK(f.info("master_link_status") == "up");
  CHECK(f.info("master_last_io_seconds_ago") == "2");
}

TEST_CASE("A replica whose clock is set back acknowledges and connects as before") {
  LinkedReplica f;
  f.advance_seconds(1);
  f.step_ms(-3'600'000);
  f.master.received();
  SECTION("it acknowledges") {
    f.advance_seconds(1);
    CHECK(f.master.received() == bulks({"REPLCONF", "ACK", "100"}));
  }
  SECTION("it connects again") {
    f.master.hangs_up();
    f.replica_role().link()->on_disconnect();
    REQUIRE(f.replica_role().link() == nullptr);
    f.advance_seconds(1);
    CHECK(f.replica_role().link() != nullptr);
  }
}

TEST_CASE("The master's requests pass limits of memory and of what replicas may do") {
  LinkedReplica f("maxmemory 1\n");
  f.master.sends(bulks({"SET", "key", "value"}));
  CHECK(f.user.run("GET key") == bulk("value"));
}

TEST_CASE(
    "A writable replica removes what expires of its own writes, and nothing of its master's") {
  LinkedReplica f("replica-read-only no\n");
  const std::string soon = std::to_string(f.now_ms() + 50);
  f.master.sends(bulks({"SET", "theirs", "1", "PXAT", soon}) + bulks({"SET", "taken", "1"}));
  f.user.run("SET mine 1 PX 50");
  f.user.run("PEXPIRE taken 50");
  f.user.run("SET lasting 1");
  // What the master writes again is its own.
  f.user.run("SET back 1 PX 50");
  f.master.sends(bulks({"SET", "back", "2", "PXAT", soon}));
  f.user.run("SET saved 1 PX 50");
  f.user.run("PERSIST saved");
  CHECK(f.user.run("DBSIZE") == integer(6));
  f.advance_ms(49);
  f.tick();
  CHECK(f.user.run("DBSIZE") == integer(6));
  f.advance_ms(2);
  f.tick();
  CHECK(f.user.run("DBSIZE") == integer(4));
  CHECK(f.user.run("EXISTS mine taken") == integer(0));
  CHECK(f.user.run("EXISTS lasting saved") == integer(2));
  CHECK(f.server.environment().figures.expired_keys == 2);
}

TEST_CASE("What a writable replica would remove is forgotten with its database") {
  LinkedReplica f("replica-read-only no\n");
  f.user.run("SET mine 1 PX 50");
  f.user.run("SELECT 1");
  f.user.run("SET other 1 PX 50");
  SECTION("flushed") {
    f.user.run("SELECT 0");
    f.user.run("FLUSHDB");
    f.user.run("SET mine 1");
    f.advance_ms(51);
    f.tick();
    CHECK(f.user.run("EXISTS mine") == integer(1));
    f.user.run("SELECT 1");
  }
  SECTION("swapped") {
    f.user.run("SWAPDB 0 1");
  }
  SECTION("the replica is a master") {
    f.user.run("REPLICAOF NO ONE");
  }
  f.advance_ms(51);
  f.tick();
  CHECK(f.user.run("EXISTS mine other") == integer(0));
}

TEST_CASE("Valkey names the buffer of what comes meanwhile in its own way") {
  LinkedReplica redis;
  CHECK(redis.info("replica_full_sync_buffer_size") == "0");
  CHECK(redis.info("replica_full_sync_buffer_peak") == "0");
  CHECK(redis.info("replicas_repl_buffer_size").empty());
  LinkedReplica valkey("emulate \"valkey 9.1\"\n");
  CHECK(valkey.info("replicas_repl_buffer_size") == "0");
  CHECK(valkey.info("replicas_repl_buffer_peak") == "0");
  CHECK(valkey.info("replica_full_sync_buffer_size").empty());
}

}  // namespace latchkey::tests
