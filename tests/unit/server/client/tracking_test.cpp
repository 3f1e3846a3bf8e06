#include "server/client/tracking.h"

#include <string>

#include "commands/groups.h"
#include "script/engine.h"
#include "script/rows.h"
#include "server/expiry.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

struct TrackingServer : ServerFixture {
  explicit TrackingServer(std::string_view settings = {})
      : ServerFixture(
            {commands::client_rows(), commands::config_rows(), commands::connection_rows(),
             commands::counter_rows(), commands::database_rows(), commands::expire_rows(),
             commands::hyperloglog_rows(), commands::key_rows(), commands::list_rows(),
             commands::list_wait_rows(), commands::pubsub_rows(), commands::stream_group_rows(),
             commands::string_batch_rows(), commands::string_rows(), commands::transaction_rows(),
             script::script_rows()},
            settings) {
    server.add_layer(std::make_shared<script::Engine>(server));
  }
  server::Tracking& tracking() { return server.tracking(); }
};

std::string invalidated(std::initializer_list<std::string_view> keys) {
  return ">2\r\n" + bulk("invalidate") + bulks(keys);
}
std::string all_invalidated() {
  return ">2\r\n" + bulk("invalidate") + std::string(kNull3);
}
std::string id_of(TestClient& client) {
  return std::to_string(client->id);
}

}  // namespace

TEST_CASE("a client is told once of a change to a key that it has read", "[tracking]") {
  TrackingServer server;
  TestClient reader(server, 3);
  TestClient writer(server);
  CHECK(reader.run("CLIENT TRACKING ON") == kOk);
  reader.run("GET name");
  writer.run("SET name 1");
  CHECK(reader.take_output() == invalidated({"name"}));
  writer.run("SET name 2");
  CHECK(reader.take_output().empty());
  reader.run("GET name");
  writer.run("DEL name");
  CHECK(reader.take_output() == invalidated({"name"}));
}

TEST_CASE("keys that were only written are not tracked", "[tracking]") {
  TrackingServer server;
  TestClient reader(server, 3);
  TestClient writer(server);
  reader.run("CLIENT TRACKING ON");
  reader.run("SET name 1");
  reader.run("INCR name");
  CHECK(server.tracking().keys() == 0);
  writer.run("SET name 2");
  CHECK(reader.take_output().empty());
}

TEST_CASE("a count that PFCOUNT stores is a change", "[tracking]") {
  TrackingServer server;
  TestClient reader(server, 3);
  TestClient writer(server);
  writer.run("PFADD visits anna");
  reader.run("CLIENT TRACKING ON");
  reader.run("GET visits");
  writer.run("PFCOUNT visits");
  CHECK(reader.take_output() == invalidated({"visits"}));
  reader.run("GET visits");
  writer.run("PFCOUNT visits");
  CHECK(reader.take_output().empty());
}

TEST_CASE("a key is its name in whatever database", "[tracking]") {
  TrackingServer server;
  TestClient reader(server, 3);
  TestClient writer(server);
  reader.run("CLIENT TRACKING ON");
  reader.run("GET name");
  writer.run("SELECT 5");
  writer.run("SET name 1");
  CHECK(reader.take_output() == invalidated({"name"}));
}

TEST_CASE("a client hears of its own changes behind the reply, unless it wants no loop",
          "[tracking]") {
  TrackingServer server;
  TestClient reader(server, 3);
  reader.run("CLIENT TRACKING ON");
  reader.run("GET name");
  CHECK(reader.run("SET name 1") == std::string(kOk) + invalidated({"name"}));
  reader.run("CLIENT TRACKING ON NOLOOP");
  reader.run("GET name");
  CHECK(reader.run("SET name 2") == kOk);
}

