// XREADGROUP with CLAIM: entries that have been pending for long are read before new ones.
#include <memory>
#include <string>
#include <vector>

#include "commands/groups.h"
#include "server/client/client_registry.h"
#include "unit/catch.h"
#include "unit/propagation_recorder.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

// A stream "s" with the entries 1-0 to 3-0 and a group "g", of which "anna" has read the first two.
struct ClaimServer : ServerFixture {
  ClaimServer()
      : ServerFixture({commands::key_rows(), commands::stream_group_rows(),
                       commands::stream_info_rows(), commands::stream_pending_rows(),
                       commands::stream_read_rows(), commands::stream_reference_rows(),
                       commands::stream_rows()}),
        client(*this) {
    for (const char* id : {"1", "2", "3"}) run(std::string("XADD s ") + id + " n " + id);
    run("XGROUP CREATE s g 0");
    run("XREADGROUP GROUP g anna COUNT 2 STREAMS s >");
  }
  std::string run(std::string_view line) { return client.run(line); }
  TestClient client;
};

std::string entry(const std::string& n, int64_t idle_ms, int64_t deliveries) {
  return array({bulk(n + "-0"), bulks({"n", n}), integer(idle_ms), integer(deliveries)});
}

std::string of_s(std::initializer_list<std::string> entries) {
  return array({array({bulk("s"), array(entries)})});
}

std::string pending(const std::string& n, std::string_view consumer, int64_t idle_ms,
                    int64_t deliveries) {
  return array({bulk(n + "-0"), bulk(consumer), integer(idle_ms), integer(deliveries)});
}

}  // namespace

TEST_CASE("CLAIM reads what has been pending for long, then what is new", "[stream_claims]") {
  ClaimServer server;
  server.advance_ms(50);
  CHECK(server.run("XREADGROUP GROUP g ben CLAIM 50 STREAMS s >") ==
        of_s({entry("1", 50, 1), entry("2", 50, 1), entry("3", 0, 0)}));
  CHECK(server.run("XPENDING s g - + 9") ==
        array({pending("1", "ben", 0, 2), pending("2", "ben", 0, 2), pending("3", "ben", 0, 1)}));
  CHECK(server.run("XREADGROUP GROUP g carl CLAIM 1 STREAMS s >") == kNullArray);
}

TEST_CASE("CLAIM begins with what was delivered first, and counts it", "[stream_claims]") {
  ClaimServer server;
  server.advance_ms(10);
  server.run("XCLAIM s g anna 0 1-0");
  server.advance_ms(10);
  CHECK(server.run("XREADGROUP GROUP g ben COUNT 1 CLAIM 5 STREAMS s >") ==
        of_s({entry("2", 20, 1)}));
  CHECK(server.run("XREADGROUP GROUP g ben COUNT 2 CLAIM 5 STREAMS s >") ==
        of_s({entry("1", 10, 2), entry("3", 0, 0)}));
}

TEST_CASE("CLAIM passes over entries that were deleted", "[stream_claims]") {
  ClaimServer server;
  server.run("XDEL s 1-0");
  CHECK(server.run("XREADGROUP GROUP g ben CLAIM 0 COUNT 1 STREAMS s >") ==
        of_s({entry("2", 0, 1)}));
  CHECK(server.run("XPENDING s g - + 1") == array({pending("1", "anna", 0, 1)}));
}

TEST_CASE("CLAIM passes over deleted entries again and again", "[stream_claims]") {
  ClaimServer server;
  server.run("XADD s 4 n 4");
  server.run("XREADGROUP GROUP g anna STREAMS s >");
  server.run("XDEL s 1-0 3-0");
  for (int64_t deliveries = 1; deliveries <= 3; ++deliveries) {
    server.advance_ms(10);
    CHECK(server.run("XREADGROUP GROUP g ben CLAIM 10 STREAMS s >") ==
          of_s({entry("2", 10, deliveries), entry("4", 10, deliveries)}));
    CHECK(server.run("XREADGROUP GROUP g ben CLAIM 10 STREAMS s >") == kNullArray);
  }
  CHECK(server.run("XPENDING s g - + 9") ==
        array({pending("1", "anna", 30, 1), pending("2", "ben", 0, 4), pending("3", "anna", 30, 1),
               pending("4", "ben", 0, 4)}));
  CHECK(server.run("XREADGROUP GROUP g anna STREAMS s 0") ==
        of_s({array({bulk("1-0"), std::string(kNullArray)}),
              array({bulk("3-0"), std::string(kNullArray)})}));
  CHECK(server.run("XACK s g 1-0 3-0") == integer(2));
}

