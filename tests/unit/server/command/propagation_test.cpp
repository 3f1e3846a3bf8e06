#include "server/command/propagation.h"

#include "commands/groups.h"
#include "script/engine.h"
#include "script/rows.h"
#include "unit/catch.h"
#include "unit/propagation_recorder.h"

namespace latchkey::tests {

namespace {

struct Streaming {
  Streaming()
      : server({commands::string_rows(), commands::key_rows(), commands::transaction_rows(),
                commands::database_rows(), commands::hash_rows(), commands::hash_deadline_rows(),
                script::script_rows()}),
        client(server),
        stream(server) {
    server.server.add_layer(std::make_shared<script::Engine>(server.server));
  }
  ServerFixture server;
  TestClient client;
  PropagationRecorder stream;
};

}  // namespace

TEST_CASE("A request that changes something is written, one that does not is not") {
  Streaming s;
  s.client.run("SET name value");
  CHECK(s.stream.take() == "SELECT 0; SET name value");
  s.client.run("GET name");
  s.client.run("DEL nothing");
  CHECK(s.stream.take().empty());
  s.client.run("DEL name");
  CHECK(s.stream.take() == "DEL name");
}

TEST_CASE("The database is selected when another one is concerned") {
  Streaming s;
  s.client.run("SET a 1");
  s.client.run("SELECT 3");
  s.client.run("SET b 2");
  s.client.run("SET c 3");
  CHECK(s.stream.take() == "SELECT 0; SET a 1; SELECT 3; SET b 2; SET c 3");
}

TEST_CASE("What a transaction changes is written between MULTI and EXEC when it is more than one") {
  Streaming s;
  s.client.run("MULTI");
  s.client.run("SET a 1");
  s.client.run("GET a");
  s.client.run("SET b 2");
  CHECK(s.stream.take().empty());
  s.client.run("EXEC");
  CHECK(s.stream.take() == "MULTI; SELECT 0; SET a 1; SET b 2; EXEC");

  s.client.run("MULTI");
  s.client.run("SET a 1");
  s.client.run("EXEC");
  CHECK(s.stream.take() == "SET a 1");
}

TEST_CASE("A script is written as what its commands did") {
  Streaming s;
  s.client.run_words({"EVAL", "redis.call('SET','a',1) redis.call('GET','a') return 1", "0"});
  CHECK(s.stream.take() == "SELECT 0; SET a 1");
  s.client.run_words({"EVAL", "redis.call('SET','a',1) redis.call('DEL','a') return 1", "0"});
  CHECK(s.stream.take() == "MULTI; SET a 1; DEL a; EXEC");
  s.client.run_words({"EVAL", "return redis.call('GET','a')", "0"});
  CHECK(s.stream.take().empty());
}

TEST_CASE("A script may keep what it does from readers") {
  Streaming s;
  PropagationRecorder replica(s.server, server::kPropagateToReplicas);
  s.client.run_words({"EVAL",
                      "redis.set_repl(redis.REPL_AOF) redis.call('SET','a',1) "
                      "redis.set_repl(redis.REPL_REPLICA) redis.call('SET','b',1) "
                      "redis.set_repl(redis.REPL_NONE) redis.call('SET','c',1)",
                      "0"});
  CHECK(s.stream.take() == "SELECT 0; SET a 1");
  CHECK(replica.take() == "SELECT 0; SET b 1");
  s.client.run("SET d 1");
  CHECK(s.stream.take() == "SET d 1");
}

TEST_CASE("Keys that expire are written as removed, by the one who came by them or alone") {
  Streaming s;
  s.client.run("SET b 1 PX 10");
  s.client.run("SET c 1 PX 10");
  s.stream.take();
  s.server.advance_ms(20);
  s.client.run("GET b");
  CHECK(s.stream.take() == "DEL b");
  s.server.tick();
  CHECK(s.stream.take() == "DEL c");
}

TEST_CASE("Several expired keys need no transaction, unless something else goes with them") {
  Streaming s;
  s.client.run("SET a 1 PX 10");
  s.client.run("SET b 1 PX 10");
  s.client.run("SET c 1 PX 10");
  s.stream.take();
  s.server.advance_ms(20);
  s.client.run("EXISTS a b");
  CHECK(s.stream.take() == "DEL a; DEL b");
  s.client.run("SET c 2");
  CHECK(s.stream.take() == "MULTI; DEL c; SET c 2; EXEC");
}

TEST_CASE("Fields that expire are written as removed") {
  Streaming s;
  s.client.run("HSET hash a 1 b 2 c 3");
  s.client.run("HPEXPIRE hash 10 FIELDS 1 a");
  s.client.run("HPEXPIRE hash 11 FIELDS 1 b");
  s.stream.take();
  s.server.advance_ms(20);
  s.server.tick();
  CHECK(s.stream.take() == "HDEL hash a; HDEL hash b");
}

TEST_CASE("Each reader gets what is meant for it") {
  Streaming s;
  PropagationRecorder replica(s.server, server::kPropagateToReplicas);
  server::Propagation& propagation = s.server.server.propagation();
  propagation.begin_unit();
  propagation.add(0, {"A"}, server::kPropagateToFile);
  propagation.add(server::kAnyDatabase, {"B", 12}, server::kPropagateToReplicas);
  propagation.end_unit();
  CHECK(s.stream.take() == "SELECT 0; A");
  CHECK(replica.take() == "B 12");
}

TEST_CASE("Nothing is written while the stream is muted") {
  Streaming s;
  server::Propagation& propagation = s.server.server.propagation();
  {
    const server::Propagation::MuteScope muted(propagation);
    s.client.run("SET a 1");
    CHECK_FALSE(propagation.wanted());
    { const server::Propagation::MuteScope inner(propagation); }
    s.client.run("SET a 2");
  }
  CHECK(propagation.wanted());
  s.client.run("SET b 1");
  CHECK(s.stream.take() == "SELECT 0; SET b 1");
}

TEST_CASE("Targets are restricted as long as the scope lasts") {
  Streaming s;
  PropagationRecorder replica(s.server, server::kPropagateToReplicas);
  server::Propagation& propagation = s.server.server.propagation();
  propagation.begin_unit();
  {
    const server::Propagation::TargetScope file(propagation, server::kPropagateToFile);
    propagation.add(0, {"A"});
    {
      const server::Propagation::TargetScope everybody(propagation, server::kPropagateToAll);
      propagation.add(0, {"B"});
    }
    propagation.add(0, {"C"});
  }
  propagation.add(0, {"D"});
  propagation.end_unit();
  CHECK(s.stream.take() == "MULTI; SELECT 0; A; B; C; D; EXEC");
  CHECK(replica.take() == "MULTI; SELECT 0; B; D; EXEC");
}

TEST_CASE("A unit has commands from the first one to its end") {
  Streaming s;
  server::Propagation& propagation = s.server.server.propagation();
  CHECK_FALSE(propagation.has_open_commands());
  propagation.begin_unit();
  CHECK_FALSE(propagation.has_open_commands());
  propagation.add(0, {"A"});
  CHECK(propagation.has_open_commands());
  propagation.end_unit();
  CHECK_FALSE(propagation.has_open_commands());
}

TEST_CASE("What expires is written whomever a script writes for") {
  Streaming s;
  s.client.run("SET a 1 PX 10");
  s.client.run("HSET hash a 1 b 2");
  s.client.run("HPEXPIRE hash 10 FIELDS 1 a");
  s.stream.take();
  s.server.advance_ms(20);
  s.server.server.propagation().restrict_targets(0);
  s.client.run("EXISTS a");
  s.server.tick();
  s.client.run("SET b 1");
  CHECK(s.stream.take() == "DEL a; HDEL hash a");
}

}  // namespace latchkey::tests
