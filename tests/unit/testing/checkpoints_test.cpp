#include "testing/checkpoints.h"

#include <memory>
#include <string>

#include "all_commands.h"
#include "persist/persistence.h"
#include "script/engine.h"
#include "server/memory_limit.h"
#include "server/tasks.h"
#include "store/undo_log.h"
#include "unit/catch.h"
#include "unit/propagation_recorder.h"
#include "unit/replication/replication_fixture.h"
#include "unit/temporary_directory.h"

namespace latchkey::tests {

namespace {

struct CheckpointFixture : TemporaryDirectory, ReplicationFixture {
  explicit CheckpointFixture(const std::string& settings = {})
      : ReplicationFixture({}, setting() + "save \"\"\nenable-debug-command yes\n" + settings) {
    add_all_commands(server);
    server.add_layer(std::make_shared<script::Engine>(server));
    server.add_layer(std::make_shared<persist::Persistence>(server, persist::ChildProcessParts{}));
    server.add_layer(std::make_shared<testing::Checkpoints>(server));
  }
  std::string memory_field(std::string_view field) {
    const std::string_view section = "memory";
    const std::string text = server.info().text(std::span(&section, 1), server.edition());
    const size_t at = text.find("\n" + std::string(field) + ":");
    if (at == std::string::npos) return {};
    const size_t start = at + field.size() + 2;
    return text.substr(start, text.find('\r', start) - start);
  }
};

const std::string kNoCheckpoint = error("ERR There is no checkpoint");
const std::string kUnknown = error("ERR No such checkpoint");

}  // namespace

TEST_CASE("CHECKPOINT ROLLBACK restores what was changed, made and removed", "[checkpoint]") {
  CheckpointFixture server;
  TestClient client(server);
  client.run("SET changed old");
  client.run("SET removed old PX 5000");
  client.run("SET number 7");
  client.run("RPUSH list a b");
  client.run("HSET hash field value");
  CHECK(client.run("CHECKPOINT CREATE base") == bulk("base"));
  client.run("SET changed new");
  client.run("DEL removed");
  client.run("INCR number");
  client.run("RPUSH list c");
  client.run("EXPIRE hash 100");
  client.run("SADD made member");
  CHECK(client.run("CHECKPOINT ROLLBACK base") == kOk);
  CHECK(client.run("GET changed") == bulk("old"));
  CHECK(client.run("PTTL removed") == integer(5000));
  CHECK(client.run("GET number") == bulk("7"));
  CHECK(client.run("OBJECT ENCODING number") == bulk("int"));
  CHECK(client.run("LRANGE list 0 -1") == bulks({"a", "b"}));
  CHECK(client.run("TTL hash") == integer(-1));
  CHECK(client.run("EXISTS made") == integer(0));
  // The checkpoint is still there.
  client.run("FLUSHALL");
  CHECK(client.run("CHECKPOINT ROLLBACK") == kOk);
  CHECK(client.run("DBSIZE") == integer(5));
  CHECK(client.run("GET changed") == bulk("old"));
}

TEST_CASE("Checkpoints are nested like savepoints", "[checkpoint]") {
  CheckpointFixture server;
  TestClient client(server);
  client.run("SET key 0");
  client.run("CHECKPOINT CREATE outer");
  client.run("SET key 1");
  client.run("CHECKPOINT CREATE inner");
  client.run("SET key 2");
  client.run("SET other x");
  SECTION("rolling back to the inner one, then to the outer one") {
    CHECK(client.run("CHECKPOINT ROLLBACK") == kOk);
    CHECK(client.run("GET key") == bulk("1"));
    CHECK(client.run("EXISTS other") == integer(0));
    CHECK(client.run("CHECKPOINT ROLLBACK outer") == kOk);
    CHECK(client.run("GET key") == bulk("0"));
  }
  SECTION("rolling back to the outer one drops the inner one") {
    CHECK(client.run("CHECKPOINT ROLLBACK outer") == kOk);
    CHECK(client.run("GET key") == bulk("0"));
    CHECK(client.run("EXISTS other") == integer(0));
    CHECK(client.run("CHECKPOINT ROLLBACK inner") == kUnknown);
  }
  SECTION("dropping the inner one leaves its changes to the outer one") {
    CHECK(client.run("CHECKPOINT DROP inner") == kOk);
    CHECK(client.run("GET key") == bulk("2"));
    CHECK(client.run("CHECKPOINT ROLLBACK") == kOk);
    CHECK(client.run("GET key") == bulk("0"));
    CHECK(client.run("EXISTS other") == integer(0));
  }
  SECTION("dropping the outer one drops both") {
    CHECK(client.run("CHECKPOINT DROP outer") == kOk);
    CHECK(client.run("GET key") == bulk("2"));
    CHECK(client.run("CHECKPOINT ROLLBACK") == kNoCheckpoint);
    CHECK(client.run("CHECKPOINT LIST") == "*0\r\n");
  }
}

TEST_CASE("A flushed dataset comes back as it was", "[checkpoint]") {
  CheckpointFixture server;
  TestClient client(server);
  client.run("SET zero 0 PX 5000");
  client.run("SELECT 1");
  client.run("HSET one field 1");
  client.run("HPEXPIRE one 6000 FIELDS 1 field");
  client.run("CHECKPOINT CREATE");
  client.run("SET before flush");
  client.run("HSET one field 2");
  const std::string flush = GENERATE("FLUSHALL", "FLUSHALL SYNC", "FLUSHALL ASYNC");
  client.run(flush);
  client.run("SET after flush");
  client.run("HSET one other 3");
  client.run(flush);
  CHECK(client.run("CHECKPOINT ROLLBACK") == kOk);
  CHECK(client.run("HGETALL one") == bulks({"field", "1"}));
  CHECK(client.run("HPTTL one FIELDS 1 field") == array({integer(6000)}));
  CHECK(client.run("DBSIZE") == integer(1));
  client.run("SELECT 0");
  CHECK(client.run("DBSIZE") == integer(1));
  CHECK(client.run("PTTL zero") == integer(5000));
  // The deadlines are live.
  server.advance_ms(6100);
  server.tick();
  CHECK(server.database(0).size() == 0);
  CHECK(server.database(1).size() == 0);
}

TEST_CASE("SWAPDB and MOVE are undone", "[checkpoint]") {
  CheckpointFixture server;
  TestClient client(server);
  client.run("SET key zero");
  client.run("SELECT 1");
  client.run("SET key one");
  client.run("CHECKPOINT CREATE");
  client.run("SWAPDB 0 1");
  client.run("SWAPDB 1 2");
  client.run("SET key other");
  client.run("SELECT 0");
  client.run("SET key changed");
  client.run("MOVE key 3");
  server.events();
  CHECK(client.run("CHECKPOINT ROLLBACK") == kOk);
  CHECK(client.run("GET key") == bulk("zero"));
  client.run("SELECT 1");
  CHECK(client.run("GET key") == bulk("one"));
  CHECK(server.database(2).empty());
  CHECK(server.database(3).empty());
}

TEST_CASE("Expired keys and fields come back", "[checkpoint]") {
  CheckpointFixture server;
  TestClient client(server);
  client.run("SET key value PX 50");
  client.run("HSET hash one 1 two 2");
  client.run("HPEXPIRE hash 50 FIELDS 1 one");
  client.run("CHECKPOINT CREATE");
  server.advance_ms(100);
  server.tick();
  CHECK(server.database().size() == 1);
  server.clock.advance_ms(-100);
  CHECK(client.run("CHECKPOINT ROLLBACK") == kOk);
  CHECK(client.run("PTTL key") == integer(50));
  CHECK(client.run("HPTTL hash FIELDS 2 one two") == array({integer(50), integer(-1)}));
  // Where time has gone on they expire again.
  server.advance_ms(100);
  server.tick();
  CHECK(client.run("CHECKPOINT ROLLBACK") == kOk);
  CHECK(client.run("EXISTS key") == integer(0));
  CHECK(client.run("HGETALL hash") == bulks({"two", "2"}));
}

TEST_CASE("Encodings that reading changes are restored", "[checkpoint]") {
  CheckpointFixture server;
  TestClient client(server);
  client.run("ZADD set 1 a");
  client.run("PFADD sketch a b");
  client.run("CHECKPOINT CREATE");
  const std::string sketch = client.run("GET sketch");
  client.run("SORT set ALPHA");
  client.run("PFCOUNT sketch");
  CHECK(client.run("OBJECT ENCODING set") == bulk("skiplist"));
  CHECK(client.run("GET sketch") != sketch);
  client.run("CHECKPOINT ROLLBACK");
  CHECK(client.run("OBJECT ENCODING set") == bulk("listpack"));
  CHECK(client.run("GET sketch") == sketch);
}

TEST_CASE("A rollback restores idle times of changed keys", "[checkpoint]") {
  CheckpointFixture server;
  TestClient client(server);
  for (const std::string_view line :
       {"SET string 1", "RPUSH list a", "SADD set a", "SET counter 1", "SET flushed x"})
    client.run(line);
  server.advance_ms(100'000);
  client.run("CHECKPOINT CREATE");
  for (const std::string_view line :
       {"APPEND string 2", "RPUSH list b", "SUNIONSTORE set list2", "INCR counter", "FLUSHALL"})
    client.run(line);
  server.advance_ms(10'000);
  client.run("CHECKPOINT ROLLBACK");
  for (const std::string_view key : {"string", "list", "set", "counter", "flushed"}) {
    INFO(key);
    CHECK(client.run("OBJECT IDLETIME " + std::string(key)) == integer(110));
  }
}

TEST_CASE("What a command replaces or removes is moved, not copied", "[checkpoint]") {
  CheckpointFixture server;
  TestClient client(server);
  client.run("SADD set a b c");
  client.run("SADD source d");
  const auto value = [&] { return server.database().find("set", store::Keyspace::kPeek)->value(); };
  const store::Value* before = value();
  client.run("CHECKPOINT CREATE");
  SECTION("removed") {
    client.run("DEL set");
  }
  SECTION("overwritten") {
    client.run("SET set string");
  }
  SECTION("replaced by a result") {
    client.run("SUNIONSTORE set source");
  }
  SECTION("flushed") {
    client.run("FLUSHALL");
  }
  SECTION("copied over") {
    client.run("COPY source set REPLACE");
  }
  SECTION("renamed over") {
    client.run("RENAME source set");
  }
  client.run("CHECKPOINT ROLLBACK");
  CHECK(value() == before);
  CHECK(client.run("SCARD set") == integer(3));
}

TEST_CASE("Functions, scripts, settings and users are restored", "[checkpoint]") {
  CheckpointFixture server;
  TestClient client(server);
  const auto library = [](const std::string& name, const std::string& result) {
    return "#!lua name=" + name + "\nredis.register_function('" + name + "', function() return '" +
           result + "' end)";
  };
  client.run_words({"FUNCTION", "LOAD", library("kept", "old")});
  const std::string old_sha = client.run_words({"SCRIPT", "LOAD", "return 'old'"}).substr(5, 40);
  client.run("CONFIG SET maxmemory-samples 7");
  client.run("ACL SETUSER kept on >secret ~a* +get");
  const std::string users = client.run("ACL LIST");
  client.run("CHECKPOINT CREATE");
  client.run_words({"FUNCTION", "LOAD", "REPLACE", library("kept", "new")});
  client.run_words({"FUNCTION", "LOAD", library("made", "new")});
  SECTION("changed") {
    client.run("SCRIPT FLUSH");
  }
  SECTION("flushed") {
    client.run("FUNCTION FLUSH");
    client.run("SCRIPT FLUSH ASYNC");
  }
  const std::string new_sha = client.run_words({"SCRIPT", "LOAD", "return 'new'"}).substr(5, 40);
  client.run("CONFIG SET maxmemory-samples 9 requirepass sesame hash-max-listpack-entries 3");
  client.run("ACL SETUSER kept off resetpass");
  client.run("ACL SETUSER made on nopass +@all");
  CHECK(client.run("CHECKPOINT ROLLBACK") == kOk);
  CHECK(client.run("FCALL kept 0") == bulk("old"));
  CHECK(client.run("FCALL made 0") == error("ERR Function not found"));
  CHECK(client.run("SCRIPT EXISTS " + old_sha + " " + new_sha) == array({integer(1), integer(0)}));
  CHECK(client.run("EVALSHA " + old_sha + " 0") == bulk("old"));
  CHECK(client.run("CONFIG GET maxmemory-samples") == bulks({"maxmemory-samples", "7"}));
  CHECK(client.run("CONFIG GET requirepass") == bulks({"requirepass", ""}));
  // What hangs on a setting has followed.
  CHECK(server.server.environment().limits.hash_max_listpack_entries == 512);
  CHECK(client.run("ACL LIST") == users);
  TestClient another(server);
  CHECK(another.run("PING") == status("PONG"));
}

TEST_CASE("Whoever watches, tracks or waits hears of a rollback", "[checkpoint]") {
  CheckpointFixture server;
  TestClient client(server);
  TestClient other(server, 3);
  client.run("SET key old");
  client.run("RPUSH list a");
  client.run("CHECKPOINT CREATE");
  const std::string invalidated = ">2\r\n$10\r\ninvalidate\r\n*1\r\n$3\r\nkey\r\n";
  SECTION("after a change") {
    client.run("SET key new");
    client.run("LPOP list");
    server.events();
    other.run("WATCH key");
    other.run("CLIENT TRACKING ON");
    other.run("GET key");
    client.run("CHECKPOINT ROLLBACK");
    CHECK(other.take_output() == invalidated);
    other.run("MULTI");
    CHECK(other.run("EXEC") == kNull3);
    const std::string events = server.events();
    CHECK(events.find("restore key") != std::string::npos);
    CHECK(events.find("restore list") != std::string::npos);
  }
  SECTION("after a flush") {
    client.run("FLUSHALL");
    other.run("WATCH key");
    other.run("CLIENT TRACKING ON");
    other.run("GET key");
    client.run("CHECKPOINT ROLLBACK");
    CHECK(other.take_output() == ">2\r\n$10\r\ninvalidate\r\n_\r\n");
    other.run("MULTI");
    CHECK(other.run("EXEC") == kNull3);
  }
  SECTION("whoever rolls back and wants to hear nothing of its own changes") {
    const std::string mode = GENERATE("NOLOOP", "BCAST NOLOOP");
    client.run("SET key new");
    other.run("CLIENT TRACKING ON " + mode);
    other.run("GET key");
    std::string told = other.run("CHECKPOINT ROLLBACK");
    server.tick();
    told += other.take_output();
    CHECK(told == std::string(kOk) + invalidated);
  }
  SECTION("not of what did not change") {
    client.run("SET unrelated new");
    other.run("WATCH key");
    client.run("CHECKPOINT ROLLBACK");
    other.run("MULTI");
    CHECK(other.run("EXEC") == "*0\r\n");
  }
  SECTION("waiting for a list") {
    client.run("DEL list");
    const bool whole = GENERATE(false, true);
    if (whole) client.run("FLUSHALL");
    CHECK(other.run("BLPOP list 0") == "");
    client.run("CHECKPOINT ROLLBACK");
    CHECK(other.take_output() == bulks({"list", "a"}));
    CHECK(client.run("EXISTS list") == integer(0));
  }
}

TEST_CASE("A rollback is written as requests that amount to it, in one unit", "[checkpoint]") {
  CheckpointFixture server;
  TestClient client(server);
  client.run("SET key old");
  client.run("SET list string");
  PropagationRecorder stream(server);
  CHECK(client.run("CHECKPOINT CREATE") == bulk("checkpoint-1"));
  CHECK(stream.take() == "");
  SECTION("nothing") {
    client.run("CHECKPOINT ROLLBACK");
    CHECK(stream.take() == "");
  }
  SECTION("a key that was made") {
    client.run("SET made x");
    stream.take();
    client.run("CHECKPOINT ROLLBACK");
    CHECK(stream.take() == "DEL made");
  }
  SECTION("keys that were changed") {
    client.run("PEXPIRE key 5000");
    client.run("SET made x");
    stream.take();
    client.run("CHECKPOINT ROLLBACK");
    const std::string requests = stream.take();
    CHECK(requests.starts_with("MULTI; "));
    CHECK(requests.ends_with("; EXEC"));
    CHECK(requests.find("DEL made") != std::string::npos);
    CHECK(requests.find("RESTORE key 0 ") != std::string::npos);
    CHECK(requests.find(" REPLACE ABSTTL") != std::string::npos);
  }
  SECTION("databases that were exchanged") {
    client.run("SWAPDB 0 4");
    stream.take();
    client.run("CHECKPOINT ROLLBACK");
    CHECK(stream.take() == "SWAPDB 0 4");
  }
  SECTION("a database that was flushed") {
    client.run("FLUSHALL");
    stream.take();
    client.run("CHECKPOINT ROLLBACK");
    const std::string requests = stream.take();
    CHECK(requests.starts_with("MULTI; FLUSHDB; RESTORE "));
    CHECK(requests.find("RESTORE key 0 ") != std::string::npos);
    CHECK(requests.find("RESTORE list 0 ") != std::string::npos);
  }
  SECTION("functions") {
    client.run_words({"FUNCTION", "LOAD",
                      "#!lua name=lib\nredis.register_function('f', function() return 1 end)"});
    stream.take();
    client.run("CHECKPOINT ROLLBACK");
    CHECK(stream.take() == "FUNCTION FLUSH");
  }
}

TEST_CASE("CHECKPOINT LIST and INFO tell what checkpoints hold", "[checkpoint]") {
  CheckpointFixture server;
  TestClient client(server, 3);
  const std::string value(100'000, 'x');
  client.run_words({"SET", "large", value});
  CHECK(server.memory_field("checkpoints") == "0");
  CHECK(server.memory_field("mem_checkpoints") == "0");
  client.run("CHECKPOINT CREATE one");
  client.run("DEL large");
  client.run("SET made x");
  CHECK(server.memory_field("checkpoints") == "1");
  CHECK(server.memory_field("checkpoint_keys") == "2");
  CHECK(std::stoul(server.memory_field("mem_checkpoints")) > value.size());
  server.advance_ms(5);
  client.run("CHECKPOINT CREATE two");
  const std::string list = client.run("CHECKPOINT LIST");
  CHECK(list.starts_with("*2\r\n%4\r\n$4\r\nname\r\n$3\r\none\r\n$7\r\ncreated\r\n" +
                         integer(server.now_ms() - 5) + "$4\r\nkeys\r\n:2\r\n$5\r\nbytes\r\n"));
  client.run("CHECKPOINT DROP one");
  CHECK(server.memory_field("mem_checkpoints") == "0");
  // What a cleared database holds is estimated.
  for (int i = 0; i < 200; ++i)
    client.run_words({"SET", "key" + std::to_string(i), std::string_view(value).substr(0, 1000)});
  client.run("CHECKPOINT CREATE three");
  client.run("FLUSHALL");
  CHECK(server.memory_field("checkpoint_keys") == "201");
  CHECK(std::stoul(server.memory_field("mem_checkpoints")) > 200'000);
  CHECK(std::stoul(server.memory_field("mem_checkpoints")) < 400'000);
}

TEST_CASE("What comes back after nested checkpoints is counted once", "[checkpoint]") {
  CheckpointFixture server;
  TestClient client(server);
  client.run("SET a 1");
  client.run("SET b 1");
  client.run("CHECKPOINT CREATE outer");
  const bool inner_is_larger = GENERATE(false, true);
  client.run("SET a 2");
  if (!inner_is_larger) client.run("SET c 2");
  client.run("CHECKPOINT CREATE inner");
  client.run("SET a 3");
  client.run("SET b 3");
  if (inner_is_larger) client.run("SET d 3");
  client.run("CHECKPOINT DROP inner");
  CHECK(server.memory_field("checkpoint_keys") == "3");
  const std::string bytes = server.memory_field("mem_checkpoints");
  client.run("CHECKPOINT ROLLBACK");
  CHECK(client.run("MGET a b c d") ==
        array({bulk("1"), bulk("1"), std::string(kNull), std::string(kNull)}));
  CHECK(server.memory_field("checkpoint_keys") == "0");
  // The same changes without nesting hold as much.
  client.run("SET a 2");
  client.run("SET b 2");
  client.run(inner_is_larger ? "SET d 2" : "SET c 2");
  CHECK(server.memory_field("mem_checkpoints") == bytes);
}

TEST_CASE("Eviction spares keys whose removal would free nothing", "[checkpoint]") {
  CheckpointFixture server;
  TestClient client(server);
  const std::string policy = GENERATE("allkeys-lru", "allkeys-random", "allkeys-lfu");
  client.run("SET untouched 1");
  client.run("SET changed 1");
  client.run("CHECKPOINT CREATE");
  client.run("SET changed 2");
  client.run("SET made 1");
  client.run("CONFIG SET maxmemory-policy " + policy);
  client.run("CONFIG SET maxmemory 1");
  CHECK(client.run("EXISTS untouched") == integer(1));
  CHECK(client.run("EXISTS changed made") == integer(0));
  CHECK(client.run("SET made 1").starts_with("-OOM"));
  client.run("CHECKPOINT ROLLBACK");
  // maxmemory is back, too.
  CHECK(client.run("MGET untouched changed made") ==
        array({bulk("1"), bulk("1"), std::string(kNull)}));
  CHECK(client.run("SET made 1") == kOk);
}

TEST_CASE("Checkpoints go with the dataset", "[checkpoint]") {
  CheckpointFixture server;
  TestClient client(server);
  client.run("SET key value");
  client.run("CHECKPOINT CREATE base");
  client.run("SET key changed");
  SECTION("when it is loaded anew") {
    CHECK(client.run("DEBUG RELOAD") == kOk);
    CHECK(client.run("CHECKPOINT ROLLBACK base") == kNoCheckpoint);
  }
  SECTION("when the server follows a master") {
    server.server.set_role(true, false);
    CHECK(server.server.layer<testing::Checkpoints>().size() == 0);
  }
  CHECK(server.database().undo_log() == nullptr);
  CHECK(client.run("GET key") == bulk("changed"));
}

TEST_CASE("CHECKPOINT refuses what is wrong", "[checkpoint]") {
  CheckpointFixture server;
  TestClient client(server);
  CHECK(client.run("CHECKPOINT ROLLBACK") == kNoCheckpoint);
  CHECK(client.run("CHECKPOINT ROLLBACK none") == kNoCheckpoint);
  CHECK(client.run("CHECKPOINT DROP") == kNoCheckpoint);
  CHECK(client.run("CHECKPOINT CREATE base") == bulk("base"));
  CHECK(client.run("CHECKPOINT CREATE base") ==
        error("ERR A checkpoint of that name exists already"));
  CHECK(client.run("CHECKPOINT ROLLBACK none") == kUnknown);
  CHECK(client.run("CHECKPOINT DROP none") == kUnknown);
  const std::string wrong_name = error("ERR The name of a checkpoint must have 1 to 128 bytes");
  CHECK(client.run_words({"CHECKPOINT", "CREATE", ""}) == wrong_name);
  CHECK(client.run("CHECKPOINT CREATE " + std::string(129, 'x')) == wrong_name);
  CHECK(client.run("CHECKPOINT CREATE " + std::string(128, 'x')) == bulk(std::string(128, 'x')));
  CHECK(client.run("CHECKPOINT CREATE a b") ==
        error("ERR wrong number of arguments for 'checkpoint|create' command"));
  CHECK(client.run("CHECKPOINT ROLLBACK a b") ==
        error("ERR wrong number of arguments for 'checkpoint|rollback' command"));
  CHECK(client.run("CHECKPOINT DROP a b") ==
        error("ERR wrong number of arguments for 'checkpoint|drop' command"));
  CHECK(client.run("CHECKPOINT NONE") ==
        error("ERR unknown subcommand 'NONE'. Try CHECKPOINT HELP."));
  CHECK(client.run("CHECKPOINT") ==
        error("ERR wrong number of arguments for 'checkpoint' command"));
  CHECK(client.run("CHECKPOINT HELP").find("ROLLBACK [<name>]") != std::string::npos);

  client.run("MULTI");
  CHECK(client.run("CHECKPOINT ROLLBACK") == error("ERR Command not allowed inside a transaction"));
  client.run("DISCARD");
  CHECK(client.run_words({"EVAL", "return redis.call('CHECKPOINT', 'CREATE')", "0"})
            .find("This Redis command is not allowed from script") != std::string::npos);

  server.server.tasks().start([] {});
  const std::string busy =
      error("ERR CHECKPOINT is not possible while another command is in the middle");
  CHECK(client.run("CHECKPOINT CREATE") == busy);
  CHECK(client.run("CHECKPOINT ROLLBACK") == busy);
  server.server.tasks().resume_ready();
  CHECK(client.run("CHECKPOINT ROLLBACK") == kOk);

  server.server.set_state(server::kStateLoading, true);
  CHECK(client.run("CHECKPOINT CREATE").starts_with("-LOADING"));
  CHECK(client.run("CHECKPOINT ROLLBACK").starts_with("-LOADING"));
  server.server.set_state(server::kStateLoading, false);

  client.run("CONFIG SET replica-read-only no");
  server.server.set_role(true, true);
  const std::string replica =
      error("ERR CHECKPOINT is not possible on a replica, whose dataset is its master's");
  CHECK(client.run("CHECKPOINT CREATE") == replica);
  CHECK(client.run("CHECKPOINT ROLLBACK") == replica);
}

TEST_CASE("There may be a thousand checkpoints", "[checkpoint]") {
  CheckpointFixture server("databases 1\n");
  TestClient client(server);
  for (size_t i = 1; i <= testing::Checkpoints::kMaxCheckpoints; ++i) {
    REQUIRE(client.run("CHECKPOINT CREATE") == bulk("checkpoint-" + std::to_string(i)));
    client.run("INCR counter");
  }
  CHECK(client.run("CHECKPOINT CREATE") == error("ERR There are 1000 checkpoints already"));
  CHECK(client.run("CHECKPOINT ROLLBACK checkpoint-2") == kOk);
  CHECK(client.run("GET counter") == bulk("1"));
  client.run("CHECKPOINT CREATE checkpoint-1001");
  // A name that is taken is not chosen.
  CHECK(client.run("CHECKPOINT CREATE") == bulk("checkpoint-1002"));
}

TEST_CASE("enable-test-commands forbids CHECKPOINT", "[checkpoint]") {
  CheckpointFixture server("enable-test-commands no\n");
  TestClient client(server);
  CHECK(client.run("CHECKPOINT CREATE").starts_with("-ERR CHECKPOINT command not allowed."));
  CHECK(client.run("CHECKPOINT LIST").starts_with("-ERR CHECKPOINT command not allowed."));
}

TEST_CASE("Whoever follows has the rules between time series back", "[checkpoint]") {
  CheckpointFixture server;
  TestClient client(server);
  CheckpointFixture follower;
  TestClient follow(follower);
  PropagationRecorder stream(server);
  for (const std::string key : {"a", "b", "c"}) client.run("TS.CREATE " + key);
  client.run("TS.CREATERULE a b AGGREGATION sum 10");
  client.run("TS.CREATERULE a c AGGREGATION max 10");
  client.run("CHECKPOINT CREATE");
  client.run(GENERATE("DEL a", "DEL b", "DEL a b", "TS.ADD a 1 1", "TS.ALTER b LABELS x y",
                      "TS.DELETERULE a b", "RENAME b z", "RENAME a z", "FLUSHALL"));
  CHECK(client.run("CHECKPOINT ROLLBACK") == kOk);
  client.run("TS.ADD a 3 5");
  client.run("TS.ADD a 15 1");
  follow.send(stream.take_bytes());
  for (TestClient* each : {&client, &follow}) {
    CHECK(each->run("EXISTS a b c z") == integer(3));
    for (const std::string key : {"b", "c"})
      CHECK(each->run("TS.RANGE " + key + " - +") == array({array({integer(0), status("5")})}));
  }
}

TEST_CASE("A rollback writes each series once, also where rules link several", "[checkpoint]") {
  CheckpointFixture server;
  TestClient client(server);
  for (const std::string key : {"a", "b", "c", "d"}) client.run("TS.CREATE " + key);
  client.run("TS.CREATERULE a b AGGREGATION sum 10");
  client.run("TS.CREATERULE a c AGGREGATION max 10");
  client.run("CHECKPOINT CREATE");
  PropagationRecorder stream(server);
  client.run("DEL b");
  client.run("TS.ALTER c LABELS x y");
  stream.take();
  client.run("CHECKPOINT ROLLBACK");
  const std::string requests = stream.take();
  const auto count = [&](const std::string& key) {
    size_t found = 0;
    for (size_t at = 0; (at = requests.find("; RESTORE " + key + " 0 ", at)) != std::string::npos;
         ++at)
      ++found;
    return found;
  };
  CHECK(count("a") == 1);
  CHECK(count("b") == 1);
  CHECK(count("c") == 1);
  CHECK(count("d") == 0);
}

TEST_CASE("What a rollback writes has the version of the release that is emulated",
          "[checkpoint]") {
  CheckpointFixture server("emulate \"redis 7.0\"\n");
  TestClient client(server);
  client.run("SET key old");
  client.run_words({"FUNCTION", "LOAD",
                    "#!lua name=lib\nredis.register_function('f', function() return 1 end)"});
  client.run("CHECKPOINT CREATE");
  client.run("SET key new");
  client.run("FUNCTION FLUSH");
  PropagationRecorder stream(server);
  client.run("CHECKPOINT ROLLBACK");
  const std::string requests = stream.take();
  // In front of the checksum of eight bytes.
  const auto version_before = [&](std::string_view what) {
    const size_t end = requests.find(what);
    REQUIRE(end != std::string::npos);
    return static_cast<uint8_t>(requests[end - 10]);
  };
  CHECK(version_before(" REPLACE ABSTTL") == 10);
  CHECK(version_before(" FLUSH") == 10);
}

}  // namespace latchkey::tests