TEST_CASE("CLAIM reads an entry whose id was trimmed and added again", "[stream_claims]") {
  ClaimServer server;
  server.run("XTRIM s MAXLEN 0");
  CHECK(server.run("XREADGROUP GROUP g ben CLAIM 0 STREAMS s >") == kNullArray);
  CHECK(server.run("XSETID s 1-0") == kOk);
  CHECK(server.run("XADD s 2 n 2") == bulk("2-0"));
  CHECK(server.run("XREADGROUP GROUP g ben CLAIM 0 STREAMS s >") == of_s({entry("2", 0, 1)}));
}

TEST_CASE("Each way to deliver an entry changes when CLAIM takes it", "[stream_claims]") {
  ClaimServer server;
  server.run("XADD s 4 n 4");
  server.run("XREADGROUP GROUP g anna STREAMS s >");
  server.advance_ms(10);
  CHECK(server.run("XREADGROUP GROUP g ben CLAIM 11 STREAMS s >") == kNullArray);
  // The history is delivered again.
  server.run("XCLAIM s g ben 0 1-0");
  server.advance_ms(10);
  server.run("XREADGROUP GROUP g ben STREAMS s 0");
  server.run("XAUTOCLAIM s g carl 0 2-0 COUNT 1");
  server.run("XCLAIM s g anna 0 3-0 IDLE 5");
  CHECK(server.run("XREADGROUP GROUP g dora CLAIM 1 STREAMS s >") ==
        of_s({entry("4", 20, 1), entry("3", 5, 2)}));
  server.advance_ms(10);
  // The group's place is set back, so that entries are delivered once more.
  server.run("XGROUP SETID s g 2-0");
  CHECK(server.run("XREADGROUP GROUP g anna COUNT 1 STREAMS s >") ==
        of_s({array({bulk("3-0"), bulks({"n", "3"})})}));
  server.run("XGROUP SETID s g 4-0");
  CHECK(server.run("XREADGROUP GROUP g dora CLAIM 1 STREAMS s >") ==
        of_s({entry("1", 10, 3), entry("2", 10, 2), entry("4", 10, 2)}));
  CHECK(server.run("XACKDEL s g IDS 1 4-0") == array({integer(1)}));
  server.run("XGROUP DELCONSUMER s g anna");
  CHECK(server.run("XREADGROUP GROUP g ben CLAIM 0 STREAMS s >") ==
        of_s({entry("1", 0, 4), entry("2", 0, 3)}));
}

TEST_CASE("CLAIM takes what the reply's limits allow, and no new entries behind it",
          "[stream_claims]") {
  ClaimServer server;
  CHECK(server.run("XREADGROUP GROUP g ben CLAIM 0 MAXCOUNT 1 STREAMS s >") ==
        of_s({entry("1", 0, 1)}));
  CHECK(server.run("XREADGROUP GROUP g ben CLAIM 0 MAXCOUNT 3 STREAMS s >") ==
        of_s({entry("1", 0, 2), entry("2", 0, 1), entry("3", 0, 0)}));
  server.run("XADD s 4 n 4");
  CHECK(server.run("XREADGROUP GROUP g ben CLAIM 0 MAXSIZE 1 STREAMS s >") ==
        of_s({entry("1", 0, 3)}));
  CHECK(server.run("XPENDING s g - + 9") ==
        array({pending("1", "ben", 0, 4), pending("2", "ben", 0, 2), pending("3", "ben", 0, 1)}));
}