TEST_CASE("messages of a transaction follow its reply", "[tracking]") {
  TrackingServer server;
  TestClient reader(server, 3);
  reader.run("CLIENT TRACKING ON");
  reader.run("MGET a b");
  reader.run("MULTI");
  reader.run("SET a 1");
  reader.run("GET b");
  reader.run("FLUSHALL");
  CHECK(reader.run("EXEC") == array({std::string(kOk), std::string(kNull3), std::string(kOk)}) +
                                  invalidated({"a"}) + all_invalidated());
}

TEST_CASE("invalidations come behind other messages of the same request", "[tracking]") {
  TrackingServer server("notify-keyspace-events KA\n");
  TestClient reader(server, 3);
  reader.run("CLIENT TRACKING ON");
  reader.run("SUBSCRIBE __keyspace@0__:a");
  reader.run("GET a");
  CHECK(reader.run("SET a 1") == std::string(kOk) + ">3\r\n" + bulk("message") +
                                     bulk("__keyspace@0__:a") + bulk("set") + invalidated({"a"}));
}

TEST_CASE("what a script reads counts for its caller, what it names does not", "[tracking]") {
  TrackingServer server;
  TestClient reader(server, 3);
  TestClient writer(server);
  reader.run("CLIENT TRACKING ON");
  reader.run_words({"EVAL", "redis.call('get', KEYS[1])", "2", "a", "b"});
  reader.run_words({"EVAL_RO", "return 1", "1", "c"});
  writer.run("MSET a 1 b 2 c 3");
  CHECK(reader.take_output() == invalidated({"a"}));
}

TEST_CASE("who opts in is told of the keys of the next command only", "[tracking]") {
  TrackingServer server;
  TestClient reader(server, 3);
  TestClient writer(server);
  CHECK(reader.run("CLIENT CACHING YES") ==
        error("ERR CLIENT CACHING can be called only when the client is in tracking mode with "
              "OPTIN or OPTOUT mode enabled"));
  reader.run("CLIENT TRACKING ON OPTIN");
  reader.run("GET a");
  CHECK(reader.run("CLIENT CACHING YES") == kOk);
  reader.run("CLIENT ID");
  reader.run("GET b");
  reader.run("GET c");
  writer.run("MSET a 1 b 2 c 3");
  CHECK(reader.take_output() == invalidated({"b"}));

  SECTION("or of a whole transaction") {
    reader.run("CLIENT CACHING YES");
    reader.run("MULTI");
    reader.run("GET a");
    reader.run("GET b");
    reader.run("EXEC");
    reader.run("GET c");
    writer.run("MSET a 1 b 2 c 3");
    CHECK(reader.take_output() == invalidated({"a"}) + invalidated({"b"}));
  }
  SECTION("or, said within a transaction, of the rest of it") {
    reader.run("MULTI");
    reader.run("GET a");
    reader.run("CLIENT CACHING YES");
    reader.run("GET b");
    reader.run("EXEC");
    reader.run("GET c");
    writer.run("MSET a 1 b 2 c 3");
    CHECK(reader.take_output() == invalidated({"b"}));
  }
  SECTION("and an unknown command is a command") {
    reader.run("CLIENT CACHING YES");
    reader.run("GETT a");
    reader.run("GET a");
    CHECK(server.tracking().keys() == 0);
  }
}

TEST_CASE("who opts out is not told of the keys of the next command", "[tracking]") {
  TrackingServer server;
  TestClient reader(server, 3);
  TestClient writer(server);
  reader.run("CLIENT TRACKING ON OPTOUT");
  reader.run("CLIENT CACHING NO");
  reader.run("GET a");
  reader.run("GET b");
  writer.run("MSET a 1 b 2");
  CHECK(reader.take_output() == invalidated({"b"}));
}

TEST_CASE("broadcasts send all of a turn's changes at its end, by prefix", "[tracking]") {
  TrackingServer server;
  TestClient reader(server, 3);
  TestClient everything(server, 3);
  TestClient writer(server);
  reader.run("CLIENT TRACKING ON BCAST PREFIX user: PREFIX item:");
  everything.run("CLIENT TRACKING ON BCAST");
  writer.run("MSET user:2 b user:1 a other x");
  writer.run("SET item:1 y");
  CHECK(reader.take_output().empty());
  server.tick();
  CHECK(reader.take_output() == invalidated({"item:1"}) + invalidated({"user:1", "user:2"}));
  CHECK(everything.take_output() == invalidated({"item:1", "other", "user:1", "user:2"}));
  server.tick();
  CHECK(reader.take_output().empty());
}

