#include "testing/faults.h"

#include <string>
#include <vector>

#include "unit/catch.h"
#include "unit/propagation_recorder.h"
#include "unit/testing/tested_server.h"

using namespace latchkey;
using tests::bulk;
using tests::bulks;
using tests::error;
using tests::integer;
using tests::kNull;
using tests::kOk;
using tests::TestClient;
using tests::TestedServer;

namespace {

constexpr std::string_view kSyntaxError = "-ERR syntax error\r\n";

struct FaultyServer : TestedServer {
  // A fault whose words contain no spaces.
  void fault(const std::string& definition) {
    CHECK(admin.run("FAULT ADD " + definition).starts_with(":"));
  }
  void fault_with_error(const std::string& selector, std::string_view text) {
    std::vector<std::string> words = {"FAULT", "ADD"};
    for (size_t start = 0; start < selector.size();) {
      const size_t end = std::min(selector.find(' ', start), selector.size());
      words.push_back(selector.substr(start, end - start));
      start = end + 1;
    }
    for (const std::string_view word : {std::string_view("DO"), std::string_view("ERROR"), text})
      words.emplace_back(word);
    const std::vector<std::string_view> views(words.begin(), words.end());
    CHECK(admin.run_words(views).starts_with(":"));
  }
  void pass_ms(int64_t ms) {
    advance_ms(ms);
    tick();
  }
  TestClient admin{*this};
};

bool is_ending(TestClient& client) {
  return client->has(server::kClientCloseAfterReply);
}
bool waits(TestClient& client) {
  return client->has(server::kClientBlocked);
}

}  // namespace

TEST_CASE("ERROR answers in place of the request, as often as it is to") {
  FaultyServer server;
  TestClient client(server);
  server.fault_with_error("COMMAND set KEY a* TIMES 2", "LOADING wait a little");
  CHECK(client.run("SET a1 1") == error("LOADING wait a little"));
  CHECK(client.run("GET a1") == kNull);
  CHECK(client.run("SET b 1") == kOk);
  CHECK(client.run("SET a2 1") == error("LOADING wait a little"));
  CHECK(client.run("SET a1 1") == kOk);
  CHECK(server.hits() == 2);
  CHECK(server.server.layer<testing::Faults>().faults()[0].matches == 3);
  CHECK(server.server.stats().errors.contains("LOADING"));
}

TEST_CASE("Without faults the dispatcher asks about none") {
  FaultyServer server;
  CHECK((server.server.state() & server::kStateFaults) == 0);
  server.fault("DO DROP");
  server.fault("DO DROP");
  CHECK((server.server.state() & server::kStateFaults) != 0);
  CHECK(server.admin.run("FAULT DEL 1") == kOk);
  CHECK((server.server.state() & server::kStateFaults) != 0);
  CHECK(server.admin.run("FAULT DEL 1") == error("ERR no fault has that id"));
  CHECK(server.admin.run("FAULT DEL 0") == error("ERR no fault has that id"));
  CHECK(server.admin.run("FAULT DEL x") == error("ERR value is not an integer or out of range"));
  CHECK(server.admin.run("FAULT CLEAR") == kOk);
  CHECK((server.server.state() & server::kStateFaults) == 0);
}

TEST_CASE("The first fault that matches and is due takes place") {
  FaultyServer server;
  TestClient client(server);
  server.fault_with_error("COMMAND get AFTER 1 TIMES 1", "ERR first");
  server.fault_with_error("COMMAND get", "ERR second");
  CHECK(client.run("GET a") == error("ERR second"));
  CHECK(client.run("GET a") == error("ERR first"));
  CHECK(client.run("GET a") == error("ERR second"));
  CHECK(server.hits(0) == 1);
  CHECK(server.hits(1) == 2);
  CHECK(server.admin.run("FAULT RESET") == kOk);
  CHECK(server.hits(1) == 0);
  CHECK(client.run("GET a") == error("ERR second"));
  CHECK(client.run("GET a") == error("ERR first"));
}