TEST_CASE("CLAIM concerns new entries alone, not a consumer's history", "[stream_claims]") {
  ClaimServer server;
  CHECK(server.run("XREADGROUP GROUP g ben CLAIM 0 STREAMS s 0") == of_s({}));
}

TEST_CASE("With NOACK what is claimed stays pending and what is new does not", "[stream_claims]") {
  ClaimServer server;
  CHECK(server.run("XREADGROUP GROUP g ben NOACK CLAIM 0 COUNT 9 STREAMS s >") ==
        of_s({entry("1", 0, 1), entry("2", 0, 1), entry("3", 0, 0)}));
  CHECK(server.run("XPENDING s g - + 9") ==
        array({pending("1", "ben", 0, 2), pending("2", "ben", 0, 2)}));
}

TEST_CASE("CLAIM wants a time that is a whole number", "[stream_claims]") {
  ClaimServer server;
  const std::string none = error("ERR min-idle-time is not an integer or out of range");
  CHECK(server.run("XREADGROUP GROUP g ben CLAIM x STREAMS s >") == none);
  CHECK(server.run("XREADGROUP GROUP g ben CLAIM +1 STREAMS s >") == none);
  CHECK(server.run("XREADGROUP GROUP g ben CLAIM -1 STREAMS s >") ==
        error("ERR min-idle-time must be a positive integer"));
  CHECK(server.run("XREAD CLAIM 0 STREAMS s 0") ==
        error("ERR The CLAIM option is only supported by XREADGROUP. You called XREAD instead."));
}

TEST_CASE("What is claimed is propagated as the claim of each entry", "[stream_claims]") {
  ClaimServer server;
  PropagationRecorder stream(server);
  const std::string now = std::to_string(server.now_ms());
  server.run("XREADGROUP GROUP g ben COUNT 2 CLAIM 0 STREAMS s >");
  const std::string claim = " TIME " + now + " RETRYCOUNT 2 FORCE JUSTID LASTID 2-0";
  CHECK(stream.take() == "MULTI; SELECT 0; XCLAIM s g ben 0 1-0" + claim +
                             "; XCLAIM s g ben 0 2-0" + claim + "; EXEC");
}

TEST_CASE("A client waits for entries to have been pending for long", "[stream_claims]") {
  ClaimServer server;
  server.run("XREADGROUP GROUP g anna STREAMS s >");
  TestClient waiting(server);
  server.advance_ms(100);
  REQUIRE(waiting.run("XREADGROUP GROUP g ben BLOCK 500 CLAIM 300 STREAMS s >").empty());
  server.advance_ms(199);
  server.tick();
  CHECK(waiting.take_output().empty());
  server.advance_ms(1);
  server.tick();
  CHECK(waiting.take_output() ==
        of_s({entry("1", 300, 1), entry("2", 300, 1), entry("3", 300, 1)}));
}

TEST_CASE("A wait with CLAIM ends when its own time is over", "[stream_claims]") {
  ClaimServer server;
  server.run("XREADGROUP GROUP g anna STREAMS s >");
  TestClient waiting(server);
  REQUIRE(waiting.run("XREADGROUP GROUP g ben BLOCK 250 CLAIM 100 STREAMS s >").empty());
  // Somebody else takes them before.
  server.advance_ms(99);
  server.run("XCLAIM s g carl 0 1-0 2-0 3-0");
  server.advance_ms(1);
  server.tick();
  CHECK(waiting.take_output().empty());
  server.run("XACK s g 1-0 2-0 3-0");
  server.advance_ms(149);
  server.tick();
  CHECK(waiting.take_output().empty());
  server.advance_ms(1);
  server.tick();
  CHECK(waiting.take_output() == kNullArray);
}