TEST_CASE("a broadcast spares who wants no loop what it changed itself", "[tracking]") {
  TrackingServer server;
  TestClient reader(server, 3);
  TestClient writer(server);
  reader.run("CLIENT TRACKING ON BCAST NOLOOP");
  reader.run("SET mine 1");
  reader.run("SET ours 1");
  writer.run("SET ours 2");
  reader.run_words({"EVAL", "redis.call('set', 'scripted', '1')", "0"});
  server.tick();
  CHECK(reader.take_output() == invalidated({"ours", "scripted"}));
  reader.run("SET mine 2");
  server.tick();
  CHECK(reader.take_output().empty());
}

TEST_CASE("a prefix goes with the last who listens, and with it what was to be told",
          "[tracking]") {
  TrackingServer server;
  TestClient reader(server, 3);
  TestClient other(server, 3);
  TestClient writer(server);
  reader.run("CLIENT TRACKING ON BCAST PREFIX a");
  other.run("CLIENT TRACKING ON");
  CHECK(server.tracking().prefixes() == 1);
  writer.run("SET a 1");
  reader.run("CLIENT TRACKING OFF");
  CHECK(server.tracking().prefixes() == 0);
  CHECK_FALSE(server.tracking().any_to_broadcast());
  server.tick();
  CHECK(reader.take_output().empty());
}

TEST_CASE("prefixes of a client must not overlap", "[tracking]") {
  TrackingServer server;
  TestClient reader(server, 3);
  CHECK(reader.run("CLIENT TRACKING ON BCAST PREFIX FOOBAR PREFIX FOO") ==
        error("ERR Prefix 'FOOBAR' overlaps with another provided prefix 'FOO'. Prefixes for a "
              "single client must not overlap."));
  CHECK(reader.run("CLIENT TRACKING ON BCAST PREFIX FOO") == kOk);
  CHECK(reader.run("CLIENT TRACKING ON BCAST PREFIX FO") ==
        error("ERR Prefix 'FO' overlaps with an existing prefix 'FOO'. Prefixes for a single "
              "client must not overlap."));
  CHECK(reader.run("CLIENT TRACKING ON BCAST PREFIX BAR") == kOk);
  CHECK(server.tracking().prefixes() == 2);
}

TEST_CASE("a client of RESP2 is told through another connection", "[tracking]") {
  TrackingServer server;
  TestClient reader(server);
  TestClient ear(server);
  TestClient writer(server);
  CHECK(reader.run("CLIENT TRACKING ON REDIRECT " + id_of(ear)) == kOk);
  CHECK(reader.run("CLIENT GETREDIR") == integer(static_cast<int64_t>(ear->id)));
  SECTION("that says nothing to who has not subscribed") {
    reader.run("GET a");
    writer.run("SET a 1");
    CHECK(ear.take_output().empty());
  }
  SECTION("which gets messages of a channel when it speaks RESP2") {
    ear.run("SUBSCRIBE __redis__:invalidate");
    reader.run("GET a");
    writer.run("SET a 1");
    CHECK(ear.take_output() ==
          array({bulk("message"), bulk("__redis__:invalidate"), bulks({"a"})}));
    writer.run("FLUSHDB");
    CHECK(ear.take_output() ==
          array({bulk("message"), bulk("__redis__:invalidate"), std::string(kNull)}));
  }
  SECTION("which gets pushes when it speaks RESP3") {
    ear.run("HELLO 3");
    reader.run("GET a");
    writer.run("SET a 1");
    CHECK(ear.take_output() == invalidated({"a"}));
  }
  CHECK(reader.take_output().empty());
}

