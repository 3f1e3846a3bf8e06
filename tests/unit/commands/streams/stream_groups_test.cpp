
#include "commands/groups.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

struct GroupServer : ServerFixture {
  GroupServer()
      : ServerFixture({commands::key_rows(), commands::stream_group_rows(),
                       commands::stream_info_rows(), commands::stream_pending_rows(),
                       commands::stream_read_rows(), commands::stream_reference_rows(),
                       commands::stream_rows(), commands::string_rows(),
                       commands::transaction_rows()}) {}
};

// A stream "s" with entries 1-0 to 5-0 and a group "g" that begins at its start.
struct FilledServer : GroupServer {
  FilledServer() : client(*this) {
    for (int i = 1; i <= 5; ++i) client.run("XADD s " + std::to_string(i) + " n " + digit(i));
    client.run("XGROUP CREATE s g 0");
    events();
    changes();
  }
  static std::string digit(int i) { return std::to_string(i); }
  TestClient client;
};

std::string entry(int i) {
  return array({bulk(std::to_string(i) + "-0"), bulks({"n", std::to_string(i)})});
}

std::string of_stream(std::string_view key, const std::string& entries) {
  return array({array({bulk(key), entries})});
}

const std::string kNoGroup =
    error("NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option");

}  // namespace

TEST_CASE("A group gives each entry to one consumer, who sees it again until it is acknowledged",
          "[stream_groups]") {
  FilledServer server;
  TestClient& client = server.client;
  CHECK(client.run("XREADGROUP GROUP g anna COUNT 2 STREAMS s >") ==
        of_stream("s", array({entry(1), entry(2)})));
  CHECK(client.run("XREADGROUP GROUP g ben COUNT 1 STREAMS s >") ==
        of_stream("s", array({entry(3)})));
  CHECK(server.events() == "xgroup-createconsumer s, xgroup-createconsumer s");
  CHECK(client.run("XREADGROUP GROUP g anna STREAMS s 0") ==
        of_stream("s", array({entry(1), entry(2)})));
  CHECK(client.run("XACK s g 1 1 9") == integer(1));
  CHECK(client.run("XREADGROUP GROUP g anna STREAMS s 0") == of_stream("s", array({entry(2)})));
  client.run("XDEL s 2");
  CHECK(client.run("XREADGROUP GROUP g anna STREAMS s 0") ==
        of_stream("s", array({array({bulk("2-0"), std::string(kNullArray)})})));
  CHECK(client.run("XREADGROUP GROUP g anna STREAMS s 2") == of_stream("s", "*0\r\n"));
}

TEST_CASE("What is read with NOACK is not pending", "[stream_groups]") {
  FilledServer server;
  TestClient& client = server.client;
  client.run("XREADGROUP GROUP g anna NOACK STREAMS s >");
  CHECK(client.run("XPENDING s g") ==
        array({integer(0), std::string(kNull), std::string(kNull), std::string(kNullArray)}));
  CHECK(client.run("XREADGROUP GROUP g anna STREAMS s >") == kNullArray);
}

TEST_CASE("XPENDING tells who holds what, for how long and how often", "[stream_groups]") {
  FilledServer server;
  TestClient& client = server.client;
  client.run("XREADGROUP GROUP g anna COUNT 2 STREAMS s >");
  server.advance_ms(100);
  client.run("XREADGROUP GROUP g ben COUNT 1 STREAMS s >");
  server.advance_ms(50);
  CHECK(client.run("XPENDING s g") == array({integer(3), bulk("1-0"), bulk("3-0"),
                                             array({bulks({"anna", "2"}), bulks({"ben", "1"})})}));
  const std::string third = array({bulk("3-0"), bulk("ben"), integer(50), integer(1)});
  const std::string second = array({bulk("2-0"), bulk("anna"), integer(150), integer(1)});
  CHECK(client.run("XPENDING s g (1 + 10") == array({second, third}));
  CHECK(client.run("XPENDING s g - + 10 ben") == array({third}));
  CHECK(client.run("XPENDING s g IDLE 100 2 + 10") == array({second}));
  CHECK(client.run("XPENDING s g - + 10 nobody") == "*0\r\n");
  CHECK(client.run("XPENDING s g - +") == error("ERR syntax error"));
  CHECK(client.run("XPENDING s nosuch") ==
        error("NOGROUP No such key 's' or consumer group 'nosuch'"));
  // Names are shown up to a NUL.
  using namespace std::string_view_literals;
  CHECK(client.run_words({"XPENDING", "x\0y"sv, "no\0group"sv}) ==
        error("NOGROUP No such key 'x' or consumer group 'no'"));
  CHECK(client.run_words({"XGROUP", "SETID", "s", "no\0group"sv, "0"}) ==
        error("NOGROUP No such consumer group 'no' for key name 's'"));
}

