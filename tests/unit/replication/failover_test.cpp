// A master that hands over to a replica, which the test plays, and a replica that is asked to lead.
#include "replication/failover.h"

#include <string>

#include "replication/replica_role.h"
#include "server/client/pause.h"
#include "unit/catch.h"
#include "unit/replication/master_fixture.h"

namespace latchkey::tests {

namespace {

const std::string kOtherId(40, 'b');

// With a replica that can be named: it announces an address.
struct Pair : Master {
  Pair() : replica(*this), user(*this) {
    replica.run("REPLCONF listening-port 7777 ip-address host capa psync2");
    replica.run("PSYNC ? -1");
    finish_sync(replica, "D");
  }
  void acknowledge() {
    replica.run("REPLCONF ACK " + std::to_string(replication->offset()));
    tick();
  }
  replication::MasterConnection& link() { return *replication->replica_role().link(); }
  // What the server says as a replica when the other has answered so.
  std::string says(std::string answer) {
    link().out().clear();
    link().on_input(answer);
    replication::MasterConnection* still = replication->replica_role().link();
    return still != nullptr ? std::string(still->out().since(0)) : std::string();
  }
  // To the point where the other is asked to lead; gives what it was asked.
  std::string ask() {
    link().connected(nullptr);
    says("+PONG\r\n");
    says("+OK\r\n");
    return says("+OK\r\n");
  }
  std::string state() { return info("master_failover_state"); }