TEST_CASE("PROBABILITY hits some calls, the same ones with the same seed") {
  const auto pattern = [] {
    FaultyServer server;
    TestClient client(server);
    server.server.environment().random = base::Random(7);
    server.fault_with_error("COMMAND ping PROBABILITY 0.5", "ERR by chance");
    std::string hits;
    for (int i = 0; i < 64; ++i) hits += client.run("PING").starts_with("-") ? 'x' : '.';
    return hits;
  };
  const std::string hits = pattern();
  CHECK(hits.find('x') != std::string::npos);
  CHECK(hits.find('.') != std::string::npos);
  CHECK(pattern() == hits);
}

TEST_CASE("FAULT LIST shows faults as they were given, with their counts") {
  FaultyServer server;
  server.fault_with_error("command GET key a", "BUSY no");
  server.admin.run("GET a");
  CHECK(server.admin.run("FAULT LIST") ==
        tests::array(
            {tests::array({bulk("id"), integer(1), bulk("fault"),
                           tests::bulks({"command", "GET", "key", "a", "DO", "ERROR", "BUSY no"}),
                           bulk("matches"), integer(1), bulk("hits"), integer(1)})}));
}

TEST_CASE("FAULT and CALLS meet no faults") {
  FaultyServer server;
  server.fault("DO DROP");
  CHECK(server.admin.run("FAULT LIST").starts_with("*1\r\n"));
  CHECK(server.admin.run("CALLS START") == kOk);
  CHECK(server.admin.run("FAULT HELP").starts_with("*"));
  CHECK(server.admin.run("FAULT CLEAR") == kOk);
  CHECK_FALSE(is_ending(server.admin));
}

TEST_CASE("FAULT and CALLS do not wait for a pause of all clients") {
  FaultyServer server;
  CHECK(server.admin.run("CLIENT PAUSE 5000") == kOk);
  server.fault("DO HANG");
  CHECK(server.admin.run("FAULT LIST").starts_with("*1\r\n"));
  CHECK(server.admin.run("CALLS START") == kOk);
  CHECK(server.admin.run("FAULT CLEAR") == kOk);
  CHECK(server.admin.run("PING") == "");
  CHECK(waits(server.admin));
}