TEST_CASE("A wait with CLAIM is for the first entry that was not deleted", "[stream_claims]") {
  ClaimServer server;
  server.advance_ms(10);
  server.run("XREADGROUP GROUP g anna STREAMS s >");
  server.run("XDEL s 1-0 2-0");
  TestClient waiting(server);
  REQUIRE(waiting.run("XREADGROUP GROUP g ben BLOCK 500 CLAIM 300 STREAMS s >").empty());
  server.advance_ms(299);
  server.tick();
  CHECK(waiting.take_output().empty());
  server.advance_ms(1);
  server.tick();
  CHECK(waiting.take_output() == of_s({entry("3", 300, 1)}));
}

TEST_CASE("A wait with CLAIM sleeps while nothing is pending", "[stream_claims]") {
  ClaimServer server;
  server.run("XREADGROUP GROUP g anna STREAMS s >");
  server.run("XACK s g 1-0 2-0 3-0");
  TestClient waiting(server);
  REQUIRE(waiting.run("XREADGROUP GROUP g ben BLOCK 0 CLAIM 1 STREAMS s >").empty());
  CHECK(server.server.clients().next_deadline_ms() == INT64_MAX);
  // An entry is delivered without being new.
  server.run("XCLAIM s g anna 0 2-0 FORCE");
  CHECK(server.server.clients().next_deadline_ms() == server.now_ms() + 1);
  CHECK(waiting.take_output().empty());
  server.advance_ms(1);
  server.tick();
  CHECK(waiting.take_output() == of_s({entry("2", 1, 2)}));
}

TEST_CASE("A wait with CLAIM sleeps until the first entry has been pending for long",
          "[stream_claims]") {
  ClaimServer server;
  server.run("XREADGROUP GROUP g anna STREAMS s >");
  TestClient waiting(server);
  server.advance_ms(10);
  REQUIRE(waiting.run("XREADGROUP GROUP g ben BLOCK 0 CLAIM 15 STREAMS s >").empty());
  const int64_t due_ms = server.now_ms() + 5;
  CHECK(server.server.clients().next_deadline_ms() == due_ms);
  // The others are as new or newer.
  server.run("XCLAIM s g carl 0 3-0");
  CHECK(server.server.clients().next_deadline_ms() == due_ms);
  // All were delivered later than thought: it looks, and sleeps on.
  server.advance_ms(4);
  server.run("XCLAIM s g carl 0 1-0 2-0 3-0");
  server.advance_ms(1);
  server.tick();
  CHECK(waiting.take_output().empty());
  CHECK(server.server.clients().next_deadline_ms() == server.now_ms() + 14);
  // One was delivered earlier than thought.
  server.run("XCLAIM s g carl 0 2-0 IDLE 12");
  CHECK(server.server.clients().next_deadline_ms() == server.now_ms() + 3);
  server.advance_ms(3);
  server.tick();
  CHECK(waiting.take_output() == of_s({entry("2", 15, 3)}));
}

TEST_CASE("Every client that waits with CLAIM hears of the first delivery", "[stream_claims]") {
  ClaimServer server;
  server.run("XREADGROUP GROUP g anna STREAMS s >");
  server.run("XACK s g 1-0 2-0 3-0");
  TestClient first(server);
  TestClient second(server);
  TestClient third(server);
  REQUIRE(first.run("XREADGROUP GROUP g ben COUNT 1 BLOCK 0 CLAIM 5 STREAMS s >").empty());
  REQUIRE(second.run("XREADGROUP GROUP g carl COUNT 1 BLOCK 3 CLAIM 5 STREAMS s >").empty());
  REQUIRE(third.run("XREADGROUP GROUP g dora COUNT 1 BLOCK 0 CLAIM 5 STREAMS s >").empty());
  server.run("XADD s 4 n 4");
  CHECK(first.take_output() == of_s({entry("4", 0, 0)}));
  // A wait that ends before does so at its own time.
  CHECK(server.server.clients().next_deadline_ms() == server.now_ms() + 3);
  server.advance_ms(3);
  server.tick();
  CHECK(second.take_output() == kNullArray);
  server.advance_ms(2);
  server.tick();
  CHECK(third.take_output() == of_s({entry("4", 5, 1)}));
}