  TestClient replica;
  TestClient user;
};

}  // namespace

TEST_CASE("FAILOVER waits until the replica has everything, and writes wait with it") {
  Pair pair;
  pair.user.run("SET key 1");
  CHECK(pair.user.run("FAILOVER TO host 7777") == kOk);
  pair.tick();
  CHECK(pair.state() == "waiting-for-sync");
  CHECK(pair.user.run("GET key") == bulk("1"));
  TestClient writer(pair);
  CHECK(writer.run("SET key 2").empty());
  CHECK(pair.user.run("CLIENT UNPAUSE") == kOk);
  CHECK(pair.user.run("GET key") == bulk("1"));
  CHECK(pair.user.run("REPLICAOF NO ONE") == "-ERR REPLICAOF not allowed while failing over.\r\n");

  pair.acknowledge();
  CHECK(pair.state() == "failover-in-progress");
  CHECK(pair.info("role") == "slave");
  CHECK(pair.ask() == bulks({"PSYNC", pair.server.replication_id(),
                             std::to_string(pair.replication->offset() + 1), "FAILOVER"}));
  pair.says("+CONTINUE " + kOtherId + "\r\n");
  CHECK(pair.state() == "no-failover");
  CHECK(pair.info("role") == "slave");
  CHECK(pair.info("master_replid") == kOtherId);
  pair.server.clients().run_scheduled();
  CHECK_FALSE(pair.user.run("SET key 3").starts_with("+"));
}

TEST_CASE("without a name whoever is first to have everything leads") {
  Pair pair;
  pair.acknowledge();
  CHECK(pair.user.run("FAILOVER") == kOk);
  pair.tick();
  CHECK(pair.state() == "failover-in-progress");
  CHECK(pair.info("master_host") == "host");
  CHECK(pair.info("master_port") == "7777");
}

TEST_CASE("a replica that does not catch up in time ends the attempt, unless it is forced") {
  Pair pair;
  pair.user.run("SET key 1");
  pair.user.run("FAILOVER TO host 7777 TIMEOUT 500");
  pair.advance_ms(400);
  pair.tick();
  CHECK(pair.state() == "waiting-for-sync");
  pair.advance_ms(200);
  pair.tick();
  CHECK(pair.state() == "no-failover");
  CHECK(pair.info("role") == "master");
  CHECK(pair.user.run("SET key 2") == kOk);

  pair.user.run("FAILOVER TO host 7777 TIMEOUT 500 FORCE");
  pair.advance_ms(600);
  pair.tick();
  CHECK(pair.state() == "failover-in-progress");
}

TEST_CASE("a timeout near the end of time is no short one") {
  Pair pair;
  pair.user.run("SET key 1");
  CHECK(pair.user.run("FAILOVER TO host 7777 TIMEOUT 9223372036854775807") == kOk);
  pair.tick();
  CHECK(pair.state() == "waiting-for-sync");
}

TEST_CASE("the stream does not go on while a replica catches up to replace the server") {
  Pair pair;
  pair.user.run("CONFIG SET repl-ping-replica-period 1");
  pair.user.run("SET key 1");
  pair.tick();
  pair.replica.take_output();
  // As a cluster's manual failover does.
  using server::PauseControl;
  PauseControl& pauses = pair.server.pauses();
  pauses.pause(PauseControl::Reason::kFailover, PauseControl::Kind::kWrites,
               PauseControl::kForEver);
  const uint64_t offset = pair.replication->offset();
  TestClient waiting(pair);
  CHECK(waiting.run("WAIT 2 0").empty());
  pair.advance_seconds(3);
  CHECK(pair.replication->offset() == offset);
  CHECK(pair.replica.take_output().empty());

  pauses.unpause(PauseControl::Reason::kFailover);
  pair.tick();
  CHECK(pair.replica.take_output().find(bulks({"REPLCONF", "GETACK", "*"})) != std::string::npos);
  pair.advance_seconds(2);
  CHECK(pair.replica.take_output().find(bulks({"ping"})) != std::string::npos);
}

TEST_CASE("FAILOVER ABORT leaves a master, however far it has come") {
  Pair pair;
  CHECK(pair.user.run("FAILOVER ABORT") == "-ERR No failover in progress.\r\n");
  pair.user.run("SET key 1");
  pair.user.run("FAILOVER");
  CHECK(pair.user.run("FAILOVER ABORT") == kOk);
  CHECK(pair.state() == "no-failover");
  CHECK(pair.user.run("SET key 2") == kOk);

  pair.acknowledge();
  pair.user.run("FAILOVER");
  pair.tick();
  REQUIRE(pair.info("role") == "slave");
  CHECK(pair.user.run("FAILOVER ABORT") == kOk);
  CHECK(pair.info("role") == "master");
  CHECK(pair.user.run("SET key 3") == kOk);
}

TEST_CASE("a replica that declines leaves the master as it was") {
  Pair pair;
  pair.acknowledge();
  pair.user.run("FAILOVER");
  pair.tick();
  pair.ask();
  pair.says("-NOPERM User default has no permissions to run the 'psync' command\r\n");
  CHECK(pair.state() == "no-failover");
  CHECK(pair.info("role") == "master");
  CHECK(pair.user.run("SET key 1") == kOk);
}

TEST_CASE("FAILOVER refuses what cannot be done") {
  Master alone;
  TestClient lonely(alone);
  CHECK(lonely.run("FAILOVER") == "-ERR FAILOVER requires connected replicas.\r\n");
  Pair pair;
  const auto refused = [&](const std::string& options) {
    return pair.user.run("FAILOVER " + options);
  };
  CHECK(refused("FORCE") ==
        "-ERR FAILOVER with force option requires both a timeout and target HOST and IP.\r\n");
  CHECK(refused("TO host 7777 FORCE") ==
        "-ERR FAILOVER with force option requires both a timeout and target HOST and IP.\r\n");
  CHECK(refused("TO host 1") == "-ERR FAILOVER target HOST and PORT is not a replica.\r\n");
  CHECK(refused("TO host") == "-ERR syntax error\r\n");
  CHECK(refused("TO host port") == "-ERR value is not an integer or out of range\r\n");
  CHECK(refused("TIMEOUT 0") == "-ERR FAILOVER timeout must be greater than 0\r\n");
  CHECK(refused("ABORT TIMEOUT 5") == "-ERR syntax error\r\n");
  TestClient waiting(pair);
  waiting.run("REPLCONF listening-port 7778 ip-address host");
  waiting.run("PSYNC ? -1");
  CHECK(refused("TO host 7778") == "-ERR FAILOVER target replica is not online.\r\n");
  pair.user.run("REPLICAOF master 6379");
  CHECK(pair.user.run("FAILOVER") == "-ERR FAILOVER is not valid when server is a replica.\r\n");
}

TEST_CASE("a replica leads when its master asks it to by its history's name") {
  Master server;
  TestClient user(server);
  TestClient master(server);
  CHECK(master.run("PSYNC x 1 FAILOVER") == "-ERR PSYNC FAILOVER can't be sent to a master.\r\n");
  user.run("SET key 1");
  user.run("REPLICAOF master 6379");
  CHECK(master.run("PSYNC " + kOtherId + " 1 FAILOVER") ==
        "-ERR PSYNC FAILOVER replid must match my replid.\r\n");
  const std::string id = server.server.replication_id();
  const std::string next = std::to_string(server.replication->offset() + 1);
  const std::string answer = master.run("PSYNC " + id + " " + next + " FAILOVER");
  CHECK(answer.starts_with("+CONTINUE"));
  CHECK(server.info("role") == "master");
  CHECK(server.info("master_replid2") == id);
}

}  // namespace latchkey::tests