TEST_CASE("a client learns that who was to be told for it is gone", "[tracking]") {
  TrackingServer server;
  TestClient reader(server, 3);
  TestClient ear(server, 3);
  TestClient writer(server);
  const std::string id = id_of(ear);
  reader.run("CLIENT TRACKING ON REDIRECT " + id);
  reader.run("GET a");
  ear->close();
  writer.run("SET a 1");
  CHECK(reader.take_output() == ">2\r\n" + bulk("tracking-redir-broken") + ":" + id + "\r\n");
  CHECK(reader.run("CLIENT TRACKINGINFO") == "%3\r\n" + bulk("flags") + "~2\r\n" + bulk("on") +
                                                 bulk("broken_redirect") + bulk("redirect") + ":" +
                                                 id + "\r\n" + bulk("prefixes") + "*0\r\n");
  CHECK(reader.run("CLIENT LIST").find(" flags=tR ") != std::string::npos);
}

TEST_CASE("expired keys are told of, by whoever looks", "[tracking]") {
  TrackingServer server;
  TestClient reader(server, 3);
  reader.run("CLIENT TRACKING ON");
  reader.run("SET a 1 PX 10");
  reader.run("GET a");
  SECTION("by the server itself") {
    server.advance_ms(20);
    server.tick();
    CHECK(reader.take_output() == invalidated({"a"}));
  }
  SECTION("behind the reply to who meets it") {
    server.server.expiry().enable(false);
    server.advance_ms(20);
    CHECK(reader.run("MGET a") == array({std::string(kNull3)}) + invalidated({"a"}));
  }
}

TEST_CASE("a flush tells every client that tracks, even of an empty dataset", "[tracking]") {
  TrackingServer server;
  TestClient reader(server, 3);
  TestClient other(server, 3);
  TestClient stranger(server, 3);
  TestClient writer(server);
  reader.run("CLIENT TRACKING ON");
  other.run("CLIENT TRACKING ON BCAST PREFIX a");
  reader.run("GET a");
  writer.run("FLUSHALL");
  CHECK(reader.take_output() == all_invalidated());
  CHECK(other.take_output() == all_invalidated());
  CHECK(stranger.take_output().empty());
  CHECK(server.tracking().keys() == 0);
  CHECK(server.tracking().items() == 0);
}

TEST_CASE("who flushes itself is told before the reply, for it waits for what is freed",
          "[tracking]") {
  TrackingServer server;
  TestClient reader(server, 3);
  reader.run("CLIENT TRACKING ON NOLOOP");
  const std::string told_first = all_invalidated() + std::string(kOk);
  const std::string told_last = std::string(kOk) + all_invalidated();
  for (const char* const request : {"FLUSHALL", "FLUSHDB", "FLUSHALL SYNC", "FLUSHDB SYNC"})
    CHECK(reader.run(request) == told_first);
  CHECK(reader.run("FLUSHALL ASYNC") == told_last);
  CHECK(reader.run("CONFIG SET lazyfree-lazy-user-flush yes") == kOk);
  CHECK(reader.run("FLUSHALL") == told_last);
  CHECK(reader.run("FLUSHALL SYNC") == told_first);
  CHECK(reader.run_words({"EVAL", "redis.call('FLUSHALL', 'SYNC') return 7", "0"}) ==
        integer(7) + all_invalidated());
  reader.run("CLIENT REPLY SKIP");
  CHECK(reader.run("FLUSHALL SYNC") == all_invalidated());
  TrackingServer older("emulate \"valkey 8.1\"\n");
  TestClient other(older, 3);
  other.run("CLIENT TRACKING ON");
  CHECK(other.run("FLUSHALL") == told_last);
}

TEST_CASE("databases that change places change no keys to who tracks", "[tracking]") {
  TrackingServer server;
  TestClient reader(server, 3);
  TestClient writer(server);
  reader.run("CLIENT TRACKING ON");
  reader.run("GET a");
  writer.run("SWAPDB 0 1");
  CHECK(reader.take_output().empty());
  CHECK(server.tracking().keys() == 1);
}