TEST_CASE("XCLAIM takes over what has been idle, and drops what is deleted", "[stream_groups]") {
  FilledServer server;
  TestClient& client = server.client;
  client.run("XREADGROUP GROUP g anna COUNT 3 STREAMS s >");
  server.advance_ms(1000);
  CHECK(client.run("XCLAIM s g ben 1001 1") == "*0\r\n");
  CHECK(client.run("XCLAIM s g ben 1000 1") == array({entry(1)}));
  CHECK(client.run("XCLAIM s g ben 0 2 JUSTID IDLE 400 RETRYCOUNT 7") == bulks({"2-0"}));
  CHECK(client.run("XPENDING s g - + 10 ben") ==
        array({array({bulk("1-0"), bulk("ben"), integer(0), integer(2)}),
               array({bulk("2-0"), bulk("ben"), integer(400), integer(7)})}));
  client.run("XDEL s 3");
  CHECK(client.run("XCLAIM s g ben 0 3 4") == "*0\r\n");
  CHECK(client.run("XPENDING s g - + 10 anna") == "*0\r\n");
  CHECK(client.run("XCLAIM s g ben 0 4 FORCE JUSTID") == bulks({"4-0"}));
  CHECK(client.run("XCLAIM s g ben 0 4 NOSUCH") ==
        error("ERR Unrecognized XCLAIM option 'NOSUCH'"));
}

TEST_CASE("XAUTOCLAIM goes through what is pending in steps", "[stream_groups]") {
  FilledServer server;
  TestClient& client = server.client;
  client.run("XREADGROUP GROUP g anna STREAMS s >");
  client.run("XDEL s 2");
  CHECK(client.run("XAUTOCLAIM s g ben 0 - COUNT 3") ==
        array({bulk("4-0"), array({entry(1), entry(3)}), bulks({"2-0"})}));
  CHECK(client.run("XAUTOCLAIM s g ben 0 4 JUSTID") ==
        array({bulk("0-0"), bulks({"4-0", "5-0"}), "*0\r\n"}));
  CHECK(client.run("XAUTOCLAIM s g ben 0 - COUNT 0") == error("ERR COUNT must be > 0"));
}

TEST_CASE("XGROUP makes, moves and removes groups and consumers", "[stream_groups]") {
  GroupServer server;
  TestClient client(server);
  const std::string no_key = error(
      "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to "
      "use the MKSTREAM option to create an empty stream automatically.");
  CHECK(client.run("XGROUP CREATE s g $") == no_key);
  CHECK(client.run("XGROUP CREATE s g $ MKSTREAM") == kOk);
  CHECK(client.run("XGROUP CREATE s g $") == error("BUSYGROUP Consumer Group name already exists"));
  CHECK(client.run("XGROUP CREATECONSUMER s g c") == integer(1));
  CHECK(client.run("XGROUP CREATECONSUMER s g c") == integer(0));
  client.run("XADD s 1 n 1");
  client.run("XREADGROUP GROUP g c STREAMS s >");
  CHECK(client.run("XGROUP SETID s g 0") == kOk);
  CHECK(client.run("XREADGROUP GROUP g d STREAMS s >") == of_stream("s", array({entry(1)})));
  CHECK(client.run("XGROUP DELCONSUMER s g c") == integer(0));
  CHECK(client.run("XGROUP DELCONSUMER s g d") == integer(1));
  CHECK(client.run("XGROUP DESTROY s g") == integer(1));
  CHECK(client.run("XGROUP DESTROY s g") == integer(0));
  CHECK(client.run("XGROUP SETID s g 0") ==
        error("NOGROUP No such consumer group 'g' for key name 's'"));
  CHECK(server.events() ==
        "xgroup-create s, xgroup-createconsumer s, xadd s, xgroup-setid s, "
        "xgroup-createconsumer s, xgroup-delconsumer s, xgroup-delconsumer s, xgroup-destroy s");
}