TEST_CASE("FAULT ADD refuses what it does not understand") {
  FaultyServer server;
  const auto add = [&](const std::string& words) { return server.admin.run("FAULT ADD " + words); };
  const std::string duration =
      error("ERR invalid duration, use a number of milliseconds or one such as 1.5s");
  const std::string trickle = error("ERR TRICKLE takes <bytes>/<ms>, such as 10/5");
  const std::string number = error("ERR value is not an integer or out of range");
  CHECK(add("DROP now") == kSyntaxError);
  CHECK(add("COMMAND get") == error("ERR DO and an action were expected. Try FAULT HELP."));
  CHECK(add("COMMAND get DO") == kSyntaxError);
  CHECK(add("DO DROP now") == kSyntaxError);
  CHECK(add("DO NOSUCH") == error("ERR unknown action 'NOSUCH'. Try FAULT HELP."));
  CHECK(add("COMMAND nosuch DO DROP") == error("ERR unknown command 'nosuch'"));
  for (const std::string spared : {"clock", "Fault|Add", "CALLS|list", "psync"}) {
    CHECK(add("COMMAND get COMMAND " + spared + " DO DROP") ==
          error("ERR requests of '" + spared +
                "' meet no faults, so that whatever has others wait can be ended"));
  }
  CHECK(add("DB 99 DO DROP") == error("ERR DB index is out of range"));
  CHECK(add("DO ERROR") == kSyntaxError);
  CHECK(add("DO ERROR ") == error("ERR the text of an error must not be empty"));
  CHECK(add("DO ERROR two words") == kSyntaxError);
  CHECK(add("DO DELAY") == kSyntaxError);
  CHECK(add("DO DELAY x") == duration);
  CHECK(add("DO DELAY -1") == duration);
  CHECK(add("DO DELAY 99999999999999d") == duration);
  CHECK(add("DO DELAY 10 x") == duration);
  CHECK(add("DO DELAY 10 5") == error("ERR the longest delay is shorter than the shortest one"));
  CHECK(add("DO DELAY-REPLY 1 2 3") == kSyntaxError);
  CHECK(add("DO PAUSE") == kSyntaxError);
  CHECK(add("DO CUT") == kSyntaxError);
  CHECK(add("DO CUT x") == number);
  CHECK(add("DO CUT -1") ==
        error("ERR value is out of range, value must between 0 and 9223372036854775807"));
  for (const char* rate : {"", "10", "/5", "10/", "0/5", "10/0", "-1/5", "10/9223372036854775807"})
    CHECK(add("DO TRICKLE " + std::string(rate)) == trickle);
  for (const char* chance : {"0", "-1", "1.1", "nan"})
    CHECK_FALSE(add("PROBABILITY " + std::string(chance) + " DO DROP").starts_with(":"));
  CHECK(add("PROBABILITY 2 DO DROP") ==
        error("ERR PROBABILITY must be greater than 0 and at most 1"));
  CHECK(add("PROBABILITY x DO DROP") == error("ERR value is not a valid float"));
  CHECK(add("TIMES 0 DO DROP") ==
        error("ERR value is out of range, value must between 1 and 9223372036854775807"));
  CHECK(add("TIMES x DO DROP") == number);
  CHECK(add("AFTER -1 DO DROP") ==
        error("ERR value is out of range, value must between 0 and 9223372036854775807"));
  CHECK(add("DO REPLICA-LAG") == kSyntaxError);
  CHECK(add("DO REPLICA-LAG soon") ==
        error("ERR invalid duration, use a number of milliseconds or one such as 1.5s"));
  for (const char* action : {"REFUSE", "DISK-FULL", "FSYNC-ERROR", "REPLICA-LAG 10"})
    CHECK(add("COMMAND get DO " + std::string(action)) ==
          error("ERR this action is not about requests: it takes no COMMAND, KEY, CLIENT, USER or "
                "DB"));
  CHECK(add("DO ERROR " + std::string(1025, 'x')) ==
        error("ERR an argument may have up to 1024 bytes"));
  std::string long_one;
  for (int i = 0; i < 300; ++i) long_one += "TIMES 1 ";
  CHECK(add(long_one + "DO DROP") == kSyntaxError);
  CHECK(server.admin.run("FAULT LIST") == "*0\r\n");
  CHECK(server.admin.run("FAULT NOSUCH") ==
        error("ERR unknown subcommand 'NOSUCH'. Try FAULT HELP."));
  for (size_t i = 0; i < testing::Faults::kMax; ++i) server.fault("COMMAND get DO DROP");
  CHECK(add("COMMAND get DO DROP") == error("ERR there may be up to 1000 faults"));
}

TEST_CASE("DELAY lets one client wait, and its later requests behind it") {
  FaultyServer server;
  TestClient client(server);
  TestClient other(server);
  server.fault("COMMAND incr TIMES 1 DO DELAY 100");
  const std::string requests = "INCR n\r\nGET n\r\n";
  CHECK(client.send(requests) == "");
  CHECK(waits(client));
  CHECK(other.run("INCR n") == integer(1));
  server.pass_ms(99);
  CHECK(waits(client));
  server.pass_ms(1);
  CHECK_FALSE(waits(client));
  // What its connection kept comes again.
  CHECK(client.send(requests) == integer(2) + bulk("2"));
  CHECK(server.hits() == 1);
}

TEST_CASE("A request that is delayed is not delayed again when it comes again") {
  FaultyServer server;
  TestClient client(server);
  server.fault("COMMAND incr DO DELAY 10 20");
  CHECK(client.run("INCR n") == "");
  server.pass_ms(21);
  CHECK(client.run("INCR n") == integer(1));
  CHECK(client.run("INCR n") == "");
  CHECK(server.hits() == 2);
  // The fault is gone, the time is not over.
  server.admin.run("FAULT CLEAR");
  CHECK(waits(client));
  server.pass_ms(21);
  CHECK(client.run("INCR n") == integer(2));
}

TEST_CASE("A range of delays is used from end to end") {
  FaultyServer server;
  TestClient client(server);
  server.fault("COMMAND ping DO DELAY 1 3");
  std::vector<bool> seen(4);
  for (int i = 0; i < 100; ++i) {
    client.run("PING");
    const int64_t wait_ms = client->block->deadline_ms - server.now_ms();
    REQUIRE((wait_ms >= 1 && wait_ms <= 3));
    seen[static_cast<size_t>(wait_ms)] = true;
    server.pass_ms(3);
    CHECK(client.run("PING") == "+PONG\r\n");
  }
  CHECK(seen == std::vector<bool>{false, true, true, true});
}

