// FAULT ADD DO REPLICA-LAG: what replicas are sent leaves the server later.
#include <memory>
#include <string>

#include "base/settable_clock.h"
#include "testing/clock_control.h"
#include "unit/catch.h"
#include "unit/replication/master_fixture.h"

namespace latchkey::tests {

namespace {

// A master with a replica that has been sent its SELECT.
struct Lagging : Master {
  Lagging() : replica(*this), user(*this) {
    user.run("SET before it");
    tick();
    replica.take_output();
  }
  void pass_ms(int64_t ms) {
    advance_ms(ms);
    tick();
  }
  std::string sent_to_replica() {
    tick();
    return replica.take_output();
  }
  Follower replica;
  TestClient user;
};

std::string set(std::string_view key, std::string_view value) {
  return bulks({"SET", key, value});
}

}  // namespace

TEST_CASE("REPLICA-LAG has each part of the stream sent so much later, in its order", "[faults]") {
  Lagging master;
  CHECK(master.user.run("FAULT ADD DO REPLICA-LAG 100") == integer(1));
  master.user.run("SET a 1");
  CHECK(master.sent_to_replica().empty());
  master.pass_ms(60);
  master.user.run("SET b 2");
  CHECK(master.sent_to_replica().empty());
  master.pass_ms(39);
  CHECK(master.sent_to_replica().empty());
  master.pass_ms(1);
  CHECK(master.sent_to_replica() == set("a", "1"));
  master.pass_ms(60);
  CHECK(master.sent_to_replica() == set("b", "2"));
  // Without the first one what it had delayed is sent, and the second counts.
  master.user.run("SET c 3");
  master.tick();
  master.user.run("FAULT ADD DO REPLICA-LAG 10");
  master.user.run("FAULT DEL 1");
  CHECK(master.sent_to_replica() == set("c", "3"));
  master.user.run("SET d 4");
  master.tick();
  master.pass_ms(10);
  CHECK(master.sent_to_replica() == set("d", "4"));
}

TEST_CASE("What REPLICA-LAG has delayed is sent at once when the fault is removed", "[faults]") {
  Lagging master;
  master.user.run("FAULT ADD DO REPLICA-LAG 1h");
  master.user.run("SET a 1");
  CHECK(master.sent_to_replica().empty());
  CHECK(master.user.run("FAULT CLEAR") == kOk);
  master.user.run("SET b 2");
  CHECK(master.sent_to_replica() == set("a", "1") + set("b", "2"));
}

TEST_CASE("TIMES counts the parts of the stream that lag, and later ones stay behind them",
          "[faults]") {
  Lagging master;
  master.user.run("FAULT ADD TIMES 1 DO REPLICA-LAG 100");
  master.user.run("SET a 1");
  CHECK(master.sent_to_replica().empty());
  master.user.run("SET b 2");
  CHECK(master.sent_to_replica().empty());
  master.pass_ms(100);
  CHECK(master.sent_to_replica() == set("a", "1") + set("b", "2"));
  master.user.run("SET c 3");
  CHECK(master.sent_to_replica() == set("c", "3"));
}

TEST_CASE("WAIT and INFO show the lag, and a replica that goes loses nothing", "[faults]") {
  Lagging master;
  const std::string had = std::to_string(master.replication->offset());
  master.replica.run("REPLCONF ACK " + had);
  master.user.run("FAULT ADD DO REPLICA-LAG 10s");
  master.user.run("SET a 1");
  CHECK(master.user.run("WAIT 1 100").empty());
  master.pass_ms(100);
  CHECK(master.user.take_output() == integer(0));
  CHECK(master.info("slave0").find("offset=" + had + ",") != std::string::npos);
  CHECK(master.info("master_repl_offset") == std::to_string(master.replication->offset()));
  CHECK(master.replication->figures().replicas == 1);
  CHECK(master.replica->replica->held_bytes() > 0);
  master.replica->close();
  master.tick();
  TestClient again(master);
  again.run("REPLCONF capa psync2");
  const std::string id = master.server.replication_id();
  const std::string next = std::to_string(std::stoll(had) + 1);
  // What it has missed lags as well.
  CHECK(again.run("PSYNC " + id + " " + next) == "+CONTINUE " + id + "\r\n");
  master.user.run("FAULT CLEAR");
  master.tick();
  CHECK(again.take_output().starts_with(set("a", "1")));
}

TEST_CASE("What was held for a replica during its synchronization lags behind its end",
          "[faults]") {
  Master master;
  TestClient replica(master);
  TestClient user(master);
  user.run("FAULT ADD DO REPLICA-LAG 100");
  replica.run("REPLCONF listening-port 7777 capa psync2");
  replica.run("PSYNC ? -1");
  user.run("SET a 1");
  master.tick();
  CHECK(master.finish_sync(replica, "D").find("SET") == std::string::npos);
  master.advance_ms(100);
  master.tick();
  CHECK(replica.take_output().find(set("a", "1")) != std::string::npos);
}

TEST_CASE("REPLICA-LAG delays as long as it would have when the clock is set back", "[faults]") {
  Lagging master;
  master.server.add_layer(std::make_shared<testing::ClockControl>(master.server));
  base::SettableClock& clock = master.server.data_clock();
  clock.set(master.clock.wall_us() + 3'600'000'000);
  master.server.layer<testing::ClockControl>().moved();
  master.user.run("FAULT ADD DO REPLICA-LAG 100");
  master.user.run("SET a 1");
  CHECK(master.sent_to_replica().find("SET") == std::string::npos);
  clock.reset();
  master.server.layer<testing::ClockControl>().moved();
  master.pass_ms(99);
  CHECK(master.replica.take_output().find("SET") == std::string::npos);
  master.pass_ms(1);
  CHECK(master.replica.take_output().find(set("a", "1")) != std::string::npos);
}

TEST_CASE("A fault of all requests lets a replica come, and meets none that a replica sends",
          "[faults]") {
  Master master;
  TestClient user(master);
  user.run_words({"FAULT", "ADD", "DO", "ERROR", "ERR no"});
  TestClient replica(master);
  CHECK(replica.run("REPLCONF listening-port 7777 capa psync2") == kOk);
  CHECK(replica.run("PING") == status("PONG"));
  CHECK(replica.run("PSYNC ? -1").starts_with("+FULLRESYNC "));
  CHECK(user.run("PING") == error("ERR no"));
  // Those of the oldest releases say nothing before.
  TestClient old(master);
  CHECK(old.run("SYNC") == "");
}

}  // namespace latchkey::tests