TEST_CASE("XINFO GROUPS tells how far a group is behind", "[stream_groups]") {
  FilledServer server;
  TestClient& client = server.client;
  client.run("XREADGROUP GROUP g c COUNT 2 STREAMS s >");
  const auto group = [](const std::string& reads, const std::string& lag) {
    return "*1\r\n*12\r\n" + bulk("name") + bulk("g") + bulk("consumers") + integer(1) +
           bulk("pending") + integer(2) + bulk("last-delivered-id") + bulk("2-0") +
           bulk("entries-read") + reads + bulk("lag") + lag;
  };
  CHECK(client.run("XINFO GROUPS s") == group(integer(2), integer(3)));
  client.run("XDEL s 4");
  CHECK(client.run("XINFO GROUPS s") == group(integer(2), std::string(kNull)));
}

TEST_CASE("XINFO CONSUMERS tells when each was seen and active", "[stream_groups]") {
  FilledServer server;
  TestClient& client = server.client;
  client.run("XREADGROUP GROUP g c COUNT 1 STREAMS s >");
  server.advance_ms(30);
  client.run("XREADGROUP GROUP g c STREAMS s 0");
  server.advance_ms(5);
  client.run("XGROUP CREATECONSUMER s g idle");
  const auto consumer = [](std::string_view name, int pending, int idle, int inactive) {
    return "*8\r\n" + bulk("name") + bulk(name) + bulk("pending") + integer(pending) +
           bulk("idle") + integer(idle) + bulk("inactive") + integer(inactive);
  };
  CHECK(client.run("XINFO CONSUMERS s g") ==
        array({consumer("c", 1, 5, 35), consumer("idle", 0, 0, -1)}));
}

TEST_CASE("XREADGROUP waits for entries that nobody of the group was given", "[stream_groups]") {
  FilledServer server;
  TestClient& client = server.client;
  client.run("XGROUP SETID s g $");
  TestClient first(server);
  TestClient second(server);
  CHECK(first.run("XREADGROUP GROUP g anna BLOCK 0 STREAMS s >").empty());
  CHECK(second.run("XREADGROUP GROUP g ben BLOCK 0 STREAMS s >").empty());
  client.run("XADD s 6 n 6");
  CHECK(first.take_output() == of_stream("s", array({entry(6)})));
  CHECK(second.take_output().empty());
  client.run("XADD s 7 n 7");
  CHECK(second.take_output() == of_stream("s", array({entry(7)})));
}

TEST_CASE("Who waits in a group hears that the group, the stream or its type has gone",
          "[stream_groups]") {
  FilledServer server;
  TestClient& client = server.client;
  TestClient waiting(server);
  const auto wait = [&] {
    client.run("DEL s");
    client.run("XGROUP CREATE s g $ MKSTREAM");
    REQUIRE(waiting.run("XREADGROUP GROUP g c BLOCK 0 STREAMS s >").empty());
  };
  wait();
  client.run("XGROUP DESTROY s g");
  CHECK(waiting.take_output() == kNoGroup);
  wait();
  client.run("DEL s");
  CHECK(waiting.take_output() == kNoGroup);
  wait();
  client.run("SET s x");
  CHECK(waiting.take_output() == kWrongType);
  wait();
  client.run("XADD other 1 a 1");
  client.run("RENAME other s");
  CHECK(waiting.take_output() == kNoGroup);
}