TEST_CASE("A change looks at few of many pending entries for each client that waits",
          "[stream_claims]") {
  constexpr int kPending = 20'000;
  constexpr int kWaiting = 50;
  constexpr int kChanges = 100;
  ClaimServer server;
  for (int i = 4; i <= kPending; ++i) server.run("XADD s " + std::to_string(i) + " n 1");
  server.run("XREADGROUP GROUP g anna STREAMS s >");
  std::vector<std::unique_ptr<TestClient>> waiting;
  for (int i = 0; i < kWaiting; ++i) {
    waiting.push_back(std::make_unique<TestClient>(server));
    CHECK(waiting.back()->run("XREADGROUP GROUP g ben BLOCK 0 CLAIM 9000 STREAMS s >").empty());
  }
  // To look at all of them for each client would be 100,000,000 steps, and as many once they are
  // trimmed.
  const std::string unchanged = "XSETID s " + std::to_string(kPending);
  for (int i = 0; i < kChanges; ++i) CHECK(server.run(unchanged) == kOk);
  CHECK(server.run("XTRIM s MAXLEN 1") == integer(kPending - 1));
  for (int i = 0; i < kChanges; ++i) CHECK(server.run(unchanged) == kOk);
  server.advance_ms(9000);
  server.tick();
  const std::string last = std::to_string(kPending);
  size_t served = 0;
  for (const auto& client : waiting) {
    const std::string reply = client->take_output();
    if (reply.empty()) continue;
    ++served;
    CHECK(reply ==
          of_s({array({bulk(last + "-0"), bulks({"n", "1"}), integer(9000), integer(1)})}));
  }
  CHECK(served == 1);
}

TEST_CASE("Who waits with CLAIM is served new entries at once", "[stream_claims]") {
  ClaimServer server;
  server.run("XREADGROUP GROUP g anna STREAMS s >");
  TestClient waiting(server);
  REQUIRE(waiting.run("XREADGROUP GROUP g ben BLOCK 0 CLAIM 1000 STREAMS s >").empty());
  server.advance_ms(1);
  server.run("XADD s 4 n 4");
  CHECK(waiting.take_output() == of_s({entry("4", 0, 0)}));
}

TEST_CASE("XNACK takes entries from their consumer and leaves them to whoever claims", "[xnack]") {
  ClaimServer server;
  server.advance_ms(10);
  CHECK(server.run("XNACK s g FAIL IDS 2 1-0 9-0") == integer(1));
  CHECK(server.run("XPENDING s g - + 9") ==
        array({pending("1", "", -1, 1), pending("2", "anna", 10, 1)}));
  CHECK(server.run("XPENDING s g") ==
        array({integer(2), bulk("1-0"), bulk("2-0"), array({bulks({"anna", "1"})})}));
  CHECK(server.run("XPENDING s g - + 9 anna") == array({pending("2", "anna", 10, 1)}));
  CHECK(server.run("XREADGROUP GROUP g anna STREAMS s 0") ==
        of_s({array({bulk("2-0"), bulks({"n", "2"})})}));
  CHECK(server.run("XCLAIM s g ben 9000000000000000000 1-0 JUSTID") == bulks({"1-0"}));
  CHECK(server.run("XPENDING s g - + 9 ben") == array({pending("1", "ben", 0, 1)}));
}

TEST_CASE("XNACK counts deliveries by its mode", "[xnack]") {
  ClaimServer server;
  const auto deliveries_after = [&](const std::string& options) {
    server.run("XCLAIM s g anna 0 1-0 RETRYCOUNT 3");
    CHECK(server.run("XNACK s g " + options) == integer(1));
    const std::string reply = server.run("XPENDING s g 1-0 1-0 1");
    return reply.substr(reply.rfind(':') + 1, reply.rfind('\r') - reply.rfind(':') - 1);
  };
  CHECK(deliveries_after("SILENT IDS 1 1-0") == "2");
  CHECK(deliveries_after("FAIL IDS 1 1-0") == "3");
  CHECK(deliveries_after("fatal IDS 1 1-0") == "9223372036854775807");
  CHECK(deliveries_after("FATAL IDS 1 1-0 RETRYCOUNT 7") == "7");
  CHECK(deliveries_after("SILENT IDS 1 1-0 RETRYCOUNT 0") == "0");
  server.run("XNACK s g SILENT IDS 1 1-0");
  CHECK(server.run("XPENDING s g 1-0 1-0 1") == array({pending("1", "", -1, 0)}));
  // The number stays where it is at its end.
  server.run("XNACK s g FATAL IDS 1 1-0");
  server.run("XCLAIM s g anna 0 1-0");
  CHECK(server.run("XPENDING s g 1-0 1-0 1") == array({pending("1", "anna", 0, INT64_MAX)}));
}