TEST_CASE("DELAY-REPLY runs the request and holds its reply back") {
  FaultyServer server;
  TestClient client(server);
  server.fault("COMMAND incr DO DELAY-REPLY 1s");
  CHECK(client.send("PING\r\nINCR n\r\nPING\r\n") == "+PONG\r\n");
  CHECK(server.admin.run("GET n") == bulk("1"));
  server.pass_ms(999);
  CHECK(client.take_output() == "");
  server.pass_ms(1);
  CHECK(client.take_output() == integer(1));
  CHECK_FALSE(waits(client));
}

TEST_CASE("A reply that nobody wants may be held back") {
  FaultyServer server;
  TestClient client(server);
  server.admin.run("CALLS START");
  server.fault("COMMAND incr DO DELAY-REPLY 10");
  client.run("CLIENT REPLY OFF");
  CHECK(client.run("INCR n") == "");
  CHECK(waits(client));
  server.pass_ms(10);
  CHECK(client.take_output() == "");
  CHECK(server.admin.run("GET n") == bulk("1"));
}

TEST_CASE("DROP closes the connection before the request has run") {
  FaultyServer server;
  TestClient client(server);
  server.fault("COMMAND set DO DROP");
  CHECK(client.send("PING\r\nSET a 1\r\nSET b 1\r\n") == "+PONG\r\n");
  CHECK(is_ending(client));
  CHECK(server.admin.run("EXISTS a b") == integer(0));
}

TEST_CASE("RESET closes the connection at once") {
  FaultyServer server;
  TestClient client(server);
  server.fault("COMMAND set DO RESET");
  const uint64_t id = client->id;
  client.run("SET a 1");
  CHECK(server.server.clients().find(id) == nullptr);
  CHECK(server.admin.run("EXISTS a") == integer(0));
}

TEST_CASE("LOSE-REPLY runs the request and closes the connection without a reply") {
  FaultyServer server;
  TestClient client(server);
  server.fault("COMMAND incr DO LOSE-REPLY");
  CHECK(client.send("PING\r\nINCR n\r\nINCR n\r\n") == "+PONG\r\n");
  CHECK(is_ending(client));
  CHECK(server.admin.run("GET n") == bulk("1"));
}