TEST_CASE("XDELEX deletes with regard to what groups know of an entry", "[stream_groups]") {
  FilledServer server;
  TestClient& client = server.client;
  client.run("XREADGROUP GROUP g c COUNT 3 STREAMS s >");
  client.run("XACK s g 1");
  server.events();
  const auto results = [](std::initializer_list<int> numbers) {
    std::string text = "*" + std::to_string(numbers.size()) + "\r\n";
    for (const int number : numbers) text += integer(number);
    return text;
  };
  // 1-0 is acknowledged, 2-0 pending, 4-0 not given to anybody yet, as 9-0 would be if it came.
  CHECK(client.run("XDELEX s ACKED IDS 4 1 2 4 9") == results({1, 2, 2, 2}));
  CHECK(server.events() == "xdel s");
  CHECK(client.run("XDELEX s ACKED IDS 1 1") == results({-1}));
  CHECK(client.run("XDELEX s IDS 1 9") == results({-1}));
  CHECK(client.run("XDELEX s IDS 1 2") == results({1}));
  CHECK(client.run("XPENDING s g").substr(0, 8) == "*4\r\n:2\r\n");
  // What is deleted already is still pending, and goes from there.
  CHECK(client.run("XDELEX s DELREF IDS 2 2 3") == results({-1, 1}));
  CHECK(client.run("XPENDING s g").substr(0, 8) == "*4\r\n:0\r\n");
  CHECK(client.run("XLEN s") == integer(2));
  CHECK(client.run("XDELEX nosuch KEEPREF IDS 2 1 2") == results({-1, -1}));
  // Ids are looked at where there is something to look for.
  CHECK(client.run("XDELEX nosuch IDS 2 x y") == results({-1, -1}));
  CHECK(client.run("XDELEX nosuch IDS 1 1 IDS 2 1 2") == results({-1, -1}));
  CHECK(client.run("XDELEX s IDS 2 4 x") ==
        error("ERR Invalid stream ID specified as stream command argument"));
  CHECK(client.run("XLEN s") == integer(2));
  CHECK(client.run("XDELEX s IDS 0 1") == error("ERR Number of IDs must be a positive integer"));
  CHECK(client.run("XDELEX s IDS 2 1") ==
        error("ERR The `numids` parameter must match the number of arguments"));
  CHECK(client.run("XDELEX s KEEPREF ACKED IDS 1 1") == error("ERR syntax error"));
  CHECK(client.run("XDELEX s KEEPREF 1 1 1") == error("ERR syntax error"));
}

TEST_CASE("XACKDEL acknowledges, and deletes what no other group needs", "[stream_groups]") {
  FilledServer server;
  TestClient& client = server.client;
  client.run("XGROUP CREATE s h 0");
  client.run("XREADGROUP GROUP g c STREAMS s >");
  client.run("XREADGROUP GROUP h c COUNT 1 STREAMS s >");
  // In h, 1-0 is pending and 2-0 not given yet.
  CHECK(client.run("XACKDEL s g ACKED IDS 2 1 2") == array({integer(2), integer(2)}));
  CHECK(client.run("XACKDEL s h ACKED IDS 1 1") == array({integer(1)}));
  CHECK(client.run("XRANGE s - + COUNT 1") == array({entry(2)}));
  CHECK(client.run("XACKDEL s g ACKED IDS 1 2") == array({integer(-1)}));
  CHECK(client.run("XACKDEL s g IDS 1 3") == array({integer(1)}));
  client.run("XREADGROUP GROUP h c STREAMS s >");
  CHECK(client.run("XACKDEL s g DELREF IDS 1 4") == array({integer(1)}));
  CHECK(client.run("XPENDING s h - + 10 c").find("4-0") == std::string::npos);
  CHECK(client.run("XLEN s") == integer(2));
  CHECK(client.run("XACKDEL s nosuch IDS 1 5") == array({integer(-1)}));
  CHECK(client.run("XACKDEL s nosuch IDS 1 x") == array({integer(-1)}));
  client.run("SET h v");
  CHECK(client.run("XACKDEL h g 1 1 1") == kWrongType);
  CHECK(client.run("XDELEX h 1 1 1") == kWrongType);
  CHECK(client.run("XACKDEL s g IDS 1 x") ==
        error("ERR Invalid stream ID specified as stream command argument"));
}