TEST_CASE("XNACK FORCE makes entries pending that were not", "[xnack]") {
  ClaimServer server;
  CHECK(server.run("XNACK s g FAIL IDS 1 3-0") == integer(0));
  CHECK(server.run("XNACK s g FAIL IDS 2 3-0 7-0 FORCE") == integer(1));
  CHECK(server.run("XPENDING s g 3-0 + 9") == array({pending("3", "", -1, 0)}));
  CHECK(server.run("XNACK s g FATAL IDS 1 3-0 FORCE") == integer(1));
  CHECK(server.run("XPENDING s g 3-0 + 9") == array({pending("3", "", -1, INT64_MAX)}));
}

TEST_CASE("XNACK takes its options before the ids and behind them", "[xnack]") {
  ClaimServer server;
  CHECK(server.run("XNACK s g FAIL FORCE RETRYCOUNT 7 IDS 1 3-0") == integer(1));
  CHECK(server.run("XPENDING s g 3-0 + 9") == array({pending("3", "", -1, 7)}));
  CHECK(server.run("XNACK s g FATAL RETRYCOUNT 8 IDS 2 3-0 1-0 FORCE") == integer(2));
  CHECK(server.run("XPENDING s g 3-0 + 9") == array({pending("3", "", -1, 8)}));
}

TEST_CASE("XREADGROUP CLAIM begins with released entries, in the order of their release",
          "[xnack]") {
  ClaimServer server;
  server.run("XADD s 4 n 4");
  server.run("XREADGROUP GROUP g anna STREAMS s >");
  server.advance_ms(10);
  CHECK(server.run("XNACK s g FAIL IDS 3 3-0 1-0 4-0") == integer(3));
  CHECK(server.run("XNACK s g FAIL IDS 1 3-0") == integer(1));
  CHECK(server.run("XREADGROUP GROUP g ben COUNT 2 CLAIM 100 STREAMS s >") ==
        of_s({entry("1", -1, 1), entry("4", -1, 1)}));
  CHECK(server.run("XREADGROUP GROUP g ben CLAIM 5 STREAMS s >") ==
        of_s({entry("3", -1, 1), entry("2", 10, 1)}));
}

TEST_CASE("A consumer that waits with CLAIM is served by XNACK", "[xnack]") {
  ClaimServer server;
  server.run("XREADGROUP GROUP g anna STREAMS s >");
  TestClient waiting(server);
  CHECK(waiting.run("XREADGROUP GROUP g ben BLOCK 0 CLAIM 100000 STREAMS s >").empty());
  server.events();
  CHECK(server.run("XNACK s g FAIL IDS 1 2-0") == integer(1));
  CHECK(waiting.take_output() == of_s({entry("2", -1, 1)}));
}

TEST_CASE("XAUTOCLAIM takes released entries, and clears those whose entry is gone", "[xnack]") {
  ClaimServer server;
  server.run("XNACK s g FAIL IDS 2 1-0 2-0");
  server.run("XDEL s 2-0");
  PropagationRecorder stream(server);
  CHECK(server.run("XAUTOCLAIM s g ben 100000 0 JUSTID") ==
        array({bulk("0-0"), bulks({"1-0"}), bulks({"2-0"})}));
  CHECK(stream.take().find("XACK s g 2-0") != std::string::npos);
  CHECK(server.run("XPENDING s g - + 9") == array({pending("1", "ben", 0, 1)}));
}