TEST_CASE("HANG and HANG-REPLY send nothing any more, and the connection stays") {
  FaultyServer server;
  TestClient client(server);
  TestClient other(server);
  server.fault("COMMAND incr DO HANG");
  server.fault("COMMAND decr DO HANG-REPLY");
  CHECK(client.run("INCR n") == "");
  CHECK(other.run("DECR m") == "");
  CHECK(server.admin.run("MGET n m") == tests::array({std::string(kNull), bulk("-1")}));
  server.pass_ms(1'000'000'000);
  CHECK(waits(client));
  CHECK(waits(other));
  CHECK(server.admin.run("CLIENT UNBLOCK " + std::to_string(client->id)) == integer(0));
  CHECK(server.admin.run("CLIENT KILL ID " + std::to_string(client->id)) == integer(1));
}

TEST_CASE("CUT sends the beginning of a reply, whatever its size") {
  FaultyServer server;
  TestClient client(server);
  const std::string large(100'000, 'x');
  server.admin.run("SET large " + large);
  SECTION("a large reply") {
    server.fault("COMMAND get DO CUT 50000");
    CHECK(client.send("PING\r\nGET large\r\n") == "+PONG\r\n" + bulk(large).substr(0, 50000));
  }
  SECTION("nothing of it") {
    server.fault("COMMAND get DO CUT 0");
    CHECK(client.run("GET large") == "");
  }
  SECTION("more than there is") {
    server.fault("COMMAND get DO CUT 200000");
    CHECK(client.run("GET large") == bulk(large));
  }
  CHECK(is_ending(client));
}

TEST_CASE("TRICKLE sends a reply in pieces") {
  FaultyServer server;
  TestClient client(server);
  server.admin.run("SET a 12345");
  server.fault("COMMAND get DO TRICKLE 4/10");
  CHECK(client.run("GET a") == "");
  std::string reply;
  for (const size_t size : {4, 4, 3}) {
    CHECK(waits(client));
    server.pass_ms(9);
    CHECK(client.take_output() == "");
    server.pass_ms(1);
    const std::string piece = client.take_output();
    CHECK(piece.size() == size);
    reply += piece;
  }
  CHECK(reply == bulk("12345"));
  CHECK_FALSE(waits(client));
}

TEST_CASE("A client may go while its reply is held back") {
  FaultyServer server;
  server.fault("COMMAND ping DO TRICKLE 1/10");
  server.fault("COMMAND echo DO DELAY 10");
  TestClient one(server);
  TestClient two(server);
  one.run("PING");
  two.run("ECHO a");
  server.pass_ms(10);
  one->close();
  two->close();
  server.pass_ms(100);
  CHECK(server.admin.run("FAULT LIST").starts_with("*2\r\n"));
}

TEST_CASE("GARBAGE comes in place of the reply to a request that has run") {
  FaultyServer server;
  TestClient client(server);
  server.fault("COMMAND incr TIMES 1 DO GARBAGE");
  const std::string garbage = client.run("INCR n");
  CHECK(garbage.size() == 34);
  CHECK(garbage.ends_with("\r\n"));
  for (size_t i = 0; i < 32; ++i) CHECK((garbage[i] & 0x80) != 0);
  CHECK_FALSE(is_ending(client));
  CHECK(client.run("INCR n") == integer(2));
}

TEST_CASE("PAUSE lets all clients wait") {
  FaultyServer server;
  TestClient client(server);
  TestClient other(server);
  server.fault("COMMAND set TIMES 1 DO PAUSE 100");
  CHECK(client.run("SET a 1") == "");
  CHECK(other.run("PING") == "");
  CHECK(waits(client));
  CHECK(waits(other));
  server.pass_ms(100);
  CHECK(client.run("SET a 1") == kOk);
  CHECK(other.run("PING") == "+PONG\r\n");
}

TEST_CASE("REFUSE counts connections, not requests") {
  FaultyServer server;
  server.fault("AFTER 1 TIMES 1 DO REFUSE");
  CHECK(server.admin.run("PING") == "+PONG\r\n");
  testing::Faults& faults = server.server.layer<testing::Faults>();
  CHECK_FALSE(faults.refuses_connection());
  CHECK(faults.refuses_connection());
  CHECK_FALSE(faults.refuses_connection());
  CHECK(server.hits() == 1);
}

TEST_CASE("EXPIRE has the keys of a request go as if their time had come") {
  FaultyServer server;
  TestClient client(server);
  tests::PropagationRecorder stream(server);
  client.run("SET lock me PX 30000");
  client.run("SET other 1");
  stream.take();
  server.events();
  server.fault("COMMAND get KEY lock TIMES 1 DO EXPIRE");
  CHECK(client.run("GET lock") == kNull);
  CHECK(server.events() == "expired lock");
  CHECK(stream.take() == "DEL lock");
  CHECK(server.server.environment().figures.expired_keys == 1);
  // A key without a deadline goes as well; one that is not there is no matter.
  server.fault("COMMAND mget DO EXPIRE");
  CHECK(client.run("MGET other nothing") == tests::array({std::string(kNull), std::string(kNull)}));
  CHECK(server.events() == "expired other");
}

TEST_CASE("EVICT has the keys of a request go as if memory were short") {
  FaultyServer server;
  TestClient client(server);
  tests::PropagationRecorder stream(server);
  client.run("SELECT 2");
  client.run("SET a 1");
  stream.take();
  server.events();
  server.fault("DB 2 DO EVICT");
  CHECK(client.run("APPEND a 2") == integer(1));
  CHECK(server.events() == "evicted a, append a");
  CHECK(stream.take() == "DEL a; APPEND a 2");
  CHECK(server.server.stats().evicted_keys == 1);
}

TEST_CASE("A watched key that a fault takes away fails the transaction") {
  FaultyServer server;
  TestClient client(server);
  client.run("SET a 1");
  client.run("WATCH a");
  server.fault("COMMAND get DO EXPIRE");
  client.run("GET a");
  client.run("MULTI");
  client.run("PING");
  CHECK(client.run("EXEC") == tests::kNullArray);
}

TEST_CASE("In a transaction ERROR, EXPIRE and EVICT concern single requests") {
  FaultyServer server;
  TestClient client(server);
  client.run("SET a 1");
  server.fault_with_error("COMMAND incr", "ERR no");
  server.fault("COMMAND get DO EXPIRE");
  server.fault("COMMAND set DO DROP");
  client.run("MULTI");
  CHECK(client.run("INCR n") == tests::kQueued);
  client.run("GET a");
  client.run("SET b 1");
  CHECK(client.run("EXEC") ==
        tests::array({error("ERR no"), std::string(kNull), std::string(kOk)}));
  CHECK(server.hits(2) == 0);
  CHECK_FALSE(is_ending(client));
}

TEST_CASE("Other faults concern EXEC as a whole") {
  FaultyServer server;
  TestClient client(server);
  client.run("MULTI");
  client.run("INCR n");
  SECTION("ERROR ends the transaction with the error as it is") {
    server.fault_with_error("COMMAND exec", "MOVED 3999 127.0.0.1:6381");
    CHECK(client.run("EXEC") == error("MOVED 3999 127.0.0.1:6381"));
    CHECK(client.run("EXEC") == error("MOVED 3999 127.0.0.1:6381"));
    server.admin.run("FAULT CLEAR");
    CHECK(client.run("EXEC") == error("ERR EXEC without MULTI"));
    CHECK(server.admin.run("GET n") == kNull);
  }
  SECTION("LOSE-REPLY: it has run") {
    server.fault("COMMAND exec DO LOSE-REPLY");
    CHECK(client.run("EXEC") == "");
    CHECK(is_ending(client));
    CHECK(server.admin.run("GET n") == bulk("1"));
  }
  SECTION("DELAY: it runs later") {
    server.fault("COMMAND exec DO DELAY 10");
    CHECK(client.run("EXEC") == "");
    server.pass_ms(10);
    CHECK(client.run("EXEC") == tests::array({integer(1)}));
  }
}

TEST_CASE("In a script ERROR, EXPIRE and EVICT concern redis.call") {
  FaultyServer server;
  TestClient client(server);
  client.run("SET lock me");
  server.fault_with_error("COMMAND incr", "OOM no memory");
  server.fault("COMMAND get DO EXPIRE");
  server.fault("COMMAND del DO LOSE-REPLY");
  CHECK(client.run_words({"EVAL", "return redis.pcall('INCR', 'n')['err']", "0"}) ==
        bulk("OOM no memory"));
  const std::string_view compare_and_delete =
      "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end "
      "return 0";
  CHECK(client.run_words({"EVAL", compare_and_delete, "1", "lock", "me"}) == integer(0));
  client.run("SET lock me");
  CHECK(client.run_words({"EVAL", "return redis.call('DEL', KEYS[1])", "1", "lock"}) == integer(1));
  CHECK(server.hits(2) == 0);
  // The script as a whole is a request like others.
  server.admin.run("FAULT CLEAR");
  server.fault("COMMAND eval KEY lock DO LOSE-REPLY");
  CHECK(client.run_words({"EVAL", "return redis.call('INCR', KEYS[1])", "1", "lock"}) == "");
  CHECK(server.admin.run("GET lock") == bulk("1"));
}

TEST_CASE("A fault on the reply to a blocking command waits for that reply") {
  FaultyServer server;
  TestClient client(server);
  SECTION("LOSE-REPLY: the element is gone") {
    server.fault("COMMAND blpop DO LOSE-REPLY");
    client.run("BLPOP list 0");
    CHECK_FALSE(is_ending(client));
    server.admin.run("RPUSH list a");
    CHECK(client.take_output() == "");
    CHECK(is_ending(client));
    CHECK(server.admin.run("LLEN list") == integer(0));
  }
  SECTION("DELAY-REPLY") {
    server.fault("COMMAND blpop DO DELAY-REPLY 10");
    client.run("BLPOP list 0");
    server.admin.run("RPUSH list a");
    CHECK(client.take_output() == "");
    server.pass_ms(10);
    CHECK(client.take_output() == tests::bulks({"list", "a"}));
    CHECK_FALSE(waits(client));
  }
  SECTION("when its time is over") {
    server.fault("COMMAND blpop DO CUT 2");
    client.run("BLPOP list 1");
    server.pass_ms(1001);
    CHECK(client.take_output() == "*-");
    CHECK(is_ending(client));
  }
  SECTION("through a pause") {
    server.fault("COMMAND blpop DO LOSE-REPLY");
    client.run("BLPOP list 0");
    server.admin.run("MULTI");
    server.admin.run("RPUSH list a");
    server.admin.run("CLIENT PAUSE 1000 WRITE");
    server.admin.run("EXEC");
    CHECK_FALSE(is_ending(client));
    server.pass_ms(1001);
    CHECK(client.take_output() == "");
    CHECK(is_ending(client));
    CHECK(server.admin.run("LLEN list") == integer(0));
  }
}

TEST_CASE("Calls that fail by a fault are recorded with what was replied") {
  FaultyServer server;
  TestClient client(server);
  server.fault_with_error("COMMAND get TIMES 1", "LOADING x");
  server.fault("COMMAND incr TIMES 1 DO DELAY 10");
  server.fault("COMMAND incr DO LOSE-REPLY");
  server.fault("COMMAND set DO DROP");
  server.admin.run("CALLS START");
  client.run("GET a");
  client.run("INCR n");
  server.pass_ms(10);
  client.run("INCR n");
  client.run("INCR n");
  client.run("SET a 1");
  CHECK(server.calls() ==
        "GET a -> (error) LOADING x, INCR n -> (integer) 1, INCR n -> (integer) 2, "
        "SET a 1 -> (none)");
}

TEST_CASE("A replica's keys go when its master says so") {
  FaultyServer server;
  TestClient client(server);
  client.run("SET a 1");
  server.fault("COMMAND get DO EXPIRE");
  server.server.set_state(server::kStateReplica, true);
  CHECK(client.run("GET a") == bulk("1"));
  server.server.set_state(server::kStateReplica, false);
  CHECK(client.run("GET a") == kNull);
}

TEST_CASE("Messages follow a reply that trickles") {
  FaultyServer server;
  server.admin.run("SET a 123456789");
  server.fault("COMMAND get COMMAND ping TIMES 1 DO TRICKLE 4/10");
  const auto all_of_it = [&](TestClient& client) {
    std::string text;
    while (waits(client)) {
      server.admin.run("PUBLISH news first");
      server.admin.run("SET a 2");
      server.pass_ms(10);
      text += client.take_output();
    }
    return text;
  };
  const std::string message = bulks({"message", "news", "first"}).substr(1);
  SECTION("of RESP3") {
    TestClient client(server, 3);
    client.run("SUBSCRIBE news");
    client.run("CLIENT TRACKING ON");
    CHECK(client.run("GET a") == "");
    const std::string invalidation = ">2\r\n" + bulk("invalidate") + bulks({"a"});
    // Invalidations come last.
    CHECK(all_of_it(client) == bulk("123456789") + ">" + message + ">" + message + ">" + message +
                                   ">" + message + invalidation);
    server.admin.run("PUBLISH news first");
    CHECK(client.take_output() == ">" + message);
  }
  SECTION("of RESP2") {
    TestClient client(server);
    client.run("SUBSCRIBE news");
    CHECK(client.run("PING") == "");
    CHECK(all_of_it(client) == bulks({"pong", ""}) + "*" + message + "*" + message + "*" + message +
                                   "*" + message + "*" + message);
    server.admin.run("PUBLISH news first");
    CHECK(client.take_output() == "*" + message);
  }
  SECTION("though the client has gone") {
    TestClient client(server, 3);
    client.run("SUBSCRIBE news");
    client.run("GET a");
    server.admin.run("PUBLISH news first");
    server.pass_ms(10);
    client.take_output();
    client->close();
    CHECK(client.take_output() == "");
    CHECK(server.admin.run("PUBLISH news first") == integer(0));
  }
}

TEST_CASE("Messages follow a reply that is held back") {
  FaultyServer server;
  TestClient client(server, 3);
  client.run("CLIENT TRACKING ON");
  server.admin.run("SET a old");
  server.fault("COMMAND get COMMAND subscribe DO DELAY-REPLY 10");
  SECTION("the value of a key that has changed since") {
    CHECK(client.run("GET a") == "");
    server.admin.run("SET a new");
    server.pass_ms(10);
    CHECK(client.take_output() == bulk("old") + ">2\r\n" + bulk("invalidate") + bulks({"a"}));
  }
  SECTION("a subscription") {
    CHECK(client.run("SUBSCRIBE news") == "");
    server.admin.run("PUBLISH news first");
    server.pass_ms(10);
    CHECK(client.take_output() == ">3\r\n" + bulk("subscribe") + bulk("news") + integer(1) + ">" +
                                      bulks({"message", "news", "first"}).substr(1));
  }
  SECTION("as many as the client's limit of output allows") {
    REQUIRE(server.admin.run_words(
                {"CONFIG", "SET", "client-output-buffer-limit", "pubsub 100kb 0 0"}) == kOk);
    CHECK(client.run("SUBSCRIBE news") == "");
    const std::string publish = "PUBLISH news " + std::string(60'000, 'x');
    for (const bool is_over : {false, false, true}) {
      server.admin.run(publish);
      CHECK(client->has(server::kClientOverLimit) == is_over);
    }
  }
}

TEST_CASE("Whoever hangs is sent no messages either") {
  FaultyServer server;
  server.fault("COMMAND incr DO HANG");
  server.fault("COMMAND decr DO HANG-REPLY");
  for (const char* request : {"INCR n", "DECR n"}) {
    INFO(request);
    TestClient client(server, 3);
    client.run("SUBSCRIBE news");
    client.run("CLIENT TRACKING ON BCAST");
    client.run(request);
    for (int i = 0; i < 3; ++i) {
      CHECK(server.admin.run("PUBLISH news first") == integer(1));
      server.admin.run("SET a 1");
      server.pass_ms(1000);
    }
    CHECK(client.take_output() == "");
    CHECK(server.admin.run("CLIENT KILL ID " + std::to_string(client->id)) == integer(1));
    CHECK(client.take_output() == "");
  }
}

TEST_CASE("A request that has waited meets no fault that was added meanwhile") {
  FaultyServer server;
  TestClient client(server);
  server.fault("COMMAND incr DO DELAY 10");
  CHECK(client.run("INCR n") == "");
  server.admin.run("FAULT CLEAR");
  SECTION("it runs") {
    server.fault_with_error("COMMAND incr", "ERR new");
    server.pass_ms(10);
    CHECK(client.run("INCR n") == integer(1));
    CHECK(client.run("INCR n") == error("ERR new"));
  }
  SECTION("the next one does, also when there was none when it ran") {
    server.pass_ms(10);
    CHECK(client.run("INCR n") == integer(1));
    CHECK((server.server.state() & server::kStateFaults) == 0);
    server.fault_with_error("COMMAND incr", "ERR new");
    CHECK(client.run("INCR n") == error("ERR new"));
  }
  SECTION("and is forgotten with its client") {
    client->close();
    CHECK((server.server.state() & server::kStateFaults) == 0);
  }
}

TEST_CASE("The reply to QUIT comes late, and then the connection is closed") {
  FaultyServer server;
  TestClient client(server);
  SECTION("DELAY-REPLY") {
    server.fault("COMMAND quit DO DELAY-REPLY 50");
  }
  SECTION("TRICKLE") {
    server.fault("COMMAND quit DO TRICKLE 1/10");
  }
  CHECK(client.send("QUIT\r\nINCR n\r\n") == "");
  CHECK_FALSE(is_ending(client));
  std::string reply;
  for (int i = 0; i < 5; ++i) {
    CHECK(waits(client));
    server.pass_ms(10);
    reply += client.take_output();
  }
  CHECK(reply == kOk);
  CHECK(is_ending(client));
  CHECK(server.admin.run("EXISTS n") == integer(0));
}

TEST_CASE("Whoever says QUIT may hang") {
  FaultyServer server;
  TestClient client(server);
  server.fault("COMMAND quit DO HANG-REPLY");
  CHECK(client.run("QUIT") == "");
  CHECK(waits(client));
  CHECK_FALSE(is_ending(client));
}
