// CLOCK on the level of commands: what is due happens in order, each at its own time.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "composition/whole_server.h"
#include "server/tasks.h"
#include "unit/catch.h"
#include "unit/required.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

constexpr int64_t kStartMs = 1'700'000'000'000;

// A whole server whose machine's clock the test moves.
struct Space {
  explicit Space(std::string_view settings = {}) {
    log.set_level(base::LogLevel::kNothing);
    whole = required(composition::WholeServer::make_space(settings, {.clock = clock, .log = log}));
  }
  server::Server& server() { return whole->server(); }

  base::VirtualClock clock{kStartMs * 1000};
  base::Logger log;
  std::unique_ptr<composition::WholeServer> whole;
};

// Sends the request and lets the server work until the client waits no more.
std::string run(Space& space, TestClient& client, std::string_view request) {
  std::string reply = client.run(request);
  while (client->has(server::kClientBlocked)) {
    space.server().tick();
    reply += client.take_output();
  }
  return reply;
}

// Tells what happened to keys, and at which time.
struct Diary final : server::KeyspaceEventListener {
  explicit Diary(Space& space) : server(space.server()) { server.events().add(*this); }
  ~Diary() override { server.events().remove(*this); }
  void key_changed(store::Keyspace& keyspace, std::string_view key, server::EventClass,
                   std::string_view event) override {
    entries.push_back(std::to_string(server.now_ms() - kStartMs) + " " + std::string(event) + " " +
                      std::string(key) + "@" + std::to_string(keyspace.index()));
  }
  void keyspace_clearing(store::Keyspace&) override {}
  void keyspaces_swapping(store::Keyspace&, store::Keyspace&) override {}
  std::vector<std::string> take() { return std::exchange(entries, {}); }

  server::Server& server;
  std::vector<std::string> entries;
};

std::string state(std::string_view mode, int64_t time_ms, int64_t offset_ms,
                  std::string_view rate) {
  return array({bulk("mode"), bulk(mode), bulk("time"), integer(time_ms), bulk("offset"),
                integer(offset_ms), bulk("rate"), bulk(rate)});
}

}  // namespace

TEST_CASE("CLOCK tells how the clock runs", "[clock]") {
  Space space;
  TestClient client(space.server());
  CHECK(client.run("CLOCK") == state("wall", kStartMs, 0, "1"));
  CHECK(run(space, client, "CLOCK ADVANCE 1500") == integer(kStartMs + 1500));
  CHECK(client.run("CLOCK") == state("running", kStartMs + 1500, 1500, "1"));
  CHECK(client.run("CLOCK FREEZE") == integer(kStartMs + 1500));
  space.clock.advance_ms(100);
  CHECK(client.run("CLOCK") == state("frozen", kStartMs + 1500, 1400, "1"));
  CHECK(client.run("CLOCK RATE 60") == integer(kStartMs + 1500));
  CHECK(client.run("CLOCK RESUME") == integer(kStartMs + 1500));
  space.clock.advance_ms(1000);
  CHECK(client.run("CLOCK") == state("running", kStartMs + 61'500, 60'400, "60"));
  CHECK(client.run("CLOCK RESET") == integer(kStartMs + 1100));
  CHECK(client.run("CLOCK") == state("wall", kStartMs + 1100, 0, "1"));
}