TEST_CASE("more keys than may be tracked are given up, and their readers told", "[tracking]") {
  TrackingServer server("tracking-table-max-keys 2\n");
  TestClient reader(server, 3);
  TestClient writer(server);
  reader.run("CLIENT TRACKING ON");
  reader.run("MGET a b c d e");
  CHECK(server.tracking().keys() == 5);
  SECTION("before the next command of anybody") {
    writer.run("PING");
    CHECK(server.tracking().keys() == 2);
  }
  SECTION("and before the reply of a reader") {
    const std::string reply = reader.run("PING");
    CHECK(reply.starts_with(">2\r\n"));
    CHECK(reply.ends_with("+PONG\r\n"));
  }
  SECTION("or by itself") {
    server.tick();
    CHECK(server.tracking().keys() == 2);
  }
}

TEST_CASE("the table has no end where there is no limit", "[tracking]") {
  TrackingServer server("tracking-table-max-keys 0\n");
  TestClient reader(server, 3);
  reader.run("CLIENT TRACKING ON");
  reader.run("MGET a b c d e");
  reader.run("PING");
  CHECK(server.tracking().keys() == 5);
}

TEST_CASE("a table far too large takes some attempts, each larger than the last", "[tracking]") {
  TrackingServer server;
  TestClient reader(server, 3);
  reader.run("CLIENT TRACKING ON");
  for (int i = 0; i < 250; ++i) reader.run("GET key" + std::to_string(i));
  reader.run("CONFIG SET tracking-table-max-keys 1");
  CHECK(server.tracking().keys() == 250);
  reader.run("PING");
  CHECK(server.tracking().keys() == 150);
  reader.run("PING");
  CHECK(server.tracking().keys() == 1);
}

TEST_CASE("figures count readers, and the table goes with the last of them", "[tracking]") {
  TrackingServer server;
  TestClient one(server, 3);
  TestClient other(server, 3);
  one.run("CLIENT TRACKING ON");
  other.run("CLIENT TRACKING ON");
  one.run("MGET a b");
  other.run("MGET b c b");
  CHECK(server.tracking().clients() == 2);
  CHECK(server.tracking().keys() == 3);
  CHECK(server.tracking().items() == 4);
  other->close();
  CHECK(server.tracking().clients() == 1);
  one.run("RESET");
  CHECK(one.run("CLIENT LIST").find(" flags=N ") != std::string::npos);
  CHECK(server.tracking().clients() == 0);
  CHECK(server.tracking().keys() == 0);
  CHECK(server.tracking().items() == 0);
}

TEST_CASE("a client without replies is told all the same", "[tracking]") {
  TrackingServer server;
  TestClient reader(server, 3);
  reader.run("CLIENT TRACKING ON");
  reader.run("GET a");
  reader.run("CLIENT REPLY OFF");
  CHECK(reader.run("SET a 1") == invalidated({"a"}));
}

TEST_CASE("what serves a waiting client is told behind its reply", "[tracking]") {
  TrackingServer server;
  TestClient reader(server, 3);
  TestClient writer(server);
  reader.run("CLIENT TRACKING ON");
  reader.run("LRANGE list 0 -1");
  reader.run("BLPOP list 0");
  writer.run("RPUSH list x");
  // The element has come, and has gone again.
  CHECK(reader.take_output() == invalidated({"list"}) + bulks({"list", "x"}));
}