TEST_CASE("Released entries are shown by XINFO, copied, and acknowledged", "[xnack]") {
  ClaimServer server;
  PropagationRecorder stream(server);
  server.run("XNACK s g FAIL IDS 2 2-0 1-0");
  CHECK(stream.take().ends_with("XNACK s g FAIL IDS 2 2-0 1-0"));
  CHECK(server.run("XINFO STREAM s FULL").ends_with(bulk("nacked-count") + integer(2)));
  server.run("COPY s copy");
  CHECK(server.run("XREADGROUP GROUP g ben CLAIM 0 COUNT 2 STREAMS copy >") ==
        array({array({bulk("copy"), array({entry("2", -1, 1), entry("1", -1, 1)})})}));
  CHECK(server.run("XACK s g 1-0 2-0") == integer(2));
  CHECK(server.run("XINFO STREAM s FULL").find("nacked-count") == std::string::npos);
}

TEST_CASE("XNACK refuses what makes no sense", "[xnack]") {
  ClaimServer server;
  const std::pair<const char*, std::string_view> kRequests[] = {
      {"SOME IDS 1 1-0", "ERR mode must be SILENT, FAIL, or FATAL"},
      {"FAIL IDS 1 1-0 MORE", "ERR Unrecognized XNACK option 'MORE'"},
      {"FAIL IDS 1 1-0 2-0", "ERR Unrecognized XNACK option '2-0'"},
      {"FAIL IDS 1 1-0 IDS 1 2-0", "ERR Unrecognized XNACK option 'IDS'"},
      {"FAIL IDS 1 1-0 RETRYCOUNT", "ERR Unrecognized XNACK option 'RETRYCOUNT'"},
      {"FAIL ID 1 1-0", "ERR Unrecognized XNACK option 'ID'"},
      {"FAIL FATAL IDS 1 1-0", "ERR Unrecognized XNACK option 'FATAL'"},
      {"FAIL FORCE RETRYCOUNT 1", "ERR syntax error, expected IDS keyword"},
      {"FAIL IDS 0 1-0", "ERR numids must be a positive integer"},
      {"FAIL IDS x 1-0", "ERR numids must be a positive integer"},
      {"FAIL IDS 2 1-0", "ERR number of IDs doesn't match numids"},
      {"FAIL IDS 1 1-0 RETRYCOUNT -1", "ERR Invalid RETRYCOUNT value, must be >= 0"},
      {"FAIL IDS 1 1-0 RETRYCOUNT x", "ERR value is not an integer or out of range"}};
  for (const auto& [options, text] : kRequests) {
    CAPTURE(options);
    CHECK(server.run("XNACK s g " + std::string(options)) == error(text));
  }
  CHECK(server.run("XNACK s g FAIL IDS 2 1-0 x") ==
        error("ERR Invalid stream ID specified as stream command argument"));
  CHECK(server.run("XNACK s none FAIL IDS 1 1-0") ==
        error("NOGROUP No such key 's' or consumer group 'none'"));
  CHECK(server.run("XNACK none g FAIL IDS 1 1-0") ==
        error("NOGROUP No such key 'none' or consumer group 'g'"));
  CHECK(server.run("XPENDING s g - + 9").find("anna") != std::string::npos);
}

TEST_CASE("Many releases of one entry are remembered once", "[xnack]") {
  ClaimServer server;
  server.run("XNACK s g FAIL IDS 1 2-0");
  for (int i = 0; i < 1000; ++i) server.run("XNACK s g FAIL IDS 1 1-0");
  CHECK(server.run("XREADGROUP GROUP g ben CLAIM 0 COUNT 1 STREAMS s >") ==
        of_s({entry("2", -1, 1)}));
  CHECK(server.run("XREADGROUP GROUP g ben CLAIM 0 COUNT 1 STREAMS s >") ==
        of_s({entry("1", -1, 1)}));
}

}  // namespace latchkey::tests