TEST_CASE("Trimming leaves what is not acknowledged, or what is pending goes with it",
          "[stream_groups]") {
  FilledServer server;
  TestClient& client = server.client;
  client.run("XREADGROUP GROUP g c COUNT 4 STREAMS s >");
  client.run("XACK s g 1 3");
  CHECK(client.run("XTRIM s MAXLEN = 1 ACKED") == integer(2));
  CHECK(client.run("XRANGE s - +") == array({entry(2), entry(4), entry(5)}));
  CHECK(client.run("XADD s DELREF MAXLEN 2 6 n 6") == bulk("6-0"));
  CHECK(client.run("XRANGE s - +") == array({entry(5), entry(6)}));
  CHECK(client.run("XPENDING s g").substr(0, 8) == "*4\r\n:0\r\n");
  CHECK(client.run("XTRIM s MAXLEN 1 ACKED DELREF") == error("ERR syntax error"));
}

TEST_CASE("Trimming leaves what any of several groups still needs", "[stream_groups]") {
  FilledServer server;
  TestClient& client = server.client;
  client.run("XGROUP CREATE s early 0");
  client.run("XGROUP CREATE s done $");
  client.run("XREADGROUP GROUP g c STREAMS s >");
  client.run("XACK s g 1 2 3 5");
  client.run("XREADGROUP GROUP early c COUNT 2 STREAMS s >");
  client.run("XACK s early 1");
  CHECK(client.run("XTRIM s MAXLEN = 0 ACKED") == integer(1));
  CHECK(client.run("XLEN s") == integer(4));
  client.run("XGROUP DESTROY s early");
  CHECK(client.run("XTRIM s MAXLEN = 0 ACKED") == integer(3));
  CHECK(client.run("XRANGE s - +") == array({entry(4)}));
  client.run("XACK s g 4");
  CHECK(client.run("XADD s MAXLEN = 0 ACKED 6 n 6") == bulk("6-0"));
  CHECK(client.run("XRANGE s - +") == array({entry(6)}));
}

TEST_CASE("Trimming what is acknowledged is no deletion that a group could not count",
          "[stream_groups]") {
  FilledServer server;
  TestClient& client = server.client;
  client.run("XREADGROUP GROUP g c STREAMS s >");
  client.run("XACK s g 2 3 4 5");
  CHECK(client.run("XTRIM s MAXLEN 1 ACKED") == integer(4));
  const std::string info = client.run("XINFO STREAM s");
  CHECK(info.find(bulk("max-deleted-entry-id") + bulk("0-0")) != std::string::npos);
  client.run("XADD s 9 n 9");
  CHECK(client.run("XINFO GROUPS s").find(bulk("lag") + integer(1)) != std::string::npos);
}

TEST_CASE("Groups are no change to who watches a stream, but a new key and new entries are",
          "[stream_groups]") {
  FilledServer server;
  TestClient& client = server.client;
  TestClient watching(server);
  const auto changed_by = [&](std::string_view line) {
    watching.run("WATCH s t");
    client.run(line);
    watching.run("MULTI");
    return watching.run("EXEC") == kNullArray;
  };
  for (const auto* line : {"XGROUP CREATE s h 0", "XREADGROUP GROUP h c STREAMS s >", "XACK s h 1",
                           "XGROUP DESTROY s h", "XSETID s 9"})
    CHECK_FALSE(changed_by(line));
  for (const auto* line :
       {"XADD s 10 a 1", "XDEL s 10", "XTRIM s MAXLEN 1", "XGROUP CREATE t g $ MKSTREAM"})
    CHECK(changed_by(line));
}

TEST_CASE("Symbols that mean nothing to a group are refused", "[stream_groups]") {
  FilledServer server;
  TestClient& client = server.client;
  CHECK(client.run("XREAD STREAMS s >") ==
        error("ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> "
              "<consumer> option."));
  CHECK(client.run("XREADGROUP GROUP g c STREAMS s $").substr(0, 30) ==
        "-ERR The $ ID is meaningless i");
  CHECK(client.run("XREADGROUP GROUP nosuch c STREAMS s >").substr(0, 8) == "-NOGROUP");
}

}  // namespace latchkey::tests
