
#include <string>

#include "commands/groups.h"
#include "server/client/blocking.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"
#include "unit/testing/tested_server.h"

namespace latchkey::tests {

namespace {

struct StreamServer : ServerFixture {
  StreamServer()
      : ServerFixture({commands::config_rows(), commands::expire_rows(), commands::key_rows(),
                       commands::object_rows(), commands::stream_group_rows(),
                       commands::stream_info_rows(), commands::stream_pending_rows(),
                       commands::stream_read_rows(), commands::stream_rows(),
                       commands::string_rows(), commands::transaction_rows()}) {}
};

std::string entry(std::string_view id, std::initializer_list<std::string_view> fields) {
  return array({bulk(id), bulks(fields)});
}

}  // namespace

TEST_CASE("XADD makes ids from the clock, the last id, or as it is told", "[streams]") {
  StreamServer server;
  TestClient client(server);
  const std::string now = std::to_string(server.now_ms());
  CHECK(client.run("XADD s 1-1 a 1") == bulk("1-1"));
  CHECK(client.run("XADD s 1-* a 1") == bulk("1-2"));
  CHECK(client.run("XADD s 2-* a 1") == bulk("2-0"));
  CHECK(client.run("XADD s 3 a 1") == bulk("3-0"));
  CHECK(client.run("XADD s * a 1") == bulk(now + "-0"));
  CHECK(client.run("XADD s * a 1") == bulk(now + "-1"));
  CHECK(server.events() == "xadd s, xadd s, xadd s, xadd s, xadd s, xadd s");
  CHECK(client.run("XADD s 1-1 a 1") ==
        error("ERR The ID specified in XADD is equal or smaller than the target stream top item"));
  CHECK(client.run("XADD t 0-0 a 1") ==
        error("ERR The ID specified in XADD must be greater than 0-0"));
  CHECK(client.run("XADD t NOMKSTREAM * a 1") == kNull);
  CHECK(client.run("XADD t 1 a") == error("ERR wrong number of arguments for 'xadd' command"));
  CHECK(client.run("EXISTS t") == integer(0));
}

TEST_CASE("The last possible id can be used once", "[streams]") {
  StreamServer server;
  TestClient client(server);
  const std::string last = "18446744073709551615-18446744073709551615";
  CHECK(client.run("XADD s " + last + " a 1") == bulk(last));
  for (const auto* id : {"*", "18446744073709551615-*", "5"}) {
    CHECK(client.run("XADD s " + std::string(id) + " a 1") ==
          error("ERR The stream has exhausted the last possible ID, unable to add more items"));
  }
}

TEST_CASE("A refused id leaves no key behind", "[streams]") {
  StreamServer server;
  TestClient client(server);
  const std::string invalid = error("ERR Invalid stream ID specified as stream command argument");
  CHECK(client.run("XADD s abc a 1") == invalid);
  // A second word about references stands where the id should.
  CHECK(client.run("XADD s ACKED KEEPREF * a 1") == invalid);
  CHECK(client.run("XADD s MAXLEN 1 KEEPREF KEEPREF * a 1") == invalid);
  CHECK(client.run("EXISTS s") == integer(0));
  client.run("SET text x");
  CHECK(client.run("XADD text * a 1") == kWrongType);
}

TEST_CASE("XRANGE and XREVRANGE give entries between two ids, which may be left out", "[streams]") {
  StreamServer server;
  TestClient client(server);
  client.run("XADD s 1-1 a 1");
  client.run("XADD s 1-2 b 2 c -3");
  client.run("XADD s 2-1 a x");
  CHECK(client.run("XRANGE s 1 1") ==
        array({entry("1-1", {"a", "1"}), entry("1-2", {"b", "2", "c", "-3"})}));
  CHECK(client.run("XRANGE s (1-1 + COUNT 1") == array({entry("1-2", {"b", "2", "c", "-3"})}));
  CHECK(client.run("XREVRANGE s + - COUNT 1") == array({entry("2-1", {"a", "x"})}));
  CHECK(client.run("XREVRANGE s (2-1 (1-1") == array({entry("1-2", {"b", "2", "c", "-3"})}));
  CHECK(client.run("XRANGE s - + COUNT 0") == kNullArray);
  CHECK(client.run("XRANGE nosuch - + COUNT 0") == "*0\r\n");
  CHECK(client.run("XRANGE s - (0-0") == error("ERR invalid end ID for the interval"));
}

TEST_CASE("XDEL deletes nothing when one of the ids is none", "[streams]") {
  StreamServer server;
  TestClient client(server);
  client.run("XADD s 1 a 1");
  client.run("XADD s 2 a 1");
  server.changes();
  CHECK(client.run("XDEL s 1 abc") ==
        error("ERR Invalid stream ID specified as stream command argument"));
  CHECK(client.run("XLEN s") == integer(2));
  CHECK(client.run("XDEL s 1 2 2 9") == integer(2));
  CHECK(server.changes() == 2);
  CHECK(server.events() == "xadd s, xadd s, xdel s");
  CHECK(client.run("XLEN s") == integer(0));
  CHECK(client.run("TYPE s") == status("stream"));
  CHECK(client.run("OBJECT ENCODING s") == bulk("stream"));
}

TEST_CASE("XADD and XTRIM trim by length or id, exactly or not", "[streams]") {
  StreamServer server;
  TestClient client(server);
  client.run("CONFIG SET stream-node-max-entries 3");
  for (int i = 1; i <= 10; ++i) client.run("XADD s " + std::to_string(i) + " a 1");
  server.events();
  CHECK(client.run("XADD s MAXLEN ~ 8 11 a 1") == bulk("11-0"));
  CHECK(client.run("XLEN s") == integer(8));
  CHECK(server.events() == "xadd s, xtrim s");
  CHECK(client.run("XTRIM s MAXLEN = 7") == integer(1));
  CHECK(client.run("XTRIM s MINID 9") == integer(4));
  CHECK(client.run("XTRIM s MAXLEN ~ 0 LIMIT 1") == integer(1));
  CHECK(client.run("XTRIM s MAXLEN ~ 0 LIMIT 1") == integer(0));
  CHECK(client.run("XTRIM s MAXLEN 1 LIMIT 1") ==
        error("ERR syntax error, LIMIT cannot be used without the special ~ option"));
  CHECK(client.run("XTRIM s MAXLEN 5 MINID 5") ==
        error("ERR syntax error, MAXLEN and MINID options at the same time are not compatible"));
}

TEST_CASE("XSETID moves the last id, but not before what is there", "[streams]") {
  StreamServer server;
  TestClient client(server);
  client.run("XADD s 5 a 1");
  CHECK(client.run("XSETID s 4") ==
        error("ERR The ID specified in XSETID is smaller than the target stream top item"));
  CHECK(client.run("XSETID s 9 ENTRIESADDED 0") ==
        error("ERR The entries_added specified in XSETID is smaller than the target stream "
              "length"));
  CHECK(client.run("XSETID s 9 ENTRIESADDED 7 MAXDELETEDID 3") == kOk);
  CHECK(client.run("XADD s 8 a 1") ==
        error("ERR The ID specified in XADD is equal or smaller than the target stream top item"));
  CHECK(client.run("XSETID nosuch 1") == error("ERR no such key"));
}

TEST_CASE("XREAD gives what is behind an id, and the last entry for +", "[streams]") {
  StreamServer server;
  TestClient client(server);
  client.run("XADD s 1 a 1");
  client.run("XADD s 2 a 2");
  CHECK(client.run("XREAD STREAMS s nosuch 1 0") ==
        array({array({bulk("s"), array({entry("2-0", {"a", "2"})})})}));
  CHECK(client.run("XREAD STREAMS s +") ==
        array({array({bulk("s"), array({entry("2-0", {"a", "2"})})})}));
  CHECK(client.run("XREAD STREAMS s $") == kNullArray);
  CHECK(client.run("XREAD STREAMS s") ==
        error("ERR wrong number of arguments for 'xread' command"));
  TestClient newer(server, 3);
  CHECK(newer.run("XREAD COUNT 1 STREAMS s 0") ==
        "%1\r\n" + bulk("s") + array({entry("1-0", {"a", "1"})}));
}

TEST_CASE("XREAD waits for what is added behind the id that $ stood for", "[streams]") {
  StreamServer server;
  TestClient waiting(server);
  TestClient other(server);
  other.run("XADD s 5 a 1");
  CHECK(waiting.run("XREAD BLOCK 0 STREAMS s other $ 7").empty());
  other.run("XADD other 6 a 1");
  CHECK(waiting.take_output().empty());
  other.run("XADD s 6 b 2");
  CHECK(waiting.take_output() == array({array({bulk("s"), array({entry("6-0", {"b", "2"})})})}));
}

TEST_CASE("XREAD gives up when its time is over, and does not wait in a transaction", "[streams]") {
  StreamServer server;
  TestClient client(server);
  CHECK(client.run("XREAD BLOCK 20 STREAMS s 0").empty());
  server.advance_ms(21);
  server.tick();
  CHECK(client.take_output() == kNullArray);
  client.run("MULTI");
  client.run("XREAD BLOCK 0 STREAMS s 0");
  CHECK(client.run("EXEC") == array({std::string(kNullArray)}));
}

TEST_CASE("XINFO STREAM tells what a stream is made of", "[streams]") {
  StreamServer server;
  TestClient client(server);
  client.run("CONFIG SET stream-node-max-entries 1");
  client.run("XADD s 1-1 a 1");
  client.run("XADD s 1-2 a 2");
  client.run("XADD s 300-0 a 3");
  client.run("XDEL s 1-2");
  const std::string head = bulk("length") + integer(2) + bulk("radix-tree-keys") + integer(2) +
                           bulk("radix-tree-nodes") + integer(6) + bulk("last-generated-id") +
                           bulk("300-0") + bulk("max-deleted-entry-id") + bulk("1-2") +
                           bulk("entries-added") + integer(3) + bulk("recorded-first-entry-id") +
                           bulk("1-1") + bulk("idmp-duration") + integer(100) +
                           bulk("idmp-maxsize") + integer(100) + bulk("pids-tracked") + integer(0) +
                           bulk("iids-tracked") + integer(0) + bulk("iids-added") + integer(0) +
                           bulk("iids-duplicates") + integer(0);
  CHECK(client.run("XINFO STREAM s") == "*32\r\n" + head + bulk("groups") + integer(0) +
                                            bulk("first-entry") + entry("1-1", {"a", "1"}) +
                                            bulk("last-entry") + entry("300-0", {"a", "3"}));
  CHECK(client.run("XINFO STREAM s FULL COUNT 1") == "*30\r\n" + head + bulk("entries") +
                                                         array({entry("1-1", {"a", "1"})}) +
                                                         bulk("groups") + "*0\r\n");
  CHECK(client.run("XINFO STREAM s NOSUCH") ==
        error("ERR unknown subcommand or wrong number of arguments for 'STREAM'. Try XINFO "
              "HELP."));
}

TEST_CASE("A copied stream goes its own way", "[streams]") {
  StreamServer server;
  TestClient client(server);
  client.run("XADD s 1 a 1");
  CHECK(client.run("COPY s t") == integer(1));
  client.run("XDEL s 1");
  CHECK(client.run("XRANGE t - +") == array({entry("1-0", {"a", "1"})}));
}

TEST_CASE("MAXCOUNT limits what XREAD sends of all streams together", "[stream_maximum]") {
  StreamServer server;
  TestClient client(server);
  for (const std::string key : {"a", "b"}) {
    for (int i = 1; i <= 3; ++i) client.run("XADD " + key + " " + std::to_string(i) + " f v");
  }
  const auto entry = [](std::string_view id) { return array({bulk(id), bulks({"f", "v"})}); };
  CHECK(client.run("XREAD MAXCOUNT 4 STREAMS a b 0 0") ==
        array({array({bulk("a"), array({entry("1-0"), entry("2-0"), entry("3-0")})}),
               array({bulk("b"), array({entry("1-0")})})}));
  CHECK(client.run("XREAD COUNT 2 MAXCOUNT 3 STREAMS a b 0 0") ==
        array({array({bulk("a"), array({entry("1-0"), entry("2-0")})}),
               array({bulk("b"), array({entry("1-0")})})}));
  // A stream of which nothing may be sent is not named.
  CHECK(client.run("XREAD MAXCOUNT 3 STREAMS a b 0 0") ==
        array({array({bulk("a"), array({entry("1-0"), entry("2-0"), entry("3-0")})})}));
}

TEST_CASE("MAXSIZE limits the bytes that XREAD sends, but for the first entry",
          "[stream_maximum]") {
  StreamServer server;
  TestClient client(server);
  client.run("XADD a 1 f " + std::string(500, 'x'));
  client.run("XADD a 2 f y");
  client.run("XADD b 1 f z");
  const std::string first = array({bulk("1-0"), bulks({"f", std::string(500, 'x')})});
  const std::string small = array({bulk("2-0"), bulks({"f", "y"})});
  CHECK(client.run("XREAD MAXSIZE 50 STREAMS a b 0 0") ==
        array({array({bulk("a"), array({first})})}));
  // An entry of "2-0", "f" and "y" is sent as 9 + 7 + 7 bytes.
  CHECK(client.run("XREAD MAXSIZE 23 STREAMS a b 1 0") ==
        array({array({bulk("a"), array({small})})}));
  CHECK(client.run("XREAD MAXSIZE 46 STREAMS a b 1 0") ==
        array({array({bulk("a"), array({small})}),
               array({bulk("b"), array({array({bulk("1-0"), bulks({"f", "z"})})})})}));
  CHECK(client.run("XREAD MAXSIZE 100000 MAXCOUNT 1 STREAMS a b 1 0") ==
        array({array({bulk("a"), array({small})})}));
}

TEST_CASE("What XREADGROUP may not send does not become pending", "[stream_maximum]") {
  StreamServer server;
  TestClient client(server);
  for (int i = 1; i <= 3; ++i) client.run("XADD a " + std::to_string(i) + " f v");
  client.run("XGROUP CREATE a g 0");
  const auto entry = [](std::string_view id) { return array({bulk(id), bulks({"f", "v"})}); };
  CHECK(client.run("XREADGROUP GROUP g c MAXSIZE 46 STREAMS a >") ==
        array({array({bulk("a"), array({entry("1-0"), entry("2-0")})})}));
  CHECK(client.run("XPENDING a g").starts_with("*4\r\n:2\r\n"));
  CHECK(client.run("XREADGROUP GROUP g c MAXCOUNT 1 STREAMS a 0") ==
        array({array({bulk("a"), array({entry("1-0")})})}));
  CHECK(client.run("XREADGROUP GROUP g c MAXSIZE 1 STREAMS a 0") ==
        array({array({bulk("a"), array({entry("1-0")})})}));
  // Neither does a stream come without entries whose first one does not fit any more.
  client.run("XADD b 1 f v");
  client.run("XGROUP CREATE b g 0");
  client.run("XREADGROUP GROUP g c STREAMS b >");
  CHECK(client.run("XREADGROUP GROUP g c MAXCOUNT 2 STREAMS a b 0 0") ==
        array({array({bulk("a"), array({entry("1-0"), entry("2-0")})})}));
  CHECK(client.run("XREADGROUP GROUP g c MAXSIZE 50 STREAMS a b 0 0") ==
        array({array({bulk("a"), array({entry("1-0"), entry("2-0")})})}));
  CHECK(client.run("XREADGROUP GROUP g c MAXCOUNT 2 STREAMS b a 9 0") ==
        array({array({bulk("b"), array({})}),
               array({bulk("a"), array({entry("1-0"), entry("2-0")})})}));
  client.run("XDEL a 1");
  CHECK(client.run("XREADGROUP GROUP g c MAXCOUNT 1 STREAMS a 0") ==
        array({array({bulk("a"), array({array({bulk("1-0"), std::string(kNullArray)})})})}));
}

TEST_CASE("MAXCOUNT and MAXSIZE hold for those who have waited", "[stream_maximum]") {
  StreamServer server;
  TestClient client(server);
  TestClient waiting(server);
  CHECK(waiting.run("XREAD MAXCOUNT 1 BLOCK 0 STREAMS a $").empty());
  client.run("MULTI");
  client.run("XADD a 1 f v");
  client.run("XADD a 2 f v");
  client.run("EXEC");
  CHECK(waiting.take_output() ==
        array({array({bulk("a"), array({array({bulk("1-0"), bulks({"f", "v"})})})})}));
}

TEST_CASE("MAXCOUNT and MAXSIZE must be positive, and not below COUNT", "[stream_maximum]") {
  StreamServer server;
  TestClient client(server);
  for (const std::string name : {"MAXCOUNT", "MAXSIZE"}) {
    for (const char* value : {"0", "-1"}) {
      CHECK(client.run("XREAD " + name + " " + value + " STREAMS a 0") ==
            error("ERR " + name + " must be a positive integer"));
    }
    CHECK(client.run("XREAD " + name + " x STREAMS a 0") ==
          error("ERR value is not an integer or out of range"));
    CHECK(client.run("XREAD " + name).starts_with("-ERR"));
  }
  CHECK(client.run("XREAD COUNT 3 MAXCOUNT 2 STREAMS a 0") ==
        error("ERR MAXCOUNT must be greater than or equal to COUNT"));
  CHECK(client.run("XREAD MAXCOUNT 2 COUNT 2 STREAMS a 0") == kNullArray);
}

TEST_CASE("XREAD and XREADGROUP say what is wrong with their words", "[streams]") {
  StreamServer server;
  TestClient client(server);
  client.run("XADD a 1 f v");
  client.run("XGROUP CREATE a g 0");
  const std::string syntax = error("ERR syntax error");
  CHECK(client.run("XREAD STREAMS a 0 b") ==
        error("ERR Unbalanced 'xread' list of streams: for each stream key an ID, '+', or '$' must "
              "be specified."));
  CHECK(client.run("XREADGROUP GROUP g c STREAMS a > b") ==
        error("ERR Unbalanced 'xreadgroup' list of streams: for each stream key an ID or '>' must "
              "be specified."));
  CHECK(client.run("XREAD GROUP g c STREAMS a 0") ==
        error("ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead."));
  CHECK(client.run("XREAD NOACK STREAMS a 0") ==
        error("ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead."));
  CHECK(client.run("XREAD CLAIM 10 STREAMS a 0") ==
        error("ERR The CLAIM option is only supported by XREADGROUP. You called XREAD instead."));
  CHECK(client.run("XREADGROUP COUNT 1 BLOCK 0 STREAMS a >") ==
        error("ERR Missing GROUP option for XREADGROUP"));
  CHECK(client.run("XREAD COUNT 1 BLOCK 0") == syntax);
  CHECK(client.run("XREAD COUNT 1 STREAMS") == syntax);
  CHECK(client.run("XREAD WHAT 1 STREAMS a 0") == syntax);
  CHECK(client.run("XREAD COUNT x STREAMS a 0") ==
        error("ERR value is not an integer or out of range"));
  CHECK(client.run("XREAD BLOCK -1 STREAMS a 0") == error("ERR timeout is negative"));
  CHECK(client.run("XREAD BLOCK x STREAMS a 0") ==
        error("ERR timeout is not an integer or out of range"));
  CHECK(client.run("XREAD STREAMS a >") ==
        error("ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> "
              "<consumer> option."));
  CHECK(client.run("XREAD STREAMS a x") ==
        error("ERR Invalid stream ID specified as stream command argument"));
  const std::string all = array({array({bulk("a"), array({entry("1-0", {"f", "v"})})})});
  CHECK(client.run("XREAD COUNT 0 STREAMS a 0") == all);
  CHECK(client.run("XREAD COUNT -1 STREAMS a 0") == all);
}

TEST_CASE("Valkey has no + for XREAD, and says so", "[streams]") {
  TestedServer server("emulate \"valkey 9.1\"\n");
  TestClient client(server);
  CHECK(client.run("XREAD STREAMS a 0 b") ==
        error("ERR Unbalanced 'xread' list of streams: for each stream key an ID or '$' must be "
              "specified."));
}

TEST_CASE("Before Redis 7.2 scripts may not say BLOCK", "[streams]") {
  for (const bool old : {true, false}) {
    INFO(old);
    TestedServer server(old ? "emulate \"redis 7.0\"\n" : "");
    TestClient client(server);
    const std::string reply = client.run_words(
        {"EVAL", "return redis.pcall('xread', 'BLOCK', '0', 'STREAMS', 'a', '0')", "0"});
    if (old) {
      CHECK(reply.starts_with("-ERR xread command is not allowed with BLOCK option from scripts"));
    } else {
      CHECK(reply == kNull);
    }
  }
}

TEST_CASE("XREADGROUP makes its consumer, before Redis 7.2 only where there is something to read",
          "[streams]") {
  for (const bool old : {true, false}) {
    TestedServer server(old ? "emulate \"redis 7.0\"\n" : "");
    TestClient client(server);
    client.run("XGROUP CREATE a g $ MKSTREAM");
    CHECK(client.run("XREADGROUP GROUP g c STREAMS a >") == kNullArray);
    CHECK(client.run("XGROUP CREATECONSUMER a g c") == integer(old ? 1 : 0));
    client.run("XADD a 1-0 f v");
    CHECK(client.run("XREADGROUP GROUP g d STREAMS a >") != kNullArray);
    CHECK(client.run("XGROUP CREATECONSUMER a g d") == integer(0));
  }
}

TEST_CASE("Before Redis 7.2 who waits in a group hears that stream or group have gone",
          "[streams]") {
  TestedServer server("emulate \"redis 7.0\"\n");
  TestClient client(server);
  TestClient waiting(server);
  const auto wait = [&] {
    client.run("DEL a");
    client.run("XGROUP CREATE a g $ MKSTREAM");
    CHECK(waiting.run("XREADGROUP GROUP g c BLOCK 0 STREAMS a >").empty());
  };
  wait();
  client.run("MULTI");
  client.run("XADD a * f v");
  client.run("XGROUP DESTROY a g");
  client.run("EXEC");
  server.server.blocking().serve();
  CHECK(waiting.take_output() ==
        error("NOGROUP the consumer group this client was blocked on no longer exists"));
  wait();
  client.run("DEL a");
  server.server.blocking().serve();
  CHECK(waiting.take_output() == error("UNBLOCKED the stream key no longer exists"));
}

TEST_CASE("From Redis 7.2 on it hears what any reader would", "[streams]") {
  TestedServer server("emulate \"redis 7.2\"\n");
  TestClient client(server);
  TestClient waiting(server);
  client.run("XGROUP CREATE a g $ MKSTREAM");
  CHECK(waiting.run("XREADGROUP GROUP g c BLOCK 0 STREAMS a >").empty());
  client.run("XGROUP DESTROY a g");
  server.server.blocking().serve();
  CHECK(waiting.take_output() ==
        error("NOGROUP No such key 'a' or consumer group 'g' in XREADGROUP with GROUP option"));
}

TEST_CASE("Reading for a group counts as a use of the stream where policies look at changes",
          "[streams]") {
  TestedServer server("maxmemory-policy allkeys-lrm\n");
  TestClient client(server);
  client.run("XADD a 1 f v");
  client.run("XGROUP CREATE a g 0");
  server.advance_ms(100'000);
  CHECK(client.run("XREAD STREAMS a 0").starts_with("*1"));
  CHECK(client.run("OBJECT IDLETIME a") == integer(100));
  CHECK(client.run("XREADGROUP GROUP g c STREAMS a >").starts_with("*1"));
  CHECK(client.run("OBJECT IDLETIME a") == integer(0));
}

TEST_CASE("XADD, XTRIM, XSETID and XDELEX say what is wrong with their words", "[streams]") {
  TestedServer server;
  TestClient client(server);
  client.run("XADD a 5 f v");
  const std::string syntax = error("ERR syntax error");
  const std::string invalid = error("ERR Invalid stream ID specified as stream command argument");
  CHECK(client.run("XADD a x-* f v") == invalid);
  CHECK(client.run("XADD a -* f v") == invalid);
  CHECK(client.run("XADD a -1-* f v") == invalid);
  CHECK(client.run("XADD a -9223372036854775809-* f v") == invalid);
  CHECK(client.run("XADD a 1-2-* f v") == invalid);
  CHECK(client.run("XADD a 18446744073709551616-* f v") == invalid);
  CHECK(client.run("XADD a 18446744073709551615-* f v") == bulk("18446744073709551615-0"));
  client.run("DEL a");
  client.run("XADD a 5 f v");
  CHECK(client.run("XTRIM a LIMIT 5 LIMIT 5").starts_with("-ERR syntax error"));
  CHECK(client.run("XTRIM a LIMIT 0") ==
        error("ERR syntax error, XTRIM must be called with a trimming strategy"));
  CHECK(client.run("XADD a LIMIT 5 * f v") ==
        error("ERR syntax error, LIMIT cannot be used without specifying a trimming strategy"));
  CHECK(client.run("XTRIM a MAXLEN 5 LIMIT 5") ==
        error("ERR syntax error, LIMIT cannot be used without the special ~ option"));
  CHECK(client.run("XTRIM a MAXLEN = 5 LIMIT 5") ==
        error("ERR syntax error, LIMIT cannot be used without the special ~ option"));
  CHECK(client.run("XTRIM a MAXLEN ~ 5 LIMIT -1") == error("ERR The LIMIT argument must be >= 0."));
  CHECK(client.run("XTRIM a MAXLEN -1") == error("ERR The MAXLEN argument must be >= 0."));
  CHECK(client.run("XSETID a 9 ENTRIESADDED -1") == error("ERR entries_added must be positive"));
  CHECK(client.run("XSETID a 9 MAXDELETEDID 10") ==
        error("ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id"));
  CHECK(client.run("XSETID a 9 MAXDELETEDID 9") == kOk);
  CHECK(client.run("XSETID a 9 WHAT 9") == syntax);
  CHECK(client.run("XDELEX a KEEPREF") == error("ERR wrong number of arguments for 'xdelex' "
                                                "command"));
  CHECK(client.run("XDELEX a KEEPREF ACKED IDS 1 5") == syntax);
  CHECK(client.run("XDELEX a IDS 0 5") == error("ERR Number of IDs must be a positive integer"));
  CHECK(client.run("XDELEX a KEEPREF WHAT 1") == syntax);
  CHECK(client.run("XDELEX a IDS 1 5 IDS") == syntax);
  CHECK(client.run("XLEN a") == integer(1));
}

TEST_CASE("XGROUP says what is wrong with its words", "[streams]") {
  StreamServer server;
  TestClient client(server);
  client.run("XADD a 5 f v");
  client.run("XGROUP CREATE a g 0");
  const auto wrong = [](const std::string& name) {
    return error("ERR unknown subcommand or wrong number of arguments for '" + name +
                 "'. Try XGROUP HELP.");
  };
  CHECK(client.run("XGROUP CREATE a h 0 WHAT") == wrong("CREATE"));
  CHECK(client.run("XGROUP CREATE a h 0 ENTRIESREAD") == wrong("CREATE"));
  CHECK(client.run("XGROUP CREATE a h 0 MKSTREAM MKSTREAM ENTRIESREAD 1") == wrong("CREATE"));
  CHECK(client.run("XGROUP SETID a g 0 MKSTREAM") == wrong("SETID"));
  CHECK(client.run("XGROUP SETID a g 0 ENTRIESREAD 1 ENTRIESREAD 1") == wrong("SETID"));
  CHECK(client.run("XGROUP CREATE a h 0 ENTRIESREAD -2") ==
        error("ERR value for ENTRIESREAD must be positive or -1"));
  CHECK(client.run("XGROUP CREATE a h 0 ENTRIESREAD -1") == kOk);
  CHECK(client.run("XGROUP CREATE a i 0 MKSTREAM ENTRIESREAD 9") == kOk);
  CHECK(client.run("XINFO GROUPS a").find(bulk("entries-read") + integer(1)) != std::string::npos);
  CHECK(client.run("XGROUP SETID a g x") ==
        error("ERR Invalid stream ID specified as stream command argument"));
  // "+" is the end of all ids, "-" their beginning.
  CHECK(client.run("XGROUP SETID a g +") == kOk);
  CHECK(client.run("XINFO GROUPS a")
            .find(bulk("last-delivered-id") + bulk("18446744073709551615-18446744073709551615")) !=
        std::string::npos);
  CHECK(client.run("XGROUP SETID a g -") == kOk);
  CHECK(client.run("XREADGROUP GROUP g c STREAMS a >") ==
        array({array({bulk("a"), array({entry("5-0", {"f", "v"})})})}));
}

TEST_CASE("XPENDING says what is wrong with its words", "[streams]") {
  StreamServer server;
  TestClient client(server);
  client.run("XADD a 5 f v");
  client.run("XGROUP CREATE a g 0");
  client.run("XREADGROUP GROUP g c STREAMS a >");
  const std::string syntax = error("ERR syntax error");
  CHECK(client.run("XPENDING a g -") == syntax);
  CHECK(client.run("XPENDING a g - +") == syntax);
  CHECK(client.run("XPENDING a g IDLE 0 - +") == syntax);
  CHECK(client.run("XPENDING a g IDLE 0 - + 5 c more") == syntax);
  CHECK(client.run("XPENDING a g - + x") == error("ERR value is not an integer or out of range"));
  CHECK(client.run("XPENDING a g IDLE x - + 5") ==
        error("ERR value is not an integer or out of range"));
  CHECK(client.run("XPENDING a g x + 5") ==
        error("ERR Invalid stream ID specified as stream command argument"));
  const std::string one = array({array({bulk("5-0"), bulk("c"), integer(0), integer(1)})});
  CHECK(client.run("XPENDING a g - + 5") == one);
  CHECK(client.run("XPENDING a g IDLE 0 - + 1 c") == one);
  CHECK(client.run("XPENDING a g - + 0") == "*0\r\n");
  CHECK(client.run("XPENDING a g - + -1") == "*0\r\n");
  CHECK(client.run("XPENDING a g IDLE 1 - + 5") == "*0\r\n");
  server.advance_ms(1);
  CHECK(client.run("XPENDING a g IDLE 1 - + 5") ==
        array({array({bulk("5-0"), bulk("c"), integer(1), integer(1)})}));
  CHECK(client.run("XPENDING a g - + 5 nobody") == "*0\r\n");
}

TEST_CASE("The radix tree that XINFO tells of parts where the ids of its nodes do", "[streams]") {
  StreamServer server;
  TestClient client(server);
  client.run("CONFIG SET stream-node-max-entries 1");
  const auto nodes = [&] {
    const std::string text = client.run("XINFO STREAM a");
    const std::string name = bulk("radix-tree-nodes") + ":";
    return std::stoi(text.substr(text.find(name) + name.size()));
  };
  // One run of bytes, and the end.
  client.run("XADD a 1-1 f v");
  CHECK(nodes() == 2);
  // They part at the last byte: the run before it, the branch, two ends.
  client.run("XADD a 1-2 f v");
  CHECK(nodes() == 4);
  // One that parts at the byte before brings a branch there, a run's end for each of both and the
  // end of its own.
  client.run("XADD a 1-256 f v");
  CHECK(nodes() == 7);
  // Two that part from all others at the first byte, which is a branch in place of the run before:
  // a run of their own, a branch, two ends.
  client.run("XADD a 72057594037927936-0 f v");
  client.run("XADD a 72057594037927936-1 f v");
  CHECK(nodes() == 12);
}

namespace {

// To x, with the ids 1-0, 2-0 ...
void add_entries(TestClient& client, int count) {
  for (int i = 1; i <= count; ++i) client.run("XADD x " + std::to_string(i) + "-0 a b");
}

// A way of trimming, and how many entries it takes.
struct Trimming {
  std::string_view limits;
  int64_t trimmed;
};

}  // namespace

TEST_CASE("Where references are looked at, about as many entries is as many", "[streams]") {
  StreamServer server;
  TestClient client(server);
  client.run("CONFIG SET stream-node-max-entries 100");
  const Trimming cases[] = {
      {"MAXLEN ~ 60 KEEPREF", 100},
      {"MAXLEN ~ 200 KEEPREF", 0},
      {"MINID ~ 131-0 KEEPREF", 100},
      {"MAXLEN ~ 60 DELREF", 190},
      {"MAXLEN ~ 200 DELREF", 50},
      {"MINID ~ 131-0 DELREF", 130},
      {"MAXLEN ~ 60 ACKED", 190},
      {"MAXLEN ~ 200 ACKED", 50},
      {"MINID ~ 131-0 ACKED", 130},
      // LIMIT still counts whole nodes.
      {"MAXLEN ~ 60 LIMIT 0 DELREF", 190},
      {"MAXLEN ~ 60 LIMIT 30 DELREF", 0},
      {"MAXLEN ~ 60 LIMIT 100 DELREF", 100},
      {"MAXLEN ~ 60 LIMIT 150 DELREF", 100},
  };
  for (const auto& [limits, trimmed] : cases) {
    CAPTURE(limits);
    add_entries(client, 250);
    CHECK(client.run("XTRIM x " + std::string(limits)) == integer(trimmed));
    CHECK(client.run("XLEN x") == integer(250 - trimmed));
    client.run("DEL x");
  }
  add_entries(client, 3);
  CHECK(client.run("XTRIM x MAXLEN ~ 1 ACKED") == integer(2));
}

TEST_CASE("Trimming about as many entries keeps those that a group has not acknowledged",
          "[streams]") {
  StreamServer server;
  TestClient client(server);
  client.run("CONFIG SET stream-node-max-entries 100");
  const Trimming cases[] = {
      {"MAXLEN ~ 200 ACKED", 50},
      {"MAXLEN ~ 60 ACKED", 100},
      {"MINID ~ 131-0 ACKED", 65},
      {"MAXLEN ~ 60 LIMIT 30 ACKED", 0},
      {"MAXLEN ~ 60 LIMIT 100 ACKED", 50},
      {"MAXLEN ~ 60 LIMIT 150 ACKED", 100},
      {"MAXLEN ~ 60 LIMIT 100 DELREF", 100},
      {"MAXLEN ~ 60 DELREF", 190},
  };
  for (const auto& [limits, trimmed] : cases) {
    CAPTURE(limits);
    add_entries(client, 250);
    client.run("XGROUP CREATE x g 0");
    client.run("XREADGROUP GROUP g c STREAMS x >");
    // All but each second one up to 199.
    for (int i = 1; i < 200; i += 2) client.run("XACK x g " + std::to_string(i) + "-0");
    CHECK(client.run("XTRIM x " + std::string(limits)) == integer(trimmed));
    client.run("DEL x");
  }
}

}  // namespace latchkey::tests