TEST_CASE("Commands live in the time that CLOCK shows", "[clock]") {
  Space space;
  TestClient client(space.server());
  run(space, client, "CLOCK SET 2024-01-01T00:00:00Z");
  client.run("CLOCK FREEZE");
  CHECK(client.run("TIME") == bulks({"1704067200", "0"}));
  CHECK(client.run("XADD s * f v") == bulk("1704067200000-0"));
  client.run("SET k v EX 10");
  CHECK(client.run("EXPIRETIME k") == integer(1'704'067'210));
  CHECK(client.run_words({"EVAL", "return redis.call('TIME')[1]", "0"}) == bulk("1704067200"));
  run(space, client, "CLOCK ADVANCE 4s");
  CHECK(client.run("TTL k") == integer(6));
  CHECK(client.run("OBJECT IDLETIME s") == integer(4));
  run(space, client, "CLOCK ADVANCE 5999");
  CHECK(client.run("GET k") == bulk("v"));
  run(space, client, "CLOCK ADVANCE 1");
  CHECK(client.run("GET k") == kNull);
}

TEST_CASE("Keys and fields expire in the order of their deadlines", "[clock]") {
  Space space("databases 3");
  TestClient client(space.server());
  client.run("SET c v PX 3000");
  client.run("SET a v PX 1001");
  client.run("SET a2 v PX 1005");
  client.run("SELECT 2");
  client.run("SET b v PX 1003");
  client.run("HSET h f v g w");
  client.run("HPEXPIRE h 2000 FIELDS 1 f");
  client.run("HPEXPIRE h 9000 FIELDS 1 g");
  Diary diary(space);
  CHECK(run(space, client, "CLOCK ADVANCE 1m") == integer(kStartMs + 60'000));
  CHECK(diary.take() == std::vector<std::string>{"1001 expired a@0", "1003 expired b@2",
                                                 "1005 expired a2@0", "2000 hexpired h@2",
                                                 "3000 expired c@0", "9000 hexpired h@2",
                                                 "9000 del h@2"});
  CHECK(client.run("DBSIZE") == integer(0));
}

TEST_CASE("What is not due by then stays", "[clock]") {
  Space space;
  TestClient client(space.server());
  client.run("SET a v PX 1000");
  client.run("SET b v PX 1001");
  run(space, client, "CLOCK ADVANCE 1s");
  CHECK(client.run("KEYS *") == bulks({"b"}));
  CHECK(client.run("PTTL b") == integer(1));
}

TEST_CASE("A key that is postponed while others expire goes at its new time", "[clock]") {
  Space space;
  TestClient client(space.server());
  client.run("SET a v PX 100");
  client.run("PEXPIRE a 5000");
  client.run("SET b v PX 50");
  Diary diary(space);
  run(space, client, "CLOCK ADVANCE 1h");
  CHECK(diary.take() == std::vector<std::string>{"50 expired b@0", "5000 expired a@0"});
}

TEST_CASE("Waits end at their own times, between the keys that expire", "[clock]") {
  Space space;
  TestClient client(space.server());
  TestClient one(space.server());
  TestClient two(space.server());
  TestClient group(space.server());
  client.run("SET k v PX 1500");
  client.run("XGROUP CREATE s g $ MKSTREAM");
  client.run("PEXPIRE s 1700");
  one.run("BLPOP l 1");
  two.run("BLPOP l 2");
  group.run("XREADGROUP GROUP g c BLOCK 60000 STREAMS s >");
  Diary diary(space);
  CHECK(client.run("CLOCK ADVANCE 2s") == "");
  CHECK(one.take_output() == "");
  space.server().tick();
  while (client->has(server::kClientBlocked)) space.server().tick();
  CHECK(client.take_output() == integer(kStartMs + 2000));
  CHECK(one.take_output() == kNullArray);
  CHECK(two.take_output() == kNullArray);
  CHECK(group.take_output().starts_with("-NOGROUP"));
  CHECK(diary.take() == std::vector<std::string>{"1500 expired k@0", "1700 expired s@0"});
}

TEST_CASE("CLIENT PAUSE ends when the clock says so", "[clock]") {
  Space space;
  TestClient client(space.server());
  TestClient writer(space.server());
  client.run("CLIENT PAUSE 5000 WRITE");
  CHECK(writer.run("SET k v") == "");
  run(space, client, "CLOCK ADVANCE 4999");
  CHECK(writer->has(server::kClientBlocked));
  run(space, client, "CLOCK ADVANCE 1");
  CHECK_FALSE(writer->has(server::kClientBlocked));
}

TEST_CASE("A pause of all clients leaves them the clock that it goes by", "[clock]") {
  Space space;
  TestClient client(space.server());
  TestClient waiter(space.server());
  client.run("CLOCK FREEZE");
  client.run("CLIENT PAUSE 5000");
  CHECK(waiter.run("PING") == "");
  SECTION("which may be moved") {
    run(space, client, "CLOCK ADVANCE 4999");
    CHECK(waiter->has(server::kClientBlocked));
    run(space, client, "CLOCK ADVANCE 1");
  }
  SECTION("and set on") {
    run(space, client, "CLOCK SET 1800000000");
  }
  CHECK_FALSE(waiter->has(server::kClientBlocked));
  CHECK(client.run("PING") == "+PONG\r\n");
}

TEST_CASE("Keys that a pause has kept expire when it ends", "[clock]") {
  Space space;
  TestClient client(space.server());
  client.run("SET k v PX 100");
  client.run("CLIENT PAUSE 5000 WRITE");
  Diary diary(space);
  run(space, client, "CLOCK ADVANCE 10s");
  CHECK(diary.take() == std::vector<std::string>{"5000 expired k@0"});
}

TEST_CASE("The clock may be set back", "[clock]") {
  Space space;
  TestClient client(space.server());
  client.run("CLOCK FREEZE");
  client.run("SET k v EX 10");
  const std::string id = client.run("XADD s * f v");
  CHECK(run(space, client, "CLOCK SET 1600000000") == integer(1'600'000'000'000));
  CHECK(client.run("TTL k") == integer(100'000'010));
  CHECK(client.run("XADD s * f v") == bulk(std::to_string(kStartMs) + "-1"));
  client.run("SET j v EX 10");
  run(space, client, "CLOCK ADVANCE 10s");
  CHECK(client.run("EXISTS j k") == integer(1));
  run(space, client, "CLOCK SET 1700000010");
  CHECK(client.run("EXISTS k") == integer(0));
}

TEST_CASE("With active expiry switched off only time passes", "[clock]") {
  Space space("enable-debug-command yes");
  TestClient client(space.server());
  client.run("SET k v PX 10");
  client.run("DEBUG SET-ACTIVE-EXPIRE 0");
  run(space, client, "CLOCK ADVANCE 1h");
  CHECK(client.run("DBSIZE") == integer(1));
  CHECK(client.run("GET k") == kNull);
}

TEST_CASE("Moves of several clients follow one another", "[clock]") {
  Space space;
  TestClient one(space.server());
  TestClient two(space.server());
  one.run("CLOCK FREEZE");
  CHECK(one.run("CLOCK ADVANCE 1s") == "");
  CHECK(two.run("CLOCK ADVANCE 2s") == "");
  while (one->has(server::kClientBlocked) || two->has(server::kClientBlocked))
    space.server().tick();
  CHECK(one.take_output() == integer(kStartMs + 1000));
  CHECK(two.take_output() == integer(kStartMs + 3000));
}

TEST_CASE("While the clock is being moved nobody else may set it", "[clock]") {
  Space space;
  TestClient one(space.server());
  TestClient two(space.server());
  one.run("CLOCK ADVANCE 1s");
  CHECK(two.run("CLOCK FREEZE") == error("ERR The clock is being moved by another client"));
  CHECK(two.run("CLOCK RESET") == error("ERR The clock is being moved by another client"));
  while (one->has(server::kClientBlocked)) space.server().tick();
  CHECK(two.run("CLOCK RESET") == integer(kStartMs));
}

TEST_CASE("Who leaves while the clock moves for him stops nothing", "[clock]") {
  Space space;
  TestClient client(space.server());
  client.run("SET k v PX 10");
  {
    TestClient leaving(space.server());
    leaving.run("CLOCK ADVANCE 1s");
    leaving->close();
  }
  do {
    space.server().tick();
  } while (space.server().tasks().any());
  CHECK(client.run("DBSIZE") == integer(0));
  CHECK(client.run("CLOCK FREEZE") == integer(kStartMs + 1000));
}

TEST_CASE("A checkpoint brings the clock back", "[clock][checkpoints]") {
  Space space;
  TestClient client(space.server());
  client.run("CLOCK FREEZE");
  client.run("CLOCK RATE 7");
  client.run("SET k v PX 1000");
  client.run("CHECKPOINT CREATE c");
  run(space, client, "CLOCK ADVANCE 1m");
  CHECK(client.run("EXISTS k") == integer(0));
  CHECK(client.run("CHECKPOINT ROLLBACK c") == kOk);
  CHECK(client.run("CLOCK") == state("frozen", kStartMs, 0, "7"));
  CHECK(client.run("PTTL k") == integer(1000));
  client.run("CLOCK RESET");
  client.run("CHECKPOINT CREATE d");
  run(space, client, "CLOCK ADVANCE 1m");
  client.run("CHECKPOINT ROLLBACK d");
  CHECK(client.run("CLOCK") == state("wall", kStartMs, 0, "1"));
}

TEST_CASE("CLOCK says what is wrong", "[clock]") {
  Space space;
  TestClient client(space.server());
  const std::string bad_duration = error(
      "ERR Invalid duration: milliseconds, or a number with us, ms, s, m, h or d behind it, was "
      "expected");
  CHECK(client.run("CLOCK ADVANCE 1x") == bad_duration);
  CHECK(client.run("CLOCK ADVANCE -1") == bad_duration);
  CHECK(client.run("CLOCK ADVANCE 999999999999d") == bad_duration);
  CHECK(client.run("CLOCK ADVANCE 9000000d") ==
        error("ERR The clock cannot go beyond the year 9999"));
  CHECK(client.run("CLOCK SET tomorrow") ==
        error("ERR Invalid time: Unix time in seconds, in milliseconds with ms behind it, or "
              "2024-01-01T00:00:00Z (or +02:00) was expected"));
  CHECK(client.run("CLOCK RATE 0") == error("ERR The rate must be between 0.001 and 1000000"));
  CHECK(client.run("CLOCK RATE nan") == error("ERR value is not a valid float"));
  CHECK(client.run("CLOCK RATE x") == error("ERR value is not a valid float"));
  CHECK(client.run("CLOCK STOP").starts_with("-ERR unknown subcommand 'STOP'"));
  CHECK(client.run("CLOCK ADVANCE") ==
        error("ERR wrong number of arguments for 'clock|advance' command"));
  CHECK(
      client.run_words({"EVAL", "return redis.call('CLOCK', 'FREEZE')", "0"}).find("not allowed") !=
      std::string::npos);
  CHECK(client.run("CLOCK") == state("wall", kStartMs, 0, "1"));
}

TEST_CASE("In a transaction the clock can be set, but not moved through what is due", "[clock]") {
  Space space;
  TestClient client(space.server());
  client.run("MULTI");
  CHECK(client.run("CLOCK ADVANCE 1s") == error("ERR Command not allowed inside a transaction"));
  client.run("DISCARD");
  client.run("MULTI");
  CHECK(client.run("CLOCK FREEZE") == kQueued);
  CHECK(client.run("EXEC") == array({integer(kStartMs)}));
}

TEST_CASE("enable-test-commands says who may move the clock", "[clock]") {
  Space space("enable-test-commands no");
  TestClient client(space.server());
  const std::string refused = client.run("CLOCK FREEZE");
  CHECK(refused.starts_with("-ERR CLOCK command not allowed. If the enable-test-commands option"));
  CHECK(client.run("CLOCK") == refused);
}

TEST_CASE("The clock may be set by the configuration", "[clock]") {
  Space space("clock \"frozen 2024-01-01T00:00:00Z rate 2\"");
  TestClient client(space.server());
  CHECK(client.run("TIME") == bulks({"1704067200", "0"}));
  CHECK(client.run("CLOCK RESUME") == integer(1'704'067'200'000));
  space.clock.advance_ms(500);
  CHECK(client.run("TIME") == bulks({"1704067201", "0"}));
  Space running("clock 1000");
  TestClient other(running.server());
  CHECK(other.run("TIME") == bulks({"1000", "0"}));
}

TEST_CASE("A clock that cannot be set so keeps the server from starting", "[clock]") {
  base::VirtualClock clock;
  base::Logger log;
  log.set_level(base::LogLevel::kNothing);
  for (const std::string text : {"frozen", "soon", "frozen 1 rate 0", "1 rate", "wall 5", "1 2"}) {
    INFO(text);
    const auto whole = composition::WholeServer::make_space("clock \"" + text + "\"",
                                                            {.clock = clock, .log = log});
    REQUIRE_FALSE(whole);
    CHECK(whole.error().message.find("clock must be") == 0);
  }
}

TEST_CASE("A hundred thousand keys expire within one move", "[clock]") {
  Space space;
  TestClient client(space.server());
  for (int i = 0; i < 100'000; ++i) {
    const std::string ms = std::to_string(1 + (i * 7919) % 50'000);
    client.run("SET key:" + std::to_string(i) + " v PX " + ms);
  }
  Diary diary(space);
  run(space, client, "CLOCK ADVANCE 50s");
  const std::vector<std::string> entries = diary.take();
  REQUIRE(entries.size() == 100'000);
  int64_t last = 0;
  for (const std::string& entry : entries) {
    const int64_t at = std::stoll(entry);
    REQUIRE(at >= last);
    last = at;
  }
  CHECK(client.run("DBSIZE") == integer(0));
}

TEST_CASE("What is due expires in its order after the clock was set back", "[clock]") {
  Space space;
  TestClient client(space.server());
  client.run("CLOCK FREEZE");
  client.run("SET other x PX 3600000");
  client.run("HSET h f v");
  client.run("HPEXPIRE h 3600000 FIELDS 1 f");
  client.run("CHECKPOINT CREATE p");
  run(space, client, "CLOCK ADVANCE 59m");
  SECTION("by a rollback") {
    client.run("CHECKPOINT ROLLBACK p");
  }
  SECTION("by CLOCK SET") {
    run(space, client, "CLOCK SET 1700000000");
  }
  SECTION("by CLOCK RESET") {
    client.run("CLOCK RESET");
    client.run("CLOCK FREEZE");
  }
  client.run("SET late v PX 2000");
  client.run("SET early v PX 100");
  client.run("HSET g f v");
  client.run("HPEXPIRE g 1000 FIELDS 1 f");
  Diary diary(space);
  run(space, client, "CLOCK ADVANCE 200");
  CHECK(diary.take() == std::vector<std::string>{"100 expired early@0"});
  run(space, client, "CLOCK ADVANCE 1h");
  CHECK(diary.take() == std::vector<std::string>{"1000 hexpired g@0", "1000 del g@0",
                                                 "2000 expired late@0", "3600000 expired other@0",
                                                 "3600000 hexpired h@0", "3600000 del h@0"});
}

TEST_CASE("Fields of one hash that expire shortly after one another do so at their own times",
          "[clock]") {
  Space space;
  TestClient client(space.server());
  client.run("CLOCK FREEZE");
  client.run("HSET h a 1 b 1 c 1");
  client.run("HPEXPIRE h 1 FIELDS 1 a");
  client.run("HPEXPIRE h 5 FIELDS 1 b");
  client.run("HPEXPIRE h 7 FIELDS 1 c");
  Diary diary(space);
  SECTION("before another key") {
    client.run("SET k v PX 8");
    diary.take();
    run(space, client, "CLOCK ADVANCE 20");
    CHECK(diary.take() == std::vector<std::string>{"1 hexpired h@0", "5 hexpired h@0",
                                                   "7 hexpired h@0", "7 del h@0", "8 expired k@0"});
  }
  SECTION("before the hash itself does") {
    client.run("PEXPIRE h 6");
    diary.take();
    run(space, client, "CLOCK ADVANCE 20");
    CHECK(diary.take() ==
          std::vector<std::string>{"1 hexpired h@0", "5 hexpired h@0", "6 expired h@0"});
  }
  SECTION("as far as the clock goes") {
    diary.take();
    run(space, client, "CLOCK ADVANCE 6");
    CHECK(diary.take() == std::vector<std::string>{"1 hexpired h@0", "5 hexpired h@0"});
    run(space, client, "CLOCK ADVANCE 1");
    CHECK(diary.take() == std::vector<std::string>{"7 hexpired h@0", "7 del h@0"});
  }
}

TEST_CASE("Waits and pauses last as long as they would have when the clock is set back",
          "[clock]") {
  Space space;
  TestClient client(space.server());
  TestClient waiter(space.server());
  const auto pass_ms = [&](int64_t ms) {
    space.clock.advance_ms(ms);
    space.server().refresh_clock();
    space.server().tick();
  };
  client.run("CHECKPOINT CREATE");
  run(space, client, "CLOCK ADVANCE 1h");
  std::string back = "CLOCK RESET";
  SECTION("a wait for a key") {
    CHECK(waiter.run("BLPOP x 0.3") == "");
  }
  SECTION("a wait for a key, by a rollback") {
    back = "CHECKPOINT ROLLBACK";
    CHECK(waiter.run("BLPOP x 0.3") == "");
  }
  SECTION("a pause") {
    client.run("CLIENT PAUSE 300");
    CHECK(waiter.run("PING") == "");
  }
  SECTION("the pause of a fault") {
    client.run("FAULT ADD COMMAND get TIMES 1 DO PAUSE 300");
    CHECK(waiter.run("GET k") == "");
  }
  SECTION("the delay of a fault") {
    client.run("FAULT ADD COMMAND get TIMES 1 DO DELAY 300");
    CHECK(waiter.run("GET k") == "");
  }
  client.run(back);
  CHECK(client.run("CLOCK").find(":" + std::to_string(kStartMs)) != std::string::npos);
  pass_ms(299);
  CHECK(waiter->has(server::kClientBlocked));
  pass_ms(1);
  CHECK_FALSE(waiter->has(server::kClientBlocked));
}

TEST_CASE("A wait that looks again at a time lasts as long when the clock is set back", "[clock]") {
  Space space;
  TestClient client(space.server());
  TestClient waiter(space.server());
  const auto pass_ms = [&](int64_t ms) {
    space.clock.advance_ms(ms);
    space.server().refresh_clock();
    space.server().tick();
  };
  run(space, client, "CLOCK ADVANCE 1h");
  client.run("XGROUP CREATE s g $ MKSTREAM");
  client.run("XADD s * f v");
  client.run("XREADGROUP GROUP g other STREAMS s >");
  CHECK(waiter.run("XREADGROUP GROUP g c BLOCK 300 CLAIM 100 STREAMS s >") == "");
  client.run("CLOCK RESET");
  // By the clock that was set back the entry was delivered in an hour.
  pass_ms(100);
  CHECK(waiter->has(server::kClientBlocked));
  pass_ms(199);
  CHECK(waiter->has(server::kClientBlocked));
  pass_ms(1);
  CHECK(waiter.take_output() == kNullArray);
}

TEST_CASE("A wait without end has none when the clock is set back", "[clock]") {
  Space space;
  TestClient client(space.server());
  TestClient waiter(space.server());
  run(space, client, "CLOCK ADVANCE 1h");
  CHECK(waiter.run("BLPOP x 0") == "");
  client.run("CLOCK RESET");
  run(space, client, "CLOCK ADVANCE 10h");
  CHECK(waiter->has(server::kClientBlocked));
  client.run("RPUSH x v");
  CHECK(waiter.take_output() == bulks({"x", "v"}));
}

TEST_CASE("A clock that stands still can be moved, and faults removed, while all clients pause",
          "[clock]") {
  Space space;
  TestClient client(space.server());
  TestClient waiter(space.server());
  client.run("CLOCK FREEZE");
  client.run("FAULT ADD DO PAUSE 100");
  CHECK(waiter.run("PING") == "");
  CHECK(run(space, client, "CLOCK ADVANCE 50") == integer(kStartMs + 50));
  CHECK(waiter->has(server::kClientBlocked));
  CHECK(client.run("CALLS COUNT") == integer(0));
  CHECK(client.run("FAULT CLEAR") == kOk);
  CHECK(run(space, client, "CLOCK ADVANCE 50") == integer(kStartMs + 100));
  CHECK_FALSE(waiter->has(server::kClientBlocked));
  CHECK(client.run("PING") == "+PONG\r\n");
}

TEST_CASE("A key that was used before the clock was set back is not idle", "[clock]") {
  Space space;
  TestClient client(space.server());
  client.run("CLOCK FREEZE");
  client.run("SET k v");
  run(space, client, "CLOCK SET 1699999990");
  CHECK(client.run("OBJECT IDLETIME k") == integer(0));
  run(space, client, "CLOCK SET 1700000003");
  CHECK(client.run("OBJECT IDLETIME k") == integer(3));
}

TEST_CASE("The watch of locks began by the clock that the configuration sets", "[clock][locks]") {
  Space space("clock \"frozen 1600000000\"");
  TestClient client(space.server());
  CHECK(client.run("LOCK DOCTOR") ==
        bulk("I have watched locks since 2020-09-13 12:26:40.000 and know 0 locks.\n"
             "Nothing is wrong that I could see.\n"));
}

TEST_CASE("The last time of the year 9999 can be set", "[clock]") {
  Space space;
  TestClient client(space.server());
  client.run("CLOCK FREEZE");
  CHECK(run(space, client, "CLOCK SET 9999-12-31T23:59:59.999Z") == integer(253'402'300'799'999));
  CHECK(client.run("CLOCK ADVANCE 1") == error("ERR The clock cannot go beyond the year 9999"));
}

TEST_CASE("What the log of ACL tells of is never from the future", "[clock]") {
  Space space("requirepass secret");
  TestClient client(space.server());
  client.run("AUTH secret");
  client.run("AUTH wrong");
  run(space, client, "CLOCK SET 2020-09-13");
  CHECK(client.run("ACL LOG").find(bulk("age-seconds") + bulk("0")) != std::string::npos);
}

}  // namespace latchkey::tests