TEST_CASE("CLIENT TRACKING refuses what contradicts itself", "[tracking]") {
  TrackingServer server;
  TestClient client(server, 3);
  TestClient other(server, 3);
  const std::string to_other = " REDIRECT " + id_of(other);
  CHECK(client.run("CLIENT TRACKING ON" + to_other + to_other) ==
        error("ERR A client can only redirect to a single other client"));
  for (const char* const id : {"0", "-1", "999"})
    CHECK(client.run("CLIENT TRACKING ON REDIRECT " + std::string(id)) ==
          error("ERR The client ID you want redirect to does not exist"));
  CHECK(client.run("CLIENT TRACKING ON REDIRECT x") ==
        error("ERR value is not an integer or out of range"));
  CHECK(client.run("CLIENT TRACKING ON OPTIN OPTOUT") ==
        error("ERR You can't specify both OPTIN mode and OPTOUT mode"));
  for (const char* const mode : {"OPTIN", "OPTOUT"})
    CHECK(client.run("CLIENT TRACKING ON BCAST " + std::string(mode)) ==
          error("ERR OPTIN and OPTOUT are not compatible with BCAST"));
  CHECK(client.run("CLIENT TRACKING ON PREFIX a") ==
        error("ERR PREFIX option requires BCAST mode to be enabled"));
  for (const char* const words : {"MAYBE", "ON SOON", "OFF SOON", "ON REDIRECT", "ON PREFIX"})
    CHECK(client.run("CLIENT TRACKING " + std::string(words)) == error("ERR syntax error"));
  CHECK(client.run("CLIENT TRACKINGINFO") == "%3\r\n" + bulk("flags") + "~1\r\n" + bulk("off") +
                                                 bulk("redirect") + integer(-1) + bulk("prefixes") +
                                                 "*0\r\n");
  CHECK(client.run("CLIENT CACHING YES") ==
        error("ERR CLIENT CACHING can be called only when the client is in tracking mode with "
              "OPTIN or OPTOUT mode enabled"));
}

TEST_CASE("A client that tracks changes its mode by leaving it first", "[tracking]") {
  TrackingServer server;
  TestClient client(server, 3);
  const std::string no_switch = error(
      "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then "
      "re-enabling it with a different mode.");
  CHECK(client.run("CLIENT TRACKING ON OPTIN") == kOk);
  CHECK(client.run("CLIENT TRACKING ON OPTOUT") == no_switch);
  CHECK(client.run("CLIENT TRACKING ON OPTIN") == kOk);
  CHECK(client.run("CLIENT TRACKING ON BCAST") ==
        error("ERR You can't switch BCAST mode on/off before disabling tracking for this client, "
              "and then re-enabling it with a different mode."));
  CHECK(client.run("CLIENT CACHING NO") ==
        error("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode."));
  CHECK(client.run("CLIENT CACHING maybe") == error("ERR syntax error"));
  CHECK(client.run("CLIENT TRACKING OFF") == kOk);
  CHECK(client.run("CLIENT TRACKING ON OPTOUT") == kOk);
  CHECK(client.run("CLIENT TRACKING ON OPTIN") == no_switch);
  CHECK(client.run("CLIENT CACHING YES") ==
        error("ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode."));
}

TEST_CASE("A table of many keys that nobody reads any more goes at once for its readers",
          "[tracking]") {
  TrackingServer server;
  TestClient reader(server, 3);
  TestClient writer(server);
  reader.run("CLIENT TRACKING ON");
  for (int i = 0; i < 200; ++i) reader.run("GET key" + std::to_string(i));
  writer.run("FLUSHALL");
  CHECK(reader.take_output() == all_invalidated());
  writer.run("SET key1 1");
  CHECK(reader.take_output().empty());
  reader.run("GET key1");
  writer.run("SET key1 2");
  CHECK(reader.take_output() == invalidated({"key1"}));
}

TEST_CASE("a stream that XGROUP CREATE makes is a change", "[tracking]") {
  TrackingServer server;
  TestClient reader(server, 3);
  TestClient writer(server);
  CHECK(reader.run("CLIENT TRACKING ON") == kOk);
  reader.run("GET x");
  CHECK(writer.run("XGROUP CREATE x g $ MKSTREAM") == kOk);
  CHECK(reader.take_output() == invalidated({"x"}));
}

}  // namespace latchkey::tests
